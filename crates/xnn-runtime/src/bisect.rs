//! Which node XNNPACK does not like.
//!
//! XNNPACK creates a runtime as a whole and does not say what it failed at. A graph that is cut off
//! behind its first `n` nodes fails for each `n` above the culprit's index and for none below, so
//! bisection finds it.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use xnn_format::{Datatype, Graph, Node, ValueId};
use xnnpack::{Runtime, RuntimeOptions};

use crate::define;
use crate::error::{NodePlace, Result, RuntimeError, RuntimeErrorKind};

/// `error`, which XNNPACK gave for `graph`, with the node to blame if there is one.
pub(crate) fn find(graph: &Graph, error: RuntimeError) -> RuntimeError {
    let by_node =
        matches!(error.kind(), RuntimeErrorKind::InvalidGraph | RuntimeErrorKind::Unsupported);
    if error.node().is_some() || !by_node {
        return error;
    }
    let all = graph.nodes.len();
    let Err(failure) = compile_prefix(graph, all) else { return error };
    // Invariant: `works` nodes compile; `fails` nodes do not, with the error beside it.
    let (mut works, mut fails) = (0, (all, failure));
    while works + 1 < fails.0 {
        let middle = works.midpoint(fails.0);
        match compile_prefix(graph, middle) {
            Ok(()) => works = middle,
            Err(error) => fails = (middle, error),
        }
    }
    let (nodes, error) = fails;
    match error.node() {
        Some(_) => error,
        None => error.at(nodes.checked_sub(1).and_then(|index| NodePlace::new(graph, index))),
    }
}

fn compile_prefix(graph: &Graph, nodes: usize) -> Result<()> {
    let defined = define::graph(&prefix(graph, nodes), &Bytes::new())?;
    let mut runtime = Runtime::new(Arc::new(defined.subgraph), &RuntimeOptions::default())?;
    Ok(runtime.reshape()?)
}

/// The first `count` nodes, with an output for everything that none of them reads.
fn prefix(graph: &Graph, count: usize) -> Graph {
    let nodes: Vec<Node> = graph.nodes.iter().take(count).cloned().collect();
    let read: HashSet<ValueId> = nodes.iter().flat_map(Node::inputs).collect();
    let outputs = nodes
        .iter()
        .flat_map(Node::outputs)
        .filter(|id| !read.contains(id))
        // Dynamically quantized values cannot leave XNNPACK.
        .filter(|&id| graph.value(id).is_some_and(|value| value.datatype != Datatype::QdInt8))
        .collect();
    Graph { nodes, outputs, ..graph.clone() }
}

#[cfg(test)]
mod tests {
    use xnn_format::{NodeOp, Quantization, UnaryOp, Value};

    use super::*;

    /// Functions in a row over integers; there is no softmax over them.
    fn chain(length: usize, softmax: Option<usize>) -> Graph {
        let mut graph = Graph::default();
        let mut value = || graph.push_value(Value::new(Datatype::Int32, Quantization::None, &[4]));
        let ids: Vec<ValueId> = (0..=length).map(|_| value()).collect();
        for (index, pair) in ids.windows(2).enumerate() {
            let (input, output) = (pair[0], pair[1]);
            graph.nodes.push(Node::new(match softmax {
                Some(at) if at == index => NodeOp::Softmax { input, output },
                _ => NodeOp::Unary { op: UnaryOp::Abs, input, output },
            }));
        }
        graph.inputs = vec![ids[0]];
        graph.outputs = vec![ids[length]];
        graph
    }

    #[test]
    fn every_position_is_found() {
        for length in 1..6 {
            for culprit in 0..length {
                let error = RuntimeError::unsupported("somewhere");
                let found = find(&chain(length, Some(culprit)), error);
                assert_eq!(found.culprit(), Some(culprit), "of {length}");
            }
        }
    }

    #[test]
    fn nobody_is_blamed_for_what_cannot_be_repeated() {
        let error = RuntimeError::unsupported("somewhere");
        assert_eq!(find(&chain(3, None), error.clone()), error);
        let exhausted = RuntimeError::new(RuntimeErrorKind::OutOfMemory, "memory");
        assert_eq!(find(&chain(3, Some(1)), exhausted.clone()), exhausted);
    }
}
