//! Options of a runner, one by one.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use xnn_interp::{Entry, ErrorKind, InterpOptions, Interpreter};
use xnn_lower::PartitionOptions;
use xnn_model::{Model, ModelLimits, SubgraphId};
use xnn_runtime::SessionOptions;

use super::Runner;
use super::resize::Origin;
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
    subgraph: SubgraphId,
    input_dims: Vec<(usize, Vec<usize>)>,
    kernels: Kernels,
    options: RunnerOptions,
}

#[derive(Clone, Debug)]
enum Source {
    File(PathBuf),
    Bytes(Bytes),
    Opened(ModelFile),
}

/// Kernels that run operators.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Kernels {
    /// XNNPACK, and reference kernels for operators that are not delegated.
    #[default]
    All,
    /// Reference kernels.
    Reference,
    /// Reference kernels, with intermediate values kept.
    ReferenceAndKeep,
}

impl ModelFile {
    /// Options for running the model or blob. Its limits are those that it was opened with.
    pub fn runner(&self) -> RunnerBuilder {
        RunnerBuilder::new(Source::Opened(self.clone()))
    }
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
        Self::new(Source::Opened(ModelFile::Model(model.clone())))
    }

    fn new(source: Source) -> Self {
        let options = RunnerOptions::default();
        let (input_dims, kernels) = (Vec::new(), Kernels::default());
        Self { source, signature: None, subgraph: 0, input_dims, kernels, options }
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

    /// Index of the subgraph that is run, unless there is a signature. Inputs and outputs have the names of the model's
    /// tensors. Default: 0, the main subgraph. Does not apply to blobs.
    pub fn subgraph(mut self, index: usize) -> Self {
        self.subgraph = index;
        self
    }

    /// Dimensions of inputs, by position, in place of those that the file states, as [`Runner::resize_inputs`] gives them
    /// later. The model is compiled once, for these dimensions.
    pub fn input_dims(mut self, dims: impl IntoIterator<Item = (usize, Vec<usize>)>) -> Self {
        self.input_dims = dims.into_iter().collect();
        self
    }

    /// Runs all operators on reference kernels and none on XNNPACK. Does not apply to blobs.
    ///
    /// ```
    /// use xnn_delegate::Runner;
    ///
    /// # fn main() -> Result<(), xnn_delegate::Error> {
    /// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/models/digits_mobilenet_v2_int8.tflite");
    /// let runner = Runner::builder(path).reference_kernels().build()?;
    /// assert_eq!(runner.coverage().delegated, 0);
    /// # Ok(()) }
    /// ```
    pub fn reference_kernels(mut self) -> Self {
        self.kernels = self.kernels.max(Kernels::Reference);
        self
    }

    /// Keeps the values of intermediate tensors for [`Runner::tensor`], which takes more memory. Implies
    /// [`RunnerBuilder::reference_kernels`], because intermediate values of partitions exist inside of XNNPACK only.
    pub fn keep_intermediates(mut self) -> Self {
        self.kernels = Kernels::ReferenceAndKeep;
        self
    }

    /// Opens the model or blob, partitions and compiles it.
    ///
    /// # Errors
    ///
    /// The errors of [`Runner::open`] and [`Runner::resize_inputs`], or there is no such signature or subgraph.
    pub fn build(self) -> Result<Runner, Error> {
        let Self { source, signature, subgraph, input_dims, kernels, options } = self;
        let dims: Vec<(usize, &[usize])> =
            input_dims.iter().map(|(index, dims)| (*index, dims.as_slice())).collect();
        let resized = |mut runner: Runner| runner.resize_inputs(&dims).map(|()| runner);
        let file = match source {
            Source::File(path) => ModelFile::open(path, &options)?,
            Source::Bytes(bytes) => ModelFile::of_bytes(bytes, &options)?,
            Source::Opened(file) => file,
        };
        let model = match file {
            ModelFile::Blob(blob) => {
                no_signature(signature.as_deref())?;
                return Runner::of_blob(blob, &options).and_then(resized);
            }
            ModelFile::Model(model) => model,
        };
        let (model, subgraph) = match signature {
            Some(key) => model.at_signature(&key)?,
            None => (model, subgraph),
        };
        if subgraph >= model.subgraphs.len() {
            let count = model.subgraphs.len();
            let message = format!("no subgraph {subgraph}: the model has {count}, from 0");
            return Err(xnn_interp::Error::from(ErrorKind::Invalid(message)).into());
        }
        let mut origin = Origin { model, subgraph, options };
        // Lowered graphs in a model are resized by XNNPACK, once they are compiled.
        let is_lowered = !origin.can_be_lowered();
        if !dims.is_empty() && !is_lowered {
            origin = origin.resized(&dims)?;
        }
        let Origin { model, subgraph, options } = origin;
        if kernels == Kernels::All {
            let runner = Runner::of_subgraph(model, subgraph, &options)?;
            return if is_lowered { resized(runner) } else { Ok(runner) };
        }
        let keep_intermediates = kernels == Kernels::ReferenceAndKeep;
        let limits = options.limits.clone();
        let reference = InterpOptions { limits, keep_intermediates, ..InterpOptions::default() };
        let interpreter = Interpreter::new(&model, Entry::Subgraph(subgraph), &reference)?;
        Ok(Runner::partial(interpreter, &options.limits))
    }
}

fn no_signature(key: Option<&str>) -> Result<(), Error> {
    let Some(key) = key else { return Ok(()) };
    let message = format!("a blob has no signatures, but signature {key:?} was requested");
    Err(xnn_interp::Error::from(ErrorKind::Invalid(message)).into())
}
