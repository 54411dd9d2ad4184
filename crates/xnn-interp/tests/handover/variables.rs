//! Variables.

use xnn_model::op::CallOptions;
use xnn_model::{DType, Model, Op, Subgraph, TensorId};

use crate::common::{Builder, load, model};
use crate::{SIZES, call, run};

/// A subgraph that assigns 10 and 20 to the variables `v` and `w`.
fn start(size: usize) -> Subgraph {
    let mut b = Builder::new();
    for (name, value) in [("v", 10), ("w", 20)] {
        let (handle, value) = (b.variable_named(name), b.many(size, value));
        b.assign(handle, value);
    }
    b.graph
}

/// A model in which `main` gets its input and handles of `v` and `w`.
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
fn a_read_value_is_kept_when_the_variable_is_assigned() {
    for size in SIZES {
        let model = with_variables(
            size,
            |b, x, [v, _]| {
                let old = b.read(v, size);
                let new = b.sum(old, x);
                b.assign(v, new);
                let newer = b.read(v, size);
                // Read after the assignment.
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
                // Nothing else reads the first value.
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
fn variables_are_assigned_to_variables() {
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
fn calls_change_variables() {
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
fn handles_are_passed_to_calls() {
    for size in SIZES {
        let mut callee = Builder::new();
        let handle = callee.input(DType::Resource, &[1]);
        let value = callee.input(DType::I32, &[size]);
        let v = callee.variable_named("v");
        // The handles may belong to the same variable, as in the second call.
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
    assert!(error.contains("READ_VARIABLE") && error.contains("i32, expected f32"), "{error}");
}

#[test]
fn reading_a_variable_before_its_assignment_is_an_error() {
    let mut b = Builder::new();
    let handle = b.variable_named("v");
    let (read, one) = (b.read(handle, 3), b.many(3, 1));
    let sum = b.sum(read, one);
    b.graph.outputs.push(sum);
    let error = load(&b.model()).unwrap().run().unwrap_err().to_string();
    assert!(error.contains("before it is assigned"), "{error}");
}
