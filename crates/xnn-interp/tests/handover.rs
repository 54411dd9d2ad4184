//! Tensors that go to other subgraphs and into variables: with their memory where they are large, as copies where not.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod common;

use common::{Builder, load, model};
use xnn_interp::{Interpreter, TensorBuf};
use xnn_model::op::*;
use xnn_model::{DType, Model, Op, Subgraph, TensorId};

/// Elements of a tensor that is copied, and of one that is not.
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

/// The first element of each output; all of an output are the same.
fn outputs(interpreter: &Interpreter) -> Vec<i32> {
    let first = |position| {
        let output = interpreter.output(position).unwrap().as_slice::<i32>().unwrap();
        assert!(output.iter().all(|value| *value == output[0]), "{output:?}");
        output[0]
    };
    (0..interpreter.outputs()).map(first).collect()
}

/// Runs on inputs whose elements are all the same.
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

/// A body of `(i, a, b)`: what it gives for `a` and `b`.
type Body =
    (fn(&mut Builder, TensorId, TensorId, usize) -> [TensorId; 2], fn(i32, i32) -> [i32; 2]);

const BODIES: [Body; 7] = [
    (|_, a, b, _| [a, b], |a, b| [a, b]),
    (|_, a, b, _| [b, a], |a, b| [b, a]),
    (|_, a, _, _| [a, a], |a, _| [a, a]),
    (|b, x, y, _| [y, b.sum(x, y)], |a, b| [b, a.wrapping_add(b)]),
    (|b, x, y, _| [b.sum(x, y); 2], |a, b| [a.wrapping_add(b); 2]),
    (|b, x, _, size| [b.many(size, 7), x], |a, _| [7, a]),
    // Computed once.
    (
        |b, x, _, size| {
            let seven = b.many(size, 7);
            [b.sum(seven, seven), x]
        },
        |a, _| [14, a],
    ),
];

/// Where the loop's tensors come from and go.
#[derive(Clone, Copy, Debug)]
enum Around {
    Nothing,
    /// They are computed before, and read by nothing else.
    Consumed,
    /// They are read again behind the loop.
    ReadAgain,
}

fn looping(body: &Body, size: usize, around: Around, iterations: i32) -> Model {
    let shapes = [1, size, size];
    let mut main = Builder::new();
    let mut state = shapes.map(|size| main.input(DType::I32, &[size]));
    if !matches!(around, Around::Nothing) {
        let zero = main.many(size, 0);
        state = [state[0], main.sum(state[1], zero), main.sum(state[2], zero)];
    }
    let results = shapes.map(|size| main.ints(size));
    main.op(Op::While(WhileOptions { cond_subgraph: 1, body_subgraph: 2 }), &state, &results);
    main.graph.outputs.extend(&results[1..]);
    if matches!(around, Around::ReadAgain) {
        let [x, y] = [main.sum(state[1], results[1]), main.sum(state[2], results[2])];
        main.graph.outputs.extend([x, y]);
    }

    let mut condition = Builder::new();
    let [i, ..] = shapes.map(|size| condition.input(DType::I32, &[size]));
    let limit = condition.many(1, iterations);
    let less = condition.tensor(DType::Bool, &[1]);
    condition.op(Op::Less, &[i, limit], &[less]);
    condition.graph.outputs.push(less);

    let mut inner = Builder::new();
    let [i, a, b] = shapes.map(|size| inner.input(DType::I32, &[size]));
    let one = inner.many(1, 1);
    let next = inner.sum(i, one);
    let [a, b] = body.0(&mut inner, a, b, size);
    inner.graph.outputs.extend([next, a, b]);
    model(vec![main.graph, condition.graph, inner.graph])
}

#[test]
fn loops() {
    for (index, body) in BODIES.iter().enumerate() {
        for (size, iterations) in
            SIZES.into_iter().flat_map(|size| [(size, 0), (size, 1), (size, 5)])
        {
            for around in [Around::Nothing, Around::Consumed, Around::ReadAgain] {
                let mut interpreter = load(&looping(body, size, around, iterations)).unwrap();
                for (a, b) in [(1, 2), (-5, 11), (1, 2)] {
                    let [x, y] = (0..iterations).fold([a, b], |[a, b], _| body.1(a, b));
                    let mut expected = vec![x, y];
                    if matches!(around, Around::ReadAgain) {
                        expected.extend([a + x, b + y]);
                    }
                    let found = run(&mut interpreter, &[(1, 0), (size, a), (size, b)]);
                    assert_eq!(found, expected, "body {index}, {size}, {iterations}, {around:?}");
                }
            }
        }
    }
}

#[test]
fn large_state_of_loops_is_not_copied() {
    let fibonacci = &BODIES[3];
    for size in SIZES {
        let mut interpreter = load(&looping(fibonacci, size, Around::Nothing, 6)).unwrap();
        let (mut read, mut given) = (vec![], vec![]);
        interpreter
            .run_observed(&mut |executed| {
                let &[index] = executed.operators() else { panic!("one operator at a time") };
                let operator = &executed.subgraph().operators[index];
                let address = |id| executed.tensor(id).unwrap().bytes.as_ptr().addr();
                if (executed.subgraph_id(), index) == (2, 1) {
                    read.push(address(operator.inputs[1].unwrap()));
                    given.push(address(operator.outputs[0]));
                }
            })
            .unwrap();
        assert_eq!(read.len(), 6);
        if size == SIZES[0] {
            assert!(read.iter().all(|at| *at == read[0]) && given.iter().all(|at| *at == given[0]));
        } else {
            assert_eq!(read[1..], given[..5]);
        }
    }
}

#[test]
fn branches_and_calls() {
    for size in SIZES {
        for again in [false, true] {
            let mut main = Builder::new();
            let flag = main.input(DType::Bool, &[1]);
            let (x, y) = (main.input(DType::I32, &[size]), main.input(DType::I32, &[size]));
            let one = main.many(size, 1);
            let (a, b) = (main.sum(x, one), main.sum(y, one));
            let [c, d, e, f] = [0; 4].map(|_| main.ints(size));
            let options = IfOptions { then_subgraph: 1, else_subgraph: 2 };
            main.op(Op::If(options), &[flag, a, b], &[c, d]);
            main.op(call(3), &[c, d], &[e, f]);
            main.graph.outputs.extend([e, f]);
            if again {
                let sums = [main.sum(a, b), main.sum(c, d)];
                main.graph.outputs.extend(sums);
            }
            let pair = |inner: fn(&mut Builder, TensorId, TensorId, usize) -> [TensorId; 2]| {
                let mut b = Builder::new();
                let (x, y) = (b.input(DType::I32, &[size]), b.input(DType::I32, &[size]));
                let outputs = inner(&mut b, x, y, size);
                b.graph.outputs.extend(outputs);
                b.graph
            };
            let then = pair(|_, x, y, _| [y, x]);
            let otherwise = pair(|b, x, y, _| [b.sum(x, y), y]);
            let outer = pair(|b, x, y, size| {
                let [z, w] = [b.ints(size), b.ints(size)];
                b.op(call(4), &[x, y], &[z, w]);
                [w, z]
            });
            let inner = pair(|b, x, y, size| [b.many(size, 100), b.sum(x, y)]);
            let mut interpreter =
                load(&model(vec![main.graph, then, otherwise, outer, inner])).unwrap();
            for (x, y, holds) in [(1, 2, true), (3, 4, false), (5, 6, true), (7, 8, true)] {
                let flag = TensorBuf::from_bytes(DType::Bool, &[1], &[holds.into()]).unwrap();
                interpreter.set_input(0, flag).unwrap();
                for (position, value) in [(1, x), (2, y)] {
                    interpreter.set_input(position, ints(vec![value; size])).unwrap();
                }
                interpreter.run().unwrap();
                let (a, b) = (x + 1, y + 1);
                let (c, d) = if holds { (b, a) } else { (a + b, b) };
                let mut expected = vec![c + d, 100];
                if again {
                    expected.extend([a + b, c + d]);
                }
                assert_eq!(outputs(&interpreter), expected, "{size}, {again}");
            }
        }
    }
}

/// Begins the variables `v` and `w` with 10 and 20.
fn start(size: usize) -> Subgraph {
    let mut b = Builder::new();
    for (name, value) in [("v", 10), ("w", 20)] {
        let (handle, value) = (b.variable_named(name), b.many(size, value));
        b.assign(handle, value);
    }
    b.graph
}

/// A model of variables: `main` gets its input and handles of `v` and `w`.
fn with_variables(
    size: usize,
    main: impl FnOnce(&mut Builder, TensorId, [TensorId; 2]) -> Vec<TensorId>,
    others: Vec<Subgraph>,
) -> Model {
    let mut b = Builder::new();
    let x = b.input(DType::I32, &[size]);
    b.op(Op::CallOnce(CallOptions { subgraph: 1 }), &[], &[]);
    let handles = ["v", "w"].map(|name| b.variable_named(name));
    let outputs = main(&mut b, x, handles);
    b.graph.outputs = outputs;
    model([vec![b.graph, start(size)], others].concat())
}

#[track_caller]
fn expect(model: &Model, size: usize, expected: &[&[i32]]) {
    let mut interpreter = load(model).unwrap();
    for round in 0..2 {
        for (step, expected) in expected.iter().enumerate() {
            let found = run(&mut interpreter, &[(size, step as i32 + 1)]);
            assert_eq!(found, *expected, "size {size}, round {round}, run {step}");
        }
        interpreter.reset_variables();
    }
}

#[test]
fn what_was_read_keeps_its_value_when_the_variable_gets_another() {
    for size in SIZES {
        let model = with_variables(
            size,
            |b, x, [v, _]| {
                let old = b.read(v, size);
                let new = b.sum(old, x);
                b.assign(v, new);
                let newer = b.read(v, size);
                // Read behind the assignment.
                vec![b.sum(old, x), b.sum(newer, x), b.sum(old, newer)]
            },
            vec![],
        );
        expect(&model, size, &[&[11, 12, 21], &[13, 15, 24]]);
    }
}

#[test]
fn variables_are_accumulated() {
    for size in SIZES {
        let model = with_variables(
            size,
            |b, x, [v, w]| {
                let (old, other) = (b.read(v, size), b.read(w, size));
                let new = b.sum(old, x);
                let both = b.sum(new, other);
                // One is read by nothing else, the other is.
                b.assign(v, new);
                b.assign(w, both);
                vec![b.sum(both, x)]
            },
            vec![],
        );
        expect(&model, size, &[&[32], &[46], &[63]]);
    }
}

#[test]
fn variables_get_the_values_of_variables() {
    for size in SIZES {
        let model = with_variables(
            size,
            |b, x, [v, w]| {
                let (first, second) = (b.read(v, size), b.read(w, size));
                let sum = b.sum(first, x);
                let own = b.read(v, size);
                b.assign(v, own);
                b.assign(w, first);
                b.assign(v, second);
                vec![sum]
            },
            vec![],
        );
        expect(&model, size, &[&[11], &[22], &[13], &[24]]);
    }
}

#[test]
fn variables_that_a_call_changes() {
    for size in SIZES {
        let mut callee = Builder::new();
        let value = callee.input(DType::I32, &[size]);
        let v = callee.variable_named("v");
        let sum = callee.sum(value, value);
        callee.assign(v, sum);
        callee.graph.outputs.push(sum);
        let model = with_variables(
            size,
            |b, x, [v, _]| {
                let (old, doubled) = (b.read(v, size), b.ints(size));
                b.op(call(2), &[old], &[doubled]);
                vec![b.sum(old, x), b.sum(doubled, x), b.read(v, size)]
            },
            vec![callee.graph],
        );
        expect(&model, size, &[&[11, 21, 20], &[22, 42, 40]]);
    }
}

#[test]
fn variables_whose_handle_comes_from_the_caller() {
    for size in SIZES {
        let mut callee = Builder::new();
        let handle = callee.input(DType::Resource, &[1]);
        let value = callee.input(DType::I32, &[size]);
        let v = callee.variable_named("v");
        // It may be the same variable, and is in the second call.
        let old = callee.read(v, size);
        callee.assign(handle, value);
        let now = callee.read(handle, size);
        let both = callee.sum(old, now);
        callee.graph.outputs.push(both);
        let model = with_variables(
            size,
            |b, x, [v, w]| {
                let [first, second] = [w, v].map(|handle| {
                    let result = b.ints(size);
                    b.op(call(2), &[handle, x], &[result]);
                    result
                });
                vec![first, second, b.read(v, size), b.read(w, size)]
            },
            vec![callee.graph],
        );
        expect(&model, size, &[&[11, 11, 1, 1], &[3, 3, 2, 2]]);
    }
}

#[test]
fn variables_of_another_type_are_refused() {
    let mut b = Builder::new();
    let handle = b.variable_named("v");
    let value = b.many(3, 1);
    b.assign(handle, value);
    let read = b.tensor(DType::F32, &[3]);
    b.op(Op::ReadVariable, &[handle], &[read]);
    b.graph.outputs.push(read);
    let error = load(&b.model()).unwrap().run().unwrap_err().to_string();
    assert!(error.contains("READ_VARIABLE") && error.contains("i32 where f32"), "{error}");
}

#[test]
fn variables_are_assigned_before_they_are_read() {
    let mut b = Builder::new();
    let handle = b.variable_named("v");
    let (read, one) = (b.read(handle, 3), b.many(3, 1));
    let sum = b.sum(read, one);
    b.graph.outputs.push(sum);
    let error = load(&b.model()).unwrap().run().unwrap_err().to_string();
    assert!(error.contains("has not been assigned"), "{error}");
}

#[test]
fn loops_give_what_they_take() {
    let mut main = Builder::new();
    let (x, y) = (main.input(DType::I32, &[1]), main.input(DType::I32, &[1]));
    let z = main.ints(1);
    main.op(Op::While(WhileOptions { cond_subgraph: 0, body_subgraph: 0 }), &[x, y], &[z]);
    main.graph.outputs.push(z);
    let error = load(&main.model()).unwrap_err().to_string();
    assert!(error.contains("takes 2 tensors and gives 1"), "{error}");
}
