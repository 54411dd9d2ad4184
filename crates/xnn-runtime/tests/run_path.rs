//! What a run must not do: allocate.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use bytes::Bytes;
use xnn_format::{Datatype, Graph, Node, NodeOp, Quantization, UnaryOp, Value};
use xnn_runtime::{
    AlignedBuffer, Binding, Program, ProgramOptions, Session, SessionOptions, Workspace,
};

/// The system's allocator, counting the calls of each thread.
struct Counting;

thread_local! {
    static CALLS: Cell<usize> = const { Cell::new(0) };
}

fn count() {
    // A thread that ends may allocate when its counter is gone.
    let _ = CALLS.try_with(|calls| calls.set(calls.get() + 1));
}

// SAFETY: all is left to the system's allocator; the counter does not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: the caller's promise.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// How many times `run` allocates.
fn allocations(run: impl FnOnce()) -> usize {
    let before = CALLS.get();
    run();
    CALLS.get() - before
}

/// Five numbers for each of two rows, three out of them, and these without sign.
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
fn the_counter_counts() {
    assert_eq!(allocations(|| drop(std::hint::black_box(Box::new(1)))), 1);
}

#[test]
fn runs_do_not_allocate() {
    let own = SessionOptions::default();
    let shared =
        SessionOptions { workspace: Some(Workspace::new().unwrap()), ..SessionOptions::default() };
    for options in [own, shared] {
        let mut session = Session::new(&program(), &options).unwrap();
        session.input_as_mut::<f32>(0).unwrap().fill(-1.0);
        // XNNPACK is told the pointers.
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
