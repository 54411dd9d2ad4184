//! Readers of weights.

use xnn_model::DType;

use crate::error::{Refusal, refuse};
use crate::quant::unpack_i4;
use crate::tensor::TensorView;

/// Reads the elements of weights, whose bytes need not be aligned.
pub(super) type Reader<W> = Box<dyn Fn(TensorView<'_>) -> Result<Vec<W>, Refusal> + Send + Sync>;

/// Reads floats.
pub(super) fn float_reader() -> Reader<f32> {
    Box::new(|weights| match weights.dtype {
        DType::F32 => {
            let (chunks, _) = weights.bytes.as_chunks::<4>();
            complete(chunks.iter().map(|c| f32::from_le_bytes(*c)), weights)
        }
        other => refuse(format!("{other} weights")),
    })
}

/// Reads 8-bit and 4-bit integers minus their zero point.
pub(super) fn integer_reader(zero_point: i32) -> Reader<i16> {
    Box::new(move |weights| {
        let less_zero = |q: i32| (q - zero_point) as i16;
        match weights.dtype {
            DType::U8 => complete(weights.bytes.iter().map(|&b| less_zero(b.into())), weights),
            DType::I8 => {
                complete(weights.bytes.iter().map(|&b| less_zero(b.cast_signed().into())), weights)
            }
            DType::I4 => {
                let unpacked = unpack_i4(weights.bytes, weights.elements());
                complete(unpacked.into_iter().map(|q| less_zero(q.into())), weights)
            }
            other => refuse(format!("{other} weights")),
        }
    })
}

/// All elements, or an error if their number does not match the shape.
fn complete<W>(
    elements: impl Iterator<Item = W>,
    weights: TensorView<'_>,
) -> Result<Vec<W>, Refusal> {
    let elements: Vec<W> = elements.take(weights.elements()).collect();
    if elements.len() == weights.elements() {
        Ok(elements)
    } else {
        refuse(format!("weights of shape {:?} are incomplete", weights.shape))
    }
}
