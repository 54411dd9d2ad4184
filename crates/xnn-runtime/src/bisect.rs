//! Finds the node that XNNPACK rejects, by bisection.
//!
//! XNNPACK creates a runtime as a whole, and does not tell which node failed. A graph that is cut
//! off after its first `n` nodes fails if and only if `n` is greater than the failing node's index.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use xnn_format::{Datatype, Graph, Node, ValueId};
use xnnpack::{Runtime, RuntimeOptions};

use crate::define;
use crate::error::{NodePlace, Result, RuntimeError, RuntimeErrorKind};

/// Adds the failing node to `error`, which XNNPACK returned for `graph`, if it can be found.
pub(crate) fn find(graph: &Graph, error: RuntimeError) -> RuntimeError {
    let by_node =
        matches!(error.kind(), RuntimeErrorKind::InvalidGraph | RuntimeErrorKind::Unsupported);
    if error.node().is_some() || !by_node {
        return error;
    }
    let all = graph.nodes.len();
    let Err(failure) = compile_prefix(graph, all) else { return error };
    // Invariant: the first `works` nodes compile; the first `fails.0` nodes do not, with error
    // `fails.1`.
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

/// Returns the first `count` nodes of a graph, whose outputs are the values that none of them
/// reads.
fn prefix(graph: &Graph, count: usize) -> Graph {
    let nodes: Vec<Node> = graph.nodes.iter().take(count).cloned().collect();
    let read: HashSet<ValueId> = nodes.iter().flat_map(Node::inputs).collect();
    let outputs = nodes
        .iter()
        .flat_map(Node::outputs)
        .filter(|id| !read.contains(id))
        // Values that are quantized at run time cannot be outputs.
        .filter(|&id| graph.value(id).is_some_and(|value| value.datatype != Datatype::QdInt8))
        .collect();
    Graph { nodes, outputs, ..graph.clone() }
}

#[cfg(test)]
mod tests {
    use xnn_format::{NodeOp, Quantization, UnaryOp, Value};

    use super::*;

    /// A chain of integer operators. XNNPACK does not support the softmax, which is at index
    /// `softmax`.
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
    fn failing_nodes_are_found_at_every_position() {
        for length in 1..6 {
            for failing in 0..length {
                let error = RuntimeError::unsupported("somewhere");
                let found = find(&chain(length, Some(failing)), error);
                assert_eq!(found.failing_node(), Some(failing), "of {length}");
            }
        }
    }

    #[test]
    fn errors_that_do_not_recur_have_no_failing_node() {
        let error = RuntimeError::unsupported("somewhere");
        assert_eq!(find(&chain(3, None), error.clone()), error);
        let exhausted = RuntimeError::new(RuntimeErrorKind::OutOfMemory, "memory");
        assert_eq!(find(&chain(3, Some(1)), exhausted.clone()), exhausted);
    }
}
