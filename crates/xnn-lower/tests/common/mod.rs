//! Partitions small graphs.

#![allow(dead_code, reason = "not every test uses all of it")]

use std::sync::Arc;

use xnn_format::Graph;
use xnn_interp::fold_constants;
use xnn_lower::{
    Compile, CompileError, Decision, PartitionOptions, Partitioning, TargetFeatures, partition,
};
use xnn_model::infer;
use xnn_testing::GraphBuilder;

/// Accepts every graph, for a processor with these features.
struct UncheckedFor(TargetFeatures);

impl Compile for UncheckedFor {
    type Output = ();

    fn compile(&mut self, _: &Arc<Graph>) -> Result<(), CompileError> {
        Ok(())
    }

    fn target_features(&self) -> TargetFeatures {
        self.0
    }
}

pub fn decide_for(
    g: GraphBuilder,
    options: &PartitionOptions,
    target: TargetFeatures,
) -> Partitioning {
    let mut inferred = infer(g.build().into()).unwrap();
    fold_constants(&mut inferred).unwrap();
    partition(&inferred, options, &mut UncheckedFor(target)).unwrap().0
}

pub fn decide_with(g: GraphBuilder, options: &PartitionOptions) -> Partitioning {
    decide_for(g, options, TargetFeatures::default())
}

pub fn decide(g: GraphBuilder) -> Partitioning {
    decide_with(g, &PartitionOptions::default())
}

/// Code of the reason why operator `index` is not delegated; `None` if it is.
pub fn code(partitioning: &Partitioning, index: usize) -> Option<&'static str> {
    match &partitioning.decisions[index] {
        Decision::Delegated { .. } => None,
        Decision::NotDelegated(why) => Some(why.code()),
    }
}
