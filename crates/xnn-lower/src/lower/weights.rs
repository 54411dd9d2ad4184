//! Lowers weights and biases of convolutions and fully connected layers.

use bytes::Bytes;
use xnn_format::{Datatype, Quantization, UnaryOp, ValueId};
use xnn_model::{DType, TensorId};

use super::builder::{Builder, shared};
use crate::fold;
use crate::rules::weights::{
    Arithmetic, DynamicFilter, Layer, MIN_REQUANTIZATION, QuantizedFilter,
};

/// The operands of a layer's node.
pub(super) struct LayerValues {
    pub input: ValueId,
    pub filter: ValueId,
    pub bias: Option<ValueId>,
}

/// Prepares input, filter and bias. `input` replaces the layer's input if it was reshaped first.
pub(super) fn weights(b: &mut Builder<'_>, layer: &Layer, input: Option<ValueId>) -> LayerValues {
    let input = input.unwrap_or_else(|| b.value(layer.input));
    match layer.arithmetic {
        Arithmetic::Float => {
            let filter = b.value(layer.filter);
            LayerValues { input, filter, bias: layer.bias.map(|bias| b.value(bias)) }
        }
        Arithmetic::WeightsUnpacked => {
            let filter = b.unpacked(layer.filter);
            LayerValues { input, filter, bias: layer.bias.map(|bias| b.value(bias)) }
        }
        Arithmetic::Dynamic(filter) => dynamic(b, layer, input, filter),
        Arithmetic::DynamicImages => dynamic(b, layer, input, DynamicFilter::Int8),
        Arithmetic::Quantized(form) => {
            let min_scale = min_weight_scale(b, layer.input, layer.output);
            let filter = match form {
                QuantizedFilter::PerChannel => {
                    per_channel_filter(b, layer.filter, layer.channel_dim, min_scale)
                }
                QuantizedFilter::PerTensor => per_tensor_filter(b, layer.filter, min_scale),
            };
            let bias = layer.bias.map(|bias| quantized_bias(b, layer, form, bias, min_scale));
            LayerValues { input, filter, bias }
        }
    }
}

/// The operands of a layer whose input is quantized at run time.
fn dynamic(
    b: &mut Builder<'_>,
    layer: &Layer,
    input: ValueId,
    filter: DynamicFilter,
) -> LayerValues {
    let quantized = quantized_at_run_time(b, input, layer.num_nonbatch_dims);
    let filter = match filter {
        DynamicFilter::Int8 => per_channel_filter(b, layer.filter, layer.channel_dim, 0.0),
        DynamicFilter::Int4 => int4_filter(b, layer.filter),
        DynamicFilter::Blockwise => b.blockwise(layer.filter),
    };
    LayerValues { input: quantized, filter, bias: layer.bias.map(|bias| b.value(bias)) }
}

/// Quantizes floats at run time, with a scale for all elements of the last `num_nonbatch_dims`
/// dimensions.
pub(super) fn quantized_at_run_time(
    b: &mut Builder<'_>,
    input: ValueId,
    num_nonbatch_dims: usize,
) -> ValueId {
    let dims = b.value_dims(input);
    let quantization = Quantization::Dynamic { num_nonbatch_dims };
    let quantized = b.temporary(Datatype::QdInt8, quantization, &dims);
    b.unary(UnaryOp::Convert, input, quantized);
    quantized
}

/// The 8-bit weights of a matrix product, `[.., inputs, outputs]`, or `[.., outputs, inputs]` if
/// `is_transposed`, as those of a fully connected layer, `[outputs, inputs]`. Scales are raised to
/// `min_scale`.
pub(super) fn matrix_filter(
    b: &mut Builder<'_>,
    id: TensorId,
    is_transposed: bool,
    min_scale: f32,
) -> ValueId {
    let (tensor, dims) = (b.tensor(id), b.dims(id));
    let data = tensor.data.clone().unwrap_or_default();
    // The rule has checked the number of dimensions.
    let columns = dims.last().copied().unwrap_or(0);
    let rows = data.len().checked_div(columns).unwrap_or(0);
    let (outputs, inputs, data) = if is_transposed {
        (rows, columns, data)
    } else {
        (columns, rows, turned(&data, rows, columns).into())
    };
    per_channel(b, id, Datatype::QcInt8, &[outputs, inputs], 0, min_scale, data)
}

/// The transpose of a matrix of bytes.
fn turned(bytes: &[u8], rows: usize, columns: usize) -> Vec<u8> {
    /// Rows whose bytes are moved together, so that whole cache lines are written.
    const BLOCK: usize = 64;
    let mut turned = vec![0; bytes.len()];
    for (block, from) in bytes.chunks((BLOCK * columns).max(1)).enumerate() {
        for column in 0..columns {
            let to = turned[column * rows + block * BLOCK..].iter_mut();
            let from = from.iter().skip(column).step_by(columns);
            to.zip(from).for_each(|(to, &byte)| *to = byte);
        }
    }
    turned
}

/// The smallest weight scale that XNNPACK's requantization supports. Raising smaller scales to it
/// does not change results.
pub(super) fn min_weight_scale(b: &Builder<'_>, input: TensorId, output: TensorId) -> f32 {
    let scale = |id| b.tensor(id).per_tensor().map_or(1.0, |(scale, _)| scale);
    MIN_REQUANTIZATION * scale(output) / scale(input)
}

/// Signed 8-bit weights with a scale for each output channel. A single scale is repeated.
fn per_channel_filter(
    b: &mut Builder<'_>,
    filter: TensorId,
    channel_dim: usize,
    min_scale: f32,
) -> ValueId {
    let (tensor, dims) = (b.tensor(filter), b.dims(filter));
    let data = match fold::nibbles(tensor) {
        Some(bytes) => bytes.into(),
        None => tensor.data.clone().unwrap_or_default(),
    };
    per_channel(b, filter, Datatype::QcInt8, dims, channel_dim, min_scale, data)
}

/// A constant with the data of a filter in this form, and the filter's scale for each channel.
fn per_channel(
    b: &mut Builder<'_>,
    filter: TensorId,
    datatype: Datatype,
    dims: &[usize],
    channel_dim: usize,
    min_scale: f32,
    data: Bytes,
) -> ValueId {
    let channels = dims.get(channel_dim).copied().unwrap_or(0);
    let scales = shared(channel_scales(b, filter, channels, min_scale));
    b.constant(datatype, Quantization::PerChannel { scales, channel_dim }, dims, data)
}

/// 4-bit weights `[outputs, inputs]` with a scale for each output.
fn int4_filter(b: &mut Builder<'_>, filter: TensorId) -> ValueId {
    let (tensor, dims) = (b.tensor(filter), b.dims(filter));
    let data = fold::excess_8(tensor.data.as_deref().unwrap_or_default());
    per_channel(b, filter, Datatype::QcInt4, dims, 0, 0.0, data)
}

/// 8-bit weights with one scale.
fn per_tensor_filter(b: &mut Builder<'_>, filter: TensorId, min_scale: f32) -> ValueId {
    let tensor = b.tensor(filter);
    match tensor.per_tensor() {
        Some((scale, zero_point)) if scale < min_scale => {
            let datatype =
                if tensor.dtype == DType::I8 { Datatype::QInt8 } else { Datatype::QUint8 };
            // Rules have checked that the zero point is in the type's range.
            let zero_point = zero_point as i32;
            let quantization = Quantization::PerTensor { scale: min_scale, zero_point };
            let data = tensor.data.clone().unwrap_or_default();
            b.constant(datatype, quantization, b.dims(filter), data)
        }
        _ => b.value(filter),
    }
}

/// One scale for each channel of a filter.
fn channel_scales(b: &Builder<'_>, filter: TensorId, channels: usize, min_scale: f32) -> Vec<f32> {
    let scales = match &b.tensor(filter).quantization {
        Some(xnn_model::Quantization::PerAxis { scales, .. }) => scales.to_vec(),
        Some(xnn_model::Quantization::PerTensor { scale, .. }) => vec![*scale; channels],
        _ => Vec::new(),
    };
    scales.into_iter().map(|scale| scale.max(min_scale)).collect()
}

/// A 32-bit bias. Its scale is always input scale x weight scale, even if the file has another one.
fn quantized_bias(
    b: &mut Builder<'_>,
    layer: &Layer,
    filter: QuantizedFilter,
    bias: TensorId,
    min_scale: f32,
) -> ValueId {
    let input_scale = b.tensor(layer.input).per_tensor().map_or(1.0, |(scale, _)| scale);
    let channels = b.tensor(bias).elements().unwrap_or(0);
    let scales = channel_scales(b, layer.filter, channels, min_scale);
    let mut scales = scales.into_iter().map(|scale| scale * input_scale);
    let data = b.tensor(bias).data.clone().unwrap_or_default();
    let (datatype, quantization) = match filter {
        QuantizedFilter::PerChannel => {
            let scales = shared(scales);
            (Datatype::QcInt32, Quantization::PerChannel { scales, channel_dim: 0 })
        }
        QuantizedFilter::PerTensor => {
            let scale = scales.next().unwrap_or(1.0);
            (Datatype::QInt32, Quantization::PerTensor { scale, zero_point: 0 })
        }
    };
    b.constant(datatype, quantization, &[channels], data)
}
