//! Graphs and files that must be refused, each with a part of the error message.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[path = "../common/mod.rs"]
mod common;
mod files;
mod nodes;
mod values;
mod windows;

use bytes::Bytes;
use xnn_format::{
    Datatype, Graph, Node, NodeOp, Quantization, UnaryOp, Value, ValueId, WriteOptions, write,
};

#[track_caller]
fn refused(graph: &Graph, expected: &str) {
    let message = match graph.check() {
        Ok(()) => panic!("accepted: {graph:?}"),
        Err(error) => error.to_string(),
    };
    assert!(message.contains(expected), "{message:?} does not say {expected:?}");
    let written = write(graph, &WriteOptions::default()).map(|_| ()).unwrap_err();
    assert_eq!(written.to_string(), message, "the writer reports the same error");
}

fn abs(input: u32, output: u32) -> Node {
    Node::new(NodeOp::Unary { op: UnaryOp::Abs, input: ValueId(input), output: ValueId(output) })
}

fn with_value(
    datatype: Datatype,
    quantization: Quantization,
    dims: &[usize],
    bytes: usize,
) -> Graph {
    let mut graph = Graph::default();
    let value = Value::new(datatype, quantization, dims);
    graph.push_value(value.with_data(Bytes::from(vec![0; bytes])));
    graph
}
