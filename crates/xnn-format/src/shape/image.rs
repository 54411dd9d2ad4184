//! Shapes of windows over images `[N, H, W, C]`.

use super::arrange::product;
use super::shapes::{Dims, Shapes};
use crate::error::{Error, Result, require};
use crate::node::{NodeOp, flags};
use crate::parameters::{Conv2d, Padding2d, Pooling2d, Size2d};
use crate::value::ValueId;
use crate::wire::size;

pub(super) fn convolution(conv: &Conv2d, flags: u32, shapes: &Shapes) -> Result<Dims> {
    let inputs = product(&[size(conv.groups), size(conv.group_input_channels)])?;
    let outputs = product(&[size(conv.groups), size(conv.group_output_channels)])?;
    let filter = [outputs, size(conv.kernel.height), size(conv.kernel.width)];
    let filter = [filter.as_slice(), &[size(conv.group_input_channels)]].concat();
    let [batch, height, width] = image(conv, inputs, outputs, &filter, shapes)?;
    let (height, width) =
        windows((height, width), conv.padding, (conv.kernel, conv.stride, conv.dilation), flags)?;
    Ok(vec![batch, height, width, outputs])
}

pub(super) fn depthwise(conv: &Conv2d, flags: u32, shapes: &Shapes) -> Result<Dims> {
    let inputs = size(conv.groups);
    let outputs = product(&[inputs, size(conv.group_output_channels)])?;
    let filter = [1, size(conv.kernel.height), size(conv.kernel.width), outputs];
    let [batch, height, width] = image(conv, inputs, outputs, &filter, shapes)?;
    let (height, width) =
        windows((height, width), conv.padding, (conv.kernel, conv.stride, conv.dilation), flags)?;
    Ok(vec![batch, height, width, outputs])
}

pub(super) fn conv_transpose(conv: &Conv2d, shapes: &Shapes) -> Result<Dims> {
    let inputs = product(&[size(conv.groups), size(conv.group_input_channels)])?;
    let outputs = product(&[size(conv.groups), size(conv.group_output_channels)])?;
    let filter = [outputs, size(conv.kernel.height), size(conv.kernel.width)];
    let filter = [filter.as_slice(), &[size(conv.group_input_channels)]].concat();
    let [batch, height, width] = image(conv, inputs, outputs, &filter, shapes)?;
    let side = |input: usize, stride, adjustment, kernel, dilation, padding: [u32; 2]| {
        let grown = input
            .checked_sub(1)?
            .checked_mul(size(stride))?
            .checked_add(size(adjustment))?
            .checked_add(effective(kernel, dilation)?)?;
        let padding = size(padding[0]).checked_add(size(padding[1]))?;
        grown.checked_sub(padding).filter(|&output| output > 0)
    };
    let Conv2d { padding, kernel, stride, dilation, adjustment, .. } = conv;
    let vertical = [padding.top, padding.bottom];
    let horizontal = [padding.left, padding.right];
    let height =
        side(height, stride.height, adjustment.height, kernel.height, dilation.height, vertical);
    let width =
        side(width, stride.width, adjustment.width, kernel.width, dilation.width, horizontal);
    match (height, width) {
        (Some(height), Some(width)) => Ok(vec![batch, height, width, outputs]),
        _ => Err(Error::invalid(format!("the padding {padding:?} leaves an empty result"))),
    }
}

/// Size in bytes of the indirection pointers that XNNPACK may need for windows over an image: one
/// per element of the window and pixel of the result, or of the input for unpooling.
pub(crate) fn pointers<'d>(
    op: &NodeOp,
    result: &[usize],
    dims: impl FnOnce(ValueId) -> &'d [usize],
) -> usize {
    let pixels = || match *result {
        [_, height, width, _] => height.saturating_mul(width),
        _ => 0,
    };
    let (window, pixels) = match op {
        NodeOp::Conv2d(conv) | NodeOp::DepthwiseConv2d(conv) | NodeOp::ConvTranspose2d(conv) => {
            (conv.kernel, pixels())
        }
        NodeOp::AveragePooling2d(window)
        | NodeOp::MaxPooling2d(window)
        | NodeOp::ArgMaxPooling2d { window, .. } => (window.kernel, pixels()),
        NodeOp::StaticResizeBilinear2d { .. } => (Size2d { height: 2, width: 2 }, pixels()),
        NodeOp::Unpooling2d { window, .. } => match dims(window.input) {
            [images @ .., _] => {
                (window.kernel, images.iter().fold(1, |pixels, &dim| dim.saturating_mul(pixels)))
            }
            [] => return 0,
        },
        _ => return 0,
    };
    if window == Size2d::ONE {
        return 0;
    }
    let factors = [size(window.height), size(window.width), pixels];
    factors.into_iter().fold(size_of::<usize>(), usize::saturating_mul)
}

/// Checks the shapes of input, filter and bias of a convolution. Returns batch, height and width of
/// the input.
fn image(
    conv: &Conv2d,
    inputs: usize,
    outputs: usize,
    filter: &[usize],
    shapes: &Shapes,
) -> Result<[usize; 3]> {
    let [batch, height, width, channels] = shapes.rank(conv.input)?;
    require!(channels == inputs, "the input has {channels} channels instead of {inputs}");
    let actual = shapes.of(conv.filter)?;
    require!(actual == filter, "the filter is {actual:?} instead of {filter:?}");
    if let Some(bias) = conv.bias {
        let actual = shapes.of(bias)?;
        require!(actual == [outputs], "the bias is {actual:?} instead of [{outputs}]");
    }
    Ok([batch, height, width])
}

pub(super) fn pooling(window: &Pooling2d, flags: u32, shapes: &Shapes) -> Result<Dims> {
    let [batch, height, width, channels] = shapes.rank(window.input)?;
    let (height, width) = windows(
        (height, width),
        window.padding,
        (window.kernel, window.stride, window.dilation),
        flags,
    )?;
    Ok(vec![batch, height, width, channels])
}

pub(super) fn unpooling(window: &Pooling2d, index: ValueId, shapes: &Shapes) -> Result<Dims> {
    let [batch, height, width, channels] = shapes.rank(window.input)?;
    require!(
        shapes.of(index)? == shapes.of(window.input)?,
        "the indices have the shape {:?}, the values {:?}",
        shapes.of(index)?,
        shapes.of(window.input)?
    );
    let Padding2d { top, right, bottom, left } = window.padding;
    let side = |input: usize, kernel, before, after| {
        let padding = size(before).checked_add(size(after))?;
        let output = input.checked_mul(size(kernel))?.checked_sub(padding)?;
        (output > 0).then_some(output)
    };
    let height = side(height, window.kernel.height, top, bottom);
    let width = side(width, window.kernel.width, left, right);
    match (height, width) {
        (Some(height), Some(width)) => Ok(vec![batch, height, width, channels]),
        _ => Err(Error::invalid("the padding leaves an empty result")),
    }
}

/// Number of windows along height and width of an image.
fn windows(
    (height, width): (usize, usize),
    padding: Padding2d,
    (kernel, stride, dilation): (Size2d, Size2d, Size2d),
    flags: u32,
) -> Result<(usize, usize)> {
    require!(stride.height > 0 && stride.width > 0, "the stride is 0");
    if flags & flags::TENSORFLOW_SAME_PADDING != 0 {
        let (vertical, horizontal) = (size(stride.height), size(stride.width));
        return Ok((height.div_ceil(vertical), width.div_ceil(horizontal)));
    }
    let side = |input: usize, before, after, kernel, stride, dilation| {
        let padded = input.checked_add(size(before))?.checked_add(size(after))?;
        let free = padded.checked_sub(effective(kernel, dilation)?)?;
        Some(free / size(stride) + 1)
    };
    let Padding2d { top, right, bottom, left } = padding;
    let rows = side(height, top, bottom, kernel.height, stride.height, dilation.height);
    let columns = side(width, left, right, kernel.width, stride.width, dilation.width);
    match (rows, columns) {
        (Some(rows), Some(columns)) => Ok((rows, columns)),
        _ => Err(Error::invalid(format!(
            "a window of {} x {} is larger than the padded input of {height} x {width}",
            kernel.height, kernel.width
        ))),
    }
}

/// Number of pixels that a dilated kernel covers.
fn effective(kernel: u32, dilation: u32) -> Option<usize> {
    size(kernel).checked_sub(1)?.checked_mul(size(dilation))?.checked_add(1)
}
