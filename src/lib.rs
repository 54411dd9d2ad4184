//! Runs TFLite and Circle models on [XNNPACK](https://github.com/google/XNNPACK), and converts them to self-contained
//! `.xnn` files (blobs).
//!
//! ```
//! use xnn_delegate::Runner;
//!
//! # fn main() -> Result<(), xnn_delegate::Error> {
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/models/digits_mobilenet_v2_fp32.tflite");
//! // A .tflite, .circle or .xnn file.
//! let mut runner = Runner::builder(path).threads(2).build()?;
//! runner.input_as_mut::<f32>(0)?.fill(0.5);
//! runner.run()?;
//! let probabilities: &[f32] = runner.output_as(0)?;
//! println!("{:?}", probabilities.iter().copied().reduce(f32::max));
//! # Ok(()) }
//! ```
//!
//! [`Runner`] runs every model: operators that are not delegated to XNNPACK run on reference kernels. [`convert`] writes
//! a blob, or a model that holds blobs. The steps in between have modules of their own:
//!
//! | module | what it is for |
//! |---|---|
//! | [`tensor`] | keys, element types and views of inputs and outputs |
//! | [`model`] | the model as data; writing it in either format |
//! | [`metadata`], [`classes`] | what a model documents: its inputs and outputs, labels, normalization |
//! | [`lower`] | partitioning and lowering: which operators are delegated, and the reasons for the others |
//! | [`blob`] | `.xnn` files and the graphs in them |
//! | [`runtime`] | programs and sessions, which run a graph on XNNPACK without an interpreter |
//! | [`interpreter`] | the interpreter with reference kernels, and XNNPACK as its delegate |
//! | [`verify`] | comparison of XNNPACK with the reference kernels, operator by operator |
//!
//! # Features
//!
//! Both are off by default.
//!
//! - `images`: module `images`, which decodes image files and writes them to inputs, resized and normalized.
//! - `ndarray`: `Runner::input_array_mut`, `Runner::output_array` and `View::from_array`, which view tensors as arrays of
//!   the `ndarray` crate.

#![forbid(unsafe_code)]

pub mod classes;
mod compile;
mod convert;
mod coverage;
mod deferred;
mod delegation;
mod description;
mod error;
mod file_kind;
#[cfg(feature = "images")]
pub mod images;
mod incomplete;
mod interpreter_delegate;
mod model_file;
mod numbers;
mod open;
mod options;
mod runner;
pub mod tensor;
mod tensor_spec;
pub mod verify;

pub use convert::{ConvertOptions, Converted, Source, convert};
pub use coverage::Coverage;
pub use error::Error;
pub use model_file::ModelFile;
pub use options::RunnerOptions;
pub use runner::{Runner, RunnerBuilder};
pub use tensor_spec::TensorSpec;
pub use xnn_interp::CancelFlag;
pub use xnn_lower::PartitionOptions;
pub use xnn_model::{DType, Model, ModelLimits};
pub use xnn_runtime::SessionOptions;

/// Models as data, and how they are written.
pub mod model {
    pub use xnn_model::write::{to_circle, to_tflite};
    pub use xnn_model::{Amplification, Demand, Dialect, OutOfMemory, Subgraph};
}

/// Metadata M001 of models, and the files that come with them.
pub mod metadata {
    pub use crate::description::Description;
    pub use xnn_model::metadata::*;
}

/// Partitioning and lowering of subgraphs.
///
/// ```
/// use xnn_delegate::lower::Delegation;
/// use xnn_delegate::{Model, PartitionOptions};
///
/// # fn main() -> Result<(), xnn_delegate::Error> {
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/models/digits_mobilenet_v2_fp32.tflite");
/// let model = Model::open(path)?;
/// let main = model.main().unwrap();
/// let delegation = Delegation::new(main, &PartitionOptions::default())?;
/// println!("{}", delegation.report().summary);
/// # Ok(()) }
/// ```
pub mod lower {
    pub use crate::compile::{XnnpackCompiler, compile_error, target_features};
    pub use crate::delegation::{Delegation, analyze, reanalyze};
    pub use crate::incomplete::Incomplete;
    pub use xnn_lower::explain::Report;
    pub use xnn_lower::optimize;
    pub use xnn_lower::{
        Decision, Deferred, DynamicRange, NamedTensor, Partition, Partitioning, UnknownName,
        WhyNot, embedded_graph, operator_name,
    };
}

/// `.xnn` files and the graphs in them.
///
/// ```
/// use xnn_delegate::blob::Blob;
/// use xnn_delegate::{ConvertOptions, Model, Source, convert};
///
/// # fn main() -> Result<(), xnn_delegate::Error> {
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/models/digits_mobilenet_v2_fp32.tflite");
/// let converted = convert(&Model::open(path)?, &Source::default(), &ConvertOptions::default())?;
/// let blob = Blob::from_bytes(converted.into_bytes())?;
/// assert_eq!(blob.graph().inputs.len(), 1);
/// # Ok(()) }
/// ```
pub mod blob {
    pub use crate::convert::pack;
    pub use crate::file_kind::is_blob;
    pub use xnn_format::{Blob, CUSTOM_OPERATOR, Compat, Datatype, Graph, Quantization};
}

/// Programs and sessions, which run a graph on XNNPACK without an interpreter.
///
/// ```
/// use xnn_delegate::SessionOptions;
/// use xnn_delegate::runtime::{Session, open};
///
/// # fn main() -> Result<(), xnn_delegate::Error> {
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/models/digits_mobilenet_v2_fp32.tflite");
/// let program = open(path)?;
/// let mut session = Session::new(&program, &SessionOptions::default())?;
/// session.input_as_mut::<f32>(0)?.fill(0.5);
/// session.run()?;
/// # Ok(()) }
/// ```
pub mod runtime {
    pub use crate::open::{open, open_with};
    pub use xnn_runtime::{
        AlignedBuffer, Binding, ExternalId, OpTiming, OutputSlice, PaddedSlice, Program,
        ProgramOptions, Session, TensorElement, TensorInfo, ThreadPool, WeightsCache, Workspace,
    };
}

/// The interpreter with reference kernels, and XNNPACK as its delegate.
pub mod interpreter {
    pub use crate::interpreter_delegate::{XnnpackDelegate, interpreter};
    pub use xnn_interp::{ArenaUse, Entry, InterpOptions, Interpreter, TensorView};
}

/// Facts about this build, for `--version` and for the producer that blobs record.
pub mod build {
    /// Version of this project.
    pub const VERSION: &str = env!("CARGO_PKG_VERSION");
    /// Revision of XNNPACK.
    pub const XNNPACK_REVISION: &str = env!("XNN_XNNPACK_REVISION");
    /// First digits of the SHA-256 of the XN01 schema.
    pub const XN01_SCHEMA: &str = env!("XNN_XN01_SCHEMA");

    /// Returns the newest instruction set that this process may use: the value of the environment variable `XNN_MAX_ISA`. `None`
    /// means all that the processor has.
    ///
    /// # Errors
    ///
    /// The variable is not one of [`isa_levels`]. Models and blobs cannot be opened then.
    pub fn isa_limit() -> Result<Option<&'static str>, crate::Error> {
        Ok(xnn_runtime::isa_limit()?)
    }

    pub use xnn_runtime::{instruction_sets, isa_levels, processor};
}
