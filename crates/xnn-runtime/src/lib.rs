//! Runs XN01 graphs (XNNGraph) on XNNPACK.
//!
//! A [`Program`] is a checked graph with its constants; it is immutable and shared. A [`Session`]
//! has the memory to run a program, for one thread at a time. Graphs built in this process and
//! graphs from a `.xnn` blob are treated alike.
//!
//! ```
//! use xnn_format::{Datatype, Graph, Node, NodeOp, Quantization, UnaryOp, Value};
//! use xnn_runtime::{Program, ProgramOptions, Session, SessionOptions};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut graph = Graph::default();
//! let value = || Value::new(Datatype::F32, Quantization::None, &[1, 2]);
//! let (input, output) = (graph.push_value(value()), graph.push_value(value()));
//! graph.nodes.push(Node::new(NodeOp::Unary { op: UnaryOp::Abs, input, output }));
//! graph.inputs.push(input);
//! graph.outputs.push(output);
//!
//! let program = Program::new(graph, &ProgramOptions::default())?;
//! let mut session = Session::new(&program, &SessionOptions::default())?;
//! session.input_as_mut::<f32>(0)?.copy_from_slice(&[-1.5, 2.0]);
//! session.run()?;
//! assert_eq!(session.output_as::<f32>(0)?, [1.5, 2.0]);
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

mod bisect;
mod define;
mod element;
mod error;
mod packing;
mod profile;
mod program;
mod session;
mod threads;

pub use element::TensorElement;
pub use error::{NodePlace, Result, RuntimeError, RuntimeErrorKind, exhausted};
pub use profile::OpTiming;
pub use program::{Program, ProgramOptions, WeakProgram, compile};
pub use session::{Session, SessionOptions, TensorInfo};
pub use threads::thread_pool;
/// Types of XNNPACK's wrapper that sessions use: buffers, thread pools, workspaces and weights
/// caches.
pub use xnnpack::{
    AlignedBuffer, Binding, ExternalId, MAX_DYNAMIC_TAPS, OutputSlice, PaddedSlice, RawRun,
    ThreadPool, WeightsCache, Workspace, has_exact_dynamic_convolutions, has_fast_uint8,
    instruction_sets, isa_levels, processor,
};

/// Returns the newest instruction set that this process may use; see [`xnnpack::isa_limit`].
///
/// # Errors
/// `XNN_MAX_ISA` is not one of [`isa_levels`].
pub fn isa_limit() -> Result<Option<&'static str>> {
    Ok(xnnpack::isa_limit()?)
}
