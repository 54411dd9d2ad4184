//! Reshapes behind nodes that only give elements another shape.

use xnn_format::NodeOp;

use super::rewriter::Rewriter;

pub(super) fn run(rewriter: &mut Rewriter) -> usize {
    let mut merged = 0;
    for index in 0..rewriter.len() {
        let Some(NodeOp::StaticReshape { input, .. }) = rewriter.node(index).map(|n| &n.op) else {
            continue;
        };
        let Some((_, writer)) = rewriter.producer(*input) else { continue };
        let source = match &writer.op {
            NodeOp::StaticReshape { input, .. } | NodeOp::StaticExpandDims { input, .. } => *input,
            NodeOp::StaticTranspose { perm, input, .. }
                if keeps_order(perm, &rewriter.value(*input).dims) =>
            {
                *input
            }
            _ => continue,
        };
        rewriter.change(index, |node| {
            node.inputs_mut().into_iter().for_each(|input| *input = source);
        });
        merged += 1;
    }
    merged
}

/// Whether a permutation moves dimensions of size 1 only, and not the batch.
fn keeps_order(perm: &[usize], dims: &[usize]) -> bool {
    perm.first() == Some(&0) && perm.iter().filter(|&&dim| dims[dim] > 1 || dim == 0).is_sorted()
}
