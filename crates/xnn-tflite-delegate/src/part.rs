//! What a kernel computes, kept for the day that shapes change.

use std::sync::Arc;

use xnn_format::Blob;
use xnn_lower::{Decision, Partition, PartitionOptions, partition_grouped};
use xnn_model::{Inferred, Op, Operator, Subgraph, TensorId, infer};
use xnn_runtime::{Program, Session};

use crate::context::Context;
use crate::error::{Error, Result};
use crate::graph;
use crate::kernel::Sessions;

/// The custom operator whose options are an `.xnn` blob.
const XNN_GRAPH: &str = "XNNGraph";

/// A program's tensors in the interpreter, and what it was made of.
pub(crate) struct Part {
    source: Source,
    inputs: Vec<TensorId>,
    outputs: Vec<TensorId>,
}

/// What a program was made of.
enum Source {
    /// These operators of the interpreter's graph, lowered for the shapes in it.
    Operators { graph: Arc<Subgraph>, operators: Vec<usize> },
    /// The blob in a custom operator.
    Blob,
}

impl Part {
    /// The operators of `partition`, which belong to `graph`.
    pub(crate) fn of_partition(graph: &Arc<Subgraph>, partition: &Partition) -> Self {
        let operators = partition.operators.clone();
        Self {
            source: Source::Operators { graph: Arc::clone(graph), operators },
            inputs: partition.inputs.clone(),
            outputs: partition.outputs.clone(),
        }
    }

    /// The blob in `operator` as a session; `None` for operators that have none.
    pub(crate) fn of_blob(
        operator: &Operator,
        sessions: &Sessions,
    ) -> Option<Result<(Self, Session)>> {
        let Op::Custom(custom) = &operator.op else { return None };
        if custom.code != XNN_GRAPH {
            return None;
        }
        let session = || -> std::result::Result<Session, Box<dyn std::error::Error>> {
            let program = Program::from_blob(Blob::from_bytes(custom.options.clone())?)?;
            let graph = program.graph();
            if graph.inputs.len() != operator.inputs.iter().flatten().count()
                || graph.outputs.len() != operator.outputs.len()
            {
                return Err("the operator's inputs and outputs are not the blob's".into());
            }
            Ok(sessions.start(&program)?)
        };
        let part = Self {
            source: Source::Blob,
            inputs: operator.inputs.iter().flatten().copied().collect(),
            outputs: operator.outputs.clone(),
        };
        Some(session().map(|session| (part, session)).map_err(|e| Error::Blob(e.to_string())))
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
            Source::Operators { graph, .. } => dims(graph, &self.outputs),
            Source::Blob => session.outputs().iter().map(|info| info.dims.clone()).collect(),
        }
    }

    /// Dimensions of the inputs that `session` computes with.
    pub(crate) fn input_dims(&self, session: &Session) -> Vec<Vec<usize>> {
        match &self.source {
            Source::Operators { graph, .. } => dims(graph, &self.inputs),
            Source::Blob => session.inputs().iter().map(|info| info.dims.clone()).collect(),
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
        let inferred = self.infer(graph, context)?;
        let graph = inferred.subgraph.clone();
        let group = |_: &Subgraph, _: &[bool]| vec![operators.clone()];
        let options = PartitionOptions::default();
        let (partitioning, compiled) = partition_grouped(inferred, &options, sessions, group);
        for &index in operators {
            if let (Some(Decision::Left(why)), Some(operator)) =
                (partitioning.decisions.get(index), graph.operators.get(index))
            {
                return Err(Error::Shapes(format!("operator {index} ({}): {why}", operator.op)));
            }
        }
        match (partitioning.partitions.as_slice(), <[Session; 1]>::try_from(compiled)) {
            ([partition], Ok([session])) => {
                Ok(Some((Self::of_partition(&Arc::new(graph), partition), session)))
            }
            _ => Err(Error::Shapes("the operators do not form one graph any more".into())),
        }
    }

    /// All shapes of the graph for those that its inputs have in the interpreter now.
    fn infer(&self, graph: &Subgraph, context: &Context) -> Result<Inferred> {
        let mut adapted = graph.clone();
        adopt(&mut adapted, context, &graph.inputs)?;
        let inferred = infer_checked(&adapted)?;
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
        infer_checked(&adapted)
    }
}

fn infer_checked(graph: &Subgraph) -> Result<Inferred> {
    infer(graph).map_err(|error| Error::Shapes(error.to_string()))
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
