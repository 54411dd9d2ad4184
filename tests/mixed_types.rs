//! Operators between types other than fp32 and 8 bits, and of numbers for which functions are not defined: exactly
//! what the reference kernels give.

#![allow(clippy::unwrap_used, reason = "tests")]

use xnn_delegate::interpreter::{Entry, InterpOptions, Interpreter};
use xnn_delegate::lower::Delegation;
use xnn_delegate::model::Subgraph;
use xnn_delegate::runtime::Session;
use xnn_delegate::{PartitionOptions, SessionOptions};
use xnn_model::op::{ArgMinMaxOptions, CastOptions, Op};
use xnn_model::{DType, Model, TensorId};
use xnn_testing::{GraphBuilder, Random, le_bytes};

/// Runs the graph's only operator on XNNPACK and on a reference kernel.
fn check(graph: Subgraph, inputs: &[&[u8]]) {
    let model = Model::from(graph);
    let graph = model.main().unwrap();
    let delegation = Delegation::new(graph, &PartitionOptions::default()).unwrap();
    let mut session =
        Session::new(delegation.whole().unwrap(), &SessionOptions::default()).unwrap();
    let mut reference = Interpreter::new(&model, Entry::Main, &InterpOptions::default()).unwrap();
    for (index, input) in inputs.iter().enumerate() {
        session.input_mut(index).copy_from_slice(input);
        reference.input_mut(index).unwrap().bytes.copy_from_slice(input);
    }
    session.run().unwrap();
    reference.run().unwrap();
    let expected = reference.output(0).unwrap();
    assert_eq!(session.output(0), expected.bytes, "{:?}", graph.operators[0].op);
}

fn one(
    op: Op,
    operands: impl FnOnce(&mut GraphBuilder) -> Vec<TensorId>,
    to: DType,
    shape: &[usize],
) -> Subgraph {
    let mut g = GraphBuilder::new("main");
    let inputs = operands(&mut g);
    let y = g.tensor("y", to, shape);
    g.op(op, &inputs, &[y]).output(y);
    g.build()
}

#[test]
fn casts() {
    let integers: [i32; 6] = [0, 1, -1, 16_777_217, i32::MIN, i32::MAX];
    let integers = le_bytes(&integers, |value| value.to_le_bytes());
    let numbers: [f32; 6] = [0.0, -1.5, 65504.0, 6e-8, 0.1, 1.0 / 3.0];
    let floats = le_bytes(&numbers, |value| value.to_le_bytes());
    let halves = le_bytes(&numbers, |value| half::f16::from_f32(*value).to_le_bytes());
    let cases: [(DType, DType, &[u8]); 7] = [
        (DType::I32, DType::F32, &integers),
        (DType::U8, DType::F32, &[0, 1, 2, 127, 128, 255]),
        (DType::I8, DType::F32, &[0, 1, 2, 127, 128, 255]),
        (DType::Bool, DType::F32, &[0, 1, 0, 0, 1, 1]),
        (DType::F16, DType::F32, &halves),
        (DType::F32, DType::F16, &floats),
        (DType::F32, DType::F32, &floats),
    ];
    for (from, to, data) in cases {
        let op = Op::Cast(CastOptions { from, to });
        check(one(op, |g| vec![g.input("x", from, &[2, 3])], to, &[2, 3]), &[data]);
    }
    check(
        one(Op::Dequantize, |g| vec![g.input("x", DType::F16, &[6])], DType::F32, &[6]),
        &[&halves],
    );
}

#[test]
fn choices_by_truth_values() {
    let graph = one(
        Op::SelectV2,
        |g| {
            let condition = g.input("condition", DType::Bool, &[2, 1, 3]);
            let x = g.constant_f32("x", &[2, 1], &[f32::MAX, -0.1]);
            vec![condition, x, g.constant_f32("y", &[], &[-1e9])]
        },
        DType::F32,
        &[2, 2, 3],
    );
    check(graph, &[&[0, 1, 1, 0, 0, 1]]);
}

#[test]
fn places_of_extremes() {
    let mut random = Random::new(3);
    for (shape, axis) in [([3usize, 2000, 2], 1), ([7, 5, 3], 2), ([9, 1, 4], 0)] {
        for op in [Op::ArgMax, Op::ArgMin] {
            let op = op(ArgMinMaxOptions { output_type: DType::I32 });
            let mut places = shape.to_vec();
            places.remove(axis);
            // The first of several equal elements counts.
            let values: Vec<f32> =
                (0..shape.iter().product()).map(|_| random.below(6) as f32 - 3.0).collect();
            let data = le_bytes(&values, |value| value.to_le_bytes());
            let operands = |g: &mut GraphBuilder| {
                vec![g.input("x", DType::F32, &shape), g.constant_i32("axis", &[], &[axis as i32])]
            };
            check(one(op, operands, DType::I32, &places), &[&data]);
        }
    }
}

#[test]
fn logarithms_of_negative_numbers() {
    let mut g = GraphBuilder::new("main");
    let x = g.input("x", DType::I8, &[6]);
    let y = g.tensor("y", DType::I8, &[6]);
    g.quantize(x, 0.5, 3).quantize(y, 0.25, 3);
    g.op(Op::Log, &[x], &[y]).output(y);
    check(g.build(), &[&[0x80, 0, 3, 5, 10, 127]]);
}
