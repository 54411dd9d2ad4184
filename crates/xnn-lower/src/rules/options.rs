//! Options that choose between several forms of an operator.

use crate::dynamic_range::DynamicRange;

/// Options that choose between several forms of an operator.
#[derive(Clone, Copy)]
pub(crate) struct RuleOptions {
    /// Resolved for the processor.
    pub dynamic_range: DynamicRange,
    /// See [`TargetFeatures`](crate::TargetFeatures).
    pub max_dynamic_depthwise_taps: u64,
    /// See [`PartitionOptions::widely_known`](crate::PartitionOptions::widely_known).
    pub widely_known: bool,
}
