//! Merges nodes that compute the same result.

use xnn_format::{Node, ValueId};

use super::rewriter::Rewriter;

pub(super) fn run(rewriter: &mut Rewriter) -> usize {
    let mut removed = 0;
    for index in 0..rewriter.len() {
        let Some((copy, original)) = rewriter.node(index).and_then(|n| earlier(rewriter, index, n))
        else {
            continue;
        };
        removed += usize::from(rewriter.unify(copy, original));
    }
    removed
}

/// The node's result, and the equal result of an earlier node.
fn earlier(rewriter: &Rewriter, index: usize, node: &Node) -> Option<(ValueId, ValueId)> {
    let &[output] = node.outputs().as_slice() else { return None };
    let first = *node.inputs().first()?;
    rewriter.readers(first).iter().filter(|&&other| other < index).find_map(|&other| {
        let other = rewriter.node(other)?;
        let &[original] = other.outputs().as_slice() else { return None };
        let same =
            rewriter.value(original) == rewriter.value(output) && is_same(rewriter, node, other);
        same.then_some((output, original))
    })
}

/// Whether two nodes differ only in their outputs and their origins.
fn is_same(rewriter: &Rewriter, node: &Node, other: &Node) -> bool {
    let (inputs, others) = (node.inputs(), other.inputs());
    let same = |(&a, &b): (&ValueId, &ValueId)| a == b || rewriter.same_constant(a, b);
    if inputs.len() != others.len() || !inputs.iter().zip(&others).all(same) {
        return false;
    }
    let mut other = other.clone();
    other.debug_handle = node.debug_handle;
    other.inputs_mut().into_iter().zip(inputs).for_each(|(id, input)| *id = input);
    other.outputs_mut().into_iter().zip(node.outputs()).for_each(|(id, output)| *id = output);
    *node == other
}
