//! Execution plans: the subgraphs of a model with a prepared kernel for every operator.

mod arguments;
mod lifetimes;
mod schedule;
mod step;
mod subgraph;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use xnn_model::{
    DType, Demand, Model, ModelLimits, Op, Operator, Subgraph, SubgraphId, TensorId, memory,
};

use crate::constants::constant_operators;
use crate::control::control_of;
use crate::delegate::{Delegate, OperatorSet, SharedValues};
use crate::error::{Error, ErrorKind, Refusal};
use crate::kernels;
use crate::operator::OperatorContext;
use crate::options::InterpOptions;
use crate::resources::Name;
use crate::variables::access_of;

pub use arguments::infer_reachable;
use schedule::Delegated;

pub(crate) use step::{Action, Step};
pub(crate) use subgraph::SubgraphPlan;

/// The subgraphs that an entry point can reach, ready to run.
pub(crate) struct ExecutionPlan {
    pub(crate) graphs: BTreeMap<SubgraphId, SubgraphPlan>,
    /// Delegated partitions, by the index in [`Action::Delegated`].
    pub(crate) partitions: Vec<Delegated>,
    /// Names of resources. The position is the handle.
    pub(crate) names: Vec<Name>,
    pub(crate) limits: ModelLimits,
    /// Approximate size of the subgraphs in a file, in bytes.
    pub(crate) stored: u64,
}

impl ExecutionPlan {
    pub(crate) fn new(
        model: &Model,
        entry: SubgraphId,
        options: &InterpOptions,
        shared: &mut SharedValues,
    ) -> Result<Self, Error> {
        let mut plan = Self {
            graphs: BTreeMap::new(),
            partitions: vec![],
            names: vec![],
            limits: options.limits.clone(),
            stored: 0,
        };
        let subgraphs = infer_reachable(model, entry)?;
        let graphs = || subgraphs.values();
        plan.stored = graphs().map(|graph| graph.stored_bytes()).fold(0, u64::saturating_add);
        let asked = graphs().map(|graph| graph.demand()).fold(Demand::default(), Demand::and);
        plan.limits.amplification.check(plan.stored, asked).map_err(ErrorKind::from)?;
        for (id, subgraph) in subgraphs {
            let mut graph = plan.prepare(id, subgraph, &options.delegates, shared)?;
            graph.plan_lifetimes(options.keep_intermediates);
            plan.graphs.insert(id, graph);
        }
        Ok(plan)
    }

    pub(crate) fn graph(&self, id: SubgraphId) -> Result<&SubgraphPlan, Error> {
        self.graphs.get(&id).ok_or_else(|| Error::invalid(format!("there is no subgraph {id}")))
    }

    /// The handle of a resource, which is created for a new name.
    fn handle(&mut self, name: Name) -> u64 {
        let known = self.names.iter().position(|other| *other == name);
        let handle = known.unwrap_or_else(|| {
            self.names.push(name);
            self.names.len() - 1
        });
        handle as u64
    }

    /// Plans a subgraph, whose shapes have been inferred.
    fn prepare(
        &mut self,
        id: SubgraphId,
        inferred: Arc<Subgraph>,
        delegates: &[Arc<dyn Delegate>],
        shared: &mut SharedValues,
    ) -> Result<SubgraphPlan, Error> {
        let mut claims = schedule::Claims::default();
        for delegate in delegates {
            schedule::claim(&inferred, delegate.as_ref(), shared, &mut claims)?;
        }
        memory::ensure(kernels_copy(&inferred, &claims), "the constants of kernels")?;
        let is_constant = constant_operators(&inferred);
        let (mut steps, mut handles) = (Vec::new(), Vec::new());
        for unit in schedule::order(&inferred, &claims)? {
            let step = match unit {
                schedule::Unit::Operator(index) => {
                    let operator = &inferred.operators[index];
                    check_tensors(id, &inferred, index)?;
                    if let Some(name) = Name::of(&operator.op) {
                        let context =
                            OperatorContext { subgraph: &inferred, operator, place: (id, index) };
                        context.expect_output(0, DType::Resource).map_err(|Refusal(message)| {
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
                            "subgraph {id}: operator {index} ({op}) runs on the reference kernel: {failure}"
                        );
                    }
                    let once = is_constant[index] && matches!(action, Action::Kernel(_));
                    Step { once, ..Step::new(&inferred, single(&inferred, index), action) }
                }
                schedule::Unit::Delegated(delegated) => {
                    let session = self.partitions.len();
                    let (work, set) = (delegated.engine.work(), delegated.set.clone());
                    let action = match delegated.deferred {
                        true => Action::Deferred { session, kernels: set.operators.len() },
                        false => Action::Delegated(session),
                    };
                    self.partitions.push(delegated);
                    Step { work, ..Step::new(&inferred, set, action) }
                }
            };
            steps.push(step);
        }
        SubgraphPlan::new(id, inferred, steps, handles)
    }
}

/// Upper bound of the bytes that kernels make of constants: an `f32` per element.
fn kernels_copy(subgraph: &Subgraph, claims: &schedule::Claims) -> usize {
    let claimed = claims.compiled.values().flat_map(|claim| &claim.set.operators);
    let claimed: BTreeSet<&usize> = claimed.collect();
    let operators = subgraph.operators.iter().enumerate();
    let kept = operators.filter(|(index, _)| !claimed.contains(index));
    let inputs = kept.flat_map(|(_, operator)| operator.inputs.iter().flatten());
    let constants = inputs.map(|&id| subgraph.tensor(id)).filter(|tensor| tensor.is_constant());
    let elements = constants.filter_map(|tensor| tensor.elements());
    elements.fold(0, |sum, count| sum.saturating_add(count.saturating_mul(size_of::<f32>())))
}

/// A single operator with all its inputs and outputs.
fn single(subgraph: &Subgraph, index: usize) -> OperatorSet {
    let operator = &subgraph.operators[index];
    let inputs = operator.inputs.iter().flatten().copied().collect();
    OperatorSet { operators: vec![index], inputs, outputs: operator.outputs.clone() }
}

/// An error for an operator that neither a delegate nor a kernel runs.
fn unsupported(graph: SubgraphId, index: usize, operator: &Operator, message: String) -> Error {
    Error::from(ErrorKind::Unsupported(message)).at(graph, index, operator.op.name())
}

/// Returns an error for tensors that no kernel can read or write.
fn check_tensors(graph: SubgraphId, subgraph: &Subgraph, index: usize) -> Result<(), Error> {
    let operator = &subgraph.operators[index];
    let mut given = BTreeSet::new();
    if let Some(&id) = operator.outputs.iter().find(|id| !given.insert(**id)) {
        let error = Error::invalid(format!("writes tensor {:?} twice", subgraph.tensors[id].name));
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

/// The action for an operator that is not delegated. `failure` is the reason why a delegate that
/// claimed it could not compile it.
fn action_of(
    graph: SubgraphId,
    subgraph: &Subgraph,
    index: usize,
    handles: &[(TensorId, u64)],
    failure: Option<&str>,
) -> Result<Action, Error> {
    let operator = &subgraph.operators[index];
    let unsupported = |message| unsupported(graph, index, operator, message);
    let context = OperatorContext { subgraph, operator, place: (graph, index) };
    if let Some(control) = control_of(operator) {
        control.check(operator).map_err(|Refusal(message)| unsupported(message))?;
        return Ok(Action::Control(control));
    }
    let access = access_of(&context, handles).map_err(|Refusal(message)| unsupported(message))?;
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
    match kernels::prepare(&context, kernel) {
        Ok(run) => Ok(Action::Kernel(run)),
        Err(Refusal(message)) => Err(unsupported(message)),
    }
}
