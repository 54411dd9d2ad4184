//! Conversions between floats and 8-bit integers that can be saved.

use xnn_format::{Datatype, NodeOp, Quantization, UnaryOp, Value, ValueId};

use super::rewriter::Rewriter;
use crate::partition::rules::checks::{Elem, Q8};
use crate::partition::rules::elementwise::{binary_in_8_bits, unary_in_8_bits};

pub(super) fn run(rewriter: &mut Rewriter) -> usize {
    (0..rewriter.len())
        .filter(|&index| round_trip(rewriter, index) || island(rewriter, index).is_some())
        .count()
}

/// Operand and result of a conversion between these types.
fn converted(rewriter: &Rewriter, index: usize) -> Option<(ValueId, ValueId)> {
    match rewriter.node(index)?.op {
        NodeOp::Unary { op: UnaryOp::Convert, input, output } => Some((input, output)),
        _ => None,
    }
}

/// The integers that floats were converted from.
fn integers(rewriter: &Rewriter, floats: ValueId) -> Option<ValueId> {
    let (input, output) = converted(rewriter, rewriter.producer(floats)?.0)?;
    let is_float = rewriter.value(output).datatype == Datatype::F32;
    elem(rewriter.value(input)).filter(|_| is_float)?;
    Some(input)
}

/// To floats and back to the same integers.
fn round_trip(rewriter: &mut Rewriter, index: usize) -> bool {
    let Some((floats, output)) = converted(rewriter, index) else { return false };
    let Some(input) = integers(rewriter, floats) else { return false };
    elem(rewriter.value(input)) == elem(rewriter.value(output)) && rewriter.unify(output, input)
}

/// One function of floats that were integers and become integers again: as a
/// function of integers, which rounds once and is a table for most.
fn island(rewriter: &mut Rewriter, index: usize) -> Option<()> {
    let (result, output) = converted(rewriter, index)?;
    let to = elem(rewriter.value(output))?;
    let (computed, node) = rewriter.sole_writer(result)?;
    let mut op = node.op.clone();
    match &mut op {
        NodeOp::Unary { op, input, output: result } => {
            let source = integers(rewriter, *input)?;
            let from = elem(rewriter.value(source))?;
            // A clamp between scales is two nodes; the others have no conversion to save.
            let has_form = match op {
                UnaryOp::Clamp => from == to,
                UnaryOp::Convert | UnaryOp::Copy => false,
                _ => signed(from) == signed(to),
            };
            if !(has_form && unary_in_8_bits(*op, from, to)) {
                return None;
            }
            (*input, *result) = (source, output);
        }
        NodeOp::Binary { op, inputs: [a, b], output: result } => {
            let sources = [integers(rewriter, *a)?, integers(rewriter, *b)?];
            let [ea, eb] = sources.map(|id| elem(rewriter.value(id)));
            let (ea, eb) = (ea?, eb?);
            let same_type = [ea, eb].iter().all(|elem| signed(*elem) == signed(to));
            if !(same_type && binary_in_8_bits(*op, ea, eb, to)) {
                return None;
            }
            ([*a, *b], *result) = (sources, output);
        }
        _ => return None,
    }
    rewriter.remove(index);
    rewriter.change(computed, |node| node.op = op);
    Some(())
}

/// An 8-bit type with one scale.
fn elem(value: &Value) -> Option<Elem> {
    let Quantization::PerTensor { scale, zero_point } = value.quantization else { return None };
    let signed = match value.datatype {
        Datatype::QInt8 => true,
        Datatype::QUint8 => false,
        _ => return None,
    };
    Some(Elem::Q8(Q8 { signed, scale, zero_point }))
}

fn signed(elem: Elem) -> Option<bool> {
    match elem {
        Elem::Q8(Q8 { signed, .. }) => Some(signed),
        _ => None,
    }
}
