//! Conversion of elements to `f64`.

use half::{bf16, f16};
use xnn_model::DType;

/// Iterator over elements as `f64`. A list would take up to eight times the memory of the tensor.
pub(crate) type Numbers<'a> = Box<dyn ExactSizeIterator<Item = f64> + 'a>;

/// Converts elements as they are stored, without scale and zero point; `None` for types that are not numeric. 64-bit
/// integers are rounded to 53 bits.
pub(crate) fn numbers(dtype: DType, elements: &[u8]) -> Option<Numbers<'_>> {
    Some(match dtype {
        DType::F32 => decode(elements, |b| f32::from_ne_bytes(b).into()),
        DType::F64 => decode(elements, f64::from_ne_bytes),
        DType::F16 => decode(elements, |b| f16::from_ne_bytes(b).to_f64()),
        DType::BF16 => decode(elements, |b| bf16::from_ne_bytes(b).to_f64()),
        DType::I8 => decode(elements, |b| i8::from_ne_bytes(b).into()),
        DType::I16 => decode(elements, |b| i16::from_ne_bytes(b).into()),
        DType::I32 => decode(elements, |b| i32::from_ne_bytes(b).into()),
        DType::I64 => decode(elements, |b| i64::from_ne_bytes(b) as f64),
        DType::U8 | DType::Bool => decode(elements, |[byte]| byte.into()),
        DType::U16 => decode(elements, |b| u16::from_ne_bytes(b).into()),
        DType::U32 => decode(elements, |b| u32::from_ne_bytes(b).into()),
        DType::U64 => decode(elements, |b| u64::from_ne_bytes(b) as f64),
        _ => return None,
    })
}

fn decode<'a, const N: usize>(
    elements: &'a [u8],
    number: impl Fn([u8; N]) -> f64 + 'a,
) -> Numbers<'a> {
    Box::new(elements.as_chunks::<N>().0.iter().map(move |bytes| number(*bytes)))
}
