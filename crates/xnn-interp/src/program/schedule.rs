//! Which operators run together, and in which order.

use std::collections::{BTreeMap, BTreeSet};

use xnn_model::{Op, Operator, Subgraph, TensorId};

use super::Delegated;
use crate::delegate::{Claim, Delegate, Partition};
use crate::error::{Error, ErrorKind};

/// What becomes one step.
pub(super) enum Unit {
    Operator(usize),
    Delegated(Delegated),
}

/// Compiled partitions by their first operator.
pub(super) type Claimed = BTreeMap<usize, Delegated>;

/// Asks a delegate for claims, and keeps those that compile.
pub(super) fn claim(
    graph: &Subgraph,
    delegate: &dyn Delegate,
    claimed: &mut Claimed,
) -> Result<(), Error> {
    for Claim { mut operators } in delegate.partition(graph) {
        operators.sort_unstable();
        operators.dedup();
        let mut taken = claimed.values().flat_map(|d| &d.partition.operators);
        let Some(&first) = operators.first() else { continue };
        let sound = operators.iter().all(|&o| o < graph.operators.len())
            && !taken.any(|o| operators.contains(o));
        if !sound {
            return Err(misbehaves(delegate, "claims operators that are taken or do not exist"));
        }
        let partition = boundary(graph, operators);
        let sets = claimed.values().map(|d| &d.partition).chain([&partition]);
        if sorted(graph, sets).is_none() {
            return Err(misbehaves(delegate, "claims a set of operators that is not convex"));
        }
        match delegate.compile(graph, &partition) {
            Ok(compiled) => {
                claimed.insert(first, Delegated { partition, compiled });
            }
            Err(reason) => log::warn!(
                "{}: {} operators from {first} stay with the interpreter: {reason}",
                delegate.name(),
                partition.operators.len()
            ),
        }
    }
    Ok(())
}

fn misbehaves(delegate: &dyn Delegate, what: &str) -> Error {
    ErrorKind::Delegate(format!("{} {what}", delegate.name()).into()).into()
}

/// The order in which partitions and the other operators run.
pub(super) fn order(graph: &Subgraph, claimed: &Claimed) -> Result<Vec<Unit>, Error> {
    let order = sorted(graph, claimed.values().map(|d| &d.partition))
        .ok_or_else(|| Error::invalid("the operators depend on each other in a circle"))?;
    Ok(order
        .into_iter()
        .map(|first| match claimed.get(&first) {
            Some(Delegated { partition, compiled }) => Unit::Delegated(Delegated {
                partition: partition.clone(),
                compiled: compiled.clone(),
            }),
            None => Unit::Operator(first),
        })
        .collect())
}

/// A claim's inputs and outputs.
fn boundary(graph: &Subgraph, operators: Vec<usize>) -> Partition {
    let inside: BTreeSet<usize> = operators.iter().copied().collect();
    let produced: BTreeSet<TensorId> =
        operators.iter().flat_map(|&o| &graph.operators[o].outputs).copied().collect();
    let mut inputs = Vec::new();
    for id in operators.iter().flat_map(|&o| graph.operators[o].inputs.iter().flatten()) {
        if !produced.contains(id) && !graph.tensor(*id).is_constant() && !inputs.contains(id) {
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
        if read.contains(id) && !outputs.contains(id) {
            outputs.push(*id);
        }
    }
    Partition { operators, inputs, outputs }
}

/// First operators of all units, each behind those that it depends on;
/// `None` if there is a circle, that is if a set is not convex.
fn sorted<'a>(graph: &Subgraph, sets: impl Iterator<Item = &'a Partition>) -> Option<Vec<usize>> {
    let mut unit_of: Vec<usize> = (0..graph.operators.len()).collect();
    for set in sets {
        let Some(&first) = set.operators.first() else { continue };
        set.operators.iter().for_each(|&o| unit_of[o] = first);
    }
    let mut before: BTreeMap<usize, BTreeSet<usize>> =
        unit_of.iter().map(|&u| (u, BTreeSet::new())).collect();
    let mut after: BTreeMap<usize, BTreeSet<usize>> = before.clone();
    for (from, to) in dependencies(graph) {
        let (from, to) = (unit_of[from], unit_of[to]);
        if from != to {
            before.entry(to).or_default().insert(from);
            after.entry(from).or_default().insert(to);
        }
    }
    let mut ready: BTreeSet<usize> =
        before.iter().filter(|(_, b)| b.is_empty()).map(|(&u, _)| u).collect();
    let mut order = Vec::with_capacity(before.len());
    while let Some(unit) = ready.pop_first() {
        order.push(unit);
        for &next in after.get(&unit).into_iter().flatten() {
            if let Some(waiting) = before.get_mut(&next) {
                waiting.remove(&unit);
                if waiting.is_empty() {
                    ready.insert(next);
                }
            }
        }
    }
    (order.len() == before.len()).then_some(order)
}

/// Pairs of operators of which the first has to run before the second: by
/// their tensors, and by the order of those that touch state.
fn dependencies(graph: &Subgraph) -> Vec<(usize, usize)> {
    let mut producer: BTreeMap<TensorId, usize> = BTreeMap::new();
    for (index, operator) in graph.operators.iter().enumerate() {
        operator.outputs.iter().for_each(|&id| {
            producer.insert(id, index);
        });
    }
    let mut pairs = Vec::new();
    let mut last_stateful = None;
    for (index, operator) in graph.operators.iter().enumerate() {
        let inputs = operator.inputs.iter().flatten();
        pairs.extend(inputs.filter_map(|id| Some((*producer.get(id)?, index))));
        if is_stateful(graph, operator) {
            pairs.extend(last_stateful.map(|last| (last, index)));
            last_stateful = Some(index);
        }
    }
    pairs
}

fn is_stateful(graph: &Subgraph, operator: &Operator) -> bool {
    let by_op = matches!(
        operator.op,
        Op::AssignVariable
            | Op::Call(_)
            | Op::CallOnce(_)
            | Op::HashtableFind
            | Op::HashtableImport
            | Op::HashtableSize
            | Op::If(_)
            | Op::ReadVariable
            | Op::While(_)
    );
    by_op || operator.inputs.iter().flatten().any(|&id| graph.tensor(id).is_variable)
}
