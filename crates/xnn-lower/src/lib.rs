//! Decides which operators of a model are delegated to XNNPACK, and lowers them.
//!
//! [`partition()`] walks a subgraph. A rule decides for each operator whether it can be delegated,
//! and if not, [why not](WhyNot). Operators that can be delegated are grouped, and each group is
//! lowered to an [XN01 graph](xnn_format::Graph), which [`optimize`] makes cheaper. Operators are
//! delegated only if a backend has created the group's XNNPACK operators ([`Compile`]).

#![forbid(unsafe_code)]

mod blockwise;
mod choice;
mod dynamic_range;
pub mod explain;
mod fold;
mod lower;
mod names;
pub mod optimize;
mod partition;
mod rules;
mod target;
mod view;
mod why_not;

pub use dynamic_range::DynamicRange;
pub use names::{UnknownName, operator_name, pass_name};
pub use partition::{
    Compile, CompileError, Decision, Deferred, Partition, PartitionOptions, Partitioning, Refusal,
    Unchecked, deferred, embedded_graph, partition, partition_grouped, shape_operand, total_macs,
};
pub use target::TargetFeatures;
pub use why_not::{NamedTensor, WhyNot};
