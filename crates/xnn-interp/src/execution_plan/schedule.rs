//! Claims of delegates, and the order of steps.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use xnn_model::{Subgraph, TensorId, execution_order};

use crate::delegate::{
    Claim, CompiledClaim, CompiledPartition, Delegate, OperatorSet, SharedValues,
};
use crate::error::{Error, ErrorKind};

/// A delegated partition.
#[derive(Clone)]
pub(crate) struct Delegated {
    pub(crate) set: OperatorSet,
    pub(crate) engine: Arc<dyn CompiledPartition>,
    /// See [`Claim::deferred`](crate::Claim::deferred).
    pub(super) deferred: bool,
}

/// An operator or a partition, which becomes one step.
pub(super) enum Unit {
    Operator(usize),
    Delegated(Delegated),
}

/// The claims of all delegates.
#[derive(Default)]
pub(super) struct Claims {
    /// Compiled partitions by their first operator.
    pub(super) compiled: BTreeMap<usize, Delegated>,
    /// Reasons why operators that were claimed could not be compiled.
    pub(super) failed: BTreeMap<usize, String>,
}

/// Adds the claims of a delegate that could be compiled.
pub(super) fn claim(
    graph: &Arc<Subgraph>,
    delegate: &dyn Delegate,
    shared: &mut SharedValues,
    claims: &mut Claims,
) -> Result<(), Error> {
    let Claims { compiled, failed } = claims;
    let wanted = delegate.partition(graph, shared).map_err(ErrorKind::Delegate)?;
    let known = wanted.iter().flat_map(|wanted| &wanted.claim.known);
    let known: BTreeSet<TensorId> = known.copied().collect();
    let mut ours = BTreeSet::new();
    for CompiledClaim { claim: Claim { mut operators, deferred, .. }, compiled: engine } in wanted {
        operators.sort_unstable();
        operators.dedup();
        let mut taken = compiled.values().flat_map(|d| &d.set.operators);
        let Some(&first) = operators.first() else { continue };
        let sound = operators.iter().all(|&o| o < graph.operators.len())
            && !taken.any(|o| operators.contains(o));
        if !sound {
            return Err(misbehaves(delegate, "claims operators that are taken or do not exist"));
        }
        let set = boundary(graph, operators, &known);
        let sets = compiled.values().map(|d| &d.set).chain([&set]);
        if execution_order(graph, sets.map(|set| set.operators.as_slice())).is_none() {
            return Err(misbehaves(delegate, "claims a set of operators that is not convex"));
        }
        match engine {
            Ok(engine) => {
                ours.extend(set.operators.iter().copied());
                compiled.insert(first, Delegated { set, engine, deferred });
            }
            Err(reason) => {
                let reason = format!("{}: {reason}", delegate.name());
                failed.extend(set.operators.iter().map(|&o| (o, reason.clone())));
            }
        }
    }
    if reads_unwritten(graph, &ours, &known) {
        return Err(misbehaves(delegate, "does not write tensors that other operators read"));
    }
    Ok(())
}

/// Whether an operator outside of `ours`, or the caller of the subgraph, reads a tensor that `ours`
/// do not write because it is `known` to them.
fn reads_unwritten(graph: &Subgraph, ours: &BTreeSet<usize>, known: &BTreeSet<TensorId>) -> bool {
    let written = ours.iter().flat_map(|&o| &graph.operators[o].outputs);
    let unwritten: BTreeSet<TensorId> = written.filter(|id| known.contains(id)).copied().collect();
    let others = graph.operators.iter().enumerate().filter(|(o, _)| !ours.contains(o));
    let read = others.flat_map(|(_, o)| o.inputs.iter().flatten()).chain(&graph.outputs);
    read.into_iter().any(|id| unwritten.contains(id))
}

fn misbehaves(delegate: &dyn Delegate, what: &str) -> Error {
    ErrorKind::Delegate(format!("{} {what}", delegate.name()).into()).into()
}

/// The order in which partitions and other operators run. After a deferred partition come the
/// operators that may run in its place.
pub(super) fn order(graph: &Subgraph, claims: &Claims) -> Result<Vec<Unit>, Error> {
    let claimed = &claims.compiled;
    let sets = claimed.values().map(|d| d.set.operators.as_slice());
    let order =
        execution_order(graph, sets).ok_or_else(|| Error::invalid("the operators form a cycle"))?;
    let units = order.into_iter().flat_map(|first| match claimed.get(&first) {
        Some(delegated) => {
            let kernels = if delegated.deferred { &delegated.set.operators[..] } else { &[] };
            let kernels = kernels.iter().copied().map(Unit::Operator);
            [Unit::Delegated(delegated.clone())].into_iter().chain(kernels).collect()
        }
        None => vec![Unit::Operator(first)],
    });
    Ok(units.collect())
}

/// The boundary of a claim, without the tensors that are `known`.
fn boundary(graph: &Subgraph, operators: Vec<usize>, known: &BTreeSet<TensorId>) -> OperatorSet {
    let inside: BTreeSet<usize> = operators.iter().copied().collect();
    let produced: BTreeSet<TensorId> =
        operators.iter().flat_map(|&o| &graph.operators[o].outputs).copied().collect();
    let mut inputs = Vec::new();
    for id in operators.iter().flat_map(|&o| graph.operators[o].inputs.iter().flatten()) {
        let is_given = graph.tensor(*id).is_constant() || known.contains(id);
        if !produced.contains(id) && !is_given && !inputs.contains(id) {
            inputs.push(*id);
        }
    }
    let outside = graph.operators.iter().enumerate().filter(|(o, _)| !inside.contains(o));
    let read: BTreeSet<TensorId> = outside
        .flat_map(|(_, o)| o.inputs.iter().flatten())
        .chain(&graph.outputs)
        .copied()
        .collect();
    let mut outputs = Vec::new();
    for id in operators.iter().flat_map(|&o| &graph.operators[o].outputs) {
        if read.contains(id) && !known.contains(id) && !outputs.contains(id) {
            outputs.push(*id);
        }
    }
    OperatorSet { operators, inputs, outputs }
}
