//! Bytes and texts that belong to the caller.

use std::ffi::c_char;
use std::ptr;

use crate::arguments::delete;
use crate::error::guard_or;

/// Bytes that the library gives to the caller: a converted file, or a text such as JSON in UTF-8.
///
/// Threads: the bytes are immutable. Any thread may read them or delete the object.
pub struct xnnd_bytes_t {
    /// The bytes and a NUL.
    terminated: Vec<u8>,
}

impl xnnd_bytes_t {
    pub(crate) fn new(bytes: impl Into<Vec<u8>>) -> Self {
        let mut terminated = bytes.into();
        terminated.push(0);
        Self { terminated }
    }
}

/// The bytes. A NUL, which is not counted in the size, follows them, so that a text is a
/// C string. They belong to the object. NULL if `bytes` is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn xnnd_bytes_data(bytes: *const xnnd_bytes_t) -> *const u8 {
    // SAFETY: the caller passes NULL or an object that it has not deleted.
    let bytes = unsafe { bytes.as_ref() };
    guard_or(ptr::null(), || bytes.map_or(ptr::null(), |bytes| bytes.terminated.as_ptr()))
}

/// The bytes as a C string, for texts. NULL if `bytes` is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn xnnd_bytes_text(bytes: *const xnnd_bytes_t) -> *const c_char {
    // SAFETY: as the caller guarantees for `xnnd_bytes_data`.
    unsafe { xnnd_bytes_data(bytes) }.cast()
}

/// Number of bytes. 0 if `bytes` is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn xnnd_bytes_size(bytes: *const xnnd_bytes_t) -> usize {
    // SAFETY: the caller passes NULL or an object that it has not deleted.
    unsafe { bytes.as_ref() }.map_or(0, |bytes| bytes.terminated.len().saturating_sub(1))
}

/// Deletes bytes. `bytes` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn xnnd_bytes_delete(bytes: *mut xnnd_bytes_t) {
    // SAFETY: the caller passes NULL or an object of this library that it has not deleted.
    unsafe { delete(bytes) }
}
