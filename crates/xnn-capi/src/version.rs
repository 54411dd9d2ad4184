//! Version of the library.

use std::ffi::{CStr, c_char};

/// Version with a terminating NUL.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");

/// Version of the library, such as "0.1.0". The string is static.
///
/// `XNND_VERSION` is the version of the header that a program was compiled with.
#[unsafe(no_mangle)]
pub extern "C" fn xnnd_version() -> *const c_char {
    CStr::from_bytes_with_nul(VERSION.as_bytes()).unwrap_or_default().as_ptr()
}
