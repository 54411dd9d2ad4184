//! What runners say of their inputs.

#![allow(clippy::unwrap_used, reason = "tests")]

use xnn_delegate::{PartitionOptions, Runner, SessionOptions};
use xnn_model::op::{CastOptions, Op};
use xnn_model::{DType, Model};
use xnn_testing::GraphBuilder;

fn runner(model: &Model, disable: &[&str]) -> Runner {
    let mut partition = PartitionOptions::default();
    partition.keep_small = true;
    partition.disable = disable.iter().map(|&name| name.to_owned()).collect();
    Runner::new(model, &partition, &SessionOptions::default()).unwrap()
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
        assert_eq!(first.session().is_some(), disabled.is_empty());
        for mut runner in [first.another(&SessionOptions::default()).unwrap(), first] {
            assert_eq!(runner.inputs()[0].dtype, DType::Bool);
            runner.input_mut(0).copy_from_slice(&[1, 0, 0, 1]);
            runner.run().unwrap();
            assert_eq!(runner.output_reals(0).unwrap(), [1.0, 0.0, 0.0, 1.0]);
        }
    }
}
