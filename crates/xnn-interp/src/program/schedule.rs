//! Which operators run together, and in which order.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use xnn_model::{Subgraph, TensorId, execution_order};

use super::Delegated;
use crate::delegate::{Claim, Delegate, Partition};
use crate::error::{Error, ErrorKind};

/// What becomes one step.
pub(super) enum Unit {
    Operator(usize),
    Delegated(Delegated),
}

/// What delegates have claimed.
#[derive(Default)]
pub(super) struct Claims {
    /// Compiled partitions by their first operator.
    pub(super) compiled: BTreeMap<usize, Delegated>,
    /// Why operators that were claimed could not be compiled.
    pub(super) failed: BTreeMap<usize, String>,
}

/// Asks a delegate for claims, and keeps those that compile.
pub(super) fn claim(
    graph: &Arc<Subgraph>,
    delegate: &dyn Delegate,
    claims: &mut Claims,
) -> Result<(), Error> {
    let Claims { compiled: claimed, failed } = claims;
    let wanted = delegate.partition(graph).map_err(ErrorKind::Delegate)?;
    let known: BTreeSet<TensorId> = wanted.iter().flat_map(|claim| &claim.known).copied().collect();
    let mut ours = BTreeSet::new();
    for Claim { mut operators, deferred, known: _ } in wanted {
        operators.sort_unstable();
        operators.dedup();
        let mut taken = claimed.values().flat_map(|d| &d.partition.operators);
        let Some(&first) = operators.first() else { continue };
        let sound = operators.iter().all(|&o| o < graph.operators.len())
            && !taken.any(|o| operators.contains(o));
        if !sound {
            return Err(misbehaves(delegate, "claims operators that are taken or do not exist"));
        }
        let partition = boundary(graph, operators, &known);
        let sets = claimed.values().map(|d| &d.partition).chain([&partition]);
        if execution_order(graph, sets.map(|set| set.operators.as_slice())).is_none() {
            return Err(misbehaves(delegate, "claims a set of operators that is not convex"));
        }
        match delegate.compile(graph, &partition) {
            Ok(compiled) => {
                ours.extend(partition.operators.iter().copied());
                claimed.insert(first, Delegated { partition, compiled, deferred });
            }
            Err(reason) => {
                let reason = format!("{}: {reason}", delegate.name());
                failed.extend(partition.operators.iter().map(|&o| (o, reason.clone())));
            }
        }
    }
    if reads_unwritten(graph, &ours, &known) {
        return Err(misbehaves(delegate, "knows tensors that others read"));
    }
    Ok(())
}

/// Whether an operator that is not among `ours`, or whoever runs the subgraph, reads a tensor that
/// `ours` do not write because it is known to them.
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

/// The order in which partitions and the other operators run; behind a deferred partition those that may run in its place.
pub(super) fn order(graph: &Subgraph, claims: &Claims) -> Result<Vec<Unit>, Error> {
    let claimed = &claims.compiled;
    let sets = claimed.values().map(|d| d.partition.operators.as_slice());
    let order = execution_order(graph, sets)
        .ok_or_else(|| Error::invalid("the operators depend on each other in a circle"))?;
    let units = order.into_iter().flat_map(|first| match claimed.get(&first) {
        Some(delegated) => {
            let kernels = if delegated.deferred { &delegated.partition.operators[..] } else { &[] };
            let kernels = kernels.iter().copied().map(Unit::Operator);
            [Unit::Delegated(delegated.clone())].into_iter().chain(kernels).collect()
        }
        None => vec![Unit::Operator(first)],
    });
    Ok(units.collect())
}

/// A claim's inputs and outputs, where nobody has to hand over what is `known`.
fn boundary(graph: &Subgraph, operators: Vec<usize>, known: &BTreeSet<TensorId>) -> Partition {
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
    Partition { operators, inputs, outputs }
}
