//! Convolutions, and the weights that they share with fully connected layers.

use xnn_format::{
    Conv2d, Datatype, NodeOp, Padding2d, Quantization, Size2d, UnaryOp, ValueId, flags,
};
use xnn_model::{DType, TensorId};

use super::builder::{Builder, shared};
use crate::partition::rules::checks::{Arithmetic, Fused};
use crate::partition::rules::conv::{Conv, TransposeConv};

pub(super) fn conv(b: &mut Builder<'_>, plan: &Conv) {
    let weights = weights(
        b,
        &Weights {
            arithmetic: plan.arithmetic,
            input: plan.input,
            filter: plan.filter,
            bias: plan.bias,
            channel_dim: if plan.depthwise { 3 } else { 0 },
            num_nonbatch_dims: 3,
        },
        None,
    );
    let (output, tail) = start_fused(b, plan.fused, plan.output);
    let conv = Conv2d {
        padding: Padding2d::default(),
        kernel: plan.kernel,
        stride: plan.stride,
        dilation: plan.dilation,
        adjustment: Size2d { height: 0, width: 0 },
        groups: plan.groups,
        group_input_channels: plan.group_input_channels,
        group_output_channels: plan.group_output_channels,
        input: weights.input,
        filter: weights.filter,
        bias: weights.bias,
        output,
    };
    let op = if plan.depthwise { NodeOp::DepthwiseConv2d(conv) } else { NodeOp::Conv2d(conv) };
    let node = b.push(op);
    node.output_range = plan.fused.range();
    if plan.same_padding {
        node.flags = flags::TENSORFLOW_SAME_PADDING;
    }
    finish_fused(b, tail);
}

pub(super) fn transpose_conv(b: &mut Builder<'_>, plan: &TransposeConv) {
    let layer = Weights {
        arithmetic: plan.arithmetic,
        input: plan.input,
        filter: plan.filter,
        bias: plan.bias,
        channel_dim: 0,
        num_nonbatch_dims: 3,
    };
    let weights = weights(b, &layer, None);
    let (output, tail) = start_fused(b, plan.fused, plan.output);
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
    node.output_range = plan.fused.range();
    finish_fused(b, tail);
}

/// What a layer with weights multiplies.
pub(super) struct Weights {
    pub arithmetic: Arithmetic,
    pub input: TensorId,
    pub filter: TensorId,
    pub bias: Option<TensorId>,
    /// The filter's dimension of output channels.
    pub channel_dim: usize,
    /// Dimensions of the input that share a scale in dynamic quantization.
    pub num_nonbatch_dims: usize,
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
            let filter = b.as_f32(w.filter);
            WeightValues { input, filter, bias: w.bias.map(|bias| b.value(bias)) }
        }
        Arithmetic::Dynamic => {
            let dims = b.value_dims(input);
            let quantization = Quantization::Dynamic { num_nonbatch_dims: w.num_nonbatch_dims };
            let quantized = b.temporary(Datatype::QdInt8, quantization, &dims);
            b.unary(UnaryOp::Convert, input, quantized);
            let filter = per_channel_filter(b, w.filter, w.channel_dim);
            WeightValues { input: quantized, filter, bias: w.bias.map(|bias| b.value(bias)) }
        }
        Arithmetic::Quantized => {
            let per_axis = b.tensor(w.filter).per_tensor().is_none();
            let filter = if per_axis {
                per_channel_filter(b, w.filter, w.channel_dim)
            } else {
                b.value(w.filter)
            };
            let bias = w.bias.map(|bias| quantized_bias(b, w, bias, per_axis));
            WeightValues { input, filter, bias }
        }
    }
}

/// Signed 8-bit weights with a scale per output channel; one scale for all is
/// repeated.
fn per_channel_filter(b: &mut Builder<'_>, filter: TensorId, channel_dim: usize) -> ValueId {
    let tensor = b.tensor(filter);
    let dims = b.dims(filter);
    let channels = dims.get(channel_dim).copied().unwrap_or(0);
    let scales = channel_scales(b, filter, channels);
    debug_assert_eq!(tensor.dtype, DType::I8);
    let data = tensor.data.clone().unwrap_or_default();
    let quantization = Quantization::PerChannel { scales: shared(scales), channel_dim };
    b.constant(Datatype::QcInt8, quantization, dims, data)
}

/// One scale for each channel of a filter.
fn channel_scales(b: &Builder<'_>, filter: TensorId, channels: usize) -> Vec<f32> {
    match &b.tensor(filter).quantization {
        Some(xnn_model::Quantization::PerAxis { scales, .. }) => scales.to_vec(),
        Some(xnn_model::Quantization::PerTensor { scale, .. }) => vec![*scale; channels],
        _ => Vec::new(),
    }
}

/// A 32-bit bias; its scale is by definition input scale x weight scale,
/// whatever the file says.
fn quantized_bias(b: &mut Builder<'_>, w: &Weights, bias: TensorId, per_axis: bool) -> ValueId {
    let input_scale = b.tensor(w.input).per_tensor().map_or(1.0, |(scale, _)| scale);
    let channels = b.tensor(bias).elements().unwrap_or(0);
    let scales = channel_scales(b, w.filter, channels).into_iter().map(|s| s * input_scale);
    let data = b.tensor(bias).data.clone().unwrap_or_default();
    let (datatype, quantization) = if per_axis {
        let scales = shared(scales);
        (Datatype::QcInt32, Quantization::PerChannel { scales, channel_dim: 0 })
    } else {
        let scale = scales.into_iter().next().unwrap_or(1.0);
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
