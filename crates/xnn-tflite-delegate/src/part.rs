//! What a kernel computes, kept for the day that shapes change.

use std::sync::Arc;

use xnn::analyze_again;
use xnn_format::CUSTOM_OPERATOR;
use xnn_lower::{Decision, Partition, PartitionOptions, partition_grouped};
use xnn_model::{Inferred, Op, Subgraph, TensorId};
use xnn_runtime::Session;

use crate::context::Context;
use crate::error::{Error, Result};
use crate::graph;
use crate::kernel::Sessions;

/// A program's tensors in the interpreter, and what it was made of.
pub(crate) struct Part {
    source: Source,
    inputs: Vec<TensorId>,
    outputs: Vec<TensorId>,
}

/// What a program was made of.
enum Source {
    /// These operators of the interpreter's graph, lowered for the shapes in it.
    Operators { graph: Arc<Inferred>, operators: Vec<usize> },
    /// The graph that a custom operator holds.
    Stored,
}

impl Part {
    /// What `partition` of `graph` consists of.
    pub(crate) fn of_partition(graph: &Arc<Inferred>, partition: &Partition) -> Self {
        let source = if partition.is_stored {
            Source::Stored
        } else {
            let operators = partition.operators.clone();
            Source::Operators { graph: Arc::clone(graph), operators }
        };
        Self { source, inputs: partition.inputs.clone(), outputs: partition.outputs.clone() }
    }

    /// Tensors in the order of the program's inputs.
    pub(crate) fn inputs(&self) -> &[TensorId] {
        &self.inputs
    }

    /// Tensors in the order of the program's outputs.
    pub(crate) fn outputs(&self) -> &[TensorId] {
        &self.outputs
    }

    /// Dimensions of the outputs that `session` computes.
    pub(crate) fn output_dims(&self, session: &Session) -> Vec<Vec<usize>> {
        match &self.source {
            Source::Operators { graph, .. } => dims(&graph.subgraph, &self.outputs),
            Source::Stored => session.outputs().iter().map(|info| info.dims.clone()).collect(),
        }
    }

    /// Dimensions of the inputs that `session` computes with.
    pub(crate) fn input_dims(&self, session: &Session) -> Vec<Vec<usize>> {
        match &self.source {
            Source::Operators { graph, .. } => dims(&graph.subgraph, &self.inputs),
            Source::Stored => session.inputs().iter().map(|info| info.dims.clone()).collect(),
        }
    }

    /// The same for the shapes that tensors have in the interpreter now; `None` where the program
    /// itself stays and says what follows from other shapes.
    ///
    /// Operators are lowered anew: paddings, slices and sizes that lowering makes constant depend on
    /// shapes.
    pub(crate) fn reshaped(
        &self,
        context: &Context,
        sessions: &mut Sessions,
    ) -> Result<Option<(Self, Session)>> {
        let Source::Operators { graph, operators } = &self.source else { return Ok(None) };
        let mut options = PartitionOptions::default();
        options.optimize = sessions.optimize.clone();
        let inferred = self.infer(graph, context, &options)?;
        let analyzed = Arc::new(inferred.clone());
        let group = |_: &Subgraph, _: &[bool]| vec![operators.clone()];
        // What was worth it has been claimed.
        options.keep_small = true;
        // Those are kernels of their own.
        options.disable.push(CUSTOM_OPERATOR.to_owned());
        let (partitioning, compiled) = partition_grouped(inferred, &options, sessions, group);
        for &index in operators {
            if let (Some(Decision::Left(why)), Some(operator)) =
                (partitioning.decisions.get(index), analyzed.subgraph.operators.get(index))
            {
                return Err(Error::Shapes(format!("operator {index} ({}): {why}", operator.op)));
            }
        }
        match (partitioning.partitions.as_slice(), <[Session; 1]>::try_from(compiled)) {
            ([partition], Ok([session])) => {
                Ok(Some((Self::of_partition(&analyzed, partition), session)))
            }
            _ => Err(Error::Shapes("the operators do not form one graph any more".into())),
        }
    }

    /// All shapes of the graph for those that its inputs have in the interpreter now.
    fn infer(
        &self,
        earlier: &Inferred,
        context: &Context,
        options: &PartitionOptions,
    ) -> Result<Inferred> {
        let checked = |graph: &Subgraph| {
            analyze_again(graph, options, earlier).map_err(|error| Error::Shapes(error.to_string()))
        };
        let mut adapted = earlier.subgraph.clone();
        adopt(&mut adapted, context, &earlier.subgraph.inputs)?;
        let inferred = checked(&adapted)?;
        // What custom operators make of their inputs only the interpreter knows.
        let mut unforeseen = Vec::new();
        for &id in &self.inputs {
            if inferred.subgraph.tensor(id).shape != graph::dims(context.tensor(id)?) {
                unforeseen.push(id);
            }
        }
        if unforeseen.is_empty() {
            return Ok(inferred);
        }
        adopt(&mut adapted, context, &unforeseen)?;
        for operator in &mut adapted.operators {
            if operator.outputs.iter().any(|id| unforeseen.contains(id)) {
                operator.op = Op::Unknown { code: operator.op.code() };
            }
        }
        checked(&adapted)
    }
}

/// Gives tensors the dimensions that they have in the interpreter now.
fn adopt(graph: &mut Subgraph, context: &Context, tensors: &[TensorId]) -> Result<()> {
    for &id in tensors {
        if let Some(tensor) = graph.tensors.get_mut(id) {
            tensor.shape = graph::dims(context.tensor(id)?);
        }
    }
    Ok(())
}

fn dims(graph: &Subgraph, tensors: &[TensorId]) -> Vec<Vec<usize>> {
    tensors.iter().map(|&id| graph.tensor(id).shape.clone().unwrap_or_default()).collect()
}
