//! Errors of this crate: [`Status`] and [`Error`].

use std::fmt;

use xnnpack_sys as sys;

/// Result of an operation of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Kind of failure, reported by XNNPACK or by the checks of this crate (`enum xnn_status`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Status {
    /// XNNPACK could not be initialized.
    Uninitialized,
    /// An argument is invalid, or inconsistent with other arguments.
    InvalidParameter,
    /// The call is not allowed in the present state of the object.
    InvalidState,
    /// The argument is valid, but not supported by XNNPACK.
    UnsupportedParameter,
    /// The operator is not supported on this processor.
    UnsupportedHardware,
    /// Memory could not be allocated.
    OutOfMemory,
    /// Tensors have grown, and memory must be planned again.
    ReallocationRequired,
    /// The function is deprecated in XNNPACK.
    Deprecated,
    /// A status code that this crate does not know.
    Unknown(u32),
}

impl Status {
    /// Converts the status of a call.
    pub(crate) fn check(raw: sys::xnn_status) -> std::result::Result<(), Status> {
        Err(match raw {
            sys::xnn_status_success => return Ok(()),
            sys::xnn_status_uninitialized => Status::Uninitialized,
            sys::xnn_status_invalid_parameter => Status::InvalidParameter,
            sys::xnn_status_invalid_state => Status::InvalidState,
            sys::xnn_status_unsupported_parameter => Status::UnsupportedParameter,
            sys::xnn_status_unsupported_hardware => Status::UnsupportedHardware,
            sys::xnn_status_out_of_memory => Status::OutOfMemory,
            sys::xnn_status_reallocation_required => Status::ReallocationRequired,
            sys::xnn_status_deprecated => Status::Deprecated,
            other => Status::Unknown(other.0),
        })
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Status::Uninitialized => "XNNPACK is not initialized",
            Status::InvalidParameter => "invalid parameter",
            Status::InvalidState => "invalid state",
            Status::UnsupportedParameter => "unsupported parameter",
            Status::UnsupportedHardware => "unsupported hardware",
            Status::OutOfMemory => "out of memory",
            Status::ReallocationRequired => "reallocation required",
            Status::Deprecated => "deprecated function",
            Status::Unknown(code) => return write!(f, "unknown status {code}"),
        })
    }
}

/// A node of a subgraph, as named in errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NodeRef {
    /// Position in the order of definition, from 0.
    pub index: usize,
    /// Kind of the node, such as `convolution_2d`.
    pub kind: &'static str,
}

impl fmt::Display for NodeRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {} ({})", self.index, self.kind)
    }
}

/// A failed operation: the operation, the node, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    status: Status,
    op: &'static str,
    node: Option<NodeRef>,
    reason: String,
}

impl Error {
    /// The kind of failure.
    #[must_use]
    pub fn status(&self) -> Status {
        self.status
    }

    /// The operation that failed, such as `define tensor` or `create runtime`.
    #[must_use]
    pub fn op(&self) -> &'static str {
        self.op
    }

    /// The node that the error is about, if any.
    #[must_use]
    pub fn node(&self) -> Option<NodeRef> {
        self.node
    }

    /// The reason, without operation and node.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }

    pub(crate) fn new(status: Status, reason: impl Into<String>) -> Self {
        Self { status, op: "", node: None, reason: reason.into() }
    }

    pub(crate) fn invalid(reason: impl Into<String>) -> Self {
        Self::new(Status::InvalidParameter, reason)
    }

    pub(crate) fn unsupported(reason: impl Into<String>) -> Self {
        Self::new(Status::UnsupportedParameter, reason)
    }

    pub(crate) fn state(reason: impl Into<String>) -> Self {
        Self::new(Status::InvalidState, reason)
    }

    pub(crate) fn during(mut self, op: &'static str) -> Self {
        self.op = op;
        self
    }

    pub(crate) fn at(mut self, node: NodeRef) -> Self {
        self.node = Some(node);
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {}", self.op)?;
        if let Some(node) = self.node {
            write!(f, " at {node}")?;
        }
        write!(f, ": {}", self.reason)
    }
}

impl std::error::Error for Error {}

/// Converts the status of a call to a [`Result`] that names the operation.
pub(crate) fn check(op: &'static str, raw: sys::xnn_status) -> Result<()> {
    Status::check(raw).map_err(|status| {
        let reason = match status {
            Status::OutOfMemory => status.to_string(),
            _ => format!("XNNPACK returned: {status}"),
        };
        Error::new(status, reason).during(op)
    })
}
