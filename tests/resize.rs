//! Inputs of other dimensions: lowered graphs have sizes in them that follow from shapes.

#![allow(clippy::unwrap_used, reason = "tests")]

use xnn_delegate::{PartitionOptions, Runner, RunnerBuilder};
use xnn_model::op::{
    ArithmeticOptions, ConcatenationOptions, Op, ShapeOptions, StridedSliceOptions,
};
use xnn_model::{DType, Model};
use xnn_testing::GraphBuilder;

/// `x + y`, where y is x with the halves of its rows exchanged.
fn exchange() -> Model {
    let mut graph = GraphBuilder::new("main");
    let x = graph.input("x", DType::F32, &[1, 4]);
    let strides = graph.constant_i32("strides", &[2], &[1, 1]);
    let halves = [0, 2].map(|begin| {
        let half = graph.tensor("half", DType::F32, &[1, 2]);
        let from = graph.constant_i32("begin", &[2], &[0, begin]);
        let to = graph.constant_i32("end", &[2], &[0, begin + 2]);
        let options =
            StridedSliceOptions { begin_mask: 1, end_mask: 1, ..StridedSliceOptions::default() };
        graph.op(Op::StridedSlice(options), &[x, from, to, strides], &[half]);
        half
    });
    let y = graph.tensor("y", DType::F32, &[1, 4]);
    let z = graph.tensor("z", DType::F32, &[1, 4]);
    let axis = ConcatenationOptions { axis: 1, ..ConcatenationOptions::default() };
    graph
        .op(Op::Concatenation(axis), &[halves[1], halves[0]], &[y])
        .op(Op::Add(ArithmeticOptions::default()), &[x, y], &[z])
        .output(z);
    graph.build_model()
}

fn runner(model: &Model, disable: &[&str]) -> Runner {
    let mut partition = PartitionOptions::default();
    partition.keep_small = true;
    partition.disable = disable.iter().map(|&name| name.to_owned()).collect();
    RunnerBuilder::from_model(model).partition(partition).build().unwrap()
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|four| f32::from_le_bytes(four.try_into().unwrap())).collect()
}

fn fill(runner: &mut Runner, index: usize, values: &[f32]) {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    runner.input_bytes_mut(index).unwrap().copy_from_slice(&bytes);
}

#[test]
fn slices_follow_the_batch() {
    for (disabled, is_whole) in [(&[][..], true), (&["ADD"], false), (&["CONCATENATION"], false)] {
        let mut runner = runner(&exchange(), disabled);
        assert_eq!(runner.program().is_some(), is_whole);
        for batch in [3, 1, 2] {
            runner.resize_inputs(&[(0, &[batch, 4])]).unwrap();
            assert_eq!(runner.outputs()[0].dims, [batch, 4]);
            let x: Vec<f32> = (0..batch * 4).map(|i| (i * i) as f32).collect();
            fill(&mut runner, 0, &x);
            runner.run().unwrap();
            let z: Vec<f32> = (0..x.len()).map(|i| x[i] + x[i ^ 2]).collect();
            assert_eq!(floats(runner.output_bytes(0).unwrap()), z, "{disabled:?}, batch {batch}");
        }
    }
}

/// RESHAPE to the shape of what nothing else reads.
#[test]
fn values_follow_shapes() {
    let mut graph = GraphBuilder::new("main");
    let like = graph.input("like", DType::F32, &[2, 6]);
    let x = graph.input("x", DType::F32, &[12]);
    let negative = graph.tensor("negative", DType::F32, &[12]);
    let shape = graph.tensor("shape", DType::I32, &[2]);
    let rows = graph.tensor("rows", DType::F32, &[2, 6]);
    let y = graph.tensor("y", DType::F32, &[2, 6]);
    graph
        .op(Op::Neg, &[x], &[negative])
        .op(Op::Shape(ShapeOptions { out_type: DType::I32 }), &[like], &[shape])
        .op(Op::Reshape(Default::default()), &[negative, shape], &[rows])
        .op(Op::Abs, &[rows], &[y])
        .output(y);
    let model = graph.build_model();
    for disabled in [&[][..], &["NEG"]] {
        let mut runner = runner(&model, disabled);
        let place = |name: &str| runner.input_index(name).unwrap();
        let (like, x) = (place("like"), place("x"));
        let values: Vec<f32> = (0..12).map(|i| i as f32 - 4.0).collect();
        fill(&mut runner, x, &values);
        for dims in [[3, 4], [2, 6], [12, 1]] {
            // The other input keeps its elements.
            runner.resize_inputs(&[(like, &dims)]).unwrap();
            runner.run().unwrap();
            assert_eq!(runner.outputs()[0].dims, dims, "{disabled:?}");
            let expected: Vec<f32> = values.iter().map(|value| value.abs()).collect();
            assert_eq!(floats(runner.output_bytes(0).unwrap()), expected, "{disabled:?}");
        }
    }
}

#[test]
fn refused_dimensions_change_nothing() {
    for disabled in [&[][..], &["ADD"]] {
        let mut runner = runner(&exchange(), disabled);
        fill(&mut runner, 0, &[1.0, 2.0, 3.0, 4.0]);
        for (index, dims) in [(1, &[1, 4][..]), (0, &[usize::MAX, 4])] {
            assert!(runner.resize_inputs(&[(index, dims)]).is_err(), "{index}, {dims:?}");
        }
        runner.run().unwrap();
        assert_eq!(floats(runner.output_bytes(0).unwrap()), [4.0, 6.0, 4.0, 6.0]);
    }
}

#[test]
fn flags_stop_what_was_resized() {
    for disabled in [&[][..], &["ADD"]] {
        let mut runner = runner(&exchange(), disabled);
        let flag = runner.cancel_flag();
        runner.resize_inputs(&[(0, &[2, 4])]).unwrap();
        flag.raise();
        assert!(runner.run().is_err());
        flag.lower();
        runner.run().unwrap();
    }
}
