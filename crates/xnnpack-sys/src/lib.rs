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

/// The features of this processor by which XNNPACK chooses microkernels, in words such as `avx512f`; `None` where the
/// library cannot tell: it was not compiled here, or not for x86-64.
#[must_use]
pub fn processor_features() -> Option<impl Iterator<Item = &'static str>> {
    #[cfg(all(xnnpack_sys_own, target_arch = "x86_64"))]
    let name = {
        unsafe extern "C" {
            safe fn xnnpack_sys_feature(index: usize) -> *const core::ffi::c_char;
        }
        Some(xnnpack_sys_feature)
    };
    #[cfg(not(all(xnnpack_sys_own, target_arch = "x86_64")))]
    let name: Option<extern "C" fn(usize) -> *const core::ffi::c_char> = None;
    name.map(|name| {
        let names = (0..).map(move |index: usize| name(index)).take_while(|name| !name.is_null());
        // SAFETY: what is not null is a constant string.
        let names = names.map(|name| unsafe { core::ffi::CStr::from_ptr(name) });
        names.filter_map(|name| name.to_str().ok()).filter(|name| !name.is_empty())
    })
}

/// Takes `size` bytes of weights that XNNPACK has read while it packs them, and will not read again.
pub type PackedFn = unsafe extern "C" fn(
    context: *mut core::ffi::c_void,
    weights: *const core::ffi::c_void,
    size: usize,
);

#[cfg(xnnpack_sys_own)]
unsafe extern "C" {
    fn xnnpack_sys_tell_packed(packed: Option<PackedFn>, context: *mut core::ffi::c_void);
    fn xnnpack_sys_set_threads(runtime: xnn_runtime_t, threads: pthreadpool_t);
}

/// Has a runtime computed by other threads, or for null by the calling one, from its next reshape on; an XNNPACK that was not
/// compiled here keeps those that it has.
///
/// # Safety
/// `runtime` is live, and reshaped before it runs again; `threads` is null or lives as long as it.
pub unsafe fn set_threads(runtime: xnn_runtime_t, threads: pthreadpool_t) {
    #[cfg(xnnpack_sys_own)]
    // SAFETY: the caller vouches for both.
    unsafe {
        xnnpack_sys_set_threads(runtime, threads);
    }
    #[cfg(not(xnnpack_sys_own))]
    let _ = (runtime, threads);
}

/// From now on weights that are packed on this thread are packed some rows at a time, and `packed` is called with each slice but
/// the last; `None` ends it. An XNNPACK that was not compiled here (`csrc/pack_slices.h`) packs weights at once and tells nothing.
///
/// # Safety
/// Until it ends `packed` can be called with `context`, and returns.
pub unsafe fn tell_packed(packed: Option<PackedFn>, context: *mut core::ffi::c_void) {
    #[cfg(xnnpack_sys_own)]
    // SAFETY: the caller vouches for both.
    unsafe {
        xnnpack_sys_tell_packed(packed, context);
    }
    #[cfg(not(xnnpack_sys_own))]
    let _ = (packed, context);
}

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
