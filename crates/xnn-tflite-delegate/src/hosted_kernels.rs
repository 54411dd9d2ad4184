//! Kernels for operators that the interpreter's own delegate would claim and fail to compute.

use std::sync::Arc;

use xnn_lower::{Decision, Partitioning};
use xnn_model::{Inferred, Operator, Subgraph, TensorId};

use crate::builtin_delegate;
use crate::delegated_partition::DelegatedPartition;
use crate::kernel::Kernel;
use crate::sessions::Sessions;

/// Returns kernels for operators that the interpreter's own delegate must not claim, with their
/// positions.
pub(crate) fn kernels(
    graph: &Arc<Inferred>,
    partitioning: &Partitioning,
    sessions: &Sessions,
) -> Vec<(usize, Kernel)> {
    let operators = partitioning.decisions.iter().zip(&graph.subgraph.operators).enumerate();
    let kernels = operators.filter_map(|(index, (decision, operator))| {
        let Decision::NotDelegated(why) = decision else { return None };
        if !builtin_delegate::breaks(&graph.subgraph, operator, why) {
            return None;
        }
        match DelegatedPartition::hosted(
            graph,
            &[index],
            &read_outputs(&graph.subgraph, operator),
            sessions,
        ) {
            Ok((partition, engine)) => Some((index, Kernel::new(partition, engine, sessions))),
            Err(error) => {
                log::info!(
                    "operator {index} ({}) is not computed by reference kernels: {error}",
                    operator.op
                );
                None
            }
        }
    });
    kernels.collect()
}

/// Outputs of an operator that are read. The interpreter does not allocate memory for others.
fn read_outputs(graph: &Subgraph, operator: &Operator) -> Vec<TensorId> {
    let is_read = |id: &TensorId| {
        let mut inputs = graph.operators.iter().flat_map(|reader| reader.inputs.iter().flatten());
        graph.outputs.contains(id) || inputs.any(|input| input == id)
    };
    operator.outputs.iter().copied().filter(is_read).collect()
}
