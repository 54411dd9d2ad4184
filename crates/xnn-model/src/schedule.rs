//! In which order operators, or sets of them, can run.

use std::collections::{BTreeMap, BTreeSet};

use crate::graph::{Operator, Subgraph, TensorId};
use crate::op::{Op, VarHandleOptions};

/// Pairs of operators of which the first has to run before the second: by
/// their tensors, and by the order of those that touch the same state.
#[must_use]
pub fn dependencies(graph: &Subgraph) -> Vec<(usize, usize)> {
    let mut producer: BTreeMap<TensorId, usize> = BTreeMap::new();
    for (index, operator) in graph.operators.iter().enumerate() {
        producer.extend(operator.outputs.iter().map(|&id| (id, index)));
    }
    let mut pairs = Vec::new();
    let mut touched: BTreeMap<State<'_>, usize> = BTreeMap::new();
    for (index, operator) in graph.operators.iter().enumerate() {
        let inputs = operator.inputs.iter().flatten();
        pairs.extend(inputs.filter_map(|id| Some((*producer.get(id)?, index))));
        let handle = |id: &TensorId| graph.operators.get(*producer.get(id)?);
        for state in touched_states(graph, operator, handle) {
            let earlier = touched.iter().filter(|(other, _)| state.may_be(other));
            pairs.extend(earlier.map(|(_, &before)| (before, index)));
            if state == State::Any {
                touched.clear();
            }
            touched.insert(state, index);
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

/// What outlives a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum State<'a> {
    /// That of a tensor which is a variable.
    Tensor(TensorId),
    /// That of a variable with a name.
    Variable { container: &'a str, shared_name: &'a str },
    /// All of it, as far as can be known.
    Any,
}

impl State<'_> {
    fn may_be(&self, other: &Self) -> bool {
        self == other || *self == Self::Any || *other == Self::Any
    }
}

/// The state that an operator reads or writes, or may. `handle` is the operator that gives a tensor.
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

    /// Reads the first variable, writes to the second, and reads the third.
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
    fn operators_that_touch_other_variables_change_places() {
        let both = |names| execution_order(&graph_of_variables(names), [&[4, 7][..]]);
        assert_eq!(both(["a", "a", "b"]), Some(vec![0, 1, 2, 3, 6, 4, 5]));
        assert_eq!(both(["b", "a", "a"]), None);
    }

    #[test]
    fn a_handle_from_outside_may_stand_for_any_variable() {
        let mut graph = graph_of_variables(["a", "b", "c"]);
        graph.operators.remove(1);
        assert_eq!(execution_order(&graph, [&[3, 6][..]]), None);
        let mut graph = graph_of_variables(["a", "a", "b"]);
        graph.operators[1] =
            Operator { op: Op::Call(Default::default()), ..graph.operators[1].clone() };
        assert_eq!(execution_order(&graph, [&[4, 7][..]]), None);
    }

    #[test]
    fn tensors_that_are_variables_are_told_apart() {
        // Both stand for cells that write to their second input.
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
