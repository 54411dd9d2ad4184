//! C API of this project. `docs/c-api.md` describes it, and `include/xnn.h` is generated from these sources.
//!
//! The public documentation in this crate is that of the C header, so that it is written for C programmers. The header's
//! introduction (`cbindgen.toml`) states the rules for pointers, ownership and threads.

#![allow(non_camel_case_types, reason = "the names of the C header")]
#![allow(clippy::missing_safety_doc, reason = "the header states the rules for pointers once")]

mod arguments;
mod binding;
mod bytes;
mod convert;
mod core;
mod element;
mod error;
mod explain;
mod log_callback;
mod memory;
mod model;
mod options;
mod session;
mod tensor;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic, reason = "tests")]
mod tests;
mod text;
mod version;
