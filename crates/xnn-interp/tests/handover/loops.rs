//! Loops, branches and calls.

use xnn_interp::TensorBuf;
use xnn_model::op::{IfOptions, WhileOptions};
use xnn_model::{DType, Model, Op, TensorId};

use crate::common::{Builder, load, model};
use crate::{SIZES, call, ints, outputs, run};

/// A body of `(i, a, b)`: the operators for the next `a` and `b`, and the same in Rust.
type Body =
    (fn(&mut Builder, TensorId, TensorId, usize) -> [TensorId; 2], fn(i32, i32) -> [i32; 2]);

const BODIES: [Body; 7] = [
    (|_, a, b, _| [a, b], |a, b| [a, b]),
    (|_, a, b, _| [b, a], |a, b| [b, a]),
    (|_, a, _, _| [a, a], |a, _| [a, a]),
    (|b, x, y, _| [y, b.sum(x, y)], |a, b| [b, a.wrapping_add(b)]),
    (|b, x, y, _| [b.sum(x, y); 2], |a, b| [a.wrapping_add(b); 2]),
    (|b, x, _, size| [b.many(size, 7), x], |a, _| [7, a]),
    // Computed only once.
    (
        |b, x, _, size| {
            let seven = b.many(size, 7);
            [b.sum(seven, seven), x]
        },
        |a, _| [14, a],
    ),
];

/// The operators before and after the loop.
#[derive(Clone, Copy, Debug)]
enum Around {
    Nothing,
    /// The loop's inputs are computed by an operator, and only the loop reads them.
    Consumed,
    /// The loop's inputs are read again after the loop.
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
fn loops_compute_their_state() {
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
fn loop_state_is_not_copied() {
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
        assert_eq!(read[1..], given[..5]);
    }
}

#[test]
fn branches_and_calls_pass_tensors() {
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

#[test]
fn loops_need_as_many_outputs_as_inputs() {
    let mut main = Builder::new();
    let (x, y) = (main.input(DType::I32, &[1]), main.input(DType::I32, &[1]));
    let z = main.ints(1);
    main.op(Op::While(WhileOptions { cond_subgraph: 0, body_subgraph: 0 }), &[x, y], &[z]);
    main.graph.outputs.push(z);
    let error = load(&main.model()).unwrap_err().to_string();
    assert!(error.contains("2 inputs and 1 outputs"), "{error}");
}
