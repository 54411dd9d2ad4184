//! Blockwise quantized weights: a scale for each block of a row.

use half::bf16;
use xnn_format::{Datatype, Value};
use xnn_model::{DType, Quantization, Subgraph, Tensor};

use crate::fold;

/// XNNPACK's kernels multiply nibbles in the upper half of a byte by a 16th of the scale, which
/// must be a normal number too.
const MIN_SCALE: f32 = 16.0 * f32::MIN_POSITIVE;

/// The scales of all blocks of a constant, and the number of elements of a block.
struct Blocks {
    scales: Vec<f32>,
    size: usize,
}

/// The blocks of a constant; `None` if its rows do not divide into blocks, or if it has zero
/// points.
fn blocks(graph: &Subgraph, tensor: &Tensor) -> Option<Blocks> {
    let Some(Quantization::Blockwise { scales, zero_points: None, block_size: size }) =
        tensor.quantization
    else {
        return None;
    };
    let row = *tensor.shape.as_deref()?.last()?;
    let scales = graph.tensors.get(scales)?.constant_floats()?;
    let fits = size > 0
        && row.is_multiple_of(size)
        && scales.len() == tensor.elements()? / size
        && scales.iter().all(|scale| scale.is_finite());
    fits.then_some(Blocks { scales, size })
}

/// The real values of the weights.
pub(crate) fn unpacked(graph: &Subgraph, tensor: &Tensor) -> Option<Vec<f32>> {
    let Blocks { scales, size } = blocks(graph, tensor)?;
    let values = fold::integers(tensor)?;
    if values.len() != tensor.elements()? {
        return None;
    }
    let blocks = values.chunks_exact(size).zip(scales);
    Some(blocks.flat_map(|(block, scale)| block.iter().map(move |&v| v as f32 * scale)).collect())
}

/// 4-bit weights `[outputs, inputs]` in XNNPACK's representation; `None` if XNNPACK cannot multiply
/// them. It stores scales as bf16, so they are rounded to the nearest, by at most a factor of 2^-8.
pub(crate) fn packed(graph: &Subgraph, tensor: &Tensor) -> Option<Value> {
    let data = tensor.data.as_deref().filter(|_| tensor.dtype == DType::I4)?;
    let Blocks { scales, size } = blocks(graph, tensor)?;
    if scales.iter().any(|&scale| scale < MIN_SCALE) {
        return None;
    }
    let quantization = xnn_format::Quantization::Blockwise {
        scales: scales.into_iter().map(|scale| bf16::from_f32(scale).to_f32()).collect(),
        channel_dim: 0,
        block_size: size,
    };
    let value = Value::new(Datatype::QbInt4, quantization, tensor.shape.as_deref()?)
        .with_data(fold::excess_8(data));
    value.check().is_ok().then_some(value)
}
