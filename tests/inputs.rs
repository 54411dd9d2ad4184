//! Descriptions of a runner's inputs: their types, open shapes, and which of them are indices.

#![allow(clippy::unwrap_used, reason = "tests")]

use xnn_delegate::{PartitionOptions, Runner, RunnerBuilder};
use xnn_model::op::{ArithmeticOptions, CastOptions, GatherOptions, Op};
use xnn_model::{DType, Model};
use xnn_testing::GraphBuilder;

fn runner(model: &Model, disable: &[&str]) -> Runner {
    let mut partition = PartitionOptions::default();
    partition.keep_small = true;
    partition.disable = disable.iter().map(|&name| name.to_owned()).collect();
    RunnerBuilder::from_model(model).partition(partition).build().unwrap()
}

/// 1 where it holds, else 0.
fn truth() -> Model {
    let mut graph = GraphBuilder::new("main");
    let holds = graph.input("holds", DType::Bool, &[4]);
    let y = graph.tensor("y", DType::F32, &[4]);
    graph.op(Op::Cast(CastOptions::default()), &[holds], &[y]).output(y);
    graph.build_model()
}

#[test]
fn booleans_are_booleans_wherever_they_are_computed() {
    for disabled in [&[][..], &["CAST"]] {
        let first = runner(&truth(), disabled);
        assert_eq!(first.program().is_some(), disabled.is_empty());
        for mut runner in [first.fork().unwrap(), first] {
            assert_eq!(runner.inputs()[0].dtype, DType::Bool);
            runner.input_bytes_mut(0).unwrap().copy_from_slice(&[1, 0, 0, 1]);
            runner.run().unwrap();
            assert_eq!(runner.output_reals(0).unwrap(), [1.0, 0.0, 0.0, 1.0]);
        }
    }
}

#[test]
fn shapes_vary_where_the_model_leaves_them_open() {
    let mut graph = GraphBuilder::new("main");
    let x = graph.input("x", DType::F32, &[1, 3]);
    let y = graph.tensor("y", DType::F32, &[1, 3]);
    graph.op(Op::Add(ArithmeticOptions::default()), &[x, x], &[y]).output(y);
    let mut graph = graph.build();
    let fixed = Model { subgraphs: vec![graph.clone().into()], ..truth() };
    graph.tensors[x].shape_signature = Some(vec![-1, 3]);
    let open = Model { subgraphs: vec![graph.clone().into()], ..truth() };
    graph.tensors[x].shape_signature = Some(vec![]);
    let unranked = Model { subgraphs: vec![graph.into()], ..truth() };
    for disabled in [&[][..], &["ADD"]] {
        let (fixed, open) = (runner(&fixed, disabled), runner(&open, disabled));
        assert!(open.leaves_open(0, &[8, 3]) && open.leaves_open(0, &[1, 3]));
        assert!(!open.leaves_open(0, &[1, 4]), "another size");
        assert!(!open.leaves_open(0, &[3]), "another rank");
        assert!(!open.leaves_open(1, &[1, 3]), "another input");
        assert!(!fixed.leaves_open(0, &[8, 3]) && fixed.leaves_open(0, &[1, 3]));
        let mut unranked = runner(&unranked, disabled);
        for dims in [&[][..], &[5], &[2, 5]] {
            assert!(unranked.leaves_open(0, dims) && !unranked.leaves_open(1, dims));
            unranked.resize_inputs(&[(0, dims)]).unwrap();
            unranked.run().unwrap();
            assert_eq!(unranked.outputs()[0].dims, dims);
        }
    }
}

#[test]
fn indices_are_told_from_other_numbers() {
    let mut graph = GraphBuilder::new("main");
    let [ids, other] = ["ids", "other"].map(|name| graph.input(name, DType::I32, &[2]));
    let table = graph.constant_f32("table", &[5, 1], &[0.0; 5]);
    let wide = graph.tensor("wide", DType::I64, &[2]);
    let options = CastOptions::default();
    graph.op(Op::Cast(options), &[ids], &[wide]);
    let rows = graph.tensor("rows", DType::F32, &[2, 1]);
    graph.op(Op::Gather(GatherOptions::default()), &[table, wide], &[rows]).output(rows);
    let sum = graph.tensor("sum", DType::I32, &[2]);
    graph.op(Op::Add(ArithmeticOptions::default()), &[other, ids], &[sum]).output(sum);
    let runner = runner(&graph.build_model(), &[]);
    assert_eq!((runner.index_limit(0), runner.index_limit(1)), (Some(5), None));
    assert_eq!(runner.index_limit(2), None);
}
