//! The error type of this crate.

use std::error::Error as StdError;
use std::io;
use std::path::PathBuf;

use xnn_runtime::{RuntimeError, RuntimeErrorKind};

use crate::incomplete::Incomplete;
use crate::tensor::TensorError;

/// Error of every fallible operation of this crate.
///
/// Messages name the file, operator and tensor. Variants and methods tell what a program may react to.
///
/// ```
/// use xnn_delegate::{Error, Runner};
///
/// # fn main() -> Result<(), Error> {
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/models/digits_mobilenet_v2_fp32.tflite");
/// match Runner::open("no-such-model.tflite") {
///     Ok(_) => unreachable!(),
///     Err(error) if error.is_out_of_memory() => eprintln!("free some memory: {error}"),
///     Err(error) => assert!(error.to_string().starts_with("no-such-model.tflite: ")),
/// }
///
/// let mut runner = Runner::open(path)?;
/// let error = runner.input_as_mut::<f32>("image").unwrap_err();
/// assert!(matches!(error, Error::Tensor(_)));
/// assert!(error.to_string().contains("serving_default_image"), "the names that exist are listed");
/// # Ok(()) }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The model file is damaged, or is not supported.
    #[error(transparent)]
    Model(#[from] xnn_model::Error),
    /// The blob is damaged, or a graph cannot be written as a blob.
    #[error(transparent)]
    Format(#[from] xnn_format::Error),
    /// XNNPACK rejected a graph or a call.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// A reference kernel failed, or the run was cancelled.
    #[error(transparent)]
    Interpreter(#[from] xnn_interp::Error),
    /// Memory is exhausted.
    #[error(transparent)]
    OutOfMemory(#[from] xnn_model::OutOfMemory),
    /// The model is not fully delegated, and the operation needs that.
    #[error(transparent)]
    Incomplete(#[from] Incomplete),
    /// An access to an input or output that does not fit the model.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// A file that cannot be read.
    #[error("{}: {error}", path.display())]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        error: io::Error,
    },
    /// A file that is not a readable image.
    #[cfg(feature = "images")]
    #[error("{}: not a JPEG, PNG or BMP image that can be read: {error}", path.display())]
    Image {
        /// Path of the file.
        path: PathBuf,
        /// Error of the decoder.
        error: image::ImageError,
    },
}

impl Error {
    /// Name of the quantity that exceeds its limit, if that is the error.
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

    /// Whether memory is exhausted, in any layer.
    #[must_use]
    pub fn is_out_of_memory(&self) -> bool {
        match self {
            Self::Model(error) => is_exhausted(error),
            Self::Format(error) => is_exhausted(error),
            Self::Runtime(error) => is_exhausted(error),
            Self::Interpreter(error) => is_exhausted(error),
            Self::OutOfMemory(_) => true,
            Self::Io { error, .. } => is_exhausted(error),
            Self::Incomplete(_) | Self::Tensor(_) => false,
            #[cfg(feature = "images")]
            Self::Image { error, .. } => is_exhausted(error),
        }
    }
}

/// Whether an error or one of its sources is exhausted memory.
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
