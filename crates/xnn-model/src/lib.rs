//! Reads TFLite and Circle models into one intermediate representation, and writes them.
//!
//! A file is mapped, verified once, and converted to plain data ([`Model`]): typed operators,
//! tensors, quantization, signatures. Constants are views of the file's bytes.

#![deny(unsafe_code)]

pub mod audio;
mod check;
mod demand;
mod diagnostics;
mod dialect;
mod error;
pub mod flexbuffer;
mod fp16_weights;
mod generated;
mod graph;
pub mod infer;
mod limits;
pub mod metadata;
pub mod op;
mod prune;
mod reader;
mod resize;
mod schedule;
mod signature;
mod sparse;
mod types;
pub mod write;

pub use demand::{Shape, macs, work};
pub use error::{Error, ErrorKind, Place};
pub use fp16_weights::fp16_weights;
pub use graph::{
    Dialect, Metadata, Model, Operator, Signature, SparseDimension, Sparsity, Subgraph, Tensor,
};
pub use infer::{Inferred, infer, infer_op_shapes, infer_shapes};
pub use limits::ModelLimits;
pub use op::Op;
pub use schedule::{dependencies, execution_order};
pub use sparse::densified;
pub use types::{DType, Quantization, SubgraphId, TensorId, ZeroPoints, element_count};
pub use xnn_file::{Amplification, Demand, Excess, OutOfMemory, memory};
