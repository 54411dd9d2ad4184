//! Lowers CONV_2D, DEPTHWISE_CONV_2D and TRANSPOSE_CONV.

use xnn_format::{Conv2d, NodeOp, Padding2d, Quantization, Size2d, ValueId, flags};

use super::activation::{finish_fused, start_fused};
use super::builder::Builder;
use super::fully_connected;
use super::shape::{reshaped, transposed};
use super::tile::copies;
use super::weights::{LayerValues, weights};
use crate::rules::conv::{Conv, ConvForm, ConvPadding};
use crate::rules::shape::LeadingDim;
use crate::rules::transpose_conv::TransposeConv;

pub(super) fn conv(b: &mut Builder<'_>, plan: &Conv) {
    match plan.form {
        ConvForm::Dense => {
            let values = weights(b, &plan.layer, None);
            convolution(b, plan, &values, NodeOp::Conv2d);
        }
        ConvForm::Merged { times } => {
            let mut values = weights(b, &plan.layer, None);
            values.filter = merged_filter(b, plan, values.filter, times);
            convolution(b, plan, &values, NodeOp::Conv2d);
        }
        ConvForm::Depthwise => {
            let values = weights(b, &plan.layer, None);
            convolution(b, plan, &values, NodeOp::DepthwiseConv2d);
        }
        ConvForm::DepthwiseRepeated { times } => {
            let input = repeated_channels(b, plan, times);
            let values = weights(b, &plan.layer, Some(input));
            convolution(b, plan, &values, NodeOp::DepthwiseConv2d);
        }
        ConvForm::Product => product(b, plan),
    }
}

fn convolution(b: &mut Builder<'_>, plan: &Conv, values: &LayerValues, node: fn(Conv2d) -> NodeOp) {
    let (output, activation) = start_fused(b, plan.fused, plan.layer.output);
    let (padding, node_flags) = match plan.padding {
        ConvPadding::Same => (Padding2d::default(), flags::TENSORFLOW_SAME_PADDING),
        ConvPadding::Explicit(padding) => (padding, 0),
    };
    let range = plan.fused.finite_range(b.tensor(plan.layer.output).dtype);
    let node = b.push(node(Conv2d {
        padding,
        kernel: plan.kernel,
        stride: plan.stride,
        dilation: plan.dilation,
        adjustment: Size2d { height: 0, width: 0 },
        groups: plan.groups,
        group_input_channels: plan.group_input_channels,
        group_output_channels: plan.group_output_channels,
        input: values.input,
        filter: values.filter,
        bias: values.bias,
        output,
    }));
    node.output_range = range;
    node.flags = node_flags;
    finish_fused(b, activation);
}

/// The filter of merged groups: each output channel has zero weights for the inputs of other groups.
fn merged_filter(b: &mut Builder<'_>, plan: &Conv, filter: ValueId, times: usize) -> ValueId {
    let (inputs, outputs) =
        (plan.group_input_channels as usize, plan.group_output_channels as usize);
    let (inputs_before, outputs_before) = (inputs / times, outputs / times);
    let value = b.constant_value(filter);
    let zero = match value.quantization {
        Quantization::PerTensor { zero_point, .. } => zero_point as u8,
        _ => 0,
    };
    let mut dims = value.dims.clone();
    let bytes = value.data.clone().unwrap_or_default();
    let channel_bytes = dims[1..].iter().product::<usize>().max(1);
    let mut merged = Vec::with_capacity(bytes.len() * times);
    for (channel, weights) in bytes.chunks_exact(channel_bytes).enumerate() {
        let before = channel % outputs / outputs_before * inputs_before;
        for position in weights.chunks_exact(inputs_before) {
            merged.resize(merged.len() + before, zero);
            merged.extend_from_slice(position);
            merged.resize(merged.len() + inputs - inputs_before - before, zero);
        }
    }
    dims[3] = inputs;
    let (datatype, quantization) = (value.datatype, value.quantization.clone());
    b.constant(datatype, quantization, &dims, merged.into())
}

/// The input with each channel repeated. The range, by which it is quantized, does not change.
fn repeated_channels(b: &mut Builder<'_>, plan: &Conv, times: usize) -> ValueId {
    let input = b.value(plan.layer.input);
    let mut dims = b.value_dims(input);
    // Whole images are copied, and a transpose moves copies of a channel next to each other.
    let image = b.temporary_like(input, &[&[1], dims.as_slice()].concat());
    let new_shape = [&[1, 0], &dims[1..]].concat();
    b.push(NodeOp::StaticReshape { new_shape, input, output: image });
    let images = copies(b, image, 0, times);
    let together = transposed(b, images, &[1, 2, 3, 4, 0]);
    dims[3] *= times;
    reshaped(b, together, &dims, LeadingDim::Inferred)
}

fn product(b: &mut Builder<'_>, plan: &Conv) {
    let values = weights(b, &plan.layer, None);
    let matrix = [plan.group_output_channels, plan.group_input_channels].map(|n| n as usize);
    b.reshape_constant(values.filter, &matrix);
    let range = plan.fused.finite_range(b.tensor(plan.layer.output).dtype);
    fully_connected::product(b, &plan.layer, values, plan.fused, range);
}

pub(super) fn transpose_conv(b: &mut Builder<'_>, plan: &TransposeConv) {
    let values = weights(b, &plan.layer, None);
    let (output, activation) = start_fused(b, plan.fused, plan.layer.output);
    let range = plan.fused.finite_range(b.tensor(plan.layer.output).dtype);
    let node = b.push(NodeOp::ConvTranspose2d(Conv2d {
        padding: plan.padding,
        kernel: plan.kernel,
        stride: plan.stride,
        dilation: Size2d::ONE,
        adjustment: plan.adjustment,
        groups: 1,
        group_input_channels: plan.input_channels,
        group_output_channels: plan.output_channels,
        input: values.input,
        filter: values.filter,
        bias: values.bias,
        output,
    }));
    node.output_range = range;
    finish_fused(b, activation);
}
