//! Moves bounds into the node that computes the bounded value.

use xnn_format::{BinaryOp, Node, NodeOp, OutputRange, UnaryOp, ValueId};

use super::rewriter::Rewriter;
use crate::rules::checks::Elem;

pub(super) fn run(rewriter: &mut Rewriter) -> usize {
    let mut changes = 0;
    for index in 0..rewriter.len() {
        changes += usize::from(by_constant(rewriter, index).is_some());
        changes += usize::from(into_writer(rewriter, index).is_some());
    }
    changes
}

/// Replaces a maximum or minimum with one constant by a clamp, which keeps NaN. If the constant is
/// the second operand, elements must not be NaN: interpreters return the second of two elements
/// that do not compare.
fn by_constant(rewriter: &mut Rewriter, index: usize) -> Option<()> {
    let &NodeOp::Binary { op, inputs: [first, second], output } = &rewriter.node(index)?.op else {
        return None;
    };
    let (input, bound) = match rewriter.scalar(first) {
        Some(bound) => (second, bound),
        None if is_dequantized(rewriter, first) => (first, rewriter.scalar(second)?),
        None => return None,
    };
    let range = match op {
        BinaryOp::Maximum => OutputRange { min: bound, max: f32::INFINITY },
        BinaryOp::Minimum => OutputRange { min: f32::NEG_INFINITY, max: bound },
        _ => return None,
    };
    if bound.is_nan() || rewriter.value(input).dims != rewriter.value(output).dims {
        return None;
    }
    rewriter.change(index, |node| {
        node.op = NodeOp::Unary { op: UnaryOp::Clamp, input, output };
        node.output_range = Some(range);
    });
    Some(())
}

/// Whether a value is converted from integers, and so has no NaN.
fn is_dequantized(rewriter: &Rewriter, id: ValueId) -> bool {
    let Some((_, producer)) = rewriter.producer(id) else { return false };
    match producer.op {
        NodeOp::Unary { op: UnaryOp::Convert, input, .. } => {
            matches!(rewriter.elem(input), Some(Elem::Q8(_)))
        }
        _ => false,
    }
}

/// Moves a clamp into the node before it, if nothing else reads that node's result.
fn into_writer(rewriter: &mut Rewriter, index: usize) -> Option<()> {
    let node = rewriter.node(index)?;
    let &NodeOp::Unary { op: UnaryOp::Clamp, input, output } = &node.op else { return None };
    let range = node.output_range?;
    let (writer, producer) = rewriter.sole_writer(input)?;
    let [before, after] = [input, output].map(|id| rewriter.value(id));
    if !can_clamp(producer)
        || (before.datatype, &before.quantization) != (after.datatype, &after.quantization)
    {
        return None;
    }
    let range = intersection(producer.output_range.unwrap_or(OutputRange::UNBOUNDED), range)?;
    rewriter.remove(index);
    rewriter.change(writer, |node| {
        node.output_range = Some(range);
        node.outputs_mut().into_iter().for_each(|id| *id = output);
    });
    Some(())
}

/// Whether XNNPACK bounds the node's result without an additional step.
fn can_clamp(node: &Node) -> bool {
    matches!(
        node.op,
        NodeOp::Unary { op: UnaryOp::Clamp, .. }
            | NodeOp::Conv2d(_)
            | NodeOp::DepthwiseConv2d(_)
            | NodeOp::ConvTranspose2d(_)
            | NodeOp::FullyConnected { .. }
            | NodeOp::AveragePooling2d(_)
            | NodeOp::MaxPooling2d(_)
    )
}

/// The intersection of two ranges; `None` if it has at most one number, so that all elements would
/// be equal.
fn intersection(first: OutputRange, second: OutputRange) -> Option<OutputRange> {
    let range = OutputRange { min: first.min.max(second.min), max: first.max.min(second.max) };
    (range.min < range.max).then_some(range)
}
