//! A delegated partition, and its lowering for other shapes.

use std::sync::Arc;

use xnn::lower::reanalyze;
use xnn_format::CUSTOM_OPERATOR;
use xnn_lower::{Decision, Partition, PartitionOptions, partition_grouped};
use xnn_model::{Inferred, Op, Subgraph, TensorId};
use xnn_runtime::Session;

use crate::context::Context;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::graph;
use crate::hosted::{self, Hosted};
use crate::sessions::Sessions;

/// Tensors of a partition in the interpreter, and the source of its program.
pub(crate) struct DelegatedPartition {
    source: Source,
    inputs: Vec<TensorId>,
    outputs: Vec<TensorId>,
}

/// Source of a program.
enum Source {
    /// Operators of the interpreter's graph, lowered for the shapes in it.
    Operators { graph: Arc<Inferred>, operators: Vec<usize> },
    /// Graph that a custom operator holds.
    Stored,
}

impl DelegatedPartition {
    /// The delegated form of `partition`, which is a partition of `graph`.
    pub(crate) fn new(graph: &Arc<Inferred>, partition: &Partition) -> Self {
        let source = if partition.is_embedded {
            Source::Stored
        } else {
            let operators = partition.operators.clone();
            Source::Operators { graph: Arc::clone(graph), operators }
        };
        Self { source, inputs: partition.inputs.clone(), outputs: partition.outputs.clone() }
    }

    /// Prepares `operators` of `graph` for this project's interpreter; `outputs` are the tensors
    /// that other operators read.
    pub(crate) fn hosted(
        graph: &Arc<Inferred>,
        operators: &[usize],
        outputs: &[TensorId],
        sessions: &Sessions,
    ) -> Result<(Self, Engine)> {
        let subgraph = hosted::subgraph(graph, operators, outputs);
        let source = Source::Operators { graph: Arc::clone(graph), operators: operators.to_vec() };
        let (inputs, outputs) = (subgraph.inputs.clone(), subgraph.outputs.clone());
        let engine = Engine::Hosted(Hosted::new(subgraph, sessions)?);
        Ok((Self { source, inputs, outputs }, engine))
    }

    /// Inputs, in the order of the program's inputs.
    pub(crate) fn inputs(&self) -> &[TensorId] {
        &self.inputs
    }

    /// Outputs, in the order of the program's outputs.
    pub(crate) fn outputs(&self) -> &[TensorId] {
        &self.outputs
    }

    /// Dimensions of the outputs of `engine`.
    pub(crate) fn output_dims(&self, engine: &Engine) -> Vec<Vec<usize>> {
        match &self.source {
            Source::Operators { graph, .. } => dims(&graph.subgraph, &self.outputs),
            Source::Stored => engine.output_dims(),
        }
    }

    /// Tensors on whose dimensions `engine` depends, with the dimensions that it was created for.
    pub(crate) fn depends_on(&self, engine: &Engine) -> Vec<(TensorId, Vec<usize>)> {
        match &self.source {
            Source::Operators { graph, operators } => {
                let shape = |id| Some((id, graph.subgraph.tensor(id).shape.clone()?));
                let mut tensors = self.inputs.clone();
                tensors.extend(&graph.subgraph.inputs);
                tensors.extend(opaque(&graph.subgraph, operators));
                tensors.sort_unstable();
                tensors.dedup();
                tensors.into_iter().filter_map(shape).collect()
            }
            Source::Stored => self.inputs.iter().copied().zip(engine.input_dims()).collect(),
        }
    }

    /// Lowers the partition for the shapes that tensors have in the interpreter now. `None` for a
    /// stored graph, whose program infers other shapes itself.
    ///
    /// Operators are lowered again, since lowering computes constant paddings, slices and sizes
    /// from shapes. If XNNPACK does not support these shapes, such as empty tensors, this project's
    /// interpreter computes the operators.
    pub(crate) fn reshaped(
        &self,
        context: &Context,
        sessions: &mut Sessions,
    ) -> Result<Option<(Self, Engine)>> {
        let Source::Operators { graph, operators } = &self.source else { return Ok(None) };
        // The operators are claimed already; stored graphs have kernels of their own.
        let mut options = sessions.partition.clone();
        options.keep_small = true;
        options.min_partition_macs = 0;
        options.max_partitions = None;
        options.disable = vec![CUSTOM_OPERATOR.to_owned()];
        let analyzed = Arc::new(self.infer(graph, operators, context, &options)?);
        let group = |_: &Subgraph, _: &[bool]| vec![operators.clone()];
        let (partitioning, compiled) = partition_grouped(&analyzed, &options, sessions, group)?;
        let why = operators.iter().find_map(|&index| {
            let operator = analyzed.subgraph.operators.get(index)?;
            match partitioning.decisions.get(index)? {
                Decision::NotDelegated(why) => {
                    Some(format!("operator {index} ({}): {why}", operator.op))
                }
                Decision::Delegated { .. } => None,
            }
        });
        let why = match (partitioning.partitions.as_slice(), <[Session; 1]>::try_from(compiled)) {
            ([partition], Ok([session])) if why.is_none() => {
                return Ok(Some((Self::new(&analyzed, partition), session.into())));
            }
            _ => why.unwrap_or_else(|| "the operators no longer form one partition".into()),
        };
        match Self::hosted(&analyzed, operators, &self.outputs, sessions) {
            Ok(hosted) => {
                log::info!("using reference kernels for some operators: {why}");
                Ok(Some(hosted))
            }
            Err(error) => {
                Err(Error::Shapes(format!("{why}; fallback to reference kernels: {error}")))
            }
        }
    }

    /// Infers all shapes of the graph from the present shapes of the interpreter's inputs.
    fn infer(
        &self,
        earlier: &Inferred,
        operators: &[usize],
        context: &Context,
        options: &PartitionOptions,
    ) -> Result<Inferred> {
        let mut adapted = Arc::clone(&earlier.subgraph);
        adopt(Arc::make_mut(&mut adapted), context, &earlier.subgraph.inputs)?;
        // The interpreter has already allocated inputs of these sizes.
        let mut options = options.clone();
        options.limits.amplification.inputs = bytes(&adapted, &adapted.inputs);
        let checked = |graph: Arc<Subgraph>| {
            reanalyze(graph, &options, earlier).map_err(|error| Error::Shapes(error.to_string()))
        };
        let inferred = checked(Arc::clone(&adapted))?;
        // Only the interpreter knows the output shapes of custom operators.
        let mut unforeseen = Vec::new();
        let opaque = opaque(&inferred.subgraph, operators);
        for id in self.inputs.iter().copied().chain(opaque) {
            if inferred.subgraph.tensor(id).shape != graph::dims(context.tensor(id)?) {
                unforeseen.push(id);
            }
        }
        if unforeseen.is_empty() {
            return Ok(inferred);
        }
        let changed = Arc::make_mut(&mut adapted);
        adopt(changed, context, &unforeseen)?;
        for operator in &mut changed.operators {
            if operator.outputs.iter().any(|id| unforeseen.contains(id)) {
                operator.op = Op::Unknown { code: operator.op.code() };
            }
        }
        checked(adapted)
    }
}

/// Tensors before `operators` whose shapes only the interpreter knows. Like shapes of the graph's
/// inputs, they may affect the operators through values that are computed from shapes, not only
/// through tensors that the operators read.
fn opaque<'a>(graph: &'a Subgraph, operators: &[usize]) -> impl Iterator<Item = TensorId> + 'a {
    let end = operators.iter().copied().max().unwrap_or(0);
    let is_opaque = |op: &Op| matches!(op, Op::Custom(_) | Op::Unknown { .. });
    let before = graph.operators.iter().take(end).filter(move |operator| is_opaque(&operator.op));
    before.flat_map(|operator| operator.outputs.iter().copied())
}

/// Sets the dimensions of tensors to those that they have in the interpreter now.
fn adopt(graph: &mut Subgraph, context: &Context, tensors: &[TensorId]) -> Result<()> {
    for &id in tensors {
        if let Some(tensor) = graph.tensors.get_mut(id) {
            tensor.shape = graph::dims(context.tensor(id)?);
        }
    }
    Ok(())
}

fn bytes(graph: &Subgraph, tensors: &[TensorId]) -> u64 {
    let sizes = tensors.iter().filter_map(|&id| graph.tensor(id).byte_size());
    sizes.fold(0, |sum, size| sum.saturating_add(size as u64))
}

fn dims(graph: &Subgraph, tensors: &[TensorId]) -> Vec<Vec<usize>> {
    tensors.iter().map(|&id| graph.tensor(id).shape.clone().unwrap_or_default()).collect()
}
