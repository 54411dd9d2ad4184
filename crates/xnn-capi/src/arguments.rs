//! Arguments of functions: pointers and strings of the caller, checked for NULL.

use std::ffi::{CStr, c_char};
use std::path::Path;
use std::ptr;
use std::slice;

use crate::error::{Result, guard_or, xnnd_error_t};

/// An object of the caller.
///
/// # Safety
///
/// `object` is NULL, or valid and not modified for `'a`.
pub(crate) unsafe fn object<'a, T>(object: *const T, name: &str) -> Result<&'a T> {
    // SAFETY: as the caller of this function guarantees.
    unsafe { object.as_ref() }.ok_or_else(|| null(name))
}

/// An object of the caller, which changes.
///
/// # Safety
///
/// `object` is NULL, or valid and not used by another thread for `'a`.
pub(crate) unsafe fn object_mut<'a, T>(object: *mut T, name: &str) -> Result<&'a mut T> {
    // SAFETY: as the caller of this function guarantees.
    unsafe { object.as_mut() }.ok_or_else(|| null(name))
}

/// The place for a result, which gets its value for failures first.
///
/// # Safety
///
/// `out` is NULL, or valid for writes for `'a`.
pub(crate) unsafe fn result<'a, T>(out: *mut T, initial: T, name: &str) -> Result<&'a mut T> {
    if out.is_null() {
        return Err(null(name));
    }
    // SAFETY: `out` is not NULL, and valid for writes as the caller of this function guarantees. It has a value afterwards.
    unsafe {
        ptr::write(out, initial);
        Ok(&mut *out)
    }
}

/// The place for a new object, NULL until it is there.
///
/// # Safety
///
/// See [`result`].
pub(crate) unsafe fn new_object<'a, T>(out: *mut *mut T) -> Result<&'a mut *mut T> {
    // SAFETY: as the caller of this function guarantees.
    unsafe { result(out, ptr::null_mut(), "out") }
}

/// Gives an object to the caller.
pub(crate) fn give<T>(out: &mut *mut T, object: T) {
    *out = Box::into_raw(Box::new(object));
}

/// Deletes an object that the caller was given.
///
/// # Safety
///
/// `object` is NULL, or comes from [`give`] and is deleted once.
pub(crate) unsafe fn delete<T>(object: *mut T) {
    if object.is_null() {
        return;
    }
    // SAFETY: the object comes from `Box::into_raw`, and this is the only time that it is deleted.
    let owned = unsafe { Box::from_raw(object) };
    guard_or((), || drop(owned));
}

/// A string in UTF-8.
///
/// # Safety
///
/// `text` is NULL, or a C string that does not change for `'a`.
pub(crate) unsafe fn text<'a>(text: *const c_char, name: &str) -> Result<&'a str> {
    // SAFETY: as the caller of this function guarantees.
    let string = unsafe { c_str(text, name) }?;
    string.to_str().map_err(|_| xnnd_error_t::argument(format!("{name} is not valid UTF-8")))
}

/// A string that may be missing.
///
/// # Safety
///
/// See [`text`].
pub(crate) unsafe fn optional_text<'a>(
    string: *const c_char,
    name: &str,
) -> Result<Option<&'a str>> {
    if string.is_null() {
        return Ok(None);
    }
    // SAFETY: as the caller of this function guarantees.
    unsafe { text(string, name) }.map(Some)
}

/// A path in the encoding of the file system: any bytes on Unix, UTF-8 elsewhere.
///
/// # Safety
///
/// See [`text`].
pub(crate) unsafe fn path<'a>(path: *const c_char, name: &str) -> Result<&'a Path> {
    #[cfg(unix)]
    {
        use std::ffi::OsStr;
        use std::os::unix::ffi::OsStrExt;
        // SAFETY: as the caller of this function guarantees.
        let path = unsafe { c_str(path, name) }?;
        Ok(Path::new(OsStr::from_bytes(path.to_bytes())))
    }
    #[cfg(not(unix))]
    // SAFETY: as the caller of this function guarantees.
    unsafe { text(path, name) }.map(Path::new)
}

/// # Safety
///
/// See [`text`].
unsafe fn c_str<'a>(text: *const c_char, name: &str) -> Result<&'a CStr> {
    if text.is_null() {
        return Err(null(name));
    }
    // SAFETY: it is not NULL, and a C string as the caller of this function guarantees.
    Ok(unsafe { CStr::from_ptr(text) })
}

/// An array of the caller. `data` may be NULL if it is empty.
///
/// # Safety
///
/// `data` is NULL, or has `count` elements that do not change for `'a`.
pub(crate) unsafe fn array<'a, T>(data: *const T, count: usize, name: &str) -> Result<&'a [T]> {
    if count == 0 {
        return Ok(&[]);
    }
    check_array(data, count, name)?;
    // SAFETY: it is aligned, not NULL, not larger than the address space, and has `count` elements as the caller of this
    // function guarantees.
    Ok(unsafe { slice::from_raw_parts(data, count) })
}

/// An array of the caller to be written. `data` may be NULL if it is empty.
///
/// # Safety
///
/// `data` is NULL, or has `count` elements that nothing else uses for `'a`.
pub(crate) unsafe fn array_mut<'a, T>(
    data: *mut T,
    count: usize,
    name: &str,
) -> Result<&'a mut [T]> {
    if count == 0 {
        return Ok(&mut []);
    }
    check_array(data, count, name)?;
    // SAFETY: as in `array`, and nothing else uses the elements as the caller of this function guarantees.
    Ok(unsafe { slice::from_raw_parts_mut(data, count) })
}

/// Refuses arrays that cannot exist.
fn check_array<T>(data: *const T, count: usize, name: &str) -> Result {
    if data.is_null() {
        return Err(null(name));
    }
    if !data.is_aligned() {
        return Err(xnnd_error_t::argument(format!(
            "{name} is not aligned: expected a multiple of {} bytes",
            align_of::<T>()
        )));
    }
    match count.checked_mul(size_of::<T>()) {
        Some(bytes) if isize::try_from(bytes).is_ok() => Ok(()),
        _ => Err(xnnd_error_t::argument(format!("{name}: {count} elements exceed the memory"))),
    }
}

fn null(name: &str) -> xnnd_error_t {
    xnnd_error_t::argument(format!("{name} is NULL"))
}
