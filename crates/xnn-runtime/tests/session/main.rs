//! Sessions: memory, shapes, sharing, profiles, and errors that name their node.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod memory;
mod shapes;
mod sharing;

use std::sync::Arc;
use std::thread;

use bytes::Bytes;
use xnn_format::{
    Conv2d, Datatype, Graph, Node, NodeOp, Padding2d, Quantization, ReduceOp, Size2d, UnaryOp,
    Value, ValueId, flags,
};
use xnn_runtime::{
    AlignedBuffer, Binding, PaddedSlice, Program, ProgramOptions, RuntimeErrorKind, Session,
    SessionOptions, ThreadPool, Workspace, compile,
};

fn f32s(dims: &[usize]) -> Value {
    Value::new(Datatype::F32, Quantization::None, dims)
}

fn constant(dims: &[usize], elements: &[f32]) -> Value {
    f32s(dims).with_data(elements.iter().flat_map(|e| e.to_le_bytes()).collect::<Bytes>())
}

fn push(graph: &mut Graph, op: NodeOp) {
    graph.nodes.push(Node::new(op));
}

/// `y = (x x [[1], [10]]) + 0.5` for rows of 2, and `z = |y|`; both are outputs.
fn graph() -> Graph {
    let mut graph = Graph::default();
    let input = graph.push_value(f32s(&[1, 2]));
    let filter = graph.push_value(constant(&[1, 2], &[1.0, 10.0]));
    let bias = graph.push_value(constant(&[1], &[0.5]));
    let y = graph.push_value(f32s(&[1, 1]));
    let z = graph.push_value(f32s(&[1, 1]));
    let bias = Some(bias);
    push(&mut graph, NodeOp::FullyConnected { input, filter, bias, output: y, sparse: false });
    push(&mut graph, NodeOp::Unary { op: UnaryOp::Abs, input: y, output: z });
    graph.inputs = vec![input];
    graph.outputs = vec![y, z];
    graph.origin.input_names = vec!["rows".into()];
    graph.origin.output_names = vec!["y".into(), "z".into()];
    graph
}

fn program() -> Program {
    Program::new(graph(), &ProgramOptions::default()).unwrap()
}

fn session() -> Session {
    Session::new(&program(), &SessionOptions::default()).unwrap()
}

fn set(session: &mut Session, elements: &[f32]) {
    session.input_as_mut(0).unwrap().copy_from_slice(elements);
}

#[test]
fn a_value_may_be_an_output_and_read_inside() {
    let mut session = session();
    set(&mut session, &[-1.0, -2.0]);
    session.run().unwrap();
    assert_eq!(session.output_as::<f32>(0).unwrap(), [-20.5]);
    assert_eq!(session.output_as::<f32>(1).unwrap(), [20.5]);
}

#[test]
fn profiles_name_nodes() {
    let options = SessionOptions { profile: true, ..SessionOptions::default() };
    let mut session = Session::new(&program(), &options).unwrap();
    assert_eq!(session.profile(), None);
    session.run().unwrap();
    let timings = session.profile().unwrap();
    let nodes: Vec<_> = timings.iter().map(|timing| timing.node).collect();
    assert_eq!(nodes, [Some(0), Some(1)]);
    assert!(timings[0].name.starts_with("Fully Connected"), "{}", timings[0].name);

    let mut session = self::session();
    session.run().unwrap();
    assert_eq!(session.profile(), None);
}

#[test]
fn profiles_of_fused_nodes_have_no_nodes() {
    // XNNPACK fuses a clamp into the bounds of the previous layer if nothing else reads its input.
    let mut graph = graph();
    let (input, output) = (ValueId(3), ValueId(4));
    graph.nodes[1] = Node::new(NodeOp::Unary { op: UnaryOp::Clamp, input, output });
    graph.outputs = vec![output];
    graph.origin.output_names.clear();
    let program = Program::new(graph, &ProgramOptions::default()).unwrap();
    let options = SessionOptions { profile: true, ..SessionOptions::default() };
    let mut session = Session::new(&program, &options).unwrap();
    session.run().unwrap();
    let nodes: Vec<_> = session.profile().unwrap().iter().map(|timing| timing.node).collect();
    assert_eq!(nodes, [None]);
}

/// Three operators in a row; the middle one has input and output of type `datatype`.
fn chain(middle: NodeOp, datatype: Datatype) -> Graph {
    let mut graph = Graph::default();
    let value = || Value::new(datatype, Quantization::None, &[4]);
    let ids: Vec<ValueId> = (0..4).map(|_| graph.push_value(value())).collect();
    let abs = |input, output| NodeOp::Unary { op: UnaryOp::Abs, input, output };
    push(&mut graph, abs(ids[0], ids[1]));
    push(&mut graph, middle);
    push(&mut graph, abs(ids[2], ids[3]));
    for (handle, node) in (0..).zip(&mut graph.nodes) {
        node.debug_handle = Some(handle);
    }
    graph.origin.node_names = (0..3).map(|handle| (handle, format!("OP#{handle}"))).collect();
    (graph.inputs, graph.outputs) = (vec![ids[0]], vec![ids[3]]);
    graph
}

#[test]
fn errors_name_the_node_and_its_origin() {
    let (input, output) = (ValueId(1), ValueId(2));
    assert!(compile(&chain(NodeOp::Softmax { input, output }, Datatype::F32)).is_ok());
    // XNNPACK has no softmax of integers.
    let error = compile(&chain(NodeOp::Softmax { input, output }, Datatype::Int32)).unwrap_err();
    assert_eq!(error.failing_node(), Some(1));
    assert_eq!(error.node().unwrap().origin.as_deref(), Some("OP#1"));
    assert!(error.to_string().starts_with("node 1 (Softmax, OP#1): "), "{error}");
    // The axis does not exist.
    let slice = NodeOp::StaticSlice { offsets: vec![9], sizes: vec![1], input, output };
    assert_eq!(compile(&chain(slice, Datatype::F32)).unwrap_err().failing_node(), Some(1));
}

#[test]
fn the_rest_compiles_without_the_failing_node() {
    let (input, output) = (ValueId(1), ValueId(2));
    let mut graph = chain(NodeOp::Softmax { input, output }, Datatype::Int32);
    let failing = compile(&graph).unwrap_err().failing_node().unwrap();
    graph.nodes.truncate(failing);
    graph.outputs = vec![input];
    assert_eq!(compile(&graph), Ok(()));
}
