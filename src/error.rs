//! What can go wrong between a file and a session.

use std::path::PathBuf;

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
    Runtime(#[from] xnn_runtime::RuntimeError),
    /// The interpreter.
    #[error(transparent)]
    Interpreter(#[from] xnn_interp::Error),
    /// Not all of the model goes to XNNPACK.
    #[error(transparent)]
    Incomplete(#[from] Incomplete),
    /// A file that cannot be read.
    #[error("{}: {error}", path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// Why not.
        error: std::io::Error,
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
