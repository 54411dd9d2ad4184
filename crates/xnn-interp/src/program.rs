//! A model that is ready to run: every operator with its kernel.

mod arguments;
mod graph;
mod lifetimes;
mod schedule;
mod step;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use xnn_model::{
    DType, Demand, Model, ModelLimits, Op, Operator, Subgraph, SubgraphId, TensorId, memory,
};

use crate::constants::constant_operators;
use crate::control::control_of;
use crate::delegate::{CompiledPartition, Delegate, Partition};
use crate::error::{Error, ErrorKind, Refusal};
use crate::interpreter::InterpOptions;
use crate::kernels;
use crate::node::Node;
use crate::resources::Name;
use crate::variables::access_of;

pub use arguments::infer_reachable;
pub(crate) use graph::Graph;
pub(crate) use step::{Action, Step};

/// The subgraphs that can be reached from an entry point.
pub(crate) struct Program {
    pub(crate) graphs: BTreeMap<SubgraphId, Graph>,
    /// What delegates run, by the number that [`Action::Delegated`] has.
    pub(crate) partitions: Vec<Arc<dyn CompiledPartition>>,
    /// What resources are known by; the position is the handle.
    pub(crate) names: Vec<Name>,
    pub(crate) limits: ModelLimits,
    /// What the subgraphs take in a file, about.
    pub(crate) stored: u64,
}

/// A partition with the engine that runs it.
#[derive(Clone)]
pub(crate) struct Delegated {
    pub(crate) partition: Partition,
    pub(crate) compiled: Arc<dyn CompiledPartition>,
    /// See [`Claim::deferred`](crate::Claim::deferred).
    pub(crate) deferred: bool,
}

impl Program {
    pub(crate) fn new(
        model: &Model,
        entry: SubgraphId,
        options: &InterpOptions,
    ) -> Result<Self, Error> {
        let mut program = Self {
            graphs: BTreeMap::new(),
            partitions: vec![],
            names: vec![],
            limits: options.limits.clone(),
            stored: 0,
        };
        let subgraphs = infer_reachable(model, entry)?;
        let graphs = || subgraphs.values();
        program.stored = graphs().map(|graph| graph.stored_bytes()).fold(0, u64::saturating_add);
        let asked = graphs().map(|graph| graph.demand()).fold(Demand::default(), Demand::and);
        program.limits.amplification.check(program.stored, asked).map_err(ErrorKind::from)?;
        for (id, subgraph) in subgraphs {
            let mut graph = program.prepare(id, subgraph, &options.delegates)?;
            graph.plan_lifetimes(options.keep_intermediates);
            program.graphs.insert(id, graph);
        }
        Ok(program)
    }

    pub(crate) fn graph(&self, id: SubgraphId) -> Result<&Graph, Error> {
        self.graphs.get(&id).ok_or_else(|| Error::invalid(format!("there is no subgraph {id}")))
    }

    /// The handle of a resource.
    fn handle(&mut self, name: Name) -> u64 {
        let known = self.names.iter().position(|other| *other == name);
        let handle = known.unwrap_or_else(|| {
            self.names.push(name);
            self.names.len() - 1
        });
        handle as u64
    }

    /// Makes the steps of a subgraph, whose shapes have been inferred.
    fn prepare(
        &mut self,
        id: SubgraphId,
        inferred: Arc<Subgraph>,
        delegates: &[Arc<dyn Delegate>],
    ) -> Result<Graph, Error> {
        let mut claims = schedule::Claims::default();
        for delegate in delegates {
            schedule::claim(&inferred, delegate.as_ref(), &mut claims)?;
        }
        memory::ensure(kernels_copy(&inferred, &claims), "constants of kernels")?;
        let is_constant = constant_operators(&inferred);
        let (mut steps, mut handles) = (Vec::new(), Vec::new());
        for unit in schedule::order(&inferred, &claims)? {
            let step = match unit {
                schedule::Unit::Operator(index) => {
                    let operator = &inferred.operators[index];
                    check_tensors(id, &inferred, index)?;
                    if let Some(name) = Name::of(&operator.op) {
                        let node = Node { subgraph: &inferred, operator, place: (id, index) };
                        node.expect_output(0, DType::Resource).map_err(|Refusal(message)| {
                            unsupported(id, index, operator, message)
                        })?;
                        handles.push((operator.outputs[0], self.handle(name)));
                        continue;
                    }
                    let failure = claims.failed.get(&index).map(String::as_str);
                    let action = action_of(id, &inferred, index, &handles, failure)?;
                    if let Some(failure) = failure {
                        let op = &inferred.operators[index].op;
                        log::warn!(
                            "subgraph {id}: operator {index} ({op}) stays with the interpreter: {failure}"
                        );
                    }
                    let once = is_constant[index] && matches!(action, Action::Kernel(_));
                    Step { once, ..Step::new(&inferred, single(&inferred, index), action) }
                }
                schedule::Unit::Delegated(Delegated { partition, compiled, deferred }) => {
                    let session = self.partitions.len();
                    let work = compiled.work();
                    self.partitions.push(compiled);
                    let action = match deferred {
                        true => Action::Deferred { session, kernels: partition.operators.len() },
                        false => Action::Delegated(session),
                    };
                    Step { work, ..Step::new(&inferred, partition, action) }
                }
            };
            steps.push(step);
        }
        Graph::new(id, inferred, steps, handles)
    }
}

/// Bytes that kernels may make of constants: a single of each number, at most.
fn kernels_copy(subgraph: &Subgraph, claims: &schedule::Claims) -> usize {
    let claimed = claims.compiled.values().flat_map(|claim| &claim.partition.operators);
    let claimed: BTreeSet<&usize> = claimed.collect();
    let operators = subgraph.operators.iter().enumerate();
    let kept = operators.filter(|(index, _)| !claimed.contains(index));
    let inputs = kept.flat_map(|(_, operator)| operator.inputs.iter().flatten());
    let constants = inputs.map(|&id| subgraph.tensor(id)).filter(|tensor| tensor.is_constant());
    let elements = constants.filter_map(|tensor| tensor.elements());
    elements.fold(0, |sum, count| sum.saturating_add(count.saturating_mul(size_of::<f32>())))
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

/// Refuses an operator, which no delegate runs.
fn unsupported(graph: SubgraphId, index: usize, operator: &Operator, message: String) -> Error {
    Error::from(ErrorKind::Unsupported(message)).at(graph, index, operator.op.name())
}

/// Refuses tensors that no kernel can read or write.
fn check_tensors(graph: SubgraphId, subgraph: &Subgraph, index: usize) -> Result<(), Error> {
    let operator = &subgraph.operators[index];
    let mut given = BTreeSet::new();
    if let Some(&id) = operator.outputs.iter().find(|id| !given.insert(**id)) {
        let error = Error::invalid(format!("gives tensor {:?} twice", subgraph.tensors[id].name));
        return Err(error.at(graph, index, operator.op.name()));
    }
    let used = operator.inputs.iter().flatten().chain(&operator.outputs);
    used.map(|&id| &subgraph.tensors[id]).try_for_each(|tensor| match &tensor.unusable {
        Some(reason) => {
            let message = format!("tensor {:?}: {reason}", tensor.name);
            Err(unsupported(graph, index, operator, message))
        }
        None => Ok(()),
    })
}

/// What runs an operator that no delegate runs; `failure` is why one that wanted
/// it could not.
fn action_of(
    graph: SubgraphId,
    subgraph: &Subgraph,
    index: usize,
    handles: &[(TensorId, u64)],
    failure: Option<&str>,
) -> Result<Action, Error> {
    let operator = &subgraph.operators[index];
    let unsupported = |message| unsupported(graph, index, operator, message);
    let node = Node { subgraph, operator, place: (graph, index) };
    if let Some(control) = control_of(operator) {
        control.check(operator).map_err(|Refusal(message)| unsupported(message))?;
        return Ok(Action::Control(control));
    }
    let access = access_of(&node, handles).map_err(|Refusal(message)| unsupported(message))?;
    if let Some(access) = access {
        return Ok(Action::Access(access));
    }
    let Some(kernel) = kernels::find(&operator.op) else {
        let missing = match &operator.op {
            Op::Custom(custom) => format!("no kernel for the custom operator {:?}", custom.code),
            op => format!("no kernel for {op}"),
        };
        return Err(unsupported(match failure {
            Some(failure) => format!("{missing}; {failure}"),
            None => missing,
        }));
    };
    match kernels::prepare(&node, kernel) {
        Ok(run) => Ok(Action::Kernel(run)),
        Err(Refusal(message)) => Err(unsupported(message)),
    }
}
