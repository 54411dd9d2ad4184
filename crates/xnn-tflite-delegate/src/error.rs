//! What can go wrong inside an interpreter.

use std::ffi::c_int;

use xnn_model::TensorId;

pub(crate) type Result<T> = std::result::Result<T, Error>;

/// Why a call from the interpreter fails.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("the runtime has no function {0}; TF 2.13 is the oldest that is supported")]
    NoFunction(&'static str),
    #[error("{function} fails with status {status}")]
    Refused { function: &'static str, status: c_int },
    #[error("there is no node {0}")]
    NoNode(c_int),
    #[error("there is no tensor {0}")]
    NoTensor(TensorId),
    #[error("node {node} names the tensor {tensor}, which does not exist")]
    TensorIndex { node: c_int, tensor: c_int },
    #[error("tensor {0} has a dimension that TFLite cannot express")]
    TooLarge(TensorId),
    #[error("the interpreter has no kernel of this delegate for the nodes {0:?}")]
    UnknownNodes(Vec<c_int>),
    #[error("memory is exhausted")]
    OutOfMemory,
    #[error("the node has no kernel")]
    NoKernel,
    #[error("{0}")]
    Init(String),
    #[error("tensor {id} has {found} bytes of memory where {expected} are needed")]
    Memory { id: TensorId, found: usize, expected: usize },
    #[error("the partition cannot be computed with inputs of these shapes: {0}")]
    Shapes(String),
    #[error("operator {operator} (XNNGraph): {why}")]
    Stored { operator: usize, why: xnn_lower::WhyNot },
    #[error("{0} has windows that do not fit into its input")]
    Starved(String),
    #[error("the shape of tensor {id} ({name:?}) is not known before the run")]
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
