//! Decides which operators of a model go to XNNPACK, and lowers them.
//!
//! [`partition`] walks a subgraph: rules say for each operator whether it may
//! go, and if not, [why not](WhyNot); operators that may go are grouped, and
//! each group becomes an [XN01 graph](xnn_format::Graph), which [`optimize`]
//! makes cheaper. Nothing is claimed before XNNPACK has created the group's
//! operators ([`Compile`]).

#![forbid(unsafe_code)]

mod blockwise;
pub mod explain;
mod fold;
mod lower;
mod names;
pub mod optimize;
mod partition;
mod rules;
mod view;
mod why_not;

pub use names::{UnknownName, operator_name, pass_name};
pub use partition::{
    Compile, CompileError, Decision, Deferred, DynamicRange, Partition, PartitionOptions,
    Partitioning, Refusal, Unchecked, deferred, partition, partition_grouped, shape_operand,
    stored_graph, total_macs,
};
pub use why_not::{NamedTensor, WhyNot};
