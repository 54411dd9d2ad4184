//! Errors, with the operator that caused them.

use std::fmt;

use xnn_model::{Excess, OutOfMemory};

/// An error in loading or running a model, and its place.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    /// Index of the subgraph, and index and name of the operator.
    operator: Option<(usize, usize, String)>,
}

/// The kinds of [`Error`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The model is invalid.
    #[error("{0}")]
    Model(#[from] xnn_model::Error),
    /// No kernel supports this operator with these types and options.
    #[error("not supported: {0}")]
    Unsupported(String),
    /// The signature, subgraph, input or output does not exist, or the caller's data does not fit
    /// it.
    #[error("{0}")]
    Invalid(String),
    /// The values of an operator's inputs do not fit it.
    #[error("{0}")]
    Execution(String),
    /// A size exceeds one of [`ModelLimits`](xnn_model::ModelLimits).
    #[error("{what} is {value}, above the limit of {limit}")]
    Limit {
        /// Name of the size that exceeds the limit.
        what: &'static str,
        /// The requested value.
        value: u64,
        /// The limit.
        limit: u64,
    },
    /// Memory is exhausted.
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
    /// The cancel flag was raised.
    #[error("cancelled")]
    Cancelled,
    /// A delegate failed.
    #[error("delegate: {0}")]
    Delegate(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl From<Excess> for ErrorKind {
    fn from(Excess { what, value, limit }: Excess) -> Self {
        Self::Limit { what, value, limit }
    }
}

impl Error {
    /// The kind of the error.
    #[must_use]
    pub fn kind(&self) -> &ErrorKind {
        &self.kind
    }

    /// Indices of the subgraph and the operator, and the operator's name.
    #[must_use]
    pub fn operator(&self) -> Option<(usize, usize, &str)> {
        self.operator.as_ref().map(|(subgraph, index, name)| (*subgraph, *index, name.as_str()))
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        ErrorKind::Invalid(message.into()).into()
    }

    /// Adds the operator, unless the error already has one.
    pub(crate) fn at(mut self, subgraph: usize, index: usize, name: &str) -> Self {
        self.operator.get_or_insert_with(|| (subgraph, index, name.to_owned()));
        self
    }
}

impl<K: Into<ErrorKind>> From<K> for Error {
    fn from(kind: K) -> Self {
        Self { kind: kind.into(), operator: None }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((subgraph, index, name)) = &self.operator {
            write!(f, "subgraph {subgraph}: operator {index} ({}): ", name.escape_debug())?;
        }
        match &self.kind {
            // The place has been written already.
            ErrorKind::Model(error) if self.operator.is_some() => error.kind().fmt(f),
            kind => kind.fmt(f),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.kind {
            ErrorKind::Model(error) => Some(error),
            ErrorKind::Delegate(error) => Some(error.as_ref()),
            _ => None,
        }
    }
}

/// The reason why a kernel does not support an operator: a phrase, to which the caller adds the
/// operator.
#[derive(Debug)]
pub(crate) struct Refusal(pub(crate) String);

impl From<String> for Refusal {
    fn from(message: String) -> Self {
        Self(message)
    }
}

/// In a run, the reason is data that do not fit.
impl From<Refusal> for ErrorKind {
    fn from(Refusal(message): Refusal) -> Self {
        Self::Execution(message)
    }
}

/// Returns a refusal with this message.
pub(crate) fn refuse<T>(message: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal(message.into()))
}
