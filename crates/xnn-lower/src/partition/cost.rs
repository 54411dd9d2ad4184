//! How much work a node is, and how much data crosses a partition's border.

use xnn_model::{Op, Subgraph, TensorId};

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

/// Bytes of tensors; unknown ones count as 0.
pub(crate) fn bytes(graph: &Subgraph, tensors: &[TensorId]) -> u64 {
    tensors.iter().filter_map(|&id| graph.tensor(id).byte_size()).map(|size| size as u64).sum()
}
