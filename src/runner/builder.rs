//! Options of a runner, one by one.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use xnn_interp::ErrorKind;
use xnn_lower::PartitionOptions;
use xnn_model::{Model, ModelLimits};
use xnn_runtime::SessionOptions;

use super::Runner;
use crate::error::Error;
use crate::model_file::ModelFile;
use crate::options::RunnerOptions;

/// Options for opening a model or blob as a [`Runner`].
///
/// ```
/// use xnn_delegate::{Runner, RunnerBuilder};
///
/// # fn main() -> Result<(), xnn_delegate::Error> {
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/models/digits_mobilenet_v2_fp32.tflite");
/// # let folder = tempfile::tempdir().unwrap();
/// let runner = Runner::builder(path)
///     .threads(2)
///     .cache_dir(folder.path())
///     .build()?;
/// # let _ = runner;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct RunnerBuilder {
    source: Source,
    signature: Option<String>,
    options: RunnerOptions,
}

#[derive(Clone, Debug)]
enum Source {
    File(PathBuf),
    Bytes(Bytes),
    Opened(ModelFile),
}

impl RunnerBuilder {
    /// Opens a model (TFLite or Circle) or a blob. The content tells which of them the file is.
    pub fn from_file(path: impl AsRef<Path>) -> Self {
        Self::new(Source::File(path.as_ref().to_owned()))
    }

    /// Opens the content of a model or blob. Aligned content is used in place, other content is copied.
    pub fn from_bytes(bytes: impl AsRef<[u8]> + Send + 'static) -> Self {
        Self::new(Source::Bytes(Bytes::from_owner(bytes)))
    }

    /// Runs a model that is open already.
    pub fn from_model(model: &Model) -> Self {
        Self::from_opened(&ModelFile::Model(model.clone()))
    }

    /// Runs a model or blob that is open already. Its limits are those that it was opened with.
    pub(crate) fn from_opened(file: &ModelFile) -> Self {
        Self::new(Source::Opened(file.clone()))
    }

    fn new(source: Source) -> Self {
        Self { source, signature: None, options: RunnerOptions::default() }
    }

    /// Replaces all options but the signature.
    pub fn options(self, options: RunnerOptions) -> Self {
        Self { options, ..self }
    }

    /// Number of threads that compute, the calling one included. There are never more than processors. Default: 1.
    pub fn threads(mut self, threads: usize) -> Self {
        self.options.session.threads = threads;
        self
    }

    /// Threads and memory of XNNPACK.
    pub fn session(mut self, session: SessionOptions) -> Self {
        self.options.session = session;
        self
    }

    /// Operators and partitions that are delegated. Does not apply to blobs.
    pub fn partition(mut self, partition: PartitionOptions) -> Self {
        self.options.partition = partition;
        self
    }

    /// Folder in which packed weights are stored for later processes. Default: none.
    ///
    /// Any number of processes and models may share the folder, and it may be emptied at any time. A user who can write to it
    /// can change what models compute.
    pub fn cache_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.options.program.cache_dir = Some(folder.into());
        self
    }

    /// Limits for files, tensors, loops and calls.
    pub fn limits(mut self, limits: ModelLimits) -> Self {
        self.options.limits = limits;
        self
    }

    /// Key of the signature that is run. Inputs and outputs have the signature's names. Default: the main subgraph.
    pub fn signature(mut self, key: impl Into<String>) -> Self {
        self.signature = Some(key.into());
        self
    }

    /// Opens the model or blob, partitions and compiles it.
    ///
    /// # Errors
    ///
    /// The errors of [`Runner::open`], or there is no such signature.
    pub fn build(self) -> Result<Runner, Error> {
        let Self { source, signature, options } = self;
        let file = match source {
            Source::File(path) => ModelFile::open(path, &options)?,
            Source::Bytes(bytes) => ModelFile::of_bytes(bytes, &options)?,
            Source::Opened(file) => file,
        };
        let model = match file {
            ModelFile::Blob(blob) => {
                no_signature(signature.as_deref())?;
                return Runner::of_blob(blob, &options);
            }
            ModelFile::Model(model) => model,
        };
        let (model, subgraph) = match signature {
            Some(key) => model.at_signature(&key)?,
            None => (model, 0),
        };
        Runner::of_subgraph(model, subgraph, &options)
    }
}

fn no_signature(key: Option<&str>) -> Result<(), Error> {
    let Some(key) = key else { return Ok(()) };
    let message = format!("a blob has no signatures, but signature {key:?} was requested");
    Err(xnn_interp::Error::from(ErrorKind::Invalid(message)).into())
}
