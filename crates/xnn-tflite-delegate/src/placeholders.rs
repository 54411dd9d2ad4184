//! Placeholder sizes of inputs whose dimensions a model leaves open.
//!
//! Converters write 1 for an open dimension. With one audio sample, layers with windows have empty
//! outputs: TFLite fails to allocate tensors until the input is resized, but calls delegates to
//! choose their nodes before that.

use std::iter;
use std::sync::Arc;

use xnn_model::{Op, Operator, Subgraph, infer};

/// Largest size that is tried: more samples than a second of audio has.
const LARGEST: usize = 1 << 16;

/// Returns the graph with larger inputs if dimensions are open and layers have empty outputs with
/// the sizes in the file. `None` if the sizes in the file suffice, or if no larger size does.
///
/// `inferred` is the graph with its shapes inferred.
pub(crate) fn enlarged(graph: &Subgraph, inferred: &Subgraph) -> Option<Arc<Subgraph>> {
    starved_layer(inferred)?;
    let sizes = iter::successors(Some(2usize), |size| size.checked_mul(2));
    let mut graphs =
        sizes.take_while(|&size| size <= LARGEST).map(|size| Arc::new(with_open(graph, size)));
    let suffices = |graph: &Arc<Subgraph>| {
        infer(Arc::clone(graph)).is_ok_and(|it| starved_layer(&it.subgraph).is_none())
    };
    graphs.find(suffices)
}

/// Returns a layer whose window does not fit into its input.
pub(crate) fn starved_layer(graph: &Subgraph) -> Option<&Operator> {
    let is_empty = |id: usize| graph.tensor(id).elements() == Some(0);
    graph.operators.iter().find(|operator| {
        matches!(
            operator.op,
            Op::AveragePool2d(_) | Op::Conv2d(_) | Op::DepthwiseConv2d(_) | Op::MaxPool2d(_)
        ) && operator.input(0).is_some_and(|id| !is_empty(id))
            && operator.outputs.iter().any(|&id| is_empty(id))
    })
}

/// Returns the graph with open dimensions set to `size`, except for the batch (the first of several
/// dimensions), for which 1 suffices.
fn with_open(graph: &Subgraph, size: usize) -> Subgraph {
    let mut graph = graph.clone();
    for &id in &graph.inputs {
        let Some(tensor) = graph.tensors.get_mut(id) else { continue };
        let (Some(shape), Some(signature)) = (&mut tensor.shape, &tensor.shape_signature) else {
            continue;
        };
        let first = usize::from(shape.len() > 1);
        for (dim, &open) in shape.iter_mut().zip(signature).skip(first) {
            if open < 0 {
                *dim = size;
            }
        }
    }
    graph
}
