//! A single operator on XNNPACK.

use std::collections::BTreeSet;
use std::sync::Arc;

use xnn_interp::Executed;
use xnn_lower::{PartitionOptions, shape_operand};
use xnn_model::{Operator, Subgraph, TensorId};
use xnn_runtime::{Session, SessionOptions};

use super::deviation::Deviation;
use super::rounding;
use crate::delegation::Delegation;
use crate::error::Error;

/// A graph of one operator.
pub(super) struct Single {
    operator: usize,
    /// The operator with its operands and results as inputs and outputs.
    graph: Arc<Subgraph>,
    session: Session,
}

impl Single {
    /// Compiles an operator that has just run, or returns the reason why that is impossible.
    pub(super) fn new(
        executed: &Executed<'_>,
        operator: usize,
        partition: &PartitionOptions,
        session: &SessionOptions,
    ) -> Result<Result<Self, String>, Error> {
        let Some(mut alone) = alone(executed, operator).map(Arc::new) else {
            return Ok(Err("it is computed once, from constants".into()));
        };
        let mut delegation = Delegation::new(&alone, partition)?;
        // Removes inputs that the graph does not read, such as shapes, and duplicates.
        let read = delegation.partitioning().partitions.first().map(|it| it.inputs.clone());
        if let Some(read) = read.filter(|read| *read != alone.inputs) {
            Arc::make_mut(&mut alone).inputs = read;
            delegation = Delegation::new(&alone, partition)?;
        }
        let program = match delegation.whole() {
            Ok(program) => program,
            Err(incomplete) => return Ok(Err(incomplete.reasons().join("; "))),
        };
        let session = Session::new(program, session)?;
        Ok(Ok(Self { operator, graph: alone, session }))
    }

    /// Runs on the tensors that the operator has just read, and returns the deviation of each output.
    pub(super) fn compare(&mut self, executed: &Executed<'_>) -> Result<Vec<Deviation>, Error> {
        self.run(executed)?;
        let graph = (executed.subgraph_id(), executed.subgraph());
        let compare = |(position, &id): (usize, &TensorId)| {
            let (expected, actual) = (executed.tensor(id)?, self.session.output(position));
            Some(Deviation::new(graph, Some(self.operator), id, expected, actual))
        };
        let outputs = self.graph.outputs.iter().enumerate();
        let mut deviations: Vec<Deviation> = outputs.filter_map(compare).collect();
        rounding::measure(&self.graph, executed, &mut deviations);
        Ok(deviations)
    }

    /// Whether the operator has run on tensors of the same shapes as when it was compiled.
    pub(super) fn is_for(&self, executed: &Executed<'_>) -> bool {
        let mut tensors = self.graph.operators.iter().flat_map(tensors);
        tensors.all(|id| {
            let value = executed.tensor(id);
            value.is_none_or(|value| self.graph.tensor(id).shape.as_deref() == Some(value.shape))
        })
    }

    fn run(&mut self, executed: &Executed<'_>) -> Result<(), Error> {
        let Self { session, graph, .. } = self;
        for (position, &id) in graph.inputs.iter().enumerate() {
            let memory = session.input_mut(position);
            let value = executed.tensor(id);
            if let Some(value) = value.filter(|value| value.bytes.len() == memory.len()) {
                memory.copy_from_slice(value.bytes);
            }
        }
        Ok(session.run()?)
    }
}

/// Operands and results of an operator.
fn tensors(operator: &Operator) -> impl Iterator<Item = TensorId> {
    operator.inputs.iter().flatten().chain(&operator.outputs).copied()
}

/// Returns the subgraph of one operator, with the current shapes of its tensors. Tensors that are computed from constants
/// alone, and shape operands, are constants. `None` if all operands are constants.
fn alone(executed: &Executed<'_>, index: usize) -> Option<Subgraph> {
    let graph = executed.subgraph();
    let operator = graph.operators.get(index)?.clone();
    let mut alone = graph.tensors.clone();
    let mut constant: BTreeSet<TensorId> =
        (0..alone.len()).filter(|&id| alone[id].is_constant()).collect();
    for earlier in graph.operators.iter().take(index) {
        if earlier.inputs.iter().flatten().all(|id| constant.contains(id)) {
            constant.extend(&earlier.outputs);
        }
    }
    for id in tensors(&operator) {
        if let (Some(tensor), Some(value)) = (alone.get_mut(id), executed.tensor(id)) {
            tensor.shape = Some(value.shape.to_vec());
        }
    }
    constant.extend(shape_operand(&operator.op).and_then(|position| operator.input(position)));
    let mut inputs: Vec<TensorId> = Vec::new();
    for &id in operator.inputs.iter().flatten() {
        if !constant.contains(&id) && !inputs.contains(&id) {
            inputs.push(id);
        } else if let (None, Some(value)) = (&alone[id].data, executed.tensor(id)) {
            alone[id].data = Some(value.bytes.to_vec().into());
        }
    }
    let outputs = operator.outputs.clone();
    let name = String::new();
    (!inputs.is_empty()).then(|| Subgraph {
        name,
        tensors: alone,
        inputs,
        outputs,
        operators: vec![operator],
    })
}
