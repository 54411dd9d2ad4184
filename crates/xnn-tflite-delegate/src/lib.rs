//! `libxnn_delegate.so`: XNNPACK inside the TFLite and LiteRT interpreters that people have.
//!
//! A shared library with the two functions that TFLite's external delegates have:
//! [`tflite_plugin_create_delegate`] and [`tflite_plugin_destroy_delegate`]. The interpreter's graph
//! becomes the same representation that files become, is partitioned and compiled in the same way,
//! and each partition takes the place of its nodes.
//!
//! `docs/delegate.md` has the options and how to load it.

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
mod kernel;
mod memory;
mod options;
mod placeholders;
mod programs;
mod registry;
#[cfg(test)]
mod tests;

use std::any::Any;
use std::ffi::{CStr, CString, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use log::LevelFilter;

use crate::delegate::Delegate;
use crate::options::Options;

/// Tells the user of TFLite what is wrong with the options.
type ReportError = unsafe extern "C" fn(*const c_char);

/// What is logged unless the option `log_level` says otherwise.
const DEFAULT_LOG_LEVEL: LevelFilter = LevelFilter::Warn;

/// Makes a `TfLiteDelegate` from `count` options; null, with a message to `report_error` (which may be
/// null), if one of them is not understood.
///
/// # Safety
/// `keys` and `values` point to `count` strings each, or are null where `count` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tflite_plugin_create_delegate(
    keys: *const *const c_char,
    values: *const *const c_char,
    count: usize,
    report_error: Option<ReportError>,
) -> *mut c_void {
    let create = || {
        // SAFETY: the caller's promise.
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
        // SAFETY: the caller's function, with a string.
        unsafe { report(message.as_ptr()) };
    }
    ptr::null_mut()
}

/// Destroys a delegate; interpreters that use it may go on to.
///
/// # Safety
/// `delegate` is null, or came from [`tflite_plugin_create_delegate`] and was not destroyed before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tflite_plugin_destroy_delegate(delegate: *mut c_void) {
    // There is nobody to tell about a panic.
    // SAFETY: the caller's promise.
    let _ = catch_unwind(AssertUnwindSafe(|| unsafe { Delegate::destroy(delegate.cast()) }));
}

/// # Safety
/// `array` points to `count` strings that live for `'a`, or is null where `count` is 0.
unsafe fn strings<'a>(
    array: *const *const c_char,
    count: usize,
) -> impl Iterator<Item = String> + 'a {
    (0..count).map(move |index| {
        // SAFETY: the caller's promise.
        let string = unsafe { CStr::from_ptr(*array.add(index)) };
        string.to_string_lossy().into_owned()
    })
}

/// Logs to the standard error of the process. The level is the process's: the last delegate decides.
fn start_log(level: LevelFilter) {
    // An error means that the process has a logger already, which then gets the messages.
    let _ = env_logger::Builder::new().filter_level(LevelFilter::Trace).try_init();
    log::set_max_level(level);
}

/// What a panic said.
fn panic_message(panic: &(dyn Any + Send)) -> String {
    let said = panic.downcast_ref::<&str>().copied();
    let said = said.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("internal error: {}", said.unwrap_or("unknown"))
}
