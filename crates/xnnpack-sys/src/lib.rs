//! Raw FFI to [XNNPACK](https://github.com/google/XNNPACK), built from vendored sources.
//!
//! Names, signatures and meanings are those of `xnnpack.h` and `pthreadpool.h`; the headers are the
//! reference. A C enumeration is a newtype over its integer with one global constant per enumerator,
//! so that a value which the bindings do not know stays representable.
//!
//! How the library is found or compiled is told in this crate's README. The safe wrapper is the
//! crate `xnnpack`.

#![no_std]

#[allow(
    missing_docs,
    non_camel_case_types,
    non_upper_case_globals,
    clippy::allow_attributes_without_reason,
    reason = "generated from C headers, which document the items"
)]
mod bindings {
    #[cfg(not(feature = "bindgen"))]
    include!("bindings.rs");
    #[cfg(feature = "bindgen")]
    include!(concat!(env!("OUT_DIR"), "/bindings.rs"));
}

pub use bindings::*;

/// What the linked library is made of; known at compile time.
pub mod build {
    /// Commit of XNNPACK, abbreviated; `unknown` for any but the vendored sources.
    pub const REVISION: &str = env!("XNNPACK_REVISION");
    /// Where the library comes from: `vendored`, `checkout`, `system`, or `none` on docs.rs.
    pub const SOURCE: &str = env!("XNNPACK_SOURCE");
    /// Instruction sets that have their own microkernels, separated by blanks; empty for a
    /// library that was not compiled here.
    pub const INSTRUCTION_SETS: &str = env!("XNNPACK_INSTRUCTION_SETS");
    /// Whether `set` is one of [`INSTRUCTION_SETS`].
    #[must_use]
    pub fn has(set: &str) -> bool {
        INSTRUCTION_SETS.split_whitespace().any(|known| known == set)
    }

    /// Instruction sets of the target that the C compiler could not build.
    pub const LEFT_OUT: &str = env!("XNNPACK_LEFT_OUT");
}
