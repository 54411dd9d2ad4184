//! How much work a node is, and how much data crosses a partition's border.

use xnn_model::{Op, Shape, Subgraph, Tensor, TensorId};

/// Multiply-accumulates of one operator; 0 for those that do not multiply
/// matrices or filters. Unknown shapes count as 0.
pub(crate) fn macs(graph: &Subgraph, index: usize) -> u64 {
    let Some(operator) = graph.operators.get(index) else { return 0 };
    let shape = |id: TensorId| graph.tensor(id).shape.as_deref();
    let inputs: Vec<Shape<'_>> = operator.inputs.iter().map(|&id| id.and_then(shape)).collect();
    let outputs: Vec<Shape<'_>> = operator.outputs.iter().map(|&id| shape(id)).collect();
    xnn_model::macs(&operator.op, &inputs, &outputs)
}

/// What an operator spares the interpreter: its multiply-accumulates, or the
/// elements that it reads or writes where those are more. Nothing where no byte
/// changes; unknown shapes count as 0.
pub(crate) fn work(graph: &Subgraph, index: usize) -> u64 {
    let Some(operator) = graph.operators.get(index) else { return 0 };
    let elements = |id: &TensorId| {
        let tensor = graph.tensors.get(*id).filter(|tensor| !tensor.is_constant());
        tensor.and_then(Tensor::elements).unwrap_or(0) as u64
    };
    let written = || operator.outputs.iter().map(elements).fold(0, u64::saturating_add);
    match &operator.op {
        op if keeps_bytes(op) => 0,
        // Of their inputs they read what they write.
        Op::Slice | Op::Split(_) | Op::SplitV(_) | Op::StridedSlice(_) | Op::Unpack(_) => written(),
        _ => {
            let read = operator.inputs.iter().flatten().map(elements).max().unwrap_or(0);
            macs(graph, index).max(written()).max(read)
        }
    }
}

/// Whether the result of an operator is its input under another shape.
pub(crate) const fn keeps_bytes(op: &Op) -> bool {
    matches!(op, Op::ExpandDims | Op::Reshape(_) | Op::Squeeze(_))
}

/// Multiply-accumulates of a whole subgraph.
#[must_use]
pub fn total_macs(graph: &Subgraph) -> u64 {
    (0..graph.operators.len()).map(|index| macs(graph, index)).fold(0, u64::saturating_add)
}

/// Bytes at a partition's border that one element of [`work`] pays for. An
/// elementwise operator alone has 12 at most: two singles in, one out.
const BYTES_PER_WORK: u64 = 16;

/// Whether a partition spares more than moving its border costs.
pub(crate) fn is_worth_it(work: u64, boundary_bytes: u64) -> bool {
    work > 0 && work.saturating_mul(BYTES_PER_WORK) >= boundary_bytes
}

/// Bytes of tensors; unknown ones count as 0.
pub(crate) fn bytes(graph: &Subgraph, tensors: &[TensorId]) -> u64 {
    tensors.iter().filter_map(|&id| graph.tensor(id).byte_size()).map(|size| size as u64).sum()
}
