//! Errors of programs.

use std::fmt;
use std::path::PathBuf;

/// An error in a program, and its place.
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
    /// Path of the file; `None` for a program in memory.
    pub path: Option<PathBuf>,
    /// Name of the method.
    pub method: Option<String>,
    /// Index of the delegate in its method.
    pub delegate: Option<usize>,
}

/// The kinds of [`Error`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The file could not be read.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The file is smaller than the smallest program; its size in bytes.
    #[error("the file is empty or too short ({0} bytes) to be an ExecuTorch program")]
    TooShort(usize),
    /// The identifier is not `ET12`.
    #[error("not an ExecuTorch program: found {0:?} where the identifier ET12 should be")]
    Identifier(String),
    /// The extended header is invalid or does not match the file.
    #[error("bad extended header: {0}")]
    Header(String),
    /// The flatbuffer verifier rejected the program.
    #[error("the program is damaged: {0}")]
    Flatbuffer(#[from] flatbuffers::InvalidFlatbuffer),
    /// The program is invalid.
    #[error("{0}")]
    Invalid(String),
    /// The delegate belongs to another backend than XNNPACK.
    #[error("expected an XNNPACK delegate, found the backend {0:?}")]
    Backend(String),
    /// The graph in the payload is invalid.
    #[error("{0}")]
    Graph(#[from] xnn_format::Error),
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

    pub(crate) fn in_method(mut self, name: impl Into<String>) -> Self {
        self.0.place.method = Some(name.into());
        self
    }

    pub(crate) fn in_delegate(mut self, index: usize) -> Self {
        self.0.place.delegate = Some(index);
        self
    }
}

impl<K: Into<ErrorKind>> From<K> for Error {
    fn from(kind: K) -> Self {
        Self(Box::new(Inner { kind: kind.into(), place: Place::default() }))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Place { path, method, delegate } = &self.0.place;
        if let Some(path) = path {
            write!(f, "{}: ", path.display())?;
        }
        if let Some(method) = method {
            write!(f, "method {method:?}: ")?;
        }
        if let Some(index) = delegate {
            write!(f, "delegate {index}: ")?;
        }
        self.0.kind.fmt(f)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.0.kind {
            ErrorKind::Io(error) => Some(error),
            ErrorKind::Flatbuffer(error) => Some(error),
            ErrorKind::Graph(error) => Some(error),
            _ => None,
        }
    }
}
