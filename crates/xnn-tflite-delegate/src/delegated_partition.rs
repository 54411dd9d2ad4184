//! What a kernel computes, kept for the day that shapes change.

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

    /// These operators of `graph`, computed by this project's interpreter, with the tensors that they give to others.
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

    /// Tensors in the order of the program's inputs.
    pub(crate) fn inputs(&self) -> &[TensorId] {
        &self.inputs
    }

    /// Tensors in the order of the program's outputs.
    pub(crate) fn outputs(&self) -> &[TensorId] {
        &self.outputs
    }

    /// Dimensions of the outputs that `engine` computes.
    pub(crate) fn output_dims(&self, engine: &Engine) -> Vec<Vec<usize>> {
        match &self.source {
            Source::Operators { graph, .. } => dims(&graph.subgraph, &self.outputs),
            Source::Stored => engine.output_dims(),
        }
    }

    /// Tensors from whose dimensions `engine`, or what was lowered for it, follows, with these dimensions.
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

    /// The same for the shapes that tensors have in the interpreter now; `None` where the program
    /// itself stays and says what follows from other shapes.
    ///
    /// Operators are lowered anew: paddings, slices and sizes that lowering makes constant depend on
    /// shapes. Where XNNPACK does not take them with these shapes, as where tensors have no elements, they are hosted.
    pub(crate) fn reshaped(
        &self,
        context: &Context,
        sessions: &mut Sessions,
    ) -> Result<Option<(Self, Engine)>> {
        let Source::Operators { graph, operators } = &self.source else { return Ok(None) };
        // What was wanted has been claimed; graphs that the model holds are kernels of their own.
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
                Decision::Left(why) => Some(format!("operator {index} ({}): {why}", operator.op)),
                Decision::Delegated { .. } => None,
            }
        });
        let why = match (partitioning.partitions.as_slice(), <[Session; 1]>::try_from(compiled)) {
            ([partition], Ok([session])) if why.is_none() => {
                return Ok(Some((Self::of_partition(&analyzed, partition), session.into())));
            }
            _ => why.unwrap_or_else(|| "the operators do not form one graph any more".into()),
        };
        match Self::hosted(&analyzed, operators, &self.outputs, sessions) {
            Ok(hosted) => {
                log::info!("reference kernels take part: {why}");
                Ok(Some(hosted))
            }
            Err(error) => Err(Error::Shapes(format!("{why}; without XNNPACK: {error}"))),
        }
    }

    /// All shapes of the graph for those that its inputs have in the interpreter now.
    fn infer(
        &self,
        earlier: &Inferred,
        operators: &[usize],
        context: &Context,
        options: &PartitionOptions,
    ) -> Result<Inferred> {
        let mut adapted = Arc::clone(&earlier.subgraph);
        adopt(Arc::make_mut(&mut adapted), context, &earlier.subgraph.inputs)?;
        // The interpreter has memory for these sizes of inputs already.
        let mut options = options.clone();
        options.limits.amplification.inputs = bytes(&adapted, &adapted.inputs);
        let checked = |graph: Arc<Subgraph>| {
            reanalyze(graph, &options, earlier).map_err(|error| Error::Shapes(error.to_string()))
        };
        let inferred = checked(Arc::clone(&adapted))?;
        // What custom operators make of their inputs only the interpreter knows.
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

/// Tensors in front of `operators` whose shapes only the interpreter knows. As those of the graph's inputs, they may reach
/// the operators by values that follow from them, and not only by what the operators read.
fn opaque<'a>(graph: &'a Subgraph, operators: &[usize]) -> impl Iterator<Item = TensorId> + 'a {
    let end = operators.iter().copied().max().unwrap_or(0);
    let is_opaque = |op: &Op| matches!(op, Op::Custom(_) | Op::Unknown { .. });
    let before = graph.operators.iter().take(end).filter(move |operator| is_opaque(&operator.op));
    before.flat_map(|operator| operator.outputs.iter().copied())
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

fn bytes(graph: &Subgraph, tensors: &[TensorId]) -> u64 {
    let sizes = tensors.iter().filter_map(|&id| graph.tensor(id).byte_size());
    sizes.fold(0, |sum, size| sum.saturating_add(size as u64))
}

fn dims(graph: &Subgraph, tensors: &[TensorId]) -> Vec<Vec<usize>> {
    tensors.iter().map(|&id| graph.tensor(id).shape.clone().unwrap_or_default()).collect()
}
