//! What is decided about small graphs.

#![allow(dead_code, reason = "not every test uses all of it")]

use xnn_interp::fold_constants;
use xnn_lower::{Decision, PartitionOptions, Partitioning, Unchecked, partition};
use xnn_model::infer;
use xnn_testing::GraphBuilder;

pub fn decide_with(g: GraphBuilder, options: &PartitionOptions) -> Partitioning {
    let mut inferred = infer(g.build().into()).unwrap();
    fold_constants(&mut inferred).unwrap();
    partition(&inferred, options, &mut Unchecked).unwrap().0
}

pub fn decide(g: GraphBuilder) -> Partitioning {
    decide_with(g, &PartitionOptions::default())
}

/// The code of the reason why operator `index` is left; `None` if it goes.
pub fn code(partitioning: &Partitioning, index: usize) -> Option<&'static str> {
    match &partitioning.decisions[index] {
        Decision::Delegated { .. } => None,
        Decision::Left(why) => Some(why.code()),
    }
}
