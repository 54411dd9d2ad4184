//! Errors of graphs and blobs.

use std::fmt;
use std::path::PathBuf;

use xnn_file::{Excess, OutOfMemory};

/// An error in a graph or blob, and its place.
#[derive(Debug)]
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    kind: ErrorKind,
    place: Place,
}

/// The place of an [`Error`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Place {
    /// Path of the file; `None` for a graph in memory.
    pub path: Option<PathBuf>,
    /// Index and kind of the node.
    pub node: Option<(usize, &'static str)>,
    /// Index of the value.
    pub value: Option<usize>,
}

/// The kinds of [`Error`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The file could not be read.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The file is smaller than the smallest graph; its size in bytes.
    #[error("the file is empty or too short ({0} bytes) to be an XNNPACK graph")]
    TooShort(usize),
    /// The file has neither the header `XH00` nor the identifier `XN00` or `XN01`.
    #[error(
        "not an XNNPACK graph: found {0:?} where the header XH00 or the identifier XN01 or XN00 should be"
    )]
    Identifier(String),
    /// The header is invalid or does not match the file.
    #[error("bad header: {0}")]
    Header(String),
    /// The flatbuffer verifier rejected the graph.
    #[error("the graph is damaged: {0}")]
    Flatbuffer(#[from] flatbuffers::InvalidFlatbuffer),
    /// The graph is invalid.
    #[error("{0}")]
    Invalid(String),
    /// The graph exceeds a limit of [`GraphLimits`](crate::GraphLimits).
    #[error("{what} is {value}, above the limit of {limit}")]
    Limit {
        /// The limited quantity, as a noun phrase.
        what: &'static str,
        /// The requested amount.
        value: u64,
        /// The allowed amount.
        limit: u64,
    },
    /// Memory is exhausted.
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
    /// The [`ConstantSource`](crate::ConstantSource) does not have a constant that the file names.
    #[error(
        "the named constant {0:?} is not in this file; it is stored in a separate file or in the ExecuTorch program"
    )]
    MissingConstant(String),
    /// The readers selected by [`Compat`](crate::Compat) do not support these nodes and values.
    #[error("not supported by all ExecuTorch readers since 0.4: {}", .0.join(", "))]
    Incompatible(Vec<String>),
}

pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// The kind of the error.
    #[must_use]
    pub fn kind(&self) -> &ErrorKind {
        &self.0.kind
    }

    /// The place of the error.
    #[must_use]
    pub fn place(&self) -> &Place {
        &self.0.place
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        ErrorKind::Invalid(message.into()).into()
    }

    pub(crate) fn header(message: impl Into<String>) -> Self {
        ErrorKind::Header(message.into()).into()
    }

    pub(crate) fn in_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.0.place.path = Some(path.into());
        self
    }

    pub(crate) fn in_node(mut self, index: usize, kind: &'static str) -> Self {
        self.0.place.node = Some((index, kind));
        self
    }

    pub(crate) fn in_value(mut self, index: usize) -> Self {
        self.0.place.value = Some(index);
        self
    }
}

/// Returns an error with this message unless the condition holds.
macro_rules! require {
    ($condition:expr, $($message:tt)+) => {
        let holds: bool = $condition;
        if !holds {
            return Err($crate::Error::invalid(format!($($message)+)));
        }
    };
}
pub(crate) use require;

impl<K: Into<ErrorKind>> From<K> for Error {
    fn from(kind: K) -> Self {
        Self(Box::new(Inner { kind: kind.into(), place: Place::default() }))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Place { path, node, value } = &self.0.place;
        if let Some(path) = path {
            write!(f, "{}: ", path.display())?;
        }
        if let Some((index, kind)) = node {
            write!(f, "node {index} ({kind}): ")?;
        }
        if let Some(index) = value {
            write!(f, "value {index}: ")?;
        }
        self.0.kind.fmt(f)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.0.kind {
            ErrorKind::Io(error) => Some(error),
            ErrorKind::Flatbuffer(error) => Some(error),
            _ => None,
        }
    }
}

impl From<Excess> for ErrorKind {
    fn from(Excess { what, value, limit }: Excess) -> Self {
        Self::Limit { what, value, limit }
    }
}
