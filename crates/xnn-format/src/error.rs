//! What can be wrong with a graph or a file.

use std::fmt;
use std::path::PathBuf;

use xnn_file::{Excess, OutOfMemory};

/// A graph or file that cannot be used, and where the trouble is.
#[derive(Debug)]
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    kind: ErrorKind,
    place: Place,
}

/// Where an [`Error`] is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Place {
    /// The file, if there is one.
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
    /// Fewer bytes than the smallest graph has.
    #[error("the file is empty or too short ({0} bytes) to be an XNNPACK graph")]
    TooShort(usize),
    /// Neither `XH00`, nor a flatbuffer with `XN00` or `XN01`.
    #[error(
        "not an XNNPACK graph: found {0:?} where the header XH00 or the identifier XN01 or XN00 should be"
    )]
    Identifier(String),
    /// The header and the file do not fit together.
    #[error("bad header: {0}")]
    Header(String),
    /// The flatbuffer verifier refused the graph.
    #[error("the graph is damaged: {0}")]
    Flatbuffer(#[from] flatbuffers::InvalidFlatbuffer),
    /// The graph says something impossible or forbidden.
    #[error("{0}")]
    Invalid(String),
    /// The graph asks for more than [`GraphLimits`](crate::GraphLimits) allow.
    #[error("{what} is {value}, above the limit of {limit}")]
    Limit {
        /// What is too large.
        what: &'static str,
        /// What the graph asks for.
        value: u64,
        /// What is allowed.
        limit: u64,
    },
    /// Memory is exhausted.
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
    /// A constant lives outside of the file, and nobody provides it.
    #[error("the named constant {0:?} is not in the file, but beside it or in a program")]
    MissingConstant(String),
    /// The graph needs what the readers in question do not know.
    #[error("ExecuTorch readers since 0.4 do not know: {}", .0.join(", "))]
    Incompatible(Vec<String>),
}

pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// What is wrong.
    #[must_use]
    pub fn kind(&self) -> &ErrorKind {
        &self.0.kind
    }

    /// Where it is.
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

/// Refuses with a message unless a condition holds.
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
