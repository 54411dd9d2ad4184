//! The XNNPACK delegate: `xnnpack_delegate.h`.
//!
//! The interpreter delegates to XNNPACK with or without such a delegate. It gives the number of
//! threads.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;

use xnn_tflite_abi::{TfLiteContext, TfLiteDelegate, c_struct};

use crate::delegates::{self, Settings};
use crate::guard;

/// `TFLITE_XNNPACK_DELEGATE_FLAG_QS8` and `..._QU8`, which are TFLite's defaults.
const QUANTIZED: u32 = 3;

c_struct! {
    /// Options in the layout of TFLite 2.13 to 2.19. Later versions have other members behind
    /// `num_threads`, the only one that this library reads.
    #[derive(Clone, Copy, Debug)]
    TfLiteXNNPackDelegateOptions: 32 {
        /// Number of threads; 0 and negative numbers mean one.
        num_threads @ 0: i32,
        /// No effect: quantized operators are always delegated.
        flags @ 4: u32,
        /// No effect: interpreters of a process share packed weights by themselves.
        weights_cache @ 8: *mut c_void,
        /// No effect: variables are always supported.
        handle_variable_ops @ 16: bool,
        /// No effect.
        weight_cache_file_path @ 24: *const c_char,
    }
}

/// Returns the default options.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteXNNPackDelegateOptionsDefault() -> TfLiteXNNPackDelegateOptions {
    TfLiteXNNPackDelegateOptions {
        num_threads: 0,
        flags: QUANTIZED,
        weights_cache: ptr::null_mut(),
        handle_variable_ops: false,
        weight_cache_file_path: ptr::null(),
    }
}

/// Creates a delegate. Without options, it has the default ones.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TfLiteXNNPackDelegateCreate(
    options: *const TfLiteXNNPackDelegateOptions,
) -> *mut TfLiteDelegate {
    guard(ptr::null_mut(), || {
        // SAFETY: null, or options of the caller, whose first member all versions have.
        let threads =
            (!options.is_null()).then(|| unsafe { (&raw const (*options).num_threads).read() });
        let threads = usize::try_from(threads.unwrap_or(0)).unwrap_or(0).max(1);
        delegates::create(Settings { threads: Some(threads), cache_dir: None })
    })
}

/// Creates a delegate. The threads of the context are not used.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TfLiteXNNPackDelegateCreateWithThreadpool(
    options: *const TfLiteXNNPackDelegateOptions,
    _context: *mut TfLiteContext,
) -> *mut TfLiteDelegate {
    // SAFETY: guaranteed by the caller.
    unsafe { TfLiteXNNPackDelegateCreate(options) }
}

/// Destroys a delegate.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteXNNPackDelegateDelete(delegate: *mut TfLiteDelegate) {
    guard((), || delegates::delete(delegate));
}

/// Returns null: the threads belong to the interpreter.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteXNNPackDelegateGetThreadPool(
    _delegate: *mut TfLiteDelegate,
) -> *mut c_void {
    ptr::null_mut()
}

/// Returns the default flags.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteXNNPackDelegateGetFlags(_delegate: *mut TfLiteDelegate) -> c_int {
    QUANTIZED as c_int
}

/// A cache of packed weights, which has no effect.
#[derive(Debug, Default)]
pub struct TfLiteXNNPackDelegateWeightsCache {
    /// Gives each cache an address.
    _size: u8,
}

/// Creates a cache of packed weights without effect.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteXNNPackDelegateWeightsCacheCreate()
-> Option<Box<TfLiteXNNPackDelegateWeightsCache>> {
    Some(Box::default())
}

/// Creates a cache of packed weights without effect.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteXNNPackDelegateWeightsCacheCreateWithSize(
    _size: usize,
) -> Option<Box<TfLiteXNNPackDelegateWeightsCache>> {
    TfLiteXNNPackDelegateWeightsCacheCreate()
}

/// Returns whether there is a cache.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteXNNPackDelegateWeightsCacheFinalizeSoft(
    cache: Option<&TfLiteXNNPackDelegateWeightsCache>,
) -> bool {
    cache.is_some()
}

/// Returns whether there is a cache.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteXNNPackDelegateWeightsCacheFinalizeHard(
    cache: Option<&TfLiteXNNPackDelegateWeightsCache>,
) -> bool {
    cache.is_some()
}

/// Destroys a cache of packed weights.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteXNNPackDelegateWeightsCacheDelete(
    cache: Option<Box<TfLiteXNNPackDelegateWeightsCache>>,
) {
    drop(cache);
}
