//! TFLite's C structures, and its strings.

use std::ffi::{CStr, c_char};

pub(crate) use xnn_tflite_abi::*;

/// Converts a C string; empty for a null pointer.
pub(crate) fn text(string: *const c_char) -> String {
    if string.is_null() {
        return String::new();
    }
    // SAFETY: a live string of the interpreter.
    unsafe { CStr::from_ptr(string) }.to_string_lossy().into_owned()
}
