//! Time that each operator took.

use xnnpack::OperatorTiming;

/// Time that one operator took in the last run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpTiming {
    /// XNNPACK's name of the operator.
    pub name: String,
    /// Index of the graph's node that it ran for, where that is certain.
    pub node: Option<usize>,
    /// Wall-clock time in microseconds.
    pub micros: u64,
}

/// Joins XNNPACK's timings with the nodes that they are for. XNNPACK lists its operators in the
/// order of nodes, without nodes that it merged into others; where it merged any, it does not say
/// which, and the timings stay without nodes.
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
