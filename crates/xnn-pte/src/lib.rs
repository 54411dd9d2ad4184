//! Reads ExecuTorch programs (`.pte` files) and their XNNPACK graphs.
//!
//! [`PteProgram`] reads the methods of a program and their delegates with the payloads for the
//! backends. [`PteProgram::xnnpack_graph`] reads the XN01 graph in the payload of an XNNPACK
//! delegate. ExecuTorch since 0.6 stores constants outside of the payload; a program is a
//! [`ConstantSource`](xnn_format::ConstantSource) of these named data.
//!
//! This crate does not run programs. Operators outside of delegates are listed by name.

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

mod decode;
mod error;
mod generated;
mod graph;
mod header;
mod limits;
mod open;
mod program;

pub use error::{Error, ErrorKind, Place};
pub use graph::{NamedConstant, XnnpackGraph};
pub use limits::PteLimits;
pub use open::is_program;
pub use program::{
    Argument, CompileSpec, Delegate, Method, Operator, PteProgram, TensorType, XNNPACK_BACKEND,
};
