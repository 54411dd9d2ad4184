//! Options of partitioning.

use xnn_format::GraphLimits;

use crate::dynamic_range::DynamicRange;
use crate::optimize;

/// Options of partitioning.
///
/// ```
/// use xnn_lower::PartitionOptions;
///
/// let mut options = PartitionOptions::default();
/// options.disable.push("SOFTMAX".to_owned());
/// options.max_partitions = Some(4);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PartitionOptions {
    /// Names of operators that are not delegated (`SOFTMAX`);
    /// [`operator_name`](crate::operator_name) checks names.
    pub disable: Vec<String>,
    /// Smallest number of multiply-accumulates of a partition.
    pub min_partition_macs: u64,
    /// Largest number of partitions; the largest partitions are kept.
    pub max_partitions: Option<usize>,
    /// How convolutions with float inputs and integer weights are computed.
    pub dynamic_range: DynamicRange,
    /// Where an operator can be lowered in several forms, use one that all readers of XN01 know,
    /// including old versions of ExecuTorch.
    pub widely_known: bool,
    /// Optimization of each partition's graph before it is compiled.
    pub optimize: optimize::Options,
    /// Keep partitions that save less work than their boundary copies cost. Without this option
    /// only fully delegated models keep them.
    pub keep_small: bool,
    /// Limits of the graphs that a model embeds.
    pub limits: GraphLimits,
}
