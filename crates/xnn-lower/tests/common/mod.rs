//! Partitions small graphs.

#![allow(dead_code, reason = "not every test uses all of it")]

use std::sync::Arc;

use xnn_format::Graph;
use xnn_interp::fold_constants;
use xnn_lower::{
    Compile, CompileError, Decision, PartitionOptions, Partitioning, TargetFeatures, partition,
};
use xnn_model::infer;
use xnn_runtime::{Program, ProgramOptions, Session, SessionOptions};
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

/// The graph of a fully delegated model.
pub fn lowered(g: GraphBuilder) -> Graph {
    let mut partitions = decide(g).partitions;
    assert_eq!(partitions.len(), 1);
    Arc::unwrap_or_clone(partitions.remove(0).graph)
}

/// The kinds of a graph's nodes.
pub fn kinds(graph: &Graph) -> Vec<&'static str> {
    graph.nodes.iter().map(|node| node.op.kind()).collect()
}

/// Runs a graph with one input, and returns its only output.
pub fn run(graph: Graph, input: &[u8]) -> Vec<u8> {
    let program = Program::new(graph, &ProgramOptions::default()).unwrap();
    let mut session = Session::new(&program, &SessionOptions::default()).unwrap();
    session.input_mut(0).copy_from_slice(input);
    session.run().unwrap();
    session.output(0).to_vec()
}
