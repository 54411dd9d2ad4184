//! A model that is ready to run: every operator with its kernel.

mod schedule;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use xnn_model::{Limits, Model, Op, Operator, Subgraph, SubgraphId, TensorId, infer_shapes};

use crate::arena::Lifetime;
use crate::control::{Control, control_of};
use crate::delegate::{CompiledPartition, Delegate, Partition};
use crate::error::{Error, ErrorKind, Refusal};
use crate::interpreter::InterpOptions;
use crate::kernels;
use crate::node::{Node, Run};
use crate::storage::TensorBuf;
use crate::tensor::{TensorRef, storage_size};

/// The subgraphs that can be reached from an entry point.
pub(crate) struct Program {
    pub(crate) graphs: BTreeMap<SubgraphId, Graph>,
    pub(crate) limits: Limits,
}

/// One subgraph with its steps.
pub(crate) struct Graph {
    pub(crate) id: SubgraphId,
    pub(crate) subgraph: Arc<Subgraph>,
    pub(crate) steps: Vec<Step>,
    /// Intermediate tensors that steps compute, with the steps that need them.
    pub(crate) tenants: Vec<(TensorId, Lifetime)>,
    /// Constants whose bytes in the file are not aligned for their type.
    realigned: BTreeMap<TensorId, TensorBuf>,
}

/// What runs at once.
pub(crate) struct Step {
    /// The operator, or the first of a partition: for errors.
    pub(crate) operator: usize,
    /// The operators with what they take and give.
    pub(crate) part: Partition,
    pub(crate) action: Action,
    /// Tensors that no later step reads.
    pub(crate) release: Vec<TensorId>,
}

pub(crate) enum Action {
    Kernel(Run),
    Control(Control),
    Delegated(Arc<dyn CompiledPartition>),
}

/// A partition with the engine that runs it.
pub(crate) struct Delegated {
    pub(crate) partition: Partition,
    pub(crate) compiled: Arc<dyn CompiledPartition>,
}

impl Program {
    pub(crate) fn new(
        model: &Model,
        entry: SubgraphId,
        options: &InterpOptions,
    ) -> Result<Self, Error> {
        let mut program = Self { graphs: BTreeMap::new(), limits: options.limits.clone() };
        let mut open = vec![entry];
        while let Some(id) = open.pop() {
            if program.graphs.contains_key(&id) {
                continue;
            }
            let subgraph = model
                .subgraphs
                .get(id)
                .ok_or_else(|| Error::invalid(format!("there is no subgraph {id}")))?;
            let mut graph = Graph::new(id, subgraph, &options.delegates)?;
            graph.plan_lifetimes(options.keep_intermediates);
            for step in &graph.steps {
                if let Action::Control(control) = &step.action {
                    open.extend(control.callees());
                }
            }
            program.graphs.insert(id, graph);
        }
        Ok(program)
    }

    pub(crate) fn graph(&self, id: SubgraphId) -> Result<&Graph, Error> {
        self.graphs.get(&id).ok_or_else(|| Error::invalid(format!("there is no subgraph {id}")))
    }
}

impl Graph {
    fn new(
        id: SubgraphId,
        subgraph: &Arc<Subgraph>,
        delegates: &[Arc<dyn Delegate>],
    ) -> Result<Self, Error> {
        let inferred = Arc::new(infer_shapes(subgraph).map_err(|error| in_graph(id, error))?);
        let mut claims = schedule::Claims::default();
        for delegate in delegates {
            schedule::claim(&inferred, delegate.as_ref(), &mut claims)?;
        }
        let mut steps = Vec::new();
        for unit in schedule::order(&inferred, &claims)? {
            let (operator, part, action) = match unit {
                schedule::Unit::Operator(index) => {
                    let failure = claims.failed.get(&index).map(String::as_str);
                    let action = action_of(id, &inferred, index, failure)?;
                    if let Some(failure) = failure {
                        log::warn!("operator {index} stays with the interpreter: {failure}");
                    }
                    (index, single(&inferred, index), action)
                }
                schedule::Unit::Delegated(Delegated { partition, compiled }) => (
                    *partition.operators.first().unwrap_or(&0),
                    partition,
                    Action::Delegated(compiled),
                ),
            };
            steps.push(Step { operator, part, action, release: vec![] });
        }
        let (tenants, realigned) = (vec![], BTreeMap::new());
        let mut graph = Self { id, subgraph: inferred, steps, tenants, realigned };
        graph.check_constants()?;
        Ok(graph)
    }

    /// Constants have the size that their shape needs, and are aligned.
    fn check_constants(&mut self) -> Result<(), Error> {
        for (id, tensor) in self.subgraph.tensors.iter().enumerate() {
            let (Some(data), Some(shape)) = (&tensor.data, &tensor.shape) else { continue };
            if tensor.sparsity.is_some() || tensor.unusable.is_some() {
                continue;
            }
            let Some(size) = storage_size(tensor.dtype, shape) else { continue };
            let Some(dense) = data.get(..size) else {
                return Err(Error::invalid(format!(
                    "tensor {id} ({:?}) has {} bytes where its shape needs {size}",
                    tensor.name,
                    data.len()
                )));
            };
            let alignment = tensor.dtype.bits().unwrap_or(8).div_ceil(8).min(8);
            if dense.as_ptr().align_offset(alignment) != 0
                && let Some(copy) = TensorBuf::from_bytes(tensor.dtype, shape, dense)
            {
                self.realigned.insert(id, copy);
            }
        }
        Ok(())
    }

    /// Finds the steps that need each tensor. Inputs, outputs and variables stay;
    /// so does what control operators give, which has memory already.
    fn plan_lifetimes(&mut self, keep_intermediates: bool) {
        let graph = &self.subgraph;
        let mut stays: Vec<bool> = graph.tensors.iter().map(|t| t.is_variable).collect();
        let handed = self.steps.iter().filter(|step| matches!(step.action, Action::Control(_)));
        let handed: Vec<TensorId> = handed.flat_map(|step| &step.part.outputs).copied().collect();
        for &id in graph.inputs.iter().chain(&graph.outputs) {
            stays[id] = true;
        }
        let mut lifetimes: BTreeMap<TensorId, Lifetime> = BTreeMap::new();
        for (index, step) in self.steps.iter().enumerate() {
            for &id in step.part.outputs.iter().filter(|&&id| !stays[id]) {
                lifetimes.entry(id).or_insert(Lifetime { first: index, last: index }).last = index;
            }
            for id in &step.part.inputs {
                if let Some(lifetime) = lifetimes.get_mut(id) {
                    lifetime.last = index;
                }
            }
        }
        for (&id, lifetime) in &mut lifetimes {
            if keep_intermediates {
                lifetime.last = usize::MAX;
            } else if let Some(step) = self.steps.get_mut(lifetime.last) {
                step.release.push(id);
            }
        }
        lifetimes.retain(|id, _| !handed.contains(id));
        self.tenants = lifetimes.into_iter().collect();
    }

    pub(crate) fn operator(&self, index: usize) -> &Operator {
        &self.subgraph.operators[index]
    }

    /// The elements of a constant.
    pub(crate) fn constant(&self, id: TensorId) -> Option<TensorRef<'_>> {
        if let Some(copy) = self.realigned.get(&id) {
            return Some(copy.view());
        }
        let tensor = self.subgraph.tensors.get(id)?;
        if tensor.is_variable || tensor.unusable.is_some() {
            return None;
        }
        let shape = tensor.shape.as_deref()?;
        let data = tensor.data.as_deref()?;
        let bytes = match tensor.sparsity {
            Some(_) => data,
            None => data.get(..storage_size(tensor.dtype, shape)?)?,
        };
        Some(TensorRef { dtype: tensor.dtype, shape, bytes })
    }

    /// Adds the operator to an error.
    pub(crate) fn locate(&self, index: usize, error: Error) -> Error {
        let name = self.subgraph.operators.get(index).map_or("", |o| o.op.name());
        error.at(self.id, index, name)
    }
}

/// An operator that runs alone, with all that it takes and gives.
fn single(subgraph: &Subgraph, index: usize) -> Partition {
    let operator = &subgraph.operators[index];
    let inputs = operator.inputs.iter().flatten().copied().collect();
    Partition { operators: vec![index], inputs, outputs: operator.outputs.clone() }
}

/// An error of shape inference, with the subgraph.
fn in_graph(id: SubgraphId, error: xnn_model::Error) -> Error {
    let operator = error.place().operator.clone();
    let error = Error::from(ErrorKind::Model(error));
    match operator {
        Some((index, name)) => error.at(id, index, &name),
        None => error,
    }
}

/// What runs an operator that no delegate runs; `failure` is why one that wanted
/// it could not.
fn action_of(
    graph: SubgraphId,
    subgraph: &Subgraph,
    index: usize,
    failure: Option<&str>,
) -> Result<Action, Error> {
    let operator = &subgraph.operators[index];
    let located = |error: Error| error.at(graph, index, operator.op.name());
    let unsupported = |message: String| located(ErrorKind::Unsupported(message).into());
    let mut given = BTreeSet::new();
    if let Some(&id) = operator.outputs.iter().find(|id| !given.insert(**id)) {
        let name = &subgraph.tensors[id].name;
        return Err(located(Error::invalid(format!("gives tensor {name:?} twice"))));
    }
    let used = operator.inputs.iter().flatten().chain(&operator.outputs);
    for &id in used {
        let tensor = &subgraph.tensors[id];
        if let Some(reason) = &tensor.unusable {
            return Err(unsupported(format!("tensor {:?}: {reason}", tensor.name)));
        }
    }
    if let Some(control) = control_of(operator) {
        return Ok(Action::Control(control));
    }
    let Some(prepare) = kernels::find(&operator.op) else {
        let missing = match &operator.op {
            Op::Custom(custom) => format!("no kernel for the custom operator {:?}", custom.code),
            op => format!("no kernel for {op}"),
        };
        return Err(unsupported(match failure {
            Some(failure) => format!("{missing}; {failure}"),
            None => missing,
        }));
    };
    match prepare(&Node { subgraph, operator }) {
        Ok(run) => Ok(Action::Kernel(run)),
        Err(Refusal(message)) => Err(unsupported(message)),
    }
}
