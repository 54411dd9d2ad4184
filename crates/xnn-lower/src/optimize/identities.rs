//! Removes nodes whose result is their operand.

use xnn_format::{Node, NodeOp, OutputRange, UnaryOp, ValueId, flags};

use super::rewriter::Rewriter;

pub(super) fn run(rewriter: &mut Rewriter) -> usize {
    let mut removed = 0;
    for index in 0..rewriter.len() {
        let Some((copy, original)) = rewriter.node(index).and_then(|node| copied(rewriter, node))
        else {
            continue;
        };
        removed += usize::from(rewriter.unify(copy, original));
    }
    removed
}

/// Result and operand of a node that changes nothing for any batch.
fn copied(rewriter: &Rewriter, node: &Node) -> Option<(ValueId, ValueId)> {
    let [&[input], &[output]] = [&node.inputs()[..], &node.outputs()[..]] else { return None };
    let dims = &rewriter.value(input).dims;
    let same = match &node.op {
        // Types are compared below.
        NodeOp::Unary { op: UnaryOp::Copy | UnaryOp::Convert, .. } => true,
        NodeOp::Unary { op: UnaryOp::Clamp, .. } => {
            node.output_range.is_none_or(|range| range == OutputRange::UNBOUNDED)
        }
        // An inferred batch is the operand's if all other dimensions are. An open dimension may
        // change the others.
        NodeOp::StaticReshape { new_shape, .. } => {
            new_shape.first().is_none_or(|&batch| batch == 0)
                && new_shape.get(1..) == dims.get(1..)
                && (node.flags & flags::OPEN_DIMENSION == 0 || new_shape.len() == 1)
        }
        NodeOp::StaticTranspose { perm, .. } => perm.is_sorted(),
        // Sizes that happen to be those of the operand may not be in another session.
        NodeOp::StaticSlice { offsets, sizes, .. } => {
            offsets.iter().chain(sizes).all(|&bound| bound == 0)
        }
        NodeOp::StaticConstantPad { pre_paddings, post_paddings, .. } => {
            pre_paddings.iter().chain(post_paddings).all(|&padding| padding == 0)
        }
        _ => false,
    };
    let typed = |id: ValueId| {
        let value = rewriter.value(id);
        (value.datatype, &value.quantization)
    };
    (same && typed(input) == typed(output)).then_some((output, input))
}
