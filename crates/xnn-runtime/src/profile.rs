//! Time that each operator took.

use xnnpack::OperatorTiming;

/// Time that one operator took in the last run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpTiming {
    /// XNNPACK's name of the operator.
    pub name: String,
    /// Index of the graph's node that the operator belongs to, if known.
    pub node: Option<usize>,
    /// Wall-clock time in microseconds.
    pub micros: u64,
}

/// Adds nodes to XNNPACK's timings. XNNPACK lists operators in the order of nodes. If it has fused
/// nodes, it does not tell which, and the timings have no nodes.
pub(crate) fn attribute(timings: Vec<OperatorTiming>, origins: &[usize]) -> Vec<OpTiming> {
    let complete = timings.len() == origins.len();
    timings
        .into_iter()
        .enumerate()
        .map(|(position, OperatorTiming { name, micros })| OpTiming {
            name,
            node: origins.get(position).copied().filter(|_| complete),
            micros,
        })
        .collect()
}
