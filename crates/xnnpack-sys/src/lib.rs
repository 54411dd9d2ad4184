//! Raw FFI to [XNNPACK](https://github.com/google/XNNPACK), built from vendored sources.
//!
//! Names, signatures and meanings are those of `xnnpack.h` and `pthreadpool.h`; the headers are the
//! reference. A C enumeration is a newtype over its integer with one global constant per enumerator,
//! so that values which the bindings do not know are representable.
//!
//! The README of this crate describes how the library is found or compiled. The crate `xnnpack` is
//! the safe wrapper.

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

/// Returns the features of this processor by which XNNPACK chooses microkernels, such as `avx512f`; `None` for an installed library, and
/// on processors other than x86-64.
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
        // SAFETY: pointers that are not null are to constant strings.
        let names = names.map(|name| unsafe { core::ffi::CStr::from_ptr(name) });
        names.filter_map(|name| name.to_str().ok()).filter(|name| !name.is_empty())
    })
}

/// Returns the bytes of a vector in SME's streaming mode, for which weights are packed; `None` without SME, and for an installed library.
#[must_use]
pub fn sme_vector_bytes() -> Option<usize> {
    #[cfg(all(xnnpack_sys_own, target_arch = "aarch64"))]
    {
        unsafe extern "C" {
            safe fn xnnpack_sys_sme_bytes() -> usize;
        }
        Some(xnnpack_sys_sme_bytes()).filter(|bytes| *bytes != 0)
    }
    #[cfg(not(all(xnnpack_sys_own, target_arch = "aarch64")))]
    None
}

/// The value of the environment variable `XNN_MAX_ISA`, which takes instruction sets away from this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IsaLimit {
    /// The variable is unset or empty, or the library is an installed one, which does not read it.
    None,
    /// The newest instruction set that may be used, one of [`isa_levels`].
    Level(&'static str),
    /// The variable has another value.
    Invalid,
}

#[cfg(xnnpack_sys_own)]
unsafe extern "C" {
    safe fn xnnpack_sys_isa_limit() -> core::ffi::c_uint;
    safe fn xnnpack_sys_isa_level_name(level: usize) -> *const core::ffi::c_char;
}

/// Values that `XNN_MAX_ISA` can have on this architecture, from the oldest processors on; none for an installed library.
pub fn isa_levels() -> impl Iterator<Item = &'static str> {
    #[cfg(xnnpack_sys_own)]
    let name = |level| xnnpack_sys_isa_level_name(level);
    #[cfg(not(xnnpack_sys_own))]
    let name = |_| core::ptr::null::<core::ffi::c_char>();
    let names = (0..).map(name).take_while(|name: &*const _| !name.is_null());
    // SAFETY: pointers that are not null are to constant strings.
    names.filter_map(|name| unsafe { core::ffi::CStr::from_ptr(name) }.to_str().ok())
}

/// Returns the limit that `XNN_MAX_ISA` had when the processor was detected or this function was first called.
#[must_use]
pub fn isa_limit() -> IsaLimit {
    #[cfg(xnnpack_sys_own)]
    {
        let level = usize::try_from(xnnpack_sys_isa_limit()).unwrap_or(usize::MAX);
        match isa_levels().nth(level) {
            Some(name) => IsaLimit::Level(name),
            None if level == isa_levels().count() => IsaLimit::None,
            None => IsaLimit::Invalid,
        }
    }
    #[cfg(not(xnnpack_sys_own))]
    IsaLimit::None
}

/// Flag for `xnn_define_fully_connected` of fp32 without `XNN_FLAG_TRANSPOSE_WEIGHTS`: all weights are exact in fp16, and are packed in
/// fp16 if the processor has AVX512F, the library is not an installed one, and there are 32 output channels or more. Each run
/// converts them, for which there is time with up to 8 rows of input. `XNNPACK_SYS_HALF_WEIGHTS` in `csrc/hooks/flags.h`.
pub const FLAG_HALF_WEIGHTS: u32 = 1 << 30;

/// Flag for `xnn_define_fully_connected` of 8-bit filters, and of 4-bit filters with a scale for each channel: the input has more than 8
/// rows, for which weights are packed differently if the processor has AMX and the library is not an installed one.
/// `XNNPACK_SYS_MANY_ROWS` in `csrc/hooks/flags.h`.
pub const FLAG_MANY_ROWS: u32 = 1 << 25;

/// Flag for `xnn_define_fully_connected` of fp32: many of the weights are 0. With AVX2, AVX, SSE4.1 or NEON, up to [`SPARSE_INPUTS`] input channels,
/// and a library that is not an installed one, 32 rows at a time are multiplied by the other weights alone.
/// `XNNPACK_SYS_SPARSE_WEIGHTS` in `csrc/hooks/flags.h`.
pub const FLAG_SPARSE_WEIGHTS: u32 = 1 << 22;

/// Input channels up to which [`FLAG_SPARSE_WEIGHTS`] makes a difference. `F32_SPARSE_INPUTS` in `csrc/ukernels/gemm_f32_sparse_api.h`.
pub const SPARSE_INPUTS: usize = 384;

/// A listener that is called with `size` bytes of weights that have been packed and will not be read again.
pub type PackedFn = unsafe extern "C" fn(
    context: *mut core::ffi::c_void,
    weights: *const core::ffi::c_void,
    size: usize,
);

#[cfg(xnnpack_sys_own)]
unsafe extern "C" {
    fn xnnpack_sys_tell_packed(packed: Option<PackedFn>, context: *mut core::ffi::c_void);
    fn xnnpack_sys_pack_with(pool: pthreadpool_t);
    fn xnnpack_sys_set_threads(runtime: xnn_runtime_t, threads: pthreadpool_t);
    fn xnnpack_sys_count_operators(runtime: xnn_runtime_t) -> usize;
    fn xnnpack_sys_has_sound_weights(runtime: xnn_runtime_t) -> bool;
    fn xnnpack_sys_pool_create(threads: usize, processors: usize) -> pthreadpool_t;
    fn xnnpack_sys_pool_start(pool: pthreadpool_t);
    fn xnnpack_sys_pool_smaller(pool: pthreadpool_t, threads: usize) -> pthreadpool_t;
    fn xnnpack_sys_run_operators(
        runtime: xnn_runtime_t,
        threads: *const u32,
        first: usize,
        end: usize,
    ) -> xnn_status;
}

/// Creates a pool of `threads` threads, including the caller, that shares `processors` processors with pools in use at the same
/// time. The others start with [`start_pool`] or with the first operator that has work for them. An installed library starts them
/// at once, and ignores `processors`. Null if memory is exhausted or `threads` is 0.
#[must_use]
pub fn create_pool(threads: usize, processors: usize) -> pthreadpool_t {
    #[cfg(xnnpack_sys_own)]
    // SAFETY: any numbers are allowed.
    unsafe {
        xnnpack_sys_pool_create(threads, processors)
    }
    #[cfg(not(xnnpack_sys_own))]
    {
        let _ = processors;
        // SAFETY: any number of threads is allowed.
        unsafe { pthreadpool_create(threads) }
    }
}

/// Starts the threads of a pool, so that they are ready before the first operator. An installed library has started them.
///
/// # Safety
/// `pool` is live.
pub unsafe fn start_pool(pool: pthreadpool_t) {
    #[cfg(xnnpack_sys_own)]
    // SAFETY: the caller vouches for the pool.
    unsafe {
        xnnpack_sys_pool_start(pool);
    }
    #[cfg(not(xnnpack_sys_own))]
    let _ = pool;
}

/// Returns the part of `pool` with `threads` threads, a power of two or the number of all threads; null for one thread. An installed
/// library has no parts of pools, and the whole pool is returned instead.
///
/// # Safety
/// `pool` is live, and outlives the result.
#[must_use]
pub unsafe fn smaller_pool(pool: pthreadpool_t, threads: usize) -> pthreadpool_t {
    if threads <= 1 {
        return core::ptr::null_mut();
    }
    #[cfg(xnnpack_sys_own)]
    // SAFETY: the caller vouches for the pool.
    unsafe {
        xnnpack_sys_pool_smaller(pool, threads)
    }
    #[cfg(not(xnnpack_sys_own))]
    pool
}

/// Sets the threads of a runtime from its next reshape on; null is the calling thread. An installed library ignores the call.
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

/// Returns the number of operators that [`run_operators`] can run one by one: those of the runtime, or 1 for an installed library.
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

/// Whether the packed weights of a runtime, which may come from a file, name only inputs that their layers have: some microkernels
/// read an order of inputs from packed weights. Those of an installed library do not.
///
/// # Safety
/// `runtime` is live, and its packed weights have the length that XNNPACK requests.
#[must_use]
pub unsafe fn has_sound_weights(runtime: xnn_runtime_t) -> bool {
    #[cfg(xnnpack_sys_own)]
    // SAFETY: the caller vouches for the runtime and its weights.
    unsafe {
        xnnpack_sys_has_sound_weights(runtime)
    }
    #[cfg(not(xnnpack_sys_own))]
    {
        let _ = runtime;
        true
    }
}

/// Runs the operators of `range` in order, as `xnn_invoke_runtime` runs all of them, but each with at most as many threads as
/// `threads` has for it. Takes no times for a profile.
///
/// # Safety
/// As for `xnn_invoke_runtime`; the operators before `range` have run, with the same memory. The range ends where `threads` does
/// at the latest, which has one element for each of [`count_operators`].
pub unsafe fn run_operators(
    runtime: xnn_runtime_t,
    threads: &[u32],
    range: core::ops::Range<usize>,
) -> xnn_status {
    #[cfg(xnnpack_sys_own)]
    // SAFETY: the caller vouches for the runtime and the range.
    unsafe {
        xnnpack_sys_run_operators(runtime, threads.as_ptr(), range.start, range.end)
    }
    #[cfg(not(xnnpack_sys_own))]
    {
        let _ = (threads, range);
        // SAFETY: the caller vouches for the runtime.
        unsafe { xnn_invoke_runtime(runtime) }
    }
}

/// From now on weights that this thread packs are packed some rows at a time, and `packed` is called with each slice but the last;
/// `None` ends it (`csrc/packing/pack_slices.h`). An installed library packs weights at once, and does not call `packed`.
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

/// From now on large weights that this thread packs are packed by the threads of `pool`; null ends it
/// (`csrc/packing/pack_slices.h`). An installed library packs weights with the calling thread.
///
/// # Safety
/// `pool` is live until it ends, or null.
pub unsafe fn pack_with(pool: pthreadpool_t) {
    #[cfg(xnnpack_sys_own)]
    // SAFETY: the caller vouches for the pool.
    unsafe {
        xnnpack_sys_pack_with(pool);
    }
    #[cfg(not(xnnpack_sys_own))]
    let _ = pool;
}

/// Origin of the linked library, known at compile time.
pub mod build {
    /// Abbreviated commit of XNNPACK; `unknown` unless the sources are the vendored ones.
    pub const REVISION: &str = env!("XNNPACK_REVISION");
    /// `vendored`, `checkout`, `system`, or `none` on docs.rs.
    pub const SOURCE: &str = env!("XNNPACK_SOURCE");
    /// Instruction sets that have their own microkernels, separated by blanks; empty for an installed library.
    pub const INSTRUCTION_SETS: &str = env!("XNNPACK_INSTRUCTION_SETS");
    /// Whether `set` is one of [`INSTRUCTION_SETS`].
    #[must_use]
    pub fn has(set: &str) -> bool {
        INSTRUCTION_SETS.split_whitespace().any(|known| known == set)
    }

    /// Instruction sets of the target that the C compiler could not build.
    pub const LEFT_OUT: &str = env!("XNNPACK_LEFT_OUT");
}
