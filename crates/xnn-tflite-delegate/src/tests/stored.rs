//! Graphs stored in operators, and packed weights stored in files.

use xnn_format::{
    BinaryOp, Datatype, Graph, Node, NodeOp, Quantization, UnaryOp, Value, ValueId, WriteOptions,
};

use super::{ABS, Owned};
use crate::abi::{ERROR, OK};
use crate::fake::{FLOAT32, Fake};

fn value(dims: &[usize]) -> Value {
    Value::new(Datatype::F32, Quantization::None, dims)
}

/// A blob with a graph of one node.
fn written(mut graph: Graph, op: NodeOp, inputs: &[ValueId], output: ValueId) -> Vec<u8> {
    graph.nodes.push(Node::new(op));
    graph.inputs.extend(inputs);
    graph.outputs.push(output);
    xnn_format::write(&graph, &WriteOptions::default()).unwrap()
}

/// A blob that computes ABS.
fn blob(dims: &[usize]) -> Vec<u8> {
    let mut graph = Graph::default();
    let [input, output] = [(); 2].map(|()| graph.push_value(value(dims)));
    written(graph, NodeOp::Unary { op: UnaryOp::Abs, input, output }, &[input], output)
}

#[test]
fn blobs_in_custom_operators_run() {
    let fake = Fake::new();
    let [a, b, c] = [(); 3].map(|()| fake.tensor(FLOAT32, &[1, 2]));
    fake.custom("XNNGraph", &blob(&[1, 2]), &[a], &[b]);
    fake.node::<()>(ABS, None, &[b], &[c]);
    fake.set_outputs(&[c]);
    let delegate = Owned::new();
    assert_eq!(fake.apply(delegate.0), OK, "{}", fake.messages());
    assert_eq!((fake.replacements(), fake.left()), (2, vec![]));
    for rows in [1, 2] {
        fake.resize(a, &[rows, 2]);
        fake.resize(b, &[rows, 2]);
        assert_eq!(fake.allocate(0), OK, "{}", fake.messages());
        let values: Vec<f32> = (0..rows * 2).map(|i| -1.0 - i as f32).collect();
        fake.write(a, &values);
        assert_eq!(fake.invoke(), OK, "{}", fake.messages());
        assert_eq!(fake.read(b), values.iter().map(|value| -value).collect::<Vec<_>>());
    }
}

/// A blob with a layer that computes `factor` times the sum of two elements.
fn layer(factor: f32) -> Vec<u8> {
    let mut graph = Graph::default();
    let weights = [factor; 2].map(f32::to_le_bytes).concat();
    let input = graph.push_value(value(&[1, 2]));
    let filter = graph.push_value(value(&[1, 2]).with_data(weights.into()));
    let output = graph.push_value(value(&[1, 1]));
    let op = NodeOp::FullyConnected { input, filter, bias: None, output, sparse: false };
    written(graph, op, &[input], output)
}

#[test]
fn later_interpreters_reuse_a_folder_of_packed_weights() {
    let folder = tempfile::tempdir().unwrap();
    let files = || std::fs::read_dir(folder.path()).unwrap().count();
    for (factor, count) in [(2.0, 1), (2.0, 1), (3.0, 2), (2.0, 2)] {
        let fake = Fake::new();
        let [a, b] = [[1, 2], [1, 1]].map(|dims| fake.tensor(FLOAT32, &dims));
        fake.custom("XNNGraph", &layer(factor), &[a], &[b]);
        fake.set_outputs(&[b]);
        let delegate = Owned::with(&[("cache_dir", folder.path().to_str().unwrap())]);
        assert_eq!(fake.apply(delegate.0), OK, "{}", fake.messages());
        assert_eq!(fake.allocate(0), OK, "{}", fake.messages());
        fake.write(a, &[1.0, 10.0]);
        assert_eq!(fake.invoke(), OK, "{}", fake.messages());
        assert_eq!(fake.read(b), [11.0 * factor]);
        assert_eq!(files(), count);
    }
}

/// A blob that adds two tensors.
fn sum() -> Vec<u8> {
    let mut graph = Graph::default();
    let [a, b, output] = [(); 3].map(|()| graph.push_value(value(&[1, 2])));
    let op = NodeOp::Binary { op: BinaryOp::Add, inputs: [a, b], output };
    written(graph, op, &[a, b], output)
}

#[test]
fn blobs_run_again_after_refused_shapes() {
    let fake = Fake::new();
    let [a, b, c] = [(); 3].map(|()| fake.tensor(FLOAT32, &[1, 2]));
    fake.custom("XNNGraph", &sum(), &[a, b], &[c]);
    fake.set_outputs(&[c]);
    let delegate = Owned::new();
    assert_eq!(fake.apply(delegate.0), OK, "{}", fake.messages());
    fake.resize(a, &[2, 2]);
    fake.resize(b, &[1, 1, 1, 1, 1, 1, 2]);
    assert_eq!(fake.allocate(0), ERROR);
    for input in [a, b] {
        fake.resize(input, &[1, 2]);
    }
    assert_eq!(fake.allocate(0), OK, "{}", fake.messages());
    fake.write(a, &[1.0, 2.0]);
    fake.write(b, &[10.0, 20.0]);
    assert_eq!(fake.invoke(), OK, "{}", fake.messages());
    assert_eq!(fake.read(c), [11.0, 22.0]);
}

#[test]
fn damaged_blobs_are_an_error() {
    let fake = Fake::new();
    let [a, b] = [(); 2].map(|()| fake.tensor(FLOAT32, &[1, 2]));
    fake.custom("XNNGraph", b"not a blob", &[a], &[b]);
    fake.set_outputs(&[b]);
    let delegate = Owned::new();
    assert_eq!(fake.apply(delegate.0), ERROR);
    assert!(fake.messages().contains("XNNGraph"), "{}", fake.messages());
}
