//! Decisions about operators, and the partitions that result.

use std::sync::Arc;

use xnn_format::Graph;
use xnn_model::TensorId;

use super::cost;
use crate::optimize;
use crate::why_not::WhyNot;

/// Decision about one operator.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// The operator runs in a partition.
    Delegated {
        /// Index into [`Partitioning::partitions`].
        partition: usize,
    },
    /// The interpreter runs the operator.
    NotDelegated(WhyNot),
}

/// Operators that run as one XNNPACK graph.
#[derive(Clone, Debug, PartialEq)]
pub struct Partition {
    /// Indices of the operators, ascending.
    pub operators: Vec<usize>,
    /// Boundary tensors that the partition reads, in the order of the graph's inputs.
    pub inputs: Vec<TensorId>,
    /// Boundary tensors that the partition writes, in the order of the graph's outputs.
    pub outputs: Vec<TensorId>,
    /// Outputs of the operators that need not be written: their values follow from shapes and
    /// constants, and only partitions, which have these values as constants, read them.
    pub known: Vec<TensorId>,
    /// Multiply-accumulates of one run.
    pub macs: u64,
    /// Work that the interpreter saves: multiply-accumulates, or elements where an operator reads
    /// or writes more of them; 0 if no byte changes.
    pub work: u64,
    /// Bytes of inputs and outputs together.
    pub boundary_bytes: u64,
    /// The XNNPACK graph.
    pub graph: Arc<Graph>,
    /// Changes that optimization made to the graph.
    pub optimization: optimize::Report,
    /// Whether the model embeds the graph in its one operator. Otherwise the graph was lowered from
    /// operators.
    pub is_embedded: bool,
}

impl Partition {
    /// Whether the partition saves more work than its boundary copies cost.
    #[must_use]
    pub fn is_worth_it(&self) -> bool {
        cost::is_worth_it(self.work, self.boundary_bytes)
    }
}

/// Decisions about a subgraph.
#[derive(Clone, Debug, PartialEq)]
pub struct Partitioning {
    /// One for each operator.
    pub decisions: Vec<Decision>,
    /// Lowered partitions in an order in which they can run, then embedded graphs.
    pub partitions: Vec<Partition>,
}

impl Partitioning {
    /// Number of delegated operators.
    #[must_use]
    pub fn delegated(&self) -> usize {
        self.decisions.iter().filter(|d| matches!(d, Decision::Delegated { .. })).count()
    }

    /// Whether one partition computes the whole subgraph.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.partitions.len() == 1 && self.delegated() == self.decisions.len()
    }
}
