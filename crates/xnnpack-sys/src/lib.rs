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

/// For `xnn_define_fully_connected` of fp32, but with `XNN_FLAG_TRANSPOSE_WEIGHTS`: the filter's numbers are all the same in fp16,
/// and stay in fp16 when they are packed, where the processor has AVX512F and XNNPACK was compiled here, from 32 output channels on. Each run widens them, for
/// which there is time with up to 8 rows of input. `XNNPACK_SYS_HALF_WEIGHTS` in `csrc/gemm_f32.h`.
pub const FLAG_HALF_WEIGHTS: u32 = 1 << 30;

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
    fn xnnpack_sys_count_operators(runtime: xnn_runtime_t) -> usize;
    fn xnnpack_sys_run_operators(
        runtime: xnn_runtime_t,
        alone: *const bool,
        first: usize,
        end: usize,
    ) -> xnn_status;
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

/// How many operators [`run_operators`] can run one by one: those of a runtime, or all as one where XNNPACK was not compiled here.
///
/// # Safety
/// `runtime` is live.
#[must_use]
pub unsafe fn count_operators(runtime: xnn_runtime_t) -> usize {
    #[cfg(xnnpack_sys_own)]
    // SAFETY: the caller vouches for the runtime.
    unsafe {
        xnnpack_sys_count_operators(runtime)
    }
    #[cfg(not(xnnpack_sys_own))]
    {
        let _ = runtime;
        1
    }
}

/// Runs the operators of `range` in their order, as `xnn_invoke_runtime` does all of them, but those that are to be `alone` by
/// the calling thread. No time is taken for a profile.
///
/// # Safety
/// As for `xnn_invoke_runtime`; the operators before `range` have run, with the same memory. The range ends where `alone` does
/// at the latest, which has one element for each of [`count_operators`].
pub unsafe fn run_operators(
    runtime: xnn_runtime_t,
    alone: &[bool],
    range: core::ops::Range<usize>,
) -> xnn_status {
    #[cfg(xnnpack_sys_own)]
    // SAFETY: the caller vouches for the runtime and the range.
    unsafe {
        xnnpack_sys_run_operators(runtime, alone.as_ptr(), range.start, range.end)
    }
    #[cfg(not(xnnpack_sys_own))]
    {
        let _ = (alone, range);
        // SAFETY: the caller vouches for the runtime.
        unsafe { xnn_invoke_runtime(runtime) }
    }
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
