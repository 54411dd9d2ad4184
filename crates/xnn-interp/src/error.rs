//! What can go wrong, and at which operator.

use std::fmt;

use xnn_model::{Excess, OutOfMemory};

/// A model that cannot be loaded or run, and where the trouble is.
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
    /// The model itself is not sound.
    #[error("{0}")]
    Model(#[from] xnn_model::Error),
    /// No kernel takes this operator with these types and options.
    #[error("not supported: {0}")]
    Unsupported(String),
    /// There is no such signature, subgraph, input or output, or the caller's
    /// data does not fit it.
    #[error("{0}")]
    Invalid(String),
    /// The values that reached an operator do not fit it.
    #[error("{0}")]
    Execution(String),
    /// More was asked for than [`ModelLimits`](xnn_model::ModelLimits) allow.
    #[error("{what} is {value}, above the limit of {limit}")]
    Limit {
        /// What is too large.
        what: &'static str,
        /// What was asked for.
        value: u64,
        /// What is allowed.
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
    /// What went wrong.
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

    /// The innermost operator stays.
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
            // The place is given already.
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

/// Why a kernel does not take an operator: a phrase, to which the program adds
/// the operator.
#[derive(Debug)]
pub(crate) struct Refusal(pub(crate) String);

impl From<String> for Refusal {
    fn from(message: String) -> Self {
        Self(message)
    }
}

/// What a run meets is data that do not fit.
impl From<Refusal> for ErrorKind {
    fn from(Refusal(message): Refusal) -> Self {
        Self::Execution(message)
    }
}

/// Refuses with a message.
pub(crate) fn refuse<T>(message: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal(message.into()))
}
