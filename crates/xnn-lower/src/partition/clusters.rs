//! Groups of nodes that can run as one step each: convex, and as few as
//! possible.

use xnn_model::{Subgraph, TensorId, dependencies};

/// Groups the claimed nodes. Nodes keep their order inside a group, groups the
/// order in which they can run.
///
/// Alternates between "everything claimed that is ready" and "everything else
/// that is ready"; of the two ways to begin, the one with fewer groups wins.
pub(crate) fn group(graph: &Subgraph, claimed: &[bool]) -> Vec<Vec<usize>> {
    let claimed_first = alternate(graph, claimed, true);
    let others_first = alternate(graph, claimed, false);
    if others_first.len() < claimed_first.len() { others_first } else { claimed_first }
}

fn alternate(graph: &Subgraph, claimed: &[bool], mut claimed_turn: bool) -> Vec<Vec<usize>> {
    let count = graph.operators.len();
    // How many operators each one still waits for, and which ones wait for it.
    let mut missing = vec![0; count];
    let mut followers = vec![Vec::new(); count];
    for (from, to) in dependencies(graph) {
        missing[to] += 1;
        followers[from].push(to);
    }
    let mut done = vec![false; count];
    let mut groups = Vec::new();
    let mut idle_turns = 0;
    // A malformed order leaves nodes that never get ready: two idle turns end it.
    while idle_turns < 2 {
        let mut group = Vec::new();
        // Operators are in execution order, so one pass finds all that get
        // ready through earlier members of the same group.
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

/// The tensors that a group reads from outside and those that it hands out.
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
    // The subgraph's own order of inputs and outputs is what callers expect.
    inputs
        .sort_by_key(|id| graph.inputs.iter().position(|input| input == id).unwrap_or(usize::MAX));
    let mut handed_out = vec![false; graph.tensors.len()];
    for &output in &graph.outputs {
        handed_out[output] = true;
    }
    for (index, operator) in graph.operators.iter().enumerate() {
        if !inside[index] {
            for &input in operator.inputs.iter().flatten() {
                handed_out[input] = true;
            }
        }
    }
    let is_output =
        |id: &TensorId| produced[*id] && handed_out[*id] && !graph.tensor(*id).is_constant();
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
