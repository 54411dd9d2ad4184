//! Estimates of an operator's work, and of the cost of a partition's boundary.

use xnn_model::{Op, Subgraph, Tensor, TensorId};

/// Multiply-accumulates of one operator; 0 for operators without matrices or filters, and where
/// shapes are unknown.
pub(crate) fn macs(graph: &Subgraph, index: usize) -> u64 {
    graph.operators.get(index).map_or(0, |operator| graph.macs_of(operator))
}

/// Work that delegating an operator saves the interpreter: its multiply-accumulates, or the
/// elements that it reads or writes if those are more. 0 if the operator changes no byte; unknown
/// shapes count as 0.
pub(crate) fn work(graph: &Subgraph, index: usize) -> u64 {
    let Some(operator) = graph.operators.get(index) else { return 0 };
    let elements = |id: &TensorId| {
        let tensor = graph.tensors.get(*id).filter(|tensor| !tensor.is_constant());
        tensor.and_then(Tensor::elements).unwrap_or(0) as u64
    };
    let written = || operator.outputs.iter().map(elements).fold(0, u64::saturating_add);
    match &operator.op {
        op if keeps_bytes(op) => 0,
        // They read only the elements that they write.
        Op::Gather(_)
        | Op::Slice
        | Op::Split(_)
        | Op::SplitV(_)
        | Op::StridedSlice(_)
        | Op::Unpack(_) => written(),
        _ => {
            let read = operator.inputs.iter().flatten().map(elements).max().unwrap_or(0);
            macs(graph, index).max(written()).max(read)
        }
    }
}

/// Whether the result of an operator is its input with another shape.
pub(crate) const fn keeps_bytes(op: &Op) -> bool {
    matches!(op, Op::ExpandDims | Op::Reshape(_) | Op::Squeeze(_))
}

/// Multiply-accumulates of a whole subgraph.
#[must_use]
pub fn total_macs(graph: &Subgraph) -> u64 {
    (0..graph.operators.len()).map(|index| macs(graph, index)).fold(0, u64::saturating_add)
}

/// Bytes of boundary tensors that one unit of [`work`] pays for. An elementwise operator alone has
/// at most 12: it reads two `f32` and writes one.
const BYTES_PER_WORK: u64 = 16;

/// Whether a partition saves more work than its boundary copies cost.
pub(crate) fn is_worth_it(work: u64, boundary_bytes: u64) -> bool {
    work > 0 && work.saturating_mul(BYTES_PER_WORK) >= boundary_bytes
}

/// Bytes of tensors; unknown shapes count as 0.
pub(crate) fn bytes(graph: &Subgraph, tensors: &[TensorId]) -> u64 {
    tensors.iter().filter_map(|&id| graph.tensor(id).byte_size()).map(|size| size as u64).sum()
}
