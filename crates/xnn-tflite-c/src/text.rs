//! Text for callers.

use std::ffi::CString;

/// Converts a text of a model, in which NUL becomes a blank.
pub(crate) fn c_string(text: &str) -> CString {
    CString::new(text.replace('\0', " ")).unwrap_or_default()
}
