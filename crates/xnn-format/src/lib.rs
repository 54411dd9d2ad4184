//! The XNNGraph and the `.xnn` container (blobs).
//!
//! [`Graph`] is the typed form of the flatbuffer schema `xnn_graph.fbs`,
//! ExecuTorch's schema (identifier `XN01`) with additional members.
//! [`write()`] serializes a graph to a self-contained file; [`Blob`] reads
//! such files and ExecuTorch's payloads. [`Graph::check`] checks that a graph
//! is safe to pass to XNNPACK. Reader and writer call it; programs that build a
//! graph in memory should, too. `docs/blob-format.md` describes the bytes.
//!
//! ```
//! use xnn_format::{
//!     Blob, Datatype, Graph, Node, NodeOp, Quantization, UnaryOp, Value, WriteOptions, write,
//! };
//!
//! # fn main() -> Result<(), xnn_format::Error> {
//! let mut graph = Graph::default();
//! let value = Value::new(Datatype::F32, Quantization::None, &[1, 8]);
//! let input = graph.push_value(value.clone());
//! let output = graph.push_value(value);
//! graph.nodes.push(Node::new(NodeOp::Unary { op: UnaryOp::Exp, input, output }));
//! (graph.inputs, graph.outputs) = (vec![input], vec![output]);
//!
//! let bytes = write(&graph, &WriteOptions::default())?;
//! assert_eq!(**Blob::from_bytes(bytes)?.graph(), graph);
//! # Ok(())
//! # }
//! ```

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

mod blob;
mod compat;
mod decode;
mod digest;
mod encode;
mod error;
mod files;
mod generated;
mod graph;
mod header;
mod layout;
mod limits;
mod node;
mod operands;
mod packed;
mod parameters;
mod shape;
mod source;
mod trailer;
mod validate;
mod value;
mod wire;
mod work;
mod writer;

pub use blob::{Blob, BlobInfo, ReadOptions, readable_behind};
pub use compat::Compat;
pub use digest::{constants_digest, digest, graph_digest, packing_digest};
pub use error::{Error, ErrorKind, Place};
pub use files::write_atomic;
pub use graph::{Graph, Origin};
pub use header::Header;
pub use layout::{ALIGNMENT, PADDING};
pub use limits::{GraphLimits, MAX_RANK};
pub use node::{Node, NodeOp, OutputRange, flags};
pub use operands::Operands;
pub use packed::{PackedEntry, PackedKey, PackedSection};
pub use parameters::{BinaryOp, Conv2d, Padding2d, Pooling2d, ReduceOp, Size2d, UnaryOp};
pub use source::{ConstantFolder, ConstantSource};
pub use value::{Datatype, Quantization, Value, ValueId};
pub use writer::{WriteOptions, with_packed, write};
pub use xnn_file::{Amplification, Demand, Excess, OutOfMemory};

/// Name of the custom operator that embeds a blob in a TFLite or Circle model. The operator's
/// custom options are the blob; its inputs and outputs are the graph's, in the graph's order.
pub const CUSTOM_OPERATOR: &str = "XNNGraph";
