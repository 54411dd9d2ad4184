//! The XN01 graph and the `.xnn` container.
//!
//! [`Graph`] is the typed mirror of the flatbuffer schema `xnn_graph.fbs`,
//! which is ExecuTorch's with members of our own. [`write()`] makes a
//! self-contained file of one; [`Blob`] reads such files and ExecuTorch's
//! payloads. [`Graph::check`] says whether a graph is one that may reach
//! XNNPACK; reader and writer call it, and whoever builds a graph in memory
//! should. `docs/blob-format.md` describes the bytes.

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

mod blob;
mod compat;
mod decode;
mod encode;
mod error;
mod files;
mod generated;
mod graph;
mod header;
mod limits;
mod node;
mod operands;
mod packed;
mod shape;
mod source;
mod trailer;
mod validate;
mod wire;
mod work;
mod writer;

pub use blob::{Blob, BlobInfo, ReadOptions, readable_behind};
pub use compat::Compat;
pub use error::{Error, ErrorKind, Place};
pub use files::write_atomic;
pub use graph::{Datatype, Graph, Origin, Quantization, Value, ValueId};
pub use header::Header;
pub use limits::{GraphLimits, MAX_RANK};
pub use node::{
    BinaryOp, Conv2d, Node, NodeOp, OutputRange, Padding2d, Pooling2d, ReduceOp, Size2d, UnaryOp,
    flags,
};
pub use operands::Operands;
pub use packed::{
    PackedEntry, PackedKey, PackedSection, constants_digest, digest, graph_digest, packing_digest,
    with_packed,
};
pub use source::{ConstantFolder, ConstantSource};
pub use writer::{ALIGNMENT, PADDING, WriteOptions, write};
pub use xnn_file::{Amplification, Demand, Excess, OutOfMemory};

/// Name of the custom operator by which a TFLite or Circle model holds a file
/// of this format, as the operator's custom options. Its inputs and outputs
/// are the graph's, in the graph's order.
pub const CUSTOM_OPERATOR: &str = "XNNGraph";
