//! Removes conversions between floats and 8-bit integers.

use xnn_format::{NodeOp, UnaryOp, ValueId};

use super::rewriter::Rewriter;
use crate::rules::checks::Elem;
use crate::rules::elementwise::binary_in_8_bits;

pub(super) fn run(rewriter: &mut Rewriter) -> usize {
    (0..rewriter.len())
        .filter(|&index| round_trip(rewriter, index) || float_island(rewriter, index).is_some())
        .count()
}

/// Operand and result of a conversion.
fn converted(rewriter: &Rewriter, index: usize) -> Option<(ValueId, ValueId)> {
    match rewriter.node(index)?.op {
        NodeOp::Unary { op: UnaryOp::Convert, input, output } => Some((input, output)),
        _ => None,
    }
}

/// The integers that floats are converted from, with their type.
fn integers(rewriter: &Rewriter, floats: ValueId) -> Option<(ValueId, Elem)> {
    let (input, output) = converted(rewriter, rewriter.producer(floats)?.0)?;
    let from_integers = rewriter.elem(output)?.is_f32();
    let elem = rewriter.elem(input).filter(|elem| from_integers && !elem.is_f32())?;
    Some((input, elem))
}

/// Removes a conversion to floats and back to the same integers.
fn round_trip(rewriter: &mut Rewriter, index: usize) -> bool {
    let Some((floats, output)) = converted(rewriter, index) else { return false };
    let Some((input, from)) = integers(rewriter, floats) else { return false };
    rewriter.elem(output) == Some(from) && rewriter.unify(output, input)
}

/// Computes a function of two floats between conversions from and to integers on the integers,
/// which rounds once.
fn float_island(rewriter: &mut Rewriter, index: usize) -> Option<()> {
    let (result, output) = converted(rewriter, index)?;
    let to = rewriter.elem(output)?;
    let (computed, node) = rewriter.sole_writer(result)?;
    let &NodeOp::Binary { op, inputs: [a, b], .. } = &node.op else { return None };
    let ((a, from_a), (b, from_b)) = (integers(rewriter, a)?, integers(rewriter, b)?);
    let same_type = from_a.same_type(to) && from_b.same_type(to);
    if !(same_type && binary_in_8_bits(op, from_a, from_b, to)) {
        return None;
    }
    rewriter.remove(index);
    rewriter.change(computed, |node| {
        node.op = NodeOp::Binary { op, inputs: [a, b], output };
    });
    Some(())
}
