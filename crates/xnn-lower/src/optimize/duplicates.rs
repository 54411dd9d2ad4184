//! Merges nodes that compute the same result.

use std::mem::discriminant;

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
    let inputs = node.inputs();
    let readers = rewriter.readers(*inputs.first()?);
    let mut copy = None;
    readers.iter().filter(|&&other| other < index).find_map(|&other| {
        let other = rewriter.node(other)?;
        if discriminant(&node.op) != discriminant(&other.op) {
            return None;
        }
        let &[original] = other.outputs().as_slice() else { return None };
        let same = rewriter.value(original) == rewriter.value(output)
            && have_same_inputs(rewriter, &inputs, &other.inputs())
            && is_same(copy.get_or_insert_with(|| node.clone()), other);
        same.then_some((output, original))
    })
}

fn have_same_inputs(rewriter: &Rewriter, inputs: &[ValueId], others: &[ValueId]) -> bool {
    let same = |(&a, &b): (&ValueId, &ValueId)| a == b || rewriter.same_constant(a, b);
    inputs.len() == others.len() && inputs.iter().zip(others).all(same)
}

/// Whether two nodes with as many operands differ only in these and in their origins, which are
/// made equal.
fn is_same(node: &mut Node, other: &Node) -> bool {
    node.debug_handle = other.debug_handle;
    node.inputs_mut().into_iter().zip(other.inputs()).for_each(|(id, input)| *id = input);
    node.outputs_mut().into_iter().zip(other.outputs()).for_each(|(id, output)| *id = output);
    node == other
}
