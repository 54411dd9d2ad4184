//! Operators that this project's interpreter computes inside a kernel, because XNNPACK does not take them, or not with the
//! shapes that they have by now.

use std::collections::BTreeSet;
use std::sync::Arc;

use xnn::{Runner, RunnerBuilder, RunnerOptions};
use xnn_lower::{Decision, Partitioning};
use xnn_model::{Inferred, Model, Operator, Subgraph, TensorId};
use xnn_runtime::SessionOptions;

use crate::builtin_delegate;
use crate::context::Context;
use crate::delegated_partition::Part;
use crate::error::{Error, Result};
use crate::kernel::{Kernel, Sessions};
use crate::memory::Memory;
use crate::placeholders::starved_layer;

/// A part with memory of its own; what XNNPACK takes of it runs there.
pub(crate) struct Hosted(Box<Runner>);

impl Hosted {
    /// Prepares these operators for the shapes that `graph` has. What TFLite's kernels refuse is refused here as well.
    pub(crate) fn new(graph: Subgraph, sessions: &Sessions) -> Result<Self> {
        for &id in graph.inputs.iter().chain(&graph.outputs) {
            if graph.tensor(id).shape.is_none() {
                let name = graph.tensor(id).name.clone();
                return Err(Error::UnknownShape { id, name });
            }
        }
        if let Some(layer) = starved_layer(&graph) {
            return Err(Error::Starved(layer.op.to_string()));
        }
        let mut options = RunnerOptions::default();
        options.partition.clone_from(&sessions.partition);
        options.program.clone_from(&sessions.program);
        options.session = SessionOptions {
            thread_pool: sessions.threads.clone(),
            yield_workers: sessions.yield_workers,
            ..SessionOptions::default()
        };
        let model = Model { pages: sessions.program.pages.clone(), ..Model::from(graph) };
        Ok(Self(Box::new(RunnerBuilder::from_model(&model).options(options).build()?)))
    }

    pub(crate) fn input_dims(&self) -> Vec<Vec<usize>> {
        self.0.inputs().iter().map(|spec| spec.dims.clone()).collect()
    }

    pub(crate) fn output_dims(&self) -> Vec<Vec<usize>> {
        self.0.outputs().iter().map(|spec| spec.dims.clone()).collect()
    }

    /// Computes the output tensors of `part` from its input tensors.
    pub(crate) fn run(&mut self, part: &Part, context: &Context) -> Result<()> {
        let Self(runner) = self;
        for (index, &id) in part.inputs().iter().enumerate() {
            let own = runner.input_bytes_mut(index)?;
            let memory = Memory::of(context, id, own.len())?;
            // SAFETY: the interpreter writes to no input of a node while the node runs.
            own.copy_from_slice(unsafe { memory.bytes() });
        }
        runner.run()?;
        for (index, &id) in part.outputs().iter().enumerate() {
            let own = runner.output_bytes(index)?;
            let mut memory = Memory::of(context, id, own.len())?;
            // SAFETY: the node has read its inputs, and while it runs its outputs overlap with nothing else that is alive.
            unsafe { memory.bytes_mut() }.copy_from_slice(own);
        }
        Ok(())
    }
}

/// Kernels for the operators that the interpreter's own delegate must not get hold of, with their positions.
pub(crate) fn kernels(
    graph: &Arc<Inferred>,
    partitioning: &Partitioning,
    sessions: &Sessions,
) -> Vec<(usize, Kernel)> {
    let operators = partitioning.decisions.iter().zip(&graph.subgraph.operators).enumerate();
    let kernels = operators.filter_map(|(index, (decision, operator))| {
        let Decision::Left(why) = decision else { return None };
        if !builtin_delegate::breaks(&graph.subgraph, operator, why) {
            return None;
        }
        match Part::hosted(graph, &[index], &read_outputs(&graph.subgraph, operator), sessions) {
            Ok((part, engine)) => Some((index, Kernel::new(part, engine, sessions))),
            Err(error) => {
                log::info!("operator {index} ({}) is not hosted: {error}", operator.op);
                None
            }
        }
    });
    kernels.collect()
}

/// The results of an operator that somebody reads: the interpreter gives others no memory.
fn read_outputs(graph: &Subgraph, operator: &Operator) -> Vec<TensorId> {
    let is_read = |id: &TensorId| {
        let mut inputs = graph.operators.iter().flat_map(|reader| reader.inputs.iter().flatten());
        graph.outputs.contains(id) || inputs.any(|input| input == id)
    };
    operator.outputs.iter().copied().filter(is_read).collect()
}

/// These operators of a graph as a graph of their own that gives `outputs`. Values that are known before a run are constants.
pub(crate) fn subgraph(graph: &Inferred, operators: &[usize], outputs: &[TensorId]) -> Subgraph {
    let Inferred { subgraph, values } = graph;
    let value = |id: TensorId| values.get(id).and_then(Option::as_ref);
    let has_work = |operator: &&Operator| {
        operator.outputs.iter().any(|&id| value(id).is_none() || outputs.contains(&id))
    };
    let operators = operators.iter().filter_map(|&index| subgraph.operators.get(index));
    let operators: Vec<Operator> = operators.filter(has_work).cloned().collect();
    let written: BTreeSet<TensorId> =
        operators.iter().flat_map(|operator| &operator.outputs).copied().collect();
    let mut tensors = subgraph.tensors.clone();
    for (id, tensor) in tensors.iter_mut().enumerate() {
        if tensor.data.is_none() && !written.contains(&id) {
            tensor.data = value(id).cloned();
        }
    }
    let mut inputs: Vec<TensorId> = Vec::new();
    for &id in operators.iter().flat_map(|operator| operator.inputs.iter().flatten()) {
        let comes_in =
            |id| !written.contains(&id) && tensors.get(id).is_some_and(|it| !it.is_constant());
        if comes_in(id) && !inputs.contains(&id) {
            inputs.push(id);
        }
    }
    Subgraph { name: String::new(), tensors, inputs, outputs: outputs.to_vec(), operators }
}
