//! Replays XN01 graphs on XNNPACK.
//!
//! A [`Program`] is a checked graph with its constants, ready for XNNPACK; it does not change and is
//! shared. A [`Session`] is what one thread runs it with. Graphs built in this process and graphs
//! from a `.xnn` blob take the same way.
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
/// What sessions are given: memory to read and write, threads, shared memory, packed weights.
pub use xnnpack::{
    AlignedBuffer, Binding, ExternalId, MAX_DYNAMIC_TAPS, OutputSlice, PaddedSlice, ThreadPool,
    WeightsCache, Workspace, has_exact_dynamic_convolutions, has_fast_uint8,
};
