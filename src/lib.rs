//! An XNNPACK delegate backend for TFLite and Circle models.
//!
//! ```no_run
//! use xnn_delegate::{Session, SessionOptions, open};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // A model is partitioned, lowered and compiled; a blob is mapped.
//! let program = open("mobilenet.tflite")?;
//! let mut session = Session::new(&program, &SessionOptions::default())?;
//! session.input_as_mut::<f32>(0)?.fill(0.5);
//! session.run()?;
//! let probabilities: &[f32] = session.output_as(0)?;
//! # Ok(()) }
//! ```
//!
//! [`Runner`] runs models that do not go to XNNPACK whole, too: reference
//! kernels compute the rest.
//!
//! The steps are there one by one, too: [`Model::open`], [`Delegation::new`]
//! (decisions with reasons), [`convert`] (an `.xnn` file), [`Blob::open`].

#![forbid(unsafe_code)]

mod classes;
mod compile;
mod convert;
mod coverage;
mod deferred;
mod delegation;
mod description;
mod error;
#[cfg(feature = "images")]
pub mod images;
mod inputs;
mod interpreter_delegate;
mod numbers;
mod partial;
mod runner;
mod tensor_spec;
mod verify;

pub use classes::{Calibration, Classes, Scores, fit_names};
pub use compile::{XnnpackCompiler, compile_error, target_features};
pub use convert::{ConvertOptions, Converted, Source, convert, is_blob, open, open_with, pack};
pub use coverage::Coverage;
pub use delegation::{Delegation, Incomplete, analyze, reanalyze};
pub use description::Description;
pub use error::Error;
pub use interpreter_delegate::{XnnpackDelegate, interpreter};
pub use runner::{Runner, RunnerOptions};
pub use tensor_spec::TensorSpec;
pub use verify::{Deviation, Scale, Skipped, Special, Verification, Verifier, why_undefined};

pub use xnn_format::{Blob, CUSTOM_OPERATOR, Compat, Datatype, Graph, Quantization};
pub use xnn_interp::{ArenaUse, CancelFlag, Entry, InterpOptions, Interpreter};
pub use xnn_lower::explain::Report;
pub use xnn_lower::optimize;
pub use xnn_lower::{
    Decision, Deferred, DynamicRange, NamedTensor, Partition, PartitionOptions, Partitioning,
    UnknownName, WhyNot, embedded_graph, operator_name,
};
pub use xnn_model::metadata;
pub use xnn_model::write::{to_circle, to_tflite};
pub use xnn_model::{
    Amplification, DType, Demand, Dialect, Model, ModelLimits, OutOfMemory, Subgraph,
};
pub use xnn_runtime::{Program, ProgramOptions, Session, SessionOptions, TensorInfo};

/// Facts about this build, for `--version` and for what blobs say of their producer.
pub mod build {
    /// Version of this project.
    pub const VERSION: &str = env!("CARGO_PKG_VERSION");
    /// Revision of XNNPACK.
    pub const XNNPACK_REVISION: &str = env!("XNN_XNNPACK_REVISION");
    /// First digits of the SHA-256 of the XN01 schema.
    pub const XN01_SCHEMA: &str = env!("XNN_XN01_SCHEMA");
}
