//! Errors of model files.

use std::fmt;
use std::path::PathBuf;

use xnn_file::{Excess, OutOfMemory};

/// An error in a model, and its place.
#[derive(Debug)]
pub struct Error(Box<(ErrorKind, Place)>);

/// The place of an [`Error`] in a model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Place {
    /// Path of the file; `None` for a model in memory.
    pub path: Option<PathBuf>,
    /// Index of the subgraph.
    pub subgraph: Option<usize>,
    /// Index and name of the operator.
    pub operator: Option<(usize, String)>,
    /// Index and name of the tensor.
    pub tensor: Option<(usize, String)>,
}

/// The kinds of [`Error`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The file could not be read.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The file is smaller than the smallest model; its size in bytes.
    #[error("the file is empty or too short ({0} bytes) to be a model")]
    TooShort(usize),
    /// The identifier is neither `TFL3` nor `CIR0`.
    #[error("not a TFLite or Circle model: found \"{}\" where TFL3 or CIR0 should be", .0.escape_ascii())]
    Identifier([u8; 4]),
    /// The file has an unsupported schema version.
    #[error("unsupported schema version {0}")]
    Version(u32),
    /// The flatbuffer verifier rejected the file.
    #[error("the file is damaged: {}", first_line(.0))]
    Flatbuffer(#[from] flatbuffers::InvalidFlatbuffer),
    /// The model is invalid or unsupported.
    #[error("{0}")]
    Invalid(String),
    /// The model exceeds a limit of [`ModelLimits`](crate::ModelLimits).
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
}

impl Error {
    /// The kind of the error.
    #[must_use]
    pub fn kind(&self) -> &ErrorKind {
        &self.0.0
    }

    /// The place of the error.
    #[must_use]
    pub fn place(&self) -> &Place {
        &self.0.1
    }

    /// Whether the verifier found an unaligned value.
    pub(crate) fn is_unaligned(&self) -> bool {
        matches!(
            self.kind(),
            ErrorKind::Flatbuffer(flatbuffers::InvalidFlatbuffer::Unaligned { .. })
        )
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        ErrorKind::Invalid(message.into()).into()
    }

    pub(crate) fn in_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.0.1.path = Some(path.into());
        self
    }

    pub(crate) fn in_subgraph(mut self, index: usize) -> Self {
        self.0.1.subgraph = Some(index);
        self
    }

    pub(crate) fn in_operator(mut self, index: usize, name: impl Into<String>) -> Self {
        self.0.1.operator = Some((index, name.into()));
        self
    }

    pub(crate) fn in_tensor(mut self, index: usize, name: impl Into<String>) -> Self {
        self.0.1.tensor = Some((index, name.into()));
        self
    }
}

impl<K: Into<ErrorKind>> From<K> for Error {
    fn from(kind: K) -> Self {
        Self(Box::new((kind.into(), Place::default())))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Place { path, subgraph, operator, tensor } = self.place();
        if let Some(path) = path {
            write!(f, "{}: ", path.display())?;
        }
        if let Some(index) = subgraph {
            write!(f, "subgraph {index}: ")?;
        }
        if let Some((index, name)) = operator {
            write!(f, "operator {index} ({}): ", name.escape_debug())?;
        }
        if let Some((index, name)) = tensor {
            write!(f, "tensor {index} ({name:?}): ")?;
        }
        self.kind().fmt(f)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self.kind() {
            ErrorKind::Io(error) => Some(error),
            ErrorKind::Flatbuffer(error) => Some(error),
            _ => None,
        }
    }
}

/// The verifier's message without its trace.
fn first_line(error: &flatbuffers::InvalidFlatbuffer) -> String {
    error.to_string().lines().next().unwrap_or_default().trim_end_matches('.').to_lowercase()
}

impl From<Excess> for ErrorKind {
    fn from(Excess { what, value, limit }: Excess) -> Self {
        Self::Limit { what, value, limit }
    }
}
