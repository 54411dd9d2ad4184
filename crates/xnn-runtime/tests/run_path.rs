//! Runs do not allocate memory.

#![allow(clippy::unwrap_used, reason = "tests")]

use bytes::Bytes;
use xnn_format::{Datatype, Graph, Node, NodeOp, Quantization, UnaryOp, Value};
use xnn_runtime::{
    AlignedBuffer, Binding, Program, ProgramOptions, Session, SessionOptions, Workspace,
};
use xnn_testing::{CountingAllocator, allocations};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// A layer with two rows of 5 inputs and 3 outputs, followed by ABS.
fn program() -> Program {
    let mut graph = Graph::default();
    let value = |dims: &[usize]| Value::new(Datatype::F32, Quantization::None, dims);
    let input = graph.push_value(value(&[2, 5]));
    let ones: Bytes = [1f32; 15].iter().flat_map(|one| one.to_le_bytes()).collect();
    let filter = graph.push_value(value(&[3, 5]).with_data(ones));
    let sums = graph.push_value(value(&[2, 3]));
    let output = graph.push_value(value(&[2, 3]));
    let layer = NodeOp::FullyConnected { input, filter, bias: None, output: sums, sparse: false };
    graph.nodes.push(Node::new(layer));
    graph.nodes.push(Node::new(NodeOp::Unary { op: UnaryOp::Abs, input: sums, output }));
    (graph.inputs, graph.outputs) = (vec![input], vec![output]);
    Program::new(graph, &ProgramOptions::default()).unwrap()
}

#[test]
fn runs_do_not_allocate() {
    let own = SessionOptions::default();
    let shared =
        SessionOptions { workspace: Some(Workspace::new().unwrap()), ..SessionOptions::default() };
    for options in [own, shared] {
        let mut session = Session::new(&program(), &options).unwrap();
        session.input_as_mut::<f32>(0).unwrap().fill(-1.0);
        // The first run passes the pointers to XNNPACK.
        session.run().unwrap();
        assert_eq!(allocations(|| session.run().unwrap()), 0);
        assert_eq!(session.output_as::<f32>(0).unwrap(), [5.0; 6]);
    }
}

#[test]
fn runs_with_other_memory_do_not_allocate() {
    let mut session = Session::new(&program(), &SessionOptions::default()).unwrap();
    let [input_id, output_id] = [session.inputs()[0].id, session.outputs()[0].id];
    let inputs = [1f32, 2.0].map(|number| AlignedBuffer::of(&[number; 10]));
    let mut output = AlignedBuffer::new(24);
    for (input, sum) in inputs.iter().zip([5.0, 10.0]).cycle().take(6) {
        let count = allocations(|| {
            let bindings = [
                Binding::Input(input_id, input.input()),
                Binding::Output(output_id, output.output()),
            ];
            session.run_with(bindings).unwrap();
        });
        assert_eq!(count, 0);
        assert_eq!(output.elements::<f32>().unwrap(), [sum; 6]);
    }
}
