//! Convolutions, and the weights that they share with fully connected layers.

use xnn_format::{
    Conv2d, Datatype, NodeOp, Padding2d, Quantization, Size2d, UnaryOp, ValueId, flags,
};
use xnn_model::{DType, TensorId};

use super::builder::{Builder, shared};
use super::shape::{reshaped, transposed};
use super::tile::copies;
use crate::fold;
use crate::rules::checks::{self, Arithmetic, Fused};
use crate::rules::conv::{Border, Conv, TransposeConv};
use crate::rules::shape::First;

pub(super) fn conv(b: &mut Builder<'_>, plan: &Conv) {
    if plan.arithmetic == Arithmetic::Dynamic && is_pointwise(plan) {
        return pointwise(b, plan);
    }
    let input = is_multiplied(plan).then(|| repeated_channels(b, plan));
    let (groups, group_output_channels) = match input {
        Some(_) => (plan.groups * plan.group_output_channels, 1),
        None => (plan.groups, plan.group_output_channels),
    };
    let weights = weights(b, &layer(plan, 3), input);
    let (output, tail) = start_fused(b, plan.fused, plan.output);
    let conv = Conv2d {
        padding: match plan.padding {
            Border::Same => Padding2d::default(),
            Border::Explicit(padding) => padding,
        },
        kernel: plan.kernel,
        stride: plan.stride,
        dilation: plan.dilation,
        adjustment: Size2d { height: 0, width: 0 },
        groups,
        group_input_channels: plan.group_input_channels,
        group_output_channels,
        input: weights.input,
        filter: weights.filter,
        bias: weights.bias,
        output,
    };
    let op = if plan.depthwise { NodeOp::DepthwiseConv2d(conv) } else { NodeOp::Conv2d(conv) };
    let range = plan.fused.finite_range(b.tensor(plan.output).dtype);
    let node = b.push(op);
    node.output_range = range;
    if plan.padding == Border::Same {
        node.flags = flags::TENSORFLOW_SAME_PADDING;
    }
    finish_fused(b, tail);
}

/// Whether channels have several filters each where nodes have one.
fn is_multiplied(plan: &Conv) -> bool {
    plan.depthwise && plan.arithmetic == Arithmetic::DynamicImages && plan.group_output_channels > 1
}

/// The input with each channel as often as it has filters. Its range, by which it is quantized, stays what it was.
fn repeated_channels(b: &mut Builder<'_>, plan: &Conv) -> ValueId {
    let input = b.value(plan.input);
    let times = plan.group_output_channels as usize;
    let mut dims = b.value_dims(input);
    // Whole images are copied, which then are brought together channel by channel.
    let image = b.temporary_like(input, &[&[1], dims.as_slice()].concat());
    let new_shape = [&[1, 0], &dims[1..]].concat();
    b.push(NodeOp::StaticReshape { new_shape, input, output: image });
    let images = copies(b, image, 0, times);
    let together = transposed(b, images, &[1, 2, 3, 4, 0]);
    dims[3] *= times;
    reshaped(b, together, &dims, First::Batch)
}

fn layer(plan: &Conv, num_nonbatch_dims: usize) -> Weights {
    Weights {
        arithmetic: plan.arithmetic,
        input: plan.input,
        filter: plan.filter,
        bias: plan.bias,
        output: plan.output,
        channel_dim: if plan.depthwise { 3 } else { 0 },
        num_nonbatch_dims,
    }
}

/// Whether each output pixel depends on one input pixel.
fn is_pointwise(plan: &Conv) -> bool {
    let unpadded = matches!(plan.padding, Border::Same)
        || plan.padding == Border::Explicit(Padding2d::default());
    !plan.depthwise
        && plan.groups == 1
        && unpadded
        && [plan.kernel, plan.stride] == [Size2d::ONE; 2]
}

/// A 1x1 convolution as the matrix product that it is: there, dynamic quantization gives each pixel a
/// scale of its own, instead of one for the image.
fn pointwise(b: &mut Builder<'_>, plan: &Conv) {
    let values = weights(b, &layer(plan, 1), None);
    let matrix = [plan.group_output_channels, plan.group_input_channels].map(|n| n as usize);
    b.reshape_constant(values.filter, &matrix);
    let (output, tail) = start_fused(b, plan.fused, plan.output);
    let range = plan.fused.finite_range(b.tensor(plan.output).dtype);
    let node = b.push(NodeOp::FullyConnected {
        input: values.input,
        filter: values.filter,
        bias: values.bias,
        output,
        sparse: false,
    });
    node.output_range = range;
    finish_fused(b, tail);
}

pub(super) fn transpose_conv(b: &mut Builder<'_>, plan: &TransposeConv) {
    let layer = Weights {
        arithmetic: plan.arithmetic,
        input: plan.input,
        filter: plan.filter,
        bias: plan.bias,
        output: plan.output,
        channel_dim: 0,
        num_nonbatch_dims: 3,
    };
    let weights = weights(b, &layer, None);
    let (output, tail) = start_fused(b, plan.fused, plan.output);
    let range = plan.fused.finite_range(b.tensor(plan.output).dtype);
    let node = b.push(NodeOp::ConvTranspose2d(Conv2d {
        padding: plan.padding,
        kernel: plan.kernel,
        stride: plan.stride,
        dilation: Size2d::ONE,
        adjustment: plan.adjustment,
        groups: 1,
        group_input_channels: plan.input_channels,
        group_output_channels: plan.output_channels,
        input: weights.input,
        filter: weights.filter,
        bias: weights.bias,
        output,
    }));
    node.output_range = range;
    finish_fused(b, tail);
}

/// What a layer with weights multiplies.
pub(super) struct Weights {
    pub arithmetic: Arithmetic,
    pub input: TensorId,
    pub filter: TensorId,
    pub bias: Option<TensorId>,
    pub output: TensorId,
    /// The filter's dimension of output channels.
    pub channel_dim: usize,
    /// Dimensions of the input that share a scale in dynamic quantization.
    pub num_nonbatch_dims: usize,
}

impl Weights {
    /// Whether the weights get a scale for each channel; 4-bit ones, which
    /// become 8-bit, always do.
    fn is_per_axis(&self, b: &Builder<'_>) -> bool {
        let filter = b.tensor(self.filter);
        filter.dtype == DType::I4 || filter.per_tensor().is_none()
    }

    /// Whether XNNPACK multiplies the 4-bit weights as they are: matrices with
    /// whole bytes in a row.
    fn packs_nibbles(&self, b: &Builder<'_>) -> bool {
        matches!(*b.dims(self.filter), [_, row] if row.is_multiple_of(2))
    }
}

/// The values that the node reads.
pub(super) struct WeightValues {
    pub input: ValueId,
    pub filter: ValueId,
    pub bias: Option<ValueId>,
}

/// Prepares input, filter and bias; `input` replaces the layer's input where
/// it was reshaped first.
pub(super) fn weights(b: &mut Builder<'_>, w: &Weights, input: Option<ValueId>) -> WeightValues {
    let input = input.unwrap_or_else(|| b.value(w.input));
    match w.arithmetic {
        Arithmetic::Float => {
            let filter = b.value(w.filter);
            WeightValues { input, filter, bias: w.bias.map(|bias| b.value(bias)) }
        }
        Arithmetic::WeightsUnpacked => {
            let filter = b.unpacked(w.filter);
            WeightValues { input, filter, bias: w.bias.map(|bias| b.value(bias)) }
        }
        Arithmetic::Dynamic | Arithmetic::DynamicImages => {
            let dims = b.value_dims(input);
            let quantization = Quantization::Dynamic { num_nonbatch_dims: w.num_nonbatch_dims };
            let quantized = b.temporary(Datatype::QdInt8, quantization, &dims);
            b.unary(UnaryOp::Convert, input, quantized);
            let filter = if let Some(blockwise) = b.blockwise(w.filter) {
                blockwise
            } else if b.tensor(w.filter).dtype == DType::I4 && w.packs_nibbles(b) {
                nibble_filter(b, w.filter)
            } else {
                per_channel_filter(b, w.filter, w.channel_dim, 0.0)
            };
            WeightValues { input: quantized, filter, bias: w.bias.map(|bias| b.value(bias)) }
        }
        Arithmetic::Quantized => {
            let per_axis = w.is_per_axis(b);
            let min_scale = min_weight_scale(b, w);
            let filter = if per_axis {
                per_channel_filter(b, w.filter, w.channel_dim, min_scale)
            } else {
                per_tensor_filter(b, w.filter, min_scale)
            };
            let bias = w.bias.map(|bias| quantized_bias(b, w, bias, min_scale));
            WeightValues { input, filter, bias }
        }
    }
}

/// The smallest weight scale that XNNPACK's requantization expresses; smaller
/// ones are raised to it, which changes no result.
fn min_weight_scale(b: &Builder<'_>, w: &Weights) -> f32 {
    let scale = |id| b.tensor(id).per_tensor().map_or(1.0, |(scale, _)| scale);
    checks::MIN_REQUANTIZATION * scale(w.output) / scale(w.input)
}

/// Signed 8-bit weights with a scale per output channel; one scale for all is
/// repeated.
fn per_channel_filter(
    b: &mut Builder<'_>,
    filter: TensorId,
    channel_dim: usize,
    min_scale: f32,
) -> ValueId {
    let (tensor, dims) = (b.tensor(filter), b.dims(filter));
    let channels = dims.get(channel_dim).copied().unwrap_or(0);
    let scales = shared(channel_scales(b, filter, channels, min_scale));
    let data = match fold::nibbles(tensor) {
        Some(bytes) => bytes.into(),
        None => tensor.data.clone().unwrap_or_default(),
    };
    let quantization = Quantization::PerChannel { scales, channel_dim };
    b.constant(Datatype::QcInt8, quantization, dims, data)
}

/// 4-bit weights `[outputs, inputs]` with a scale for each output.
fn nibble_filter(b: &mut Builder<'_>, filter: TensorId) -> ValueId {
    let (tensor, dims) = (b.tensor(filter), b.dims(filter));
    let channels = dims.first().copied().unwrap_or(0);
    let scales = shared(channel_scales(b, filter, channels, 0.0));
    let data = fold::excess_8(tensor.data.as_deref().unwrap_or_default());
    let quantization = Quantization::PerChannel { scales, channel_dim: 0 };
    b.constant(Datatype::QcInt4, quantization, dims, data)
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

/// A 32-bit bias; its scale is by definition input scale x weight scale,
/// whatever the file says.
fn quantized_bias(b: &mut Builder<'_>, w: &Weights, bias: TensorId, min_scale: f32) -> ValueId {
    let per_axis = w.is_per_axis(b);
    let input_scale = b.tensor(w.input).per_tensor().map_or(1.0, |(scale, _)| scale);
    let channels = b.tensor(bias).elements().unwrap_or(0);
    let scales = channel_scales(b, w.filter, channels, min_scale);
    let mut scales = scales.into_iter().map(|scale| scale * input_scale);
    let data = b.tensor(bias).data.clone().unwrap_or_default();
    let (datatype, quantization) = if per_axis {
        let scales = shared(scales);
        (Datatype::QcInt32, Quantization::PerChannel { scales, channel_dim: 0 })
    } else {
        let scale = scales.next().unwrap_or(1.0);
        (Datatype::QInt32, Quantization::PerTensor { scale, zero_point: 0 })
    };
    b.constant(datatype, quantization, &[channels], data)
}

/// A function that follows a node because it cannot be fused into it.
pub(super) struct Tail {
    op: UnaryOp,
    input: ValueId,
    output: ValueId,
}

/// Where the node writes, and what has to follow.
pub(super) fn start_fused(
    b: &mut Builder<'_>,
    fused: Fused,
    output: TensorId,
) -> (ValueId, Option<Tail>) {
    let value = b.value(output);
    match fused {
        Fused::None | Fused::Range(_) => (value, None),
        Fused::Tanh => {
            let input = b.temporary_like(value, b.dims(output));
            (input, Some(Tail { op: UnaryOp::Tanh, input, output: value }))
        }
    }
}

pub(super) fn finish_fused(b: &mut Builder<'_>, tail: Option<Tail>) {
    if let Some(Tail { op, input, output }) = tail {
        b.unary(op, input, output);
    }
}
