//! What can go wrong between a file and a session.

use std::error::Error as StdError;
use std::io;
use std::path::PathBuf;

use xnn_runtime::{RuntimeError, RuntimeErrorKind};

use crate::delegation::Incomplete;

/// A model or blob that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The model file.
    #[error(transparent)]
    Model(#[from] xnn_model::Error),
    /// The blob, or a graph that cannot become one.
    #[error(transparent)]
    Format(#[from] xnn_format::Error),
    /// XNNPACK.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// The interpreter.
    #[error(transparent)]
    Interpreter(#[from] xnn_interp::Error),
    /// Memory is exhausted.
    #[error(transparent)]
    OutOfMemory(#[from] xnn_model::OutOfMemory),
    /// Not all of the model goes to XNNPACK.
    #[error(transparent)]
    Incomplete(#[from] Incomplete),
    /// A file that cannot be read.
    #[error("{}: {error}", path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// A file that is no image.
    #[cfg(feature = "images")]
    #[error("{}: not a JPEG, PNG or BMP image that can be read: {error}", path.display())]
    Image {
        /// Which file.
        path: PathBuf,
        /// Why not.
        error: image::ImageError,
    },
}

impl Error {
    /// What is above a limit, if that is what is wrong.
    #[must_use]
    pub fn limit(&self) -> Option<&'static str> {
        match self {
            Self::Model(error) => match error.kind() {
                xnn_model::ErrorKind::Limit { what, .. } => Some(what),
                _ => None,
            },
            Self::Format(error) => match error.kind() {
                xnn_format::ErrorKind::Limit { what, .. } => Some(what),
                _ => None,
            },
            Self::Interpreter(error) => match error.kind() {
                xnn_interp::ErrorKind::Limit { what, .. } => Some(what),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether memory is exhausted, whoever says so.
    #[must_use]
    pub fn is_out_of_memory(&self) -> bool {
        match self {
            Self::Model(error) => is_exhausted(error),
            Self::Format(error) => is_exhausted(error),
            Self::Runtime(error) => is_exhausted(error),
            Self::Interpreter(error) => is_exhausted(error),
            Self::OutOfMemory(_) => true,
            Self::Io { error, .. } => is_exhausted(error),
            Self::Incomplete(_) => false,
            #[cfg(feature = "images")]
            Self::Image { error, .. } => is_exhausted(error),
        }
    }
}

/// Whether an error, or what has led to it, is that memory is exhausted.
fn is_exhausted(error: &(dyn StdError + 'static)) -> bool {
    let is_it = error.is::<xnn_model::OutOfMemory>()
        || (error.downcast_ref::<RuntimeError>())
            .is_some_and(|error| error.kind() == RuntimeErrorKind::OutOfMemory)
        || (error.downcast_ref::<xnn_model::Error>())
            .is_some_and(|error| matches!(error.kind(), xnn_model::ErrorKind::OutOfMemory(_)))
        || (error.downcast_ref::<xnn_format::Error>())
            .is_some_and(|error| matches!(error.kind(), xnn_format::ErrorKind::OutOfMemory(_)))
        || (error.downcast_ref::<xnn_interp::Error>())
            .is_some_and(|error| matches!(error.kind(), xnn_interp::ErrorKind::OutOfMemory(_)))
        || (error.downcast_ref::<io::Error>())
            .is_some_and(|error| error.kind() == io::ErrorKind::OutOfMemory)
        || error.downcast_ref::<Error>().is_some_and(Error::is_out_of_memory);
    is_it || error.source().is_some_and(is_exhausted)
}
