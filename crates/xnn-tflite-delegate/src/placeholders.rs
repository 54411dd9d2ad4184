//! Sizes of inputs that stand for those that callers choose.
//!
//! Converters write 1 for a size that a model leaves open. Layers with windows make nothing of one sample of sound:
//! TFLite refuses to allocate tensors before the input is resized, but has delegates choose their nodes before that.

use std::iter;
use std::sync::Arc;

use xnn_model::{Op, Operator, Subgraph, infer};

/// Where the search for a size ends: more than a second of sound has samples.
const LARGEST: usize = 1 << 16;

/// The graph with larger inputs, where sizes are open and layers make nothing of those in the file; `None` where the
/// sizes do, or others do not either.
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

/// A layer whose windows do not fit into what it reads.
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

/// The graph with this size in the place of those that are open. The first of several dimensions is the batch, for which
/// one is enough.
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
