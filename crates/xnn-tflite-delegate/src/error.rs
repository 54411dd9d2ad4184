//! Errors of calls from the interpreter.

use std::any::Any;
use std::ffi::c_int;

use xnn_model::TensorId;

pub(crate) type Result<T> = std::result::Result<T, Error>;

/// Reason why a call from the interpreter fails.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("the interpreter does not provide {0}; TFLite 2.13 or later is required")]
    NoFunction(&'static str),
    #[error("the interpreter's {function} failed with status {status}")]
    Refused { function: &'static str, status: c_int },
    #[error("node {0} does not exist")]
    NoNode(c_int),
    #[error("tensor {0} does not exist")]
    NoTensor(TensorId),
    #[error("node {node}: tensor {tensor} does not exist")]
    TensorIndex { node: c_int, tensor: c_int },
    #[error("tensor {0}: a dimension exceeds the range of TFLite's 32-bit integers")]
    TooLarge(TensorId),
    #[error("no kernel was prepared for the nodes {0:?}")]
    UnknownNodes(Vec<c_int>),
    #[error("out of memory")]
    OutOfMemory,
    #[error("the node has no kernel")]
    NoKernel,
    #[error("{0}")]
    Init(String),
    #[error("tensor {id}: expected {expected} bytes of memory, found {found}")]
    Memory { id: TensorId, found: usize, expected: usize },
    #[error("the partition does not accept inputs of these shapes: {0}")]
    Shapes(String),
    #[error("operator {operator} (XNNGraph): {why}")]
    Stored { operator: usize, why: xnn_lower::WhyNot },
    #[error("{0}: its window does not fit into its input")]
    Starved(String),
    #[error("tensor {id} {name:?}: its shape is not known before the run")]
    UnknownShape { id: TensorId, name: String },
    #[error("{}: {error}", path.display())]
    Explain { path: std::path::PathBuf, error: std::io::Error },
    #[error(transparent)]
    Exhausted(#[from] xnn_model::OutOfMemory),
    #[error(transparent)]
    Runtime(#[from] xnn_runtime::RuntimeError),
    #[error(transparent)]
    Hosted(#[from] xnn::Error),
}

/// Message of a panic.
pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> String {
    let said = panic.downcast_ref::<&str>().copied();
    let said = said.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("internal error: {}", said.unwrap_or("unknown"))
}
