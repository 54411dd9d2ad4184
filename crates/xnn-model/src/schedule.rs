//! In which order operators, or sets of them, can run.

use std::collections::{BTreeMap, BTreeSet};

use crate::graph::{Operator, Subgraph, TensorId};
use crate::op::Op;

/// Pairs of operators of which the first has to run before the second: by
/// their tensors, and by the order of those that touch state.
#[must_use]
pub fn dependencies(graph: &Subgraph) -> Vec<(usize, usize)> {
    let mut producer: BTreeMap<TensorId, usize> = BTreeMap::new();
    for (index, operator) in graph.operators.iter().enumerate() {
        producer.extend(operator.outputs.iter().map(|&id| (id, index)));
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

/// An order in which disjoint `sets` of operators, each as one step, and the
/// other operators can run: the first operators of the sets, which stand for
/// the whole sets, and the others.
///
/// `None` if a set is not convex (a path between two of its operators leads
/// outside), or if the operators depend on each other in a circle.
#[must_use]
pub fn execution_order<'a>(
    graph: &Subgraph,
    sets: impl IntoIterator<Item = &'a [usize]>,
) -> Option<Vec<usize>> {
    let mut unit_of: Vec<usize> = (0..graph.operators.len()).collect();
    for set in sets {
        let Some(&first) = set.iter().min() else { continue };
        for &operator in set {
            *unit_of.get_mut(operator)? = first;
        }
    }
    let mut before: BTreeMap<usize, BTreeSet<usize>> =
        unit_of.iter().map(|&unit| (unit, BTreeSet::new())).collect();
    let mut after: BTreeMap<usize, BTreeSet<usize>> = before.clone();
    for (from, to) in dependencies(graph) {
        let (from, to) = (*unit_of.get(from)?, *unit_of.get(to)?);
        if from != to {
            before.entry(to).or_default().insert(from);
            after.entry(from).or_default().insert(to);
        }
    }
    let mut ready: BTreeSet<usize> =
        before.iter().filter(|(_, b)| b.is_empty()).map(|(&unit, _)| unit).collect();
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

/// Whether an operator reads or writes what outlives a run, or may.
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
            | Op::StablehloComposite(_)
            | Op::While(_)
    );
    let is_variable = |id: &TensorId| graph.tensors.get(*id).is_some_and(|t| t.is_variable);
    by_op || operator.inputs.iter().flatten().any(is_variable)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Tensor;
    use crate::types::DType;

    /// Operators with these inputs and outputs.
    fn graph(operators: &[(Op, &[TensorId], &[TensorId])]) -> Subgraph {
        let operator = |(op, inputs, outputs): &(Op, &[TensorId], &[TensorId])| Operator {
            op: op.clone(),
            version: 1,
            inputs: inputs.iter().copied().map(Some).collect(),
            outputs: outputs.to_vec(),
            intermediates: vec![],
        };
        Subgraph {
            tensors: vec![Tensor::new("", DType::F32, &[1]); 8],
            operators: operators.iter().map(operator).collect(),
            ..Subgraph::default()
        }
    }

    #[test]
    fn sets_run_when_all_that_they_read_is_there() {
        // 0 → 1 → 2 and 0 → 3: {0, 3} is convex, {0, 2} is not.
        let graph = graph(&[
            (Op::Abs, &[0], &[1]),
            (Op::Neg, &[1], &[2]),
            (Op::Abs, &[2], &[3]),
            (Op::Neg, &[1], &[4]),
        ]);
        assert_eq!(execution_order(&graph, []), Some(vec![0, 1, 2, 3]));
        assert_eq!(execution_order(&graph, [&[0, 3][..]]), Some(vec![0, 1, 2]));
        assert_eq!(execution_order(&graph, [&[2, 3][..]]), Some(vec![0, 1, 2]));
        assert_eq!(execution_order(&graph, [&[0, 2][..]]), None);
        assert_eq!(execution_order(&graph, [&[9][..]]), None);
    }

    #[test]
    fn operators_that_touch_state_keep_their_order() {
        // Reading, writing, reading again: no tensor says that the second comes in between.
        let graph = graph(&[
            (Op::ReadVariable, &[0], &[1]),
            (Op::Abs, &[1], &[2]),
            (Op::AssignVariable, &[0, 2], &[]),
            (Op::ReadVariable, &[0], &[3]),
            (Op::Abs, &[3], &[4]),
        ]);
        assert_eq!(execution_order(&graph, [&[1][..], &[4]]), Some(vec![0, 1, 2, 3, 4]));
        assert_eq!(execution_order(&graph, [&[1, 4][..]]), None);
    }
}
