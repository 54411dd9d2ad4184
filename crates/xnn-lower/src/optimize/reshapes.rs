//! Merges a reshape with a node before it that keeps the order of elements.

use xnn_format::{NodeOp, flags};

use super::rewriter::Rewriter;

pub(super) fn run(rewriter: &mut Rewriter) -> usize {
    (0..rewriter.len()).filter(|&index| merge(rewriter, index).is_some()).count()
}

/// Makes a reshape read the operand of the node before it.
fn merge(rewriter: &mut Rewriter, index: usize) -> Option<()> {
    let node = rewriter.node(index)?;
    let (op, first) = match &node.op {
        NodeOp::StaticReshape { input, .. } => (node.op.clone(), *input),
        NodeOp::StaticTranspose { perm, input, output }
            if keeps_order(perm, &rewriter.value(*input).dims) =>
        {
            let mut new_shape = rewriter.value(*output).dims.clone();
            let NodeOp::StaticReshape { new_shape: inner, .. } = &rewriter.producer(*input)?.1.op
            else {
                return None;
            };
            match inner.iter().position(|&dim| dim == 0) {
                None => {}
                Some(0) => *new_shape.first_mut()? = 0,
                Some(_) => return None,
            }
            (NodeOp::StaticReshape { new_shape, input: *input, output: *output }, *input)
        }
        _ => return None,
    };
    let (source, kept) = match &rewriter.producer(first)?.1.op {
        NodeOp::StaticReshape { input, .. } | NodeOp::StaticExpandDims { input, .. } => {
            (*input, u32::MAX)
        }
        NodeOp::StaticTranspose { perm, input, .. }
            if keeps_order(perm, &rewriter.value(*input).dims) =>
        {
            // With other sizes the transpose may move dimensions larger than 1.
            (*input, !flags::OPEN_DIMENSION)
        }
        _ => return None,
    };
    rewriter.change(index, |node| {
        node.op = op;
        node.flags &= kept;
        node.inputs_mut().into_iter().for_each(|input| *input = source);
    });
    Some(())
}

/// Whether a permutation only moves dimensions of size 1, and not the batch.
fn keeps_order(perm: &[usize], dims: &[usize]) -> bool {
    perm.first() == Some(&0) && perm.iter().filter(|&&dim| dims[dim] > 1 || dim == 0).is_sorted()
}
