//! Groups operators so that each group can run as one step, in as few groups as possible.

use xnn_model::{Subgraph, TensorId, dependencies};

/// Groups the operators that can be delegated. Operators keep their order inside a group, and
/// groups are in an order in which they can run.
///
/// Alternates between all ready operators that can be delegated and all other ready operators, once
/// starting with each kind, and returns the result with fewer groups.
pub(crate) fn group(graph: &Subgraph, claimed: &[bool]) -> Vec<Vec<usize>> {
    if !claimed.contains(&true) {
        return Vec::new();
    }
    let dependencies = dependencies(graph);
    let claimed_first = alternate(&dependencies, claimed, true);
    if claimed_first.len() < 2 {
        return claimed_first;
    }
    let others_first = alternate(&dependencies, claimed, false);
    if others_first.len() < claimed_first.len() { others_first } else { claimed_first }
}

fn alternate(
    dependencies: &[(usize, usize)],
    claimed: &[bool],
    mut claimed_turn: bool,
) -> Vec<Vec<usize>> {
    let count = claimed.len();
    // For each operator, the number of operators that it waits for, and the operators that wait for
    // it.
    let mut missing = vec![0; count];
    let mut followers = vec![Vec::new(); count];
    for &(from, to) in dependencies {
        missing[to] += 1;
        followers[from].push(to);
    }
    let mut done = vec![false; count];
    let mut groups = Vec::new();
    let mut idle_turns = 0;
    // In a malformed order some operators never become ready: two idle turns end the loop.
    while idle_turns < 2 {
        let mut group = Vec::new();
        // Operators are in execution order, so one pass finds all that become ready through earlier
        // members of the same group.
        for index in 0..count {
            if done[index] || claimed[index] != claimed_turn || missing[index] > 0 {
                continue;
            }
            done[index] = true;
            group.push(index);
            followers[index].iter().for_each(|&follower| missing[follower] -= 1);
        }
        idle_turns = if group.is_empty() { idle_turns + 1 } else { 0 };
        if claimed_turn && !group.is_empty() {
            groups.push(group);
        }
        claimed_turn = !claimed_turn;
    }
    groups
}

/// The boundary tensors of a group: its inputs and its outputs.
pub(crate) fn boundary(graph: &Subgraph, group: &[usize]) -> (Vec<TensorId>, Vec<TensorId>) {
    let mut inside = vec![false; graph.operators.len()];
    let mut produced = vec![false; graph.tensors.len()];
    for &index in group {
        inside[index] = true;
        for &output in &graph.operators[index].outputs {
            produced[output] = true;
        }
    }
    let mut inputs: Vec<TensorId> = Vec::new();
    for &index in group {
        for &input in graph.operators[index].inputs.iter().flatten() {
            let outside = !produced[input] && !graph.tensor(input).is_constant();
            if outside && !inputs.contains(&input) {
                inputs.push(input);
            }
        }
    }
    // Callers expect the order of the subgraph's own inputs and outputs.
    inputs
        .sort_by_key(|id| graph.inputs.iter().position(|input| input == id).unwrap_or(usize::MAX));
    let mut read_outside = vec![false; graph.tensors.len()];
    for &output in &graph.outputs {
        read_outside[output] = true;
    }
    for (index, operator) in graph.operators.iter().enumerate() {
        if !inside[index] {
            for &input in operator.inputs.iter().flatten() {
                read_outside[input] = true;
            }
        }
    }
    let is_output =
        |id: &TensorId| produced[*id] && read_outside[*id] && !graph.tensor(*id).is_constant();
    let mut outputs: Vec<TensorId> = Vec::new();
    for &id in &graph.outputs {
        if is_output(&id) && !outputs.contains(&id) {
            outputs.push(id);
        }
    }
    for &index in group {
        for &id in &graph.operators[index].outputs {
            if is_output(&id) && !outputs.contains(&id) {
                outputs.push(id);
            }
        }
    }
    (inputs, outputs)
}
