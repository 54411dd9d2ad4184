//! Convolutions: ordinary, depthwise and transposed.

use xnn_format::{Conv2d, Padding2d, Size2d, flags};
use xnnpack::{Deconv2d, DepthwiseConv2d, Flags};

use super::definer::NodeDefiner;
use super::fp16_weights;
use super::fully_connected;
use super::sparse_weights;
use super::value::Form;
use crate::error::{Result, RuntimeError};

/// Flags of convolution and pooling nodes.
pub(super) const SAME_PADDING: &[(u32, Flags)] =
    &[(flags::TENSORFLOW_SAME_PADDING, Flags::SAME_PADDING)];

pub(super) fn conv_2d(cx: &mut NodeDefiner<'_, '_>, conv: &Conv2d) -> Result<()> {
    if let Some(flags) = flags_of_matrix(cx, conv)? {
        let operands = [conv.input, conv.filter, conv.output];
        return fully_connected::product_with_matrix(cx, operands, conv.bias, flags);
    }
    // XNNPACK computes these as matrix products, see `xnnpack::Role::Fp16Weights`.
    let is_product = conv.groups == 1 && conv.group_input_channels > 1;
    let form = if is_product { Form::Fp16 } else { Form::Fp32 };
    let filter = fp16_weights::filter(cx, conv.filter, conv.input, form)?;
    let node = xnnpack::Conv2d {
        padding: padding(conv.padding),
        kernel: size(conv.kernel),
        stride: size(conv.stride),
        dilation: size(conv.dilation),
        groups: conv.groups,
        group_input_channels: channels(conv.group_input_channels)?,
        group_output_channels: channels(conv.group_output_channels)?,
        output_range: cx.output_range(),
        input: cx.id(conv.input)?,
        filter,
        bias: cx.optional_id(conv.bias)?,
        output: cx.id(conv.output)?,
        flags: cx.flags(SAME_PADDING),
    };
    cx.define(node)
}

pub(super) fn depthwise_conv_2d(cx: &mut NodeDefiner<'_, '_>, conv: &Conv2d) -> Result<()> {
    let filter = fp16_weights::filter(cx, conv.filter, conv.input, Form::Fp32)?;
    let node = DepthwiseConv2d {
        padding: padding(conv.padding),
        kernel: size(conv.kernel),
        stride: size(conv.stride),
        dilation: size(conv.dilation),
        depth_multiplier: conv.group_output_channels,
        input_channels: channels(conv.groups)?,
        output_range: cx.output_range(),
        input: cx.id(conv.input)?,
        filter,
        bias: cx.optional_id(conv.bias)?,
        output: cx.id(conv.output)?,
        flags: cx.flags(SAME_PADDING),
    };
    cx.define(node)
}

pub(super) fn conv_transpose_2d(cx: &mut NodeDefiner<'_, '_>, conv: &Conv2d) -> Result<()> {
    let filter = fp16_weights::filter(cx, conv.filter, conv.input, Form::Fp32)?;
    let node = Deconv2d {
        padding: padding(conv.padding),
        adjustment: size(conv.adjustment),
        kernel: size(conv.kernel),
        stride: size(conv.stride),
        dilation: size(conv.dilation),
        groups: conv.groups,
        group_input_channels: channels(conv.group_input_channels)?,
        group_output_channels: channels(conv.group_output_channels)?,
        output_range: cx.output_range(),
        input: cx.id(conv.input)?,
        filter,
        bias: cx.optional_id(conv.bias)?,
        output: cx.id(conv.output)?,
        flags: Flags::NONE,
    };
    cx.define(node)
}

/// Flags of the fully connected layer that computes the convolution faster, if one does.
fn flags_of_matrix(cx: &NodeDefiner<'_, '_>, conv: &Conv2d) -> Result<Option<Flags>> {
    let is_one = |size: Size2d| (size.height, size.width) == (1, 1);
    let is_pixel = |id| Ok::<_, RuntimeError>(matches!(cx.value(id)?.dims[..], [_, 1, 1, _]));
    let Conv2d { input, filter, output, .. } = *conv;
    let is_point = conv.groups == 1 && is_one(conv.kernel) && conv.padding == Padding2d::default();
    if !is_point {
        return Ok(None);
    }
    // Input and output of the last layers of classifiers are one pixel.
    let are_pixels = is_pixel(input)? && is_pixel(output)?;
    if are_pixels && fully_connected::keeps_fp16(cx, input, filter, output)? {
        return Ok(Some(Flags::FP16_WEIGHTS));
    }
    let is_sparse = is_one(conv.stride) && sparse_weights::are_sparse(cx, [input, filter, output])?;
    Ok(is_sparse.then_some(Flags::SPARSE_WEIGHTS))
}

pub(super) fn padding(padding: Padding2d) -> xnnpack::Padding2d {
    let Padding2d { top, right, bottom, left } = padding;
    xnnpack::Padding2d { top, right, bottom, left }
}

pub(super) fn size(size: Size2d) -> [u32; 2] {
    [size.height, size.width]
}

fn channels(channels: u32) -> Result<usize> {
    usize::try_from(channels)
        .map_err(|_| RuntimeError::graph(format!("{channels} channels exceed the limit")))
}
