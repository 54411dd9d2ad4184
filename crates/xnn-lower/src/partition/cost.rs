//! How much work a node is, and how much data crosses a partition's border.

use xnn_model::{Op, Subgraph, Tensor, TensorId};

use crate::view::OpView;

/// Multiply-accumulates of one operator; 0 for those that do not multiply
/// matrices or filters. Unknown shapes count as 0.
pub(crate) fn macs(graph: &Subgraph, index: usize) -> u64 {
    let view = OpView::new(graph, index);
    try_macs(view).unwrap_or(0)
}

fn try_macs(view: OpView<'_>) -> Option<u64> {
    let input = view.input(0).ok()?;
    let output = view.output(0).ok()?;
    let elements = |shape: &[usize]| shape.iter().try_fold(1u64, |n, &d| n.checked_mul(d as u64));
    match view.op() {
        Op::Conv2d(_) | Op::DepthwiseConv2d(_) | Op::FullyConnected(_) => {
            let filter = view.input(1).ok()?;
            let filter_elements = elements(filter.shape)?;
            let channels = *output.shape.last()? as u64;
            elements(output.shape)?.checked_mul(filter_elements.checked_div(channels)?)
        }
        Op::TransposeConv(_) => {
            let filter = view.input(1).ok()?;
            let image = view.input(2).ok()?;
            let channels = *image.shape.last()? as u64;
            elements(image.shape)?.checked_mul(elements(filter.shape)?.checked_div(channels)?)
        }
        Op::BatchMatMul(options) => {
            let depth = input.shape.len().checked_sub(if options.adj_x { 2 } else { 1 })?;
            elements(output.shape)?.checked_mul(*input.shape.get(depth)? as u64)
        }
        _ => Some(0),
    }
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
