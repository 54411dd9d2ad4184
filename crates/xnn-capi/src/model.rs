//! Models and blobs.

use std::ffi::{CString, c_char, c_void};
use std::path::PathBuf;
use std::ptr;

use xnn_delegate::ModelFile;
use xnn_delegate::model::Dialect;

use crate::arguments::{array, delete, give, new_object, object, path};
use crate::error::{Result, guard, guard_or, xnnd_error_t};
use crate::memory::{Lent, xnnd_release_t};
use crate::options::{or_default, xnnd_options_t};
use crate::text::c_string;

/// A model (TFLite or Circle) or a blob (`.xnn`), from which any number of sessions are created.
///
/// Threads: a model is immutable. Any number of threads may use it at the same time. Sessions keep what they need of it, so
/// that it may be deleted before them.
pub struct xnnd_model_t {
    pub(crate) file: ModelFile,
    /// The file that was opened, if it was one.
    pub(crate) path: Option<PathBuf>,
    signatures: Vec<CString>,
}

/// Format of a model's file.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum xnnd_format_t {
    /// TFLite.
    XNND_FORMAT_TFLITE = 0,
    /// Circle.
    XNND_FORMAT_CIRCLE = 1,
    /// A blob: an `.xnn` file, or a bare XN01 graph.
    XNND_FORMAT_BLOB = 2,
}

impl xnnd_model_t {
    fn new(file: ModelFile, path: Option<PathBuf>) -> Self {
        let signatures = match &file {
            ModelFile::Model(model) => {
                model.signatures.iter().map(|signature| c_string(signature.key.as_str())).collect()
            }
            ModelFile::Blob(_) => Vec::new(),
        };
        Self { file, path, signatures }
    }

    pub(crate) fn format(&self) -> xnnd_format_t {
        match &self.file {
            ModelFile::Blob(_) => xnnd_format_t::XNND_FORMAT_BLOB,
            ModelFile::Model(model) => match model.dialect {
                Dialect::Tflite => xnnd_format_t::XNND_FORMAT_TFLITE,
                Dialect::Circle => xnnd_format_t::XNND_FORMAT_CIRCLE,
            },
        }
    }
}

/// Opens a model or blob. The content of the file tells which of them it is. The file is mapped into memory and must not be
/// changed in place while it is used; replacing it by another file is fine. The caller deletes the model with
/// `xnnd_model_delete`.
///
/// Errors: the file cannot be read, is of another kind, or is damaged; a limit is exceeded.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn xnnd_model_open(
    path: *const c_char,
    options: *const xnnd_options_t,
    out: *mut *mut xnnd_model_t,
) -> *mut xnnd_error_t {
    guard(|| {
        // SAFETY: the caller passes NULL, or a valid place, a C string and options that it has not deleted.
        let (out, path, options) =
            unsafe { (new_object(out)?, self::path(path, "path")?, or_default(options)) };
        let file = ModelFile::open(path, &options.runner)?;
        give(out, xnnd_model_t::new(file, Some(path.to_owned())));
        Ok(())
    })
}

/// Opens a copy of the content of a model or blob, `size` bytes at `data`, which may change afterwards.
///
/// Errors: see `xnnd_model_open`.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn xnnd_model_from_copy(
    data: *const c_void,
    size: usize,
    options: *const xnnd_options_t,
    out: *mut *mut xnnd_model_t,
) -> *mut xnnd_error_t {
    guard(|| {
        // SAFETY: the caller passes NULL, or a valid place, `size` bytes and options that it has not deleted.
        let (out, bytes, options) = unsafe {
            (new_object(out)?, array(data.cast::<u8>(), size, "data")?, or_default(options))
        };
        let file = ModelFile::from_bytes(bytes.to_vec(), &options.runner)?;
        give(out, xnnd_model_t::new(file, None));
        Ok(())
    })
}

/// Opens the content of a model or blob in the caller's memory, `size` bytes at `data`, without a copy if `data` is a
/// multiple of 64. Other content is copied.
///
/// The bytes must not change until `release(context)` is called, exactly once, when the library no longer needs them: after
/// the model and all its sessions are deleted, or earlier, also before this function returns and if it fails. The call may
/// come from any thread that uses the library, and must not use the library. `release` may be NULL for memory that exists
/// until the program ends, or that the caller frees after it has deleted the model and all its sessions.
///
/// Errors: see `xnnd_model_open`.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn xnnd_model_from_memory(
    data: *const c_void,
    size: usize,
    release: xnnd_release_t,
    context: *mut c_void,
    options: *const xnnd_options_t,
    out: *mut *mut xnnd_model_t,
) -> *mut xnnd_error_t {
    guard(|| {
        // SAFETY: the caller keeps `size` bytes unchanged until they are released.
        let lent = unsafe { Lent::new(data.cast(), size, release, context) };
        // SAFETY: the caller passes NULL, or a valid place and options that it has not deleted.
        let (out, options) = unsafe { (new_object(out)?, or_default(options)) };
        let file = ModelFile::from_bytes(lent?, &options.runner)?;
        give(out, xnnd_model_t::new(file, None));
        Ok(())
    })
}

/// Format of the model's file. TFLite if `model` is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn xnnd_model_format(model: *const xnnd_model_t) -> xnnd_format_t {
    // SAFETY: the caller passes NULL or a model that it has not deleted.
    let model = unsafe { model.as_ref() };
    model.map_or(xnnd_format_t::XNND_FORMAT_TFLITE, xnnd_model_t::format)
}

/// Number of signatures, which are named entry points. Blobs have none. 0 if `model` is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn xnnd_model_signature_count(model: *const xnnd_model_t) -> usize {
    // SAFETY: the caller passes NULL or a model that it has not deleted.
    unsafe { model.as_ref() }.map_or(0, |model| model.signatures.len())
}

/// Key of a signature, for `xnnd_options_set_signature`. It belongs to the model. NULL if `model` is NULL or has no such
/// signature.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn xnnd_model_signature(
    model: *const xnnd_model_t,
    index: usize,
) -> *const c_char {
    // SAFETY: the caller passes NULL or a model that it has not deleted.
    let key = unsafe { model.as_ref() }.and_then(|model| model.signatures.get(index));
    guard_or(ptr::null(), || key.map_or(ptr::null(), |key| key.as_ptr()))
}

/// Deletes a model. `model` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn xnnd_model_delete(model: *mut xnnd_model_t) {
    // SAFETY: the caller passes NULL or a model of this library that it has not deleted.
    unsafe { delete(model) }
}

/// The caller's model.
///
/// # Safety
///
/// `model` is NULL, or valid for `'a`.
pub(crate) unsafe fn model<'a>(model: *const xnnd_model_t) -> Result<&'a xnnd_model_t> {
    // SAFETY: as the caller of this function guarantees.
    unsafe { object(model, "model") }
}

impl xnnd_model_t {
    /// Refuses the key of a signature that does not exist.
    pub(crate) fn check_signature(&self, key: Option<&str>) -> Result {
        let Some(key) = key else { return Ok(()) };
        if self.signatures.iter().any(|known| known.to_bytes() == key.as_bytes()) {
            return Ok(());
        }
        let known: Vec<_> = self.signatures.iter().map(|key| key.to_string_lossy()).collect();
        let known = if known.is_empty() { "none".into() } else { known.join(", ") };
        Err(xnnd_error_t::argument(format!("no signature {key:?}; the signatures are: {known}")))
    }

    /// The model, where blobs are of no use.
    pub(crate) fn as_model(&self, purpose: &str) -> Result<&xnn_delegate::Model> {
        match &self.file {
            ModelFile::Model(model) => Ok(model),
            ModelFile::Blob(_) => Err(xnnd_error_t::argument(format!(
                "the file is a blob, which cannot be {purpose}; open the model that it was converted from"
            ))),
        }
    }
}
