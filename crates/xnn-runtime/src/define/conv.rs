//! Convolutions: ordinary, depthwise and transposed.

use xnn_format::{Conv2d, Padding2d, Size2d, flags};
use xnnpack::{Deconv2d, DepthwiseConv2d, Flags};

use super::definer::NodeDefiner;
use super::fp16_weights;
use super::fully_connected;
use super::value::Form;
use crate::error::{Result, RuntimeError};

/// Flags of convolution and pooling nodes.
pub(super) const SAME_PADDING: &[(u32, Flags)] =
    &[(flags::TENSORFLOW_SAME_PADDING, Flags::SAME_PADDING)];

pub(super) fn conv_2d(cx: &mut NodeDefiner<'_, '_>, conv: &Conv2d) -> Result<()> {
    if is_fully_connected(cx, conv)?
        && fully_connected::keeps_fp16(cx, conv.input, conv.filter, conv.output)?
    {
        let Conv2d { input, filter, bias, output, .. } = *conv;
        return fully_connected::product_with_fp16_weights(
            cx,
            [input, filter, output],
            bias,
            Flags::NONE,
        );
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

/// Whether the convolution has input and output of one pixel, like the last layers of classifiers.
fn is_fully_connected(cx: &NodeDefiner<'_, '_>, conv: &Conv2d) -> Result<bool> {
    let is_pixel = |id| Ok::<_, RuntimeError>(matches!(cx.value(id)?.dims[..], [_, 1, 1, _]));
    let is_point = conv.groups == 1
        && (conv.kernel.height, conv.kernel.width) == (1, 1)
        && conv.padding == Padding2d::default();
    Ok(is_point && is_pixel(conv.input)? && is_pixel(conv.output)?)
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
