//! A model or blob that is open, for any number of runners.

use std::path::Path;

use bytes::Bytes;
use xnn_format::{Blob, ReadOptions};
use xnn_model::{Model, OutOfMemory};
use xnn_runtime::AlignedBuffer;

use crate::error::Error;
use crate::file_kind::{begins_like_blob, is_blob};
use crate::options::RunnerOptions;

/// Alignment in bytes of a file's content, as a mapping has it at least.
const ALIGNMENT: usize = 64;

/// A model or a blob, read once for any number of runners. The content tells which of them the file is.
///
/// Clones share the content.
///
/// ```
/// use xnn_delegate::{ModelFile, RunnerOptions};
///
/// # fn main() -> Result<(), xnn_delegate::Error> {
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/models/digits_mobilenet_v2_fp32.tflite");
/// let file = ModelFile::open(path, &RunnerOptions::default())?;
/// let fast = file.runner().threads(2).build()?;
/// let small = file.runner().build()?;
/// # let _ = (fast, small);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub enum ModelFile {
    /// A TFLite or Circle model.
    Model(Model),
    /// A `.xnn` file.
    Blob(Blob),
}

impl ModelFile {
    /// Opens a model or blob within the limits of `options`.
    ///
    /// # Errors
    ///
    /// The file cannot be read, is of another kind, or is damaged; a limit is exceeded.
    pub fn open(path: impl AsRef<Path>, options: &RunnerOptions) -> Result<Self, Error> {
        let path = path.as_ref();
        if is_blob(path)? {
            return Ok(Self::Blob(Blob::open_with(path, &reading(options))?));
        }
        Ok(Self::Model(Model::open_with(path, &options.limits)?))
    }

    /// Reads the content of a model or blob within the limits of `options`. Aligned content is used in place, other content
    /// is copied.
    ///
    /// # Errors
    ///
    /// The content is of another kind, or is damaged; a limit is exceeded.
    pub fn from_bytes(
        bytes: impl AsRef<[u8]> + Send + 'static,
        options: &RunnerOptions,
    ) -> Result<Self, Error> {
        Self::of_bytes(Bytes::from_owner(bytes), options)
    }

    pub(crate) fn of_bytes(bytes: Bytes, options: &RunnerOptions) -> Result<Self, Error> {
        let is_blob = begins_like_blob(&bytes);
        let bytes = aligned(bytes)?;
        if is_blob {
            return Ok(Self::Blob(Blob::from_bytes_with(bytes, &reading(options))?));
        }
        Ok(Self::Model(Model::from_bytes_with(bytes, &options.limits)?))
    }
}

fn reading(options: &RunnerOptions) -> ReadOptions<'static> {
    ReadOptions { limits: options.graph_limits(), constants: None }
}

/// The content in memory that is aligned as a mapped file.
fn aligned(bytes: Bytes) -> Result<Bytes, Error> {
    if bytes.as_ptr().addr().is_multiple_of(ALIGNMENT) {
        return Ok(bytes);
    }
    let copy = AlignedBuffer::try_copy_of(&bytes)
        .map_err(|_| OutOfMemory::new("an aligned copy of the file", bytes.len()))?;
    Ok(Bytes::from_owner(copy))
}
