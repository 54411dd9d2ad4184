//! Convolutions: ordinary, depthwise and transposed.

use xnn_format::{Conv2d, Padding2d, Size2d, flags};
use xnnpack::{Deconv2d, DepthwiseConv2d, Flags};

use super::{NodeDefiner, widen};
use crate::error::{Result, RuntimeError};

/// Flags of convolutions and poolings.
pub(super) const SAME_PADDING: &[(u32, Flags)] =
    &[(flags::TENSORFLOW_SAME_PADDING, Flags::SAME_PADDING)];

pub(super) fn conv_2d(cx: &mut NodeDefiner<'_, '_>, conv: &Conv2d) -> Result<()> {
    // What XNNPACK computes as a product, see `xnnpack::Role::Halves`.
    let is_product = conv.groups == 1 && conv.group_input_channels > 1;
    let filter = widen::filter(cx, conv.filter, conv.input, is_product)?;
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
    let filter = widen::filter(cx, conv.filter, conv.input, false)?;
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
    let filter = widen::filter(cx, conv.filter, conv.input, false)?;
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

pub(super) fn padding(padding: Padding2d) -> xnnpack::Padding2d {
    let Padding2d { top, right, bottom, left } = padding;
    xnnpack::Padding2d { top, right, bottom, left }
}

pub(super) fn size(size: Size2d) -> [u32; 2] {
    [size.height, size.width]
}

fn channels(channels: u32) -> Result<usize> {
    usize::try_from(channels)
        .map_err(|_| RuntimeError::graph(format!("{channels} channels are too many")))
}
