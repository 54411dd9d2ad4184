//! Execution order of operators and sets of operators.

use std::collections::{BTreeMap, BTreeSet};

use crate::graph::{Operator, Subgraph};
use crate::op::{Op, VarHandleOptions};
use crate::types::TensorId;

/// Pairs of operator indices of which the first must run before the second: producers before
/// readers of a tensor, and operators with the same state in the order of the file.
#[must_use]
pub fn dependencies(graph: &Subgraph) -> Vec<(usize, usize)> {
    let mut producers: Vec<Option<usize>> = vec![None; graph.tensors.len()];
    for (index, operator) in graph.operators.iter().enumerate() {
        for &output in &operator.outputs {
            if let Some(producer) = producers.get_mut(output) {
                *producer = Some(index);
            }
        }
    }
    let producer_of = |id: &TensorId| producers.get(*id).copied().flatten();
    let mut pairs = Vec::new();
    let mut touched: Vec<(State<'_>, usize)> = Vec::new();
    for (index, operator) in graph.operators.iter().enumerate() {
        let inputs = operator.inputs.iter().flatten();
        pairs.extend(inputs.filter_map(|id| Some((producer_of(id)?, index))));
        let handle = |id: &TensorId| graph.operators.get(producer_of(id)?);
        for state in touched_states(graph, operator, handle) {
            let earlier = touched.iter().filter(|(other, _)| state.may_be(other));
            pairs.extend(earlier.map(|&(_, before)| (before, index)));
            touched.retain(|(other, _)| state != State::Any && state != *other);
            touched.push((state, index));
        }
    }
    pairs
}

/// An execution order of the steps of a subgraph. Each of the disjoint `sets` of operators is one
/// step, represented by its lowest operator index; every other operator is a step of its own.
///
/// `None` if a set is not convex (a path between two of its operators leaves the set), an index is
/// out of range, or the dependencies have a cycle.
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

/// State that outlives a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State<'a> {
    /// The state of a variable tensor.
    Tensor(TensorId),
    /// The state of a named variable.
    Variable { container: &'a str, shared_name: &'a str },
    /// Unknown state, which may be any.
    Any,
}

impl State<'_> {
    fn may_be(&self, other: &Self) -> bool {
        self == other || *self == Self::Any || *other == Self::Any
    }
}

/// The state that an operator may read or write. `handle` returns the operator that produces a
/// tensor.
fn touched_states<'a>(
    graph: &'a Subgraph,
    operator: &'a Operator,
    handle: impl Fn(&TensorId) -> Option<&'a Operator>,
) -> Vec<State<'a>> {
    let variable = match operator.op {
        Op::AssignVariable | Op::ReadVariable => {
            match operator.inputs.iter().flatten().next().and_then(handle).map(|it| &it.op) {
                Some(Op::VarHandle(VarHandleOptions { container, shared_name })) => {
                    Some(State::Variable { container, shared_name })
                }
                _ => Some(State::Any),
            }
        }
        Op::Call(_)
        | Op::CallOnce(_)
        | Op::HashtableFind
        | Op::HashtableImport
        | Op::HashtableSize
        | Op::If(_)
        | Op::StablehloComposite(_)
        | Op::While(_) => Some(State::Any),
        _ => None,
    };
    let is_variable = |id: &&TensorId| graph.tensors.get(**id).is_some_and(|t| t.is_variable);
    let tensors = operator.inputs.iter().flatten().filter(is_variable);
    variable.into_iter().chain(tensors.map(|&id| State::Tensor(id))).collect()
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
    fn sets_run_after_the_producers_of_their_inputs() {
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

    /// A graph that reads the first variable, writes the second, and reads the third.
    fn graph_of_variables(names: [&str; 3]) -> Subgraph {
        let handle = |shared_name: &str| {
            let shared_name = shared_name.into();
            Op::VarHandle(VarHandleOptions { container: String::new(), shared_name })
        };
        graph(&[
            (handle(names[0]), &[], &[0]),
            (handle(names[1]), &[], &[1]),
            (handle(names[2]), &[], &[2]),
            (Op::ReadVariable, &[0], &[3]),
            (Op::Abs, &[3], &[4]),
            (Op::AssignVariable, &[1, 4], &[]),
            (Op::ReadVariable, &[2], &[5]),
            (Op::Abs, &[5], &[6]),
        ])
    }

    #[test]
    fn operators_of_different_variables_may_be_reordered() {
        let both = |names| execution_order(&graph_of_variables(names), [&[4, 7][..]]);
        assert_eq!(both(["a", "a", "b"]), Some(vec![0, 1, 2, 3, 6, 4, 5]));
        assert_eq!(both(["b", "a", "a"]), None);
    }

    #[test]
    fn an_unknown_handle_may_refer_to_any_variable() {
        let mut graph = graph_of_variables(["a", "b", "c"]);
        graph.operators.remove(1);
        assert_eq!(execution_order(&graph, [&[3, 6][..]]), None);
        let mut graph = graph_of_variables(["a", "a", "b"]);
        graph.operators[1] =
            Operator { op: Op::Call(Default::default()), ..graph.operators[1].clone() };
        assert_eq!(execution_order(&graph, [&[4, 7][..]]), None);
    }

    #[test]
    fn variable_tensors_are_distinguished() {
        // The operators with two inputs represent cells that write to their second input.
        let mut graph = graph(&[
            (Op::Abs, &[0, 1], &[2]),
            (Op::Neg, &[2], &[3]),
            (Op::Abs, &[3, 4], &[5]),
            (Op::Abs, &[6, 1], &[7]),
        ]);
        assert_eq!(execution_order(&graph, [&[0, 2][..]]), None);
        assert_eq!(execution_order(&graph, [&[1, 3][..]]), Some(vec![0, 1, 2]));
        graph.tensors[1].is_variable = true;
        graph.tensors[4].is_variable = true;
        assert_eq!(execution_order(&graph, [&[1, 3][..]]), Some(vec![0, 1, 2]));
        assert_eq!(dependencies(&graph), [(0, 1), (1, 2), (0, 3)]);
    }

    #[test]
    fn operators_with_the_same_state_keep_their_order() {
        // Read, write and read again: no tensor orders the write between the reads.
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
