//! `libxnn_delegate.so`: XNNPACK as an external delegate of stock TFLite and LiteRT interpreters.
//!
//! The shared library exports the two functions of TFLite's external delegates:
//! [`tflite_plugin_create_delegate`] and [`tflite_plugin_destroy_delegate`]. The interpreter's
//! graph is converted to the representation that model files are read into, then partitioned and
//! compiled like a model, and each partition replaces its nodes.
//!
//! `docs/delegate.md` describes the options and how to load the library.

#![cfg_attr(
    any(test, fuzzing),
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        reason = "tests fail by panicking"
    )
)]

mod abi;
mod builtin_data;
mod builtin_delegate;
mod constants;
mod context;
mod delegate;
mod delegated_partition;
mod engine;
mod error;
mod explain;
#[cfg(any(test, fuzzing))]
#[allow(dead_code, reason = "the tests and the fuzz target each use a part of it")]
mod fake;
#[cfg(fuzzing)]
pub mod fuzzing;
mod graph;
mod hosted;
mod hosted_kernels;
mod kernel;
mod memory;
mod options;
mod placeholders;
mod programs;
mod registry;
mod sessions;
#[cfg(test)]
mod tests;

use std::ffi::{CStr, CString, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use log::LevelFilter;

use crate::delegate::Delegate;
use crate::error::panic_message;
use crate::options::Options;

/// TFLite's function that reports invalid options to the user.
type ReportError = unsafe extern "C" fn(*const c_char);

/// Log level without the option `log_level`.
const DEFAULT_LOG_LEVEL: LevelFilter = LevelFilter::Warn;

/// Creates a `TfLiteDelegate` with `count` options. If an option is not valid, returns null and
/// passes a message to `report_error`, which may be null.
///
/// # Safety
/// `keys` and `values` point to `count` strings each, or are null if `count` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tflite_plugin_create_delegate(
    keys: *const *const c_char,
    values: *const *const c_char,
    count: usize,
    report_error: Option<ReportError>,
) -> *mut c_void {
    let create = || {
        // SAFETY: guaranteed by the caller.
        let pairs = unsafe { strings(keys, count).zip(strings(values, count)) };
        let pairs: Vec<(String, String)> = pairs.collect();
        Options::parse(pairs.iter().map(|(key, value)| (key.as_str(), value.as_str())))
    };
    let message = match catch_unwind(AssertUnwindSafe(create)) {
        Ok(Ok(options)) => {
            start_log(options.log_level.unwrap_or(DEFAULT_LOG_LEVEL));
            return Delegate::create(options).cast();
        }
        Ok(Err(error)) => error.to_string(),
        Err(panic) => panic_message(panic.as_ref()),
    };
    if let Some(report) = report_error {
        let message = CString::new(message.replace('\0', " ")).unwrap_or_default();
        // SAFETY: the caller's function takes a C string.
        unsafe { report(message.as_ptr()) };
    }
    ptr::null_mut()
}

/// Destroys a delegate. Interpreters that use it keep working.
///
/// # Safety
/// `delegate` is null, or came from [`tflite_plugin_create_delegate`] and was not destroyed before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tflite_plugin_destroy_delegate(delegate: *mut c_void) {
    // A panic cannot be reported to anyone.
    // SAFETY: guaranteed by the caller.
    let _ = catch_unwind(AssertUnwindSafe(|| unsafe { Delegate::destroy(delegate.cast()) }));
}

/// # Safety
/// `array` points to `count` strings that live for `'a`, or is null if `count` is 0.
unsafe fn strings<'a>(
    array: *const *const c_char,
    count: usize,
) -> impl Iterator<Item = String> + 'a {
    (0..count).map(move |index| {
        // SAFETY: guaranteed by the caller.
        let string = unsafe { CStr::from_ptr(*array.add(index)) };
        string.to_string_lossy().into_owned()
    })
}

/// Logs to standard error. The level applies to the whole process: the last delegate sets it.
fn start_log(level: LevelFilter) {
    // An error means that the process already has a logger, which receives the messages.
    let _ = env_logger::Builder::new().filter_level(LevelFilter::Trace).try_init();
    log::set_max_level(level);
}
