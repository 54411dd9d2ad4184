//! Builds and runs small graphs.

use std::fmt::Debug;

use bytes::Bytes;
use xnn_format::{Datatype, Graph, Node, NodeOp, OutputRange, Quantization, Value, ValueId};
use xnn_runtime::{Program, ProgramOptions, Result, Session, SessionOptions, TensorElement};
use xnn_testing::Random;
pub use xnn_testing::assert_close_relative as assert_close;
use xnnpack::has_half_precision;

/// Builder of a graph.
#[derive(Clone, Debug, Default)]
pub struct Builder {
    pub graph: Graph,
}

impl Builder {
    pub fn new() -> Self {
        Self::default()
    }

    /// An input of the graph.
    pub fn input(&mut self, value: Value) -> ValueId {
        let id = self.graph.push_value(value);
        self.graph.inputs.push(id);
        id
    }

    pub fn input_f32(&mut self, dims: &[usize]) -> ValueId {
        self.input(f32s(dims))
    }

    /// A value that a node computes.
    pub fn value(&mut self, value: Value) -> ValueId {
        self.graph.push_value(value)
    }

    /// A value that a node computes, and an output of the graph.
    pub fn output(&mut self, value: Value) -> ValueId {
        let id = self.graph.push_value(value);
        self.graph.outputs.push(id);
        id
    }

    pub fn output_f32(&mut self, dims: &[usize]) -> ValueId {
        self.output(f32s(dims))
    }

    pub fn constant_f32(&mut self, dims: &[usize], elements: &[f32]) -> ValueId {
        self.graph.push_value(f32s(dims).with_data(le_bytes(elements)))
    }

    pub fn node(&mut self, op: NodeOp) -> &mut Node {
        self.graph.nodes.push(Node::new(op));
        self.graph.nodes.last_mut().unwrap()
    }

    pub fn session(self) -> Result<Session> {
        let program = Program::new(self.graph, &ProgramOptions::default())?;
        Session::new(&program, &SessionOptions::default())
    }

    /// Returns the first output for these inputs.
    pub fn run<I: TensorElement, O: TensorElement>(self, inputs: &[&[I]]) -> Result<Vec<O>> {
        let mut session = self.session()?;
        for (index, input) in inputs.iter().enumerate() {
            session.input_as_mut::<I>(index)?.copy_from_slice(input);
        }
        session.run()?;
        Ok(session.output_as::<O>(0)?.to_vec())
    }

    pub fn run_f32(self, inputs: &[&[f32]]) -> Result<Vec<f32>> {
        self.run::<f32, f32>(inputs)
    }
}

/// Runs a graph of one node with one fp32 input and output.
pub fn run_one(
    input: (&[usize], &[f32]),
    output_dims: &[usize],
    op: impl FnOnce(ValueId, ValueId) -> NodeOp,
    flags: u32,
) -> Result<Vec<f32>> {
    let mut builder = Builder::new();
    let x = builder.input_f32(input.0);
    let y = builder.output_f32(output_dims);
    builder.node(op(x, y)).flags = flags;
    builder.run_f32(&[input.1])
}

pub fn f32s(dims: &[usize]) -> Value {
    Value::new(Datatype::F32, Quantization::None, dims)
}

pub fn qint8(dims: &[usize], scale: f32, zero_point: i32) -> Value {
    Value::new(Datatype::QInt8, Quantization::PerTensor { scale, zero_point }, dims)
}

pub fn range(min: f32, max: f32) -> Option<OutputRange> {
    Some(OutputRange { min, max })
}

/// Elements as little-endian bytes.
pub fn le_bytes(elements: &[f32]) -> Bytes {
    elements.iter().flat_map(|element| element.to_le_bytes()).collect()
}

/// Reproducible numbers between -1 and 1.
pub fn random(seed: u64, count: usize) -> Vec<f32> {
    Random::new(seed).f32s(count, -1.0, 1.0)
}

/// Reproducible bytes.
pub fn random_i8(seed: u64, count: usize) -> Vec<i8> {
    Random::new(seed).i8s(count)
}

/// Reproducible weights.
pub fn i8_weights(seed: u64, count: usize) -> Vec<i8> {
    Random::new(seed).i8_weights(count)
}

/// Returns a result of fp16 nodes; `None` on processors that do not support them, where an error is
/// expected.
pub fn in_half_precision<T: Debug>(result: Result<T>) -> Option<T> {
    if has_half_precision() {
        return Some(result.unwrap());
    }
    result.expect_err("the processor has no such arithmetic");
    None
}
