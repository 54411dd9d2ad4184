//! Decides which nodes compute on signed tensors, and inserts conversions.

use std::collections::HashMap;

use xnn_format::{Datatype, Node, NodeOp, Quantization, UnaryOp, Value, ValueId};

use super::super::rewriter::Rewriter;
use super::layers::is_unsigned;

/// Difference between an unsigned element and the signed element for the same value.
const SHIFT: i32 = 128;

/// Signedness of the tensors that a node computes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signedness {
    Signed,
    Unsigned,
    /// The results are equal with both, so that the neighbours decide.
    Either,
}

/// Whether XNNPACK's arithmetic for the operator is the same on tensors shifted by 128.
///
/// It is not for operators between int8 and uint8: XNNPACK converts these with a table, and others
/// with arithmetic.
pub(super) fn is_neutral(rewriter: &Rewriter, node: &Node) -> bool {
    let mut operands = node.inputs().into_iter().chain(node.outputs());
    if operands.any(|id| rewriter.value(id).datatype == Datatype::QInt8) {
        return false;
    }
    matches!(
        node.op,
        NodeOp::Unary { .. }
            | NodeOp::Binary { .. }
            | NodeOp::MaxPooling2d(_)
            | NodeOp::Concatenate { .. }
            | NodeOp::EvenSplit { .. }
            | NodeOp::StaticReshape { .. }
            | NodeOp::StaticExpandDims { .. }
            | NodeOp::StaticTranspose { .. }
            | NodeOp::StaticSlice { .. }
            | NodeOp::StaticConstantPad { .. }
            | NodeOp::StaticResizeBilinear2d { .. }
            | NodeOp::DepthToSpace2d { .. }
            | NodeOp::SpaceToDepth2d { .. }
    )
}

/// Decides for nodes with [`Signedness::Either`]: connected ones get the signedness of most bytes
/// of their neighbours.
pub(super) fn settle(rewriter: &Rewriter, signedness: &mut [Signedness]) {
    let mut done = vec![false; signedness.len()];
    for first in 0..signedness.len() {
        if signedness[first] != Signedness::Either || done[first] {
            continue;
        }
        let (mut group, mut balance) = (vec![first], 0i128);
        done[first] = true;
        let mut next = 0;
        while let Some(&index) = group.get(next) {
            next += 1;
            for (id, neighbour) in neighbours(rewriter, index) {
                let bytes = rewriter.value(id).dims.iter().product::<usize>() as i128;
                match neighbour.map_or(Signedness::Unsigned, |neighbour| signedness[neighbour]) {
                    Signedness::Signed => balance += bytes,
                    Signedness::Unsigned => balance -= bytes,
                    Signedness::Either => {
                        if let Some(neighbour) = neighbour.filter(|&n| !done[n]) {
                            done[neighbour] = true;
                            group.push(neighbour);
                        }
                    }
                }
            }
        }
        let decided = if balance > 0 { Signedness::Signed } else { Signedness::Unsigned };
        group.into_iter().for_each(|index| signedness[index] = decided);
    }
}

/// The nodes that share an unsigned tensor with a node, and the tensor; `None` stands for the
/// caller.
fn neighbours(rewriter: &Rewriter, index: usize) -> Vec<(ValueId, Option<usize>)> {
    let Some(node) = rewriter.node(index) else { return Vec::new() };
    let mut found = Vec::new();
    let tensor = |id: &ValueId| is_tensor(rewriter.value(*id));
    for id in node.inputs().into_iter().filter(tensor) {
        found.push((id, rewriter.writer(id)));
    }
    for id in node.outputs().into_iter().filter(tensor) {
        found.extend(rewriter.readers(id).iter().map(|&reader| (id, Some(reader))));
        if rewriter.is_external(id) {
            found.push((id, None));
        }
    }
    found
}

fn is_tensor(value: &Value) -> bool {
    is_unsigned(value) && value.data.is_none()
}

/// Replaces the unsigned tensors and constants of signed nodes by int8, with conversions where a
/// tensor is needed as both.
pub(super) fn apply(rewriter: &mut Rewriter, signedness: &[Signedness]) {
    let mut twins: HashMap<ValueId, ValueId> = HashMap::new();
    for index in (0..signedness.len()).filter(|&index| signedness[index] == Signedness::Signed) {
        let Some(mut node) = rewriter.node(index).cloned() else { continue };
        let mut to_twin = |id: &mut ValueId| {
            if is_unsigned(rewriter.value(*id)) {
                *id = *twins.entry(*id).or_insert_with_key(|&id| {
                    let twin = signed(rewriter.value(id));
                    rewriter.push_value(twin)
                });
            }
        };
        node.inputs_mut().into_iter().for_each(&mut to_twin);
        node.outputs_mut().into_iter().for_each(&mut to_twin);
        rewriter.replace(index, node);
    }
    let mut twins: Vec<_> = twins.into_iter().collect();
    twins.sort_unstable();
    for (unsigned, signed) in twins {
        if rewriter.value(unsigned).data.is_some() {
            continue;
        }
        // One of the two has a writer. The other is a conversion of it if it is read.
        let (input, output) = match rewriter.writer(signed) {
            Some(_) => (signed, unsigned),
            None => (unsigned, signed),
        };
        if rewriter.is_used(output) {
            let writer = rewriter.writer(input).and_then(|writer| rewriter.node(writer));
            let reader = rewriter.readers(output).first().and_then(|&r| rewriter.node(r));
            let debug_handle = writer.or(reader).and_then(|node| node.debug_handle);
            let op = NodeOp::Unary { op: UnaryOp::Convert, input, output };
            rewriter.push(Node { debug_handle, ..Node::new(op) });
        }
    }
}

/// The value with the same real numbers as int8.
fn signed(value: &Value) -> Value {
    let quantization = match value.quantization {
        Quantization::PerTensor { scale, zero_point } => {
            Quantization::PerTensor { scale, zero_point: zero_point - SHIFT }
        }
        ref other => other.clone(),
    };
    // Subtracting 128 flips the highest bit.
    let shifted = |data: &[u8]| data.iter().map(|byte| byte ^ 0x80).collect::<Vec<u8>>().into();
    let data = value.data.as_deref().map(shifted);
    Value { datatype: Datatype::QInt8, quantization, dims: value.dims.clone(), data }
}
