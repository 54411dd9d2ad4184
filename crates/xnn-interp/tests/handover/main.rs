//! Tensors that move to other subgraphs and into variables: large ones with their memory, small
//! ones as copies.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

#[path = "../common/mod.rs"]
mod common;
mod loops;
mod variables;

use common::Builder;
use xnn_interp::{Interpreter, TensorBuf};
use xnn_model::op::{ArithmeticOptions, CallOptions, VarHandleOptions};
use xnn_model::{DType, Op, TensorId};

/// Numbers of elements of a tensor that is copied if an engine uses it, and of one that never is.
const SIZES: [usize; 2] = [3, 5000];

fn add() -> Op {
    Op::Add(ArithmeticOptions::default())
}

fn call(subgraph: usize) -> Op {
    Op::Call(CallOptions { subgraph })
}

fn ints(values: impl IntoIterator<Item = i32>) -> TensorBuf {
    let values: Vec<i32> = values.into_iter().collect();
    TensorBuf::from_slice(&[values.len()], &values).unwrap()
}

/// The first element of each output, whose elements must all be equal.
fn outputs(interpreter: &Interpreter) -> Vec<i32> {
    let first = |position| {
        let output = interpreter.output(position).unwrap().as_slice::<i32>().unwrap();
        assert!(output.iter().all(|value| *value == output[0]), "{output:?}");
        output[0]
    };
    (0..interpreter.outputs()).map(first).collect()
}

/// Runs on inputs whose elements are all equal.
fn run(interpreter: &mut Interpreter, inputs: &[(usize, i32)]) -> Vec<i32> {
    for (position, &(size, value)) in inputs.iter().enumerate() {
        interpreter.set_input(position, ints(vec![value; size])).unwrap();
    }
    interpreter.run().unwrap();
    outputs(interpreter)
}

impl Builder {
    fn ints(&mut self, size: usize) -> TensorId {
        self.tensor(DType::I32, &[size])
    }

    fn sum(&mut self, a: TensorId, b: TensorId) -> TensorId {
        let size = self.graph.tensors[a].shape.as_ref().unwrap()[0];
        let sum = self.ints(size);
        self.op(add(), &[a, b], &[sum]);
        sum
    }

    fn many(&mut self, size: usize, value: i32) -> TensorId {
        self.constant(&[size], &vec![value; size])
    }

    /// A handle of the variable with this name.
    fn variable_named(&mut self, name: &str) -> TensorId {
        let handle = self.tensor(DType::Resource, &[1]);
        let options = VarHandleOptions { shared_name: name.into(), ..Default::default() };
        self.op(Op::VarHandle(options), &[], &[handle]);
        handle
    }

    fn read(&mut self, handle: TensorId, size: usize) -> TensorId {
        let value = self.ints(size);
        self.op(Op::ReadVariable, &[handle], &[value]);
        value
    }

    fn assign(&mut self, handle: TensorId, value: TensorId) {
        self.op(Op::AssignVariable, &[handle, value], &[]);
    }
}
