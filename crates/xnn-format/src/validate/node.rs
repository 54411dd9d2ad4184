//! Checks of single nodes: parameters, flags, and operands that must be constant.

use crate::error::{Error, Result, require};
use crate::graph::Graph;
use crate::limits::{MAX_RANK, at_most};
use crate::node::{Node, NodeOp, OutputRange, flags};
use crate::parameters::{Conv2d, Padding2d, Pooling2d, Size2d, UnaryOp};
use crate::value::{Datatype, Quantization, Value, ValueId};

pub(super) fn check(graph: &Graph, node: &Node) -> Result<()> {
    let refused = node.flags & refused_flags(graph, &node.op);
    require!(refused == 0, "the flags {refused:#x} are not supported");
    if let Some(range) = node.output_range {
        output_range(&node.op, range)?;
    }
    match &node.op {
        NodeOp::Unary { op: UnaryOp::Elu { alpha }, .. } => finite("alpha", *alpha),
        NodeOp::Unary { op: UnaryOp::LeakyRelu { negative_slope }, .. } => {
            finite("the negative slope", *negative_slope)
        }
        NodeOp::Conv2d(conv) => convolution(graph, conv, node.flags, 0),
        NodeOp::DepthwiseConv2d(conv) => {
            require!(
                conv.group_input_channels == 1,
                "{} input channels per group instead of 1",
                conv.group_input_channels
            );
            convolution(graph, conv, node.flags, 3)
        }
        NodeOp::ConvTranspose2d(conv) => {
            require!(
                conv.adjustment.height < conv.stride.height
                    && conv.adjustment.width < conv.stride.width,
                "the adjustment is not smaller than the stride"
            );
            convolution(graph, conv, node.flags, 0)
        }
        NodeOp::FullyConnected { filter, bias, sparse, .. } => {
            if *sparse {
                constant(graph, *filter, "filter")?;
            }
            let transposed = node.flags & flags::TRANSPOSE_WEIGHTS != 0;
            weights(graph, *filter, *bias, usize::from(transposed))
        }
        NodeOp::BatchMatrixMultiply { inputs: [_, second], .. } => {
            channelwise_matrix(value(graph, *second)?, node.flags)
        }
        NodeOp::AveragePooling2d(window) => {
            require!(window.dilation == Size2d::ONE, "average pooling has no dilation");
            pooling(window, node.flags)
        }
        NodeOp::MaxPooling2d(window) => pooling(window, node.flags),
        NodeOp::ArgMaxPooling2d { window, .. } | NodeOp::Unpooling2d { window, .. } => {
            require!(
                window.stride == window.kernel && window.dilation == Size2d::ONE,
                "the stride must equal the window, without dilation"
            );
            pooling(window, 0)
        }
        NodeOp::Concatenate { inputs, .. } => count("inputs", inputs.len(), 2, 5),
        NodeOp::EvenSplit { outputs, .. } => count("outputs", outputs.len(), 2, 4),
        NodeOp::StaticReshape { new_shape, .. } => {
            at_most("the rank", new_shape.len(), MAX_RANK)?;
            new_shape.iter().try_for_each(|&dim| fits("a dimension", dim))?;
            let inferred = new_shape.iter().filter(|&&dim| dim == 0).count();
            require!(inferred <= 1, "{inferred} dimensions of the new shape are to be inferred");
            Ok(())
        }
        NodeOp::StaticExpandDims { new_axes, .. } => axes(new_axes),
        NodeOp::StaticReduce { axes: reduced, .. } => axes(reduced),
        NodeOp::StaticTranspose { perm, .. } => {
            count("entries of the permutation", perm.len(), 1, MAX_RANK)?;
            require!(
                (0..perm.len()).all(|dim| perm.contains(&dim)),
                "{perm:?} is not a permutation"
            );
            Ok(())
        }
        NodeOp::StaticSlice { offsets, sizes, .. } => {
            count("offsets", offsets.len(), 1, MAX_RANK)?;
            same_length("offsets", offsets, "sizes", sizes)?;
            offsets.iter().chain(sizes).try_for_each(|&size| fits("a bound", size))
        }
        NodeOp::StaticConstantPad {
            pre_paddings, post_paddings, padding_value, output, ..
        } => {
            count("paddings", pre_paddings.len(), 0, MAX_RANK)?;
            same_length("paddings before", pre_paddings, "paddings after", post_paddings)?;
            pre_paddings
                .iter()
                .chain(post_paddings)
                .try_for_each(|&size| fits("a padding", size))?;
            let quantized = value(graph, *output)?.quantization != Quantization::None;
            require!(
                !padding_value.is_nan() && (padding_value.is_finite() || !quantized),
                "the padding value {padding_value} cannot be represented"
            );
            Ok(())
        }
        NodeOp::StaticResizeBilinear2d { new_height, new_width, .. } => {
            require!(*new_height > 0 && *new_width > 0, "the new size is 0");
            fits("the new height", *new_height)?;
            fits("the new width", *new_width)?;
            let both = flags::TENSORFLOW_LEGACY_MODE | flags::ALIGN_CORNERS;
            require!(
                node.flags & both != both,
                "legacy mode and aligned corners are mutually exclusive"
            );
            Ok(())
        }
        NodeOp::DepthToSpace2d { block_size, .. } | NodeOp::SpaceToDepth2d { block_size, .. } => {
            require!(*block_size > 1, "the block size is {block_size}, expected at least 2");
            Ok(())
        }
        NodeOp::Rope { max_tokens, .. } => {
            require!(*max_tokens > 0, "max_tokens is 0");
            fits("the number of tokens", *max_tokens)
        }
        NodeOp::Unary { .. }
        | NodeOp::Binary { .. }
        | NodeOp::GlobalAveragePooling2d { .. }
        | NodeOp::Softmax { .. }
        | NodeOp::ScaledDotProductAttention { .. } => Ok(()),
    }
}

/// Bits of [`Node::flags`] for which XNNPACK refuses a node or does something that this project
/// does not support. Other bits that [`flags`] does not name for a node have no effect in XNNPACK.
/// Some files have them; they are ignored.
fn refused_flags(graph: &Graph, op: &NodeOp) -> u32 {
    let for_fp16 = |filter: &ValueId| {
        let is_fp16 = |value: &Value| value.datatype == Datatype::F16;
        if graph.value(*filter).is_some_and(is_fp16) { flags::FP32_STATIC_WEIGHTS } else { 0 }
    };
    match op {
        NodeOp::Conv2d(_) | NodeOp::DepthwiseConv2d(_) => {
            !(flags::TENSORFLOW_SAME_PADDING | flags::TRANSIENT_INDIRECTION_BUFFER)
        }
        NodeOp::StaticResizeBilinear2d { .. } => {
            !(flags::TENSORFLOW_LEGACY_MODE
                | flags::ALIGN_CORNERS
                | flags::TRANSIENT_INDIRECTION_BUFFER)
        }
        NodeOp::ConvTranspose2d(conv) => for_fp16(&conv.filter),
        NodeOp::FullyConnected { filter, sparse: false, .. } => for_fp16(filter),
        NodeOp::FullyConnected { filter, sparse: true, .. } => flags::INPUT_NHWC | for_fp16(filter),
        NodeOp::BatchMatrixMultiply { .. } => flags::TRANSPOSE_A,
        NodeOp::ArgMaxPooling2d { .. } => flags::TENSORFLOW_SAME_PADDING,
        _ => 0,
    }
}

fn output_range(op: &NodeOp, OutputRange { min, max }: OutputRange) -> Result<()> {
    use crate::parameters::BinaryOp::{Add, Divide, Multiply, Subtract};
    let bounded = matches!(
        op,
        NodeOp::Unary { op: UnaryOp::Clamp, .. }
            | NodeOp::Binary { op: Add | Subtract | Multiply | Divide, .. }
            | NodeOp::Conv2d(_)
            | NodeOp::DepthwiseConv2d(_)
            | NodeOp::ConvTranspose2d(_)
            | NodeOp::FullyConnected { .. }
            | NodeOp::AveragePooling2d(_)
            | NodeOp::MaxPooling2d(_)
            | NodeOp::GlobalAveragePooling2d { .. }
    );
    let unbounded = min == f32::NEG_INFINITY && max == f32::INFINITY;
    require!(bounded || unbounded, "this kind of node does not clamp its result");
    require!(min <= max, "[{min}, {max}] is not a range");
    Ok(())
}

fn convolution(graph: &Graph, conv: &Conv2d, flags: u32, channel_dim: usize) -> Result<()> {
    not_zero("the kernel", conv.kernel)?;
    not_zero("the stride", conv.stride)?;
    not_zero("the dilation", conv.dilation)?;
    same_padding(conv.padding, flags)?;
    within_reach(conv.padding, conv.kernel, conv.dilation)?;
    let channels = [conv.groups, conv.group_input_channels, conv.group_output_channels];
    require!(!channels.contains(&0), "groups or channels are 0");
    constant(graph, conv.filter, "filter")?;
    if let Some(bias) = conv.bias {
        constant(graph, bias, "bias")?;
    }
    weights(graph, conv.filter, conv.bias, channel_dim)
}

/// Checks the quantization of filter and bias. `channel_dim` is the dimension of the filter's
/// output channels.
fn weights(
    graph: &Graph,
    filter: ValueId,
    bias: Option<ValueId>,
    channel_dim: usize,
) -> Result<()> {
    let filter = value(graph, filter)?;
    let expected = match filter.quantization {
        Quantization::PerTensor { zero_point, .. } if filter.datatype == Datatype::QInt8 => {
            require!(zero_point == 0, "the filter's zero point is {zero_point} instead of 0");
            channel_dim
        }
        Quantization::PerChannel { channel_dim, .. }
        | Quantization::Blockwise { channel_dim, .. } => channel_dim,
        _ => channel_dim,
    };
    require!(
        expected == channel_dim,
        "the filter has scales along dimension {expected} instead of {channel_dim}"
    );
    let Some(bias) = bias else { return Ok(()) };
    require!(
        value(graph, bias)?.dims.len() == 1,
        "the bias has {} dimensions instead of 1",
        value(graph, bias)?.dims.len()
    );
    Ok(())
}

/// Refuses per-channel scales of batches of matrices: XNNPACK reads scales for each batch, but a
/// value has scales per channel only.
fn channelwise_matrix(matrix: &Value, flags: u32) -> Result<()> {
    let Quantization::PerChannel { channel_dim, .. } = matrix.quantization else { return Ok(()) };
    let from_end = if flags & flags::TRANSPOSE_WEIGHTS == 0 { 1 } else { 2 };
    require!(
        channel_dim + from_end == matrix.dims.len(),
        "the second operand has scales along dimension {channel_dim} of {:?}",
        matrix.dims
    );
    let batches = matrix.dims.iter().rev().skip(2);
    require!(
        batches.clone().all(|&dim| dim == 1),
        "the second operand has per-channel scales and more than one batch; split the batches"
    );
    Ok(())
}

fn pooling(window: &Pooling2d, flags: u32) -> Result<()> {
    not_zero("the window", window.kernel)?;
    not_zero("the stride", window.stride)?;
    not_zero("the dilation", window.dilation)?;
    same_padding(window.padding, flags)?;
    within_reach(window.padding, window.kernel, window.dilation)
}

/// Refuses padding beyond the reach of the window, where a window covers no pixel of the image (or,
/// for windows in the result, nothing of a pixel is left). No exporter writes it, and it would let
/// a small file compute a large result. One more tap is allowed: PyTorch models have 1 x 1
/// convolutions with a padding of 1.
fn within_reach(padding: Padding2d, kernel: Size2d, dilation: Size2d) -> Result<()> {
    let [height, width] = [kernel.height, kernel.width].map(|side| side.saturating_add(1));
    require!(
        padding.is_within_reach(Size2d { height, width }, dilation),
        "the padding {padding:?} is beyond the reach of a window of {} x {}",
        kernel.height,
        kernel.width
    );
    Ok(())
}

fn same_padding(padding: Padding2d, flags: u32) -> Result<()> {
    require!(
        flags & flags::TENSORFLOW_SAME_PADDING == 0 || padding == Padding2d::default(),
        "SAME padding and explicit padding are mutually exclusive"
    );
    Ok(())
}

fn not_zero(what: &str, size: Size2d) -> Result<()> {
    require!(
        size.height > 0 && size.width > 0,
        "{what} is {} x {}; neither may be 0",
        size.height,
        size.width
    );
    Ok(())
}

fn axes(axes: &[usize]) -> Result<()> {
    count("axes", axes.len(), 1, MAX_RANK)?;
    require!(axes.is_sorted_by(|a, b| a < b), "the axes {axes:?} are not ascending");
    require!(axes.iter().all(|&axis| axis < MAX_RANK), "the axes {axes:?} are too large");
    Ok(())
}

fn same_length(name: &str, these: &[usize], other_name: &str, others: &[usize]) -> Result<()> {
    require!(
        these.len() == others.len(),
        "{} {name}, but {} {other_name}",
        these.len(),
        others.len()
    );
    Ok(())
}

fn count(what: &str, count: usize, min: usize, max: usize) -> Result<()> {
    require!((min..=max).contains(&count), "{count} {what} instead of {min} to {max}");
    Ok(())
}

fn fits(what: &str, size: usize) -> Result<()> {
    require!(u32::try_from(size).is_ok(), "{what} of {size} does not fit in 32 bits");
    Ok(())
}

fn finite(what: &str, number: f32) -> Result<()> {
    require!(number.is_finite(), "{what} is {number}");
    Ok(())
}

fn constant(graph: &Graph, id: ValueId, what: &str) -> Result<()> {
    let constant = value(graph, id)?.data.is_some();
    require!(constant, "the {what}, value {}, is not a constant", id.0);
    Ok(())
}

fn value(graph: &Graph, id: ValueId) -> Result<&Value> {
    graph.value(id).ok_or_else(|| Error::invalid(format!("value {} does not exist", id.0)))
}
