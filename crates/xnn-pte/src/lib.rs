//! ExecuTorch programs: what a `.pte` file holds for XNNPACK.
//!
//! [`PteProgram`] reads the methods of such a file and the delegates that they
//! call, each with the payload that its backend gets. For those of the XNNPACK
//! backend, [`PteProgram::xnnpack_graph`] reads the XN01 graph in the payload, with the
//! constants that ExecuTorch since 0.6 keeps apart from it: a program is a
//! [`ConstantSource`](xnn_format::ConstantSource) of its named data.
//!
//! Nothing here runs a program; operators outside of delegates are only named.

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

mod decode;
mod error;
mod generated;
mod graph;
mod header;
mod limits;
mod program;

pub use error::{Error, ErrorKind, Place};
pub use graph::{NamedConstant, XnnpackGraph};
pub use limits::PteLimits;
pub use program::{
    Argument, CompileSpec, Delegate, Method, Operator, PteProgram, TensorType, XNNPACK_BACKEND,
    is_program,
};
