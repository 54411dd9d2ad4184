//! Errors of this crate, with the node of the graph.

use std::fmt;

use xnn_file::OutOfMemory;
use xnn_format::{Graph, Node};
use xnnpack::Status;

/// Result of an operation of this crate.
pub type Result<T> = std::result::Result<T, RuntimeError>;

/// A failed operation: its kind, the node, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuntimeError {
    kind: RuntimeErrorKind,
    node: Option<NodePlace>,
    reason: String,
}

/// Kind of a [`RuntimeError`], by the caller's options to react.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RuntimeErrorKind {
    /// The graph is invalid: whatever wrote it must be corrected.
    InvalidGraph,
    /// XNNPACK does not support the node, or not on this processor: leave it out of the graph.
    Unsupported,
    /// An argument does not match the session: correct the call.
    InvalidArgument,
    /// Memory is exhausted.
    OutOfMemory,
    /// The call is not allowed in the session's present state: call
    /// [`Session::reshape`](crate::Session::reshape) first, or create a new session.
    InvalidState,
}

/// A node of a graph, as named in errors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodePlace {
    /// Index into [`Graph::nodes`](xnn_format::Graph::nodes).
    pub index: usize,
    /// Kind of the node, such as `convolution_2d`.
    pub kind: &'static str,
    /// The model's operator that the node was lowered from, such as `CONV_2D#3`, if recorded.
    pub origin: Option<String>,
}

impl RuntimeError {
    /// The kind of failure.
    #[must_use]
    pub fn kind(&self) -> RuntimeErrorKind {
        self.kind
    }

    /// Index of the failing node, if known. The graph may work without it.
    #[must_use]
    pub fn failing_node(&self) -> Option<usize> {
        self.node.as_ref().map(|node| node.index)
    }

    /// The failing node, if known.
    #[must_use]
    pub fn node(&self) -> Option<&NodePlace> {
        self.node.as_ref()
    }

    /// The reason, without the node.
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

    /// Converts an error about a value, whose failing node is the first one that reads or writes
    /// the value.
    pub(crate) fn of_value(self, graph: &Graph, value: usize) -> Self {
        let uses =
            |node: &Node| node.inputs().iter().chain(&node.outputs()).any(|id| id.index() == value);
        let user = graph.nodes.iter().position(uses);
        Self::new(self.kind, format!("value {value}: {}", self.reason))
            .at(user.and_then(|index| NodePlace::new(graph, index)))
    }

    /// Converts an error of [`Graph::check`].
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

/// Returns the error that memory is exhausted for `graph`, with the size of its weights and
/// tensors.
#[must_use]
pub fn exhausted(graph: &Graph) -> OutOfMemory {
    let shapes: Vec<Vec<usize>> = graph.values.iter().map(|value| value.dims.clone()).collect();
    exhausted_with(graph, &shapes)
}

/// [`exhausted`] for values with these shapes.
pub(crate) fn exhausted_with(graph: &Graph, shapes: &[Vec<usize>]) -> OutOfMemory {
    let what = format!("weights and tensors of {} nodes on XNNPACK", graph.nodes.len());
    OutOfMemory { what: what.into(), bytes: Some(graph.demand(shapes).bytes) }
}

impl NodePlace {
    /// The node of `graph` with this index, if it exists.
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

/// Keeps status and reason. The caller adds the node, since XNNPACK's node indices differ from the
/// graph's.
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
