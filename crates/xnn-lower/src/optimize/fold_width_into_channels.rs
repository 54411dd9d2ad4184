//! Merges the pixels within a convolution's stride into one pixel with all of their channels, for
//! 8-bit images with few channels.
//!
//! 8-bit kernels multiply four or eight channels of a pixel at a time, so that a pixel with one
//! channel takes as long as one with four.

use xnn_format::{
    Conv2d, Datatype, Node, NodeOp, Padding2d, Quantization, Size2d, Value, ValueId, flags,
};

use super::rewriter::Rewriter;
use crate::rules::checks::Elem;

/// Channels that the kernels of every processor multiply at a time.
const CHANNELS: usize = 4;

pub(super) fn run(rewriter: &mut Rewriter) -> usize {
    (0..rewriter.len()).filter(|&index| fold(rewriter, index).is_some()).count()
}

fn fold(rewriter: &mut Rewriter, index: usize) -> Option<()> {
    let node = rewriter.node(index)?;
    // A depthwise convolution with one group is a convolution of an image with one channel.
    let (conv, channel_dim) = match &node.op {
        NodeOp::Conv2d(conv) => (conv.clone(), 0),
        NodeOp::DepthwiseConv2d(conv) => (conv.clone(), 3),
        _ => return None,
    };
    let (debug_handle, node_flags) = (node.debug_handle, node.flags);
    let Elem::Q8(_) = rewriter.elem(conv.input)? else { return None };
    let &[batch, rows, columns, channels] = rewriter.value(conv.input).dims.as_slice() else {
        return None;
    };
    let size = |n: u32| usize::try_from(n).ok();
    let (step, kernel) = (size(conv.stride.width)?, size(conv.kernel.width)?);
    let padding = padding(rewriter, &conv, node_flags)?;
    // The first window begins with a whole pixel.
    let left = size(padding.left)?.div_ceil(step);
    let shift = left * step - size(padding.left)?;
    let width = (kernel + shift).div_ceil(step);
    let pixels = columns / step;
    let results = *rewriter.value(conv.output).dims.get(2)?;
    let right = (results + width).checked_sub(1 + pixels + left)?;
    if step < 2
        || conv.groups != 1
        || conv.dilation.width != 1
        || !columns.is_multiple_of(step)
        || channels * step > CHANNELS
        || width >= kernel
        || !is_pinned(rewriter, conv.output)
    {
        return None;
    }
    let filter = filter(rewriter.value(conv.filter), channel_dim, shift, width, step)?;
    let filter = rewriter.push_value(filter);
    let input = rewriter.push_like(conv.input, &[batch, rows, pixels, channels * step]);
    // The batch is inferred.
    let new_shape = vec![0, rows, pixels, channels * step];
    let reshape = NodeOp::StaticReshape { new_shape, input: conv.input, output: input };
    rewriter.push(Node { debug_handle, ..Node::new(reshape) });
    let side = |pixels: usize| u32::try_from(pixels).ok();
    let conv = Conv2d {
        padding: Padding2d { left: side(left)?, right: side(right)?, ..padding },
        kernel: Size2d { width: side(width)?, ..conv.kernel },
        stride: Size2d { width: 1, ..conv.stride },
        group_input_channels: side(channels * step)?,
        input,
        filter,
        ..conv
    };
    rewriter.change(index, |node| {
        node.op = NodeOp::Conv2d(conv);
        node.flags &= !flags::TENSORFLOW_SAME_PADDING;
    });
    Some(())
}

/// Padding that the convolution adds to images of this size.
fn padding(rewriter: &Rewriter, conv: &Conv2d, node_flags: u32) -> Option<Padding2d> {
    if node_flags & flags::TENSORFLOW_SAME_PADDING == 0 {
        return Some(conv.padding);
    }
    let total = |dim: usize, kernel: u32, stride: u32, dilation: u32| {
        let [from, to] = [conv.input, conv.output].map(|id| rewriter.value(id).dims.get(dim));
        let [from, to] = [u32::try_from(*from?).ok()?, u32::try_from(*to?).ok()?];
        let extent = kernel.checked_sub(1)?.checked_mul(dilation)?.checked_add(1)?;
        let reach = to.checked_sub(1)?.checked_mul(stride)?.checked_add(extent)?;
        Some(reach.saturating_sub(from))
    };
    let vertical = total(1, conv.kernel.height, conv.stride.height, conv.dilation.height)?;
    let horizontal = total(2, conv.kernel.width, conv.stride.width, conv.dilation.width)?;
    Some(Padding2d {
        top: vertical / 2,
        bottom: vertical - vertical / 2,
        left: horizontal / 2,
        right: horizontal - horizontal / 2,
    })
}

/// Whether a node after the value fixes the size of images, so that sessions cannot compute images
/// of another size.
fn is_pinned(rewriter: &Rewriter, image: ValueId) -> bool {
    let mut visited = vec![false; rewriter.len()];
    let mut pending = rewriter.readers(image).to_vec();
    while let Some(index) = pending.pop() {
        if std::mem::replace(&mut visited[index], true) {
            continue;
        }
        let Some(node) = rewriter.node(index) else { continue };
        match &node.op {
            NodeOp::StaticReshape { new_shape, .. }
                if !leaves_sizes_open(new_shape, node.flags) =>
            {
                return true;
            }
            NodeOp::GlobalAveragePooling2d { .. } if node.flags & flags::FIXED_SIZE != 0 => {
                return true;
            }
            // A mean accepts images of all sizes.
            NodeOp::StaticReduce { .. } | NodeOp::GlobalAveragePooling2d { .. } => {}
            _ => pending.extend(node.outputs().iter().flat_map(|&id| rewriter.readers(id))),
        }
    }
    false
}

/// Whether a reshape accepts images of other sizes. It does not where it infers the batch, or the
/// dimension after one of size 1, unless the model leaves that dimension open.
fn leaves_sizes_open(new_shape: &[usize], node_flags: u32) -> bool {
    let open = new_shape.iter().position(|&dim| dim == 0);
    let before = open.and_then(|open| new_shape.get(open.checked_sub(1)?));
    before.is_some_and(|&dim| dim > 1 || node_flags & flags::OPEN_DIMENSION != 0)
}

/// The filter for merged pixels, from 8-bit weights `[outputs, height, width, channels]`, or
/// `[1, height, width, outputs]` for depthwise convolutions; `shift` columns of zeros are added in
/// front.
fn filter(
    value: &Value,
    channel_dim: usize,
    shift: usize,
    width: usize,
    step: usize,
) -> Option<Value> {
    let &[first, height, columns, last] = value.dims.as_slice() else { return None };
    let (outputs, channels) = if channel_dim == 0 { (first, last) } else { (last, first) };
    let (quantization, zero) = match (value.datatype, &value.quantization) {
        (Datatype::QInt8 | Datatype::QUint8, &Quantization::PerTensor { zero_point, .. }) => {
            (value.quantization.clone(), zero_point.to_le_bytes()[0])
        }
        (Datatype::QcInt8, Quantization::PerChannel { scales, .. }) => {
            (Quantization::PerChannel { scales: scales.clone(), channel_dim: 0 }, 0)
        }
        _ => return None,
    };
    let dims = [outputs, height, width, channels * step];
    let mut folded = vec![zero; dims.iter().product()];
    for (position, &weight) in value.data.as_ref()?.iter().enumerate() {
        let (inner, outer) = (position % last, position / last);
        let (column, outer) = (outer % columns + shift, outer / columns);
        let (row, outer) = (outer % height, outer / height);
        let (output, channel) = if channel_dim == 0 { (outer, inner) } else { (inner, 0) };
        let pixel = (output * height + row) * width + column / step;
        let place = (pixel * step + column % step) * channels + channel;
        *folded.get_mut(place)? = weight;
    }
    Some(Value::new(value.datatype, quantization, &dims).with_data(folded.into()))
}
