//! What can go wrong, and at which node of the graph.

use std::fmt;

use xnn_file::OutOfMemory;
use xnn_format::{Graph, Node};
use xnnpack::Status;

/// The result of every operation of this crate.
pub type Result<T> = std::result::Result<T, RuntimeError>;

/// A failed operation: what was attempted, at which node, and why it was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuntimeError {
    kind: RuntimeErrorKind,
    node: Option<NodePlace>,
    reason: String,
}

/// What a caller can do about a [`RuntimeError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RuntimeErrorKind {
    /// The graph contradicts itself: repair whatever wrote it.
    InvalidGraph,
    /// XNNPACK does not compute this, or not on this processor: leave the node out of the graph.
    Unsupported,
    /// An argument of the call does not fit the session: correct the call.
    InvalidArgument,
    /// Memory is exhausted.
    OutOfMemory,
    /// The session is in no state to do this: call [`Session::reshape`](crate::Session::reshape)
    /// first, or make a new one.
    InvalidState,
}

/// The node of a graph that an error is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodePlace {
    /// Index into [`Graph::nodes`](xnn_format::Graph::nodes).
    pub index: usize,
    /// Kind of the node, such as `convolution_2d`.
    pub kind: &'static str,
    /// The model's operator that it came from, such as `CONV_2D#3`, where recorded.
    pub origin: Option<String>,
}

impl RuntimeError {
    /// What can be done about it.
    #[must_use]
    pub fn kind(&self) -> RuntimeErrorKind {
        self.kind
    }

    /// Index of the node without which the rest may well work, where one is to blame.
    #[must_use]
    pub fn culprit(&self) -> Option<usize> {
        self.node.as_ref().map(|node| node.index)
    }

    /// The node to blame, where there is one.
    #[must_use]
    pub fn node(&self) -> Option<&NodePlace> {
        self.node.as_ref()
    }

    /// What is wrong, without the place.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }

    pub(crate) fn new(kind: RuntimeErrorKind, reason: impl Into<String>) -> Self {
        Self { kind, node: None, reason: reason.into() }
    }

    pub(crate) fn graph(reason: impl Into<String>) -> Self {
        Self::new(RuntimeErrorKind::InvalidGraph, reason)
    }

    pub(crate) fn unsupported(reason: impl Into<String>) -> Self {
        Self::new(RuntimeErrorKind::Unsupported, reason)
    }

    pub(crate) fn argument(reason: impl Into<String>) -> Self {
        Self::new(RuntimeErrorKind::InvalidArgument, reason)
    }

    pub(crate) fn at(mut self, node: Option<NodePlace>) -> Self {
        self.node = node;
        self
    }

    /// An error about a value: the first node that reads or writes it is to blame, since without
    /// such nodes nobody needs the value.
    pub(crate) fn of_value(self, graph: &Graph, value: usize) -> Self {
        let uses =
            |node: &Node| node.inputs().iter().chain(&node.outputs()).any(|id| id.index() == value);
        let user = graph.nodes.iter().position(uses);
        Self::new(self.kind, format!("value {value}: {}", self.reason))
            .at(user.and_then(|index| NodePlace::new(graph, index)))
    }

    /// What [`Graph::check`] found.
    pub(crate) fn of_check(graph: &Graph, error: &xnn_format::Error) -> Self {
        let refused = Self::graph(error.kind().to_string());
        let place = error.place();
        match (place.node, place.value) {
            (Some((index, _)), _) => refused.at(NodePlace::new(graph, index)),
            (None, Some(value)) => refused.of_value(graph, value),
            (None, None) => refused,
        }
    }
}

/// There is no memory for what XNNPACK needs to compute a graph.
#[must_use]
pub fn exhausted(graph: &Graph) -> OutOfMemory {
    let shapes: Vec<Vec<usize>> = graph.values.iter().map(|value| value.dims.clone()).collect();
    let what = format!("weights and tensors of {} nodes on XNNPACK", graph.nodes.len());
    OutOfMemory { what: what.into(), bytes: Some(graph.demand(&shapes).bytes) }
}

impl NodePlace {
    /// The place of a node, if the graph has it.
    pub(crate) fn new(graph: &Graph, index: usize) -> Option<Self> {
        let node = graph.nodes.get(index)?;
        let origin = graph.node_name(node).map(str::to_owned);
        Some(Self { index, kind: node.op.kind(), origin })
    }
}

impl fmt::Display for NodePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {} ({}", self.index, self.kind)?;
        if let Some(origin) = &self.origin {
            write!(f, ", {origin}")?;
        }
        f.write_str(")")
    }
}

impl fmt::Display for RuntimeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(node) = &self.node {
            write!(f, "{node}: ")?;
        }
        f.write_str(&self.reason)
    }
}

impl std::error::Error for RuntimeError {}

/// Keeps status and reason; the place in the graph is for the caller to add, since XNNPACK's
/// numbers of nodes are not the graph's.
impl From<xnnpack::Error> for RuntimeError {
    fn from(error: xnnpack::Error) -> Self {
        let kind = match error.status() {
            Status::InvalidParameter => RuntimeErrorKind::InvalidGraph,
            Status::OutOfMemory => RuntimeErrorKind::OutOfMemory,
            Status::InvalidState | Status::ReallocationRequired => RuntimeErrorKind::InvalidState,
            _ => RuntimeErrorKind::Unsupported,
        };
        Self::new(kind, error.reason())
    }
}
