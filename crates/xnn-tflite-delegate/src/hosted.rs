//! Operators that this project's interpreter computes inside a kernel, because XNNPACK does not
//! support them or their present shapes.

use std::collections::BTreeSet;

use xnn::{Runner, RunnerBuilder, RunnerOptions};
use xnn_model::{Inferred, Model, Operator, Subgraph, TensorId};
use xnn_runtime::SessionOptions;

use crate::context::Context;
use crate::error::{Error, Result};
use crate::memory::Memory;
use crate::placeholders::starved_layer;
use crate::sessions::Sessions;

/// Interpreter for the operators of one kernel, with its own memory. It delegates to XNNPACK where
/// possible.
pub(crate) struct Hosted(Box<Runner>);

impl Hosted {
    /// Prepares the operators of `graph` for its shapes. Refuses shapes that TFLite's kernels
    /// refuse.
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
        options.session =
            SessionOptions { thread_pool: sessions.threads.clone(), ..SessionOptions::default() };
        let model = Model { pages: sessions.program.pages.clone(), ..Model::from(graph) };
        Ok(Self(Box::new(RunnerBuilder::from_model(&model).options(options).build()?)))
    }

    pub(crate) fn input_dims(&self) -> Vec<Vec<usize>> {
        self.0.inputs().iter().map(|spec| spec.dims.clone()).collect()
    }

    pub(crate) fn output_dims(&self) -> Vec<Vec<usize>> {
        self.0.outputs().iter().map(|spec| spec.dims.clone()).collect()
    }

    /// Computes the tensors `outputs` from the tensors `inputs`.
    pub(crate) fn run(
        &mut self,
        inputs: &[TensorId],
        outputs: &[TensorId],
        context: &Context,
    ) -> Result<()> {
        let Self(runner) = self;
        for (index, &id) in inputs.iter().enumerate() {
            let own = runner.input_bytes_mut(index)?;
            let memory = Memory::of(context, id, own.len())?;
            // SAFETY: the interpreter does not write to inputs of a node while it runs.
            own.copy_from_slice(unsafe { memory.bytes() });
        }
        runner.run()?;
        for (index, &id) in outputs.iter().enumerate() {
            let own = runner.output_bytes(index)?;
            let mut memory = Memory::of(context, id, own.len())?;
            // SAFETY: the node has read its inputs, and while it runs no other live memory overlaps
            // its outputs.
            unsafe { memory.bytes_mut() }.copy_from_slice(own);
        }
        Ok(())
    }
}

/// Returns a graph of `operators` that computes `outputs`. Values that are known before a run
/// become constants.
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
