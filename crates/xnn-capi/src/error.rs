//! Error objects, and the border that panics do not cross.

use std::any::Any;
use std::error::Error as StdError;
use std::ffi::{CString, c_char};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use xnn_delegate::Error;
use xnn_runtime::{RuntimeError, RuntimeErrorKind};

use crate::text::c_string;

/// Kind of an error, for programs that react to it.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum xnnd_error_code_t {
    /// No error: the code of NULL.
    XNND_OK = 0,
    /// An argument is NULL, is not valid UTF-8, names something that does not exist, or does not fit the model. Correct the
    /// call.
    XNND_ERROR_INVALID_ARGUMENT = 1,
    /// A file cannot be read or written.
    XNND_ERROR_IO = 2,
    /// The content of a model or blob is damaged, or of another kind.
    XNND_ERROR_INVALID_MODEL = 3,
    /// An operator or type is supported neither by XNNPACK nor by a reference kernel, or the operation needs a fully
    /// delegated model.
    XNND_ERROR_UNSUPPORTED = 4,
    /// The model exceeds a limit. `xnnd_options_set_limit` raises it for trusted models.
    XNND_ERROR_LIMIT = 5,
    /// Memory is exhausted.
    XNND_ERROR_OUT_OF_MEMORY = 6,
    /// The run was cancelled by `xnnd_session_set_cancelled`.
    XNND_ERROR_CANCELLED = 7,
    /// The object is not in a state that allows the call: outputs before the first run, a session that another thread uses.
    XNND_ERROR_INVALID_STATE = 8,
    /// The values of inputs do not fit an operator, such as an index outside of its table.
    XNND_ERROR_EXECUTION = 9,
    /// A defect of the library. Please report it.
    XNND_ERROR_INTERNAL = 10,
}

use xnnd_error_code_t::{
    XNND_ERROR_CANCELLED, XNND_ERROR_EXECUTION, XNND_ERROR_INTERNAL, XNND_ERROR_INVALID_ARGUMENT,
    XNND_ERROR_INVALID_MODEL, XNND_ERROR_INVALID_STATE, XNND_ERROR_IO, XNND_ERROR_LIMIT,
    XNND_ERROR_OUT_OF_MEMORY, XNND_ERROR_UNSUPPORTED, XNND_OK,
};

/// An error: a code and a sentence that names the file, operator or tensor, and the fix.
///
/// Functions that can fail return NULL on success, or an error that the caller deletes with `xnnd_error_delete`.
///
/// Threads: an error is immutable. Any thread may read or delete it.
#[derive(Debug)]
pub struct xnnd_error_t {
    code: xnnd_error_code_t,
    message: CString,
}

/// Result of the body of a function.
pub(crate) type Result<T = (), E = xnnd_error_t> = std::result::Result<T, E>;

impl xnnd_error_t {
    pub(crate) fn new(code: xnnd_error_code_t, message: impl Into<String>) -> Self {
        Self { code, message: c_string(message.into()) }
    }

    pub(crate) fn argument(message: impl Into<String>) -> Self {
        Self::new(XNND_ERROR_INVALID_ARGUMENT, message)
    }

    pub(crate) fn state(message: impl Into<String>) -> Self {
        Self::new(XNND_ERROR_INVALID_STATE, message)
    }

    /// The error of a panic.
    fn of_panic(panic: &(dyn Any + Send)) -> Self {
        let said = panic.downcast_ref::<&str>().copied();
        let said = said.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        Self::new(XNND_ERROR_INTERNAL, format!("internal error: {}", said.unwrap_or("unknown")))
    }
}

impl From<Error> for xnnd_error_t {
    fn from(error: Error) -> Self {
        let message = match advice(&error) {
            Some(advice) => format!("{error}; {advice}"),
            None => error.to_string(),
        };
        Self::new(code(&error), message)
    }
}

/// Code of an error.
fn code(error: &Error) -> xnnd_error_code_t {
    if error.is_out_of_memory() {
        return XNND_ERROR_OUT_OF_MEMORY;
    }
    if error.limit().is_some() {
        return XNND_ERROR_LIMIT;
    }
    match error {
        Error::Model(error) => model_code(error.kind()),
        Error::Format(error) => match error.kind() {
            xnn_format::ErrorKind::Io(_) => XNND_ERROR_IO,
            xnn_format::ErrorKind::Incompatible(_) => XNND_ERROR_UNSUPPORTED,
            _ => XNND_ERROR_INVALID_MODEL,
        },
        Error::Runtime(error) => runtime_code(error),
        Error::Interpreter(error) => match error.kind() {
            xnn_interp::ErrorKind::Model(error) => model_code(error.kind()),
            xnn_interp::ErrorKind::Unsupported(_) => XNND_ERROR_UNSUPPORTED,
            xnn_interp::ErrorKind::Invalid(_) => XNND_ERROR_INVALID_ARGUMENT,
            xnn_interp::ErrorKind::Cancelled => XNND_ERROR_CANCELLED,
            xnn_interp::ErrorKind::Delegate(error) => delegate_code(error.as_ref()),
            _ => XNND_ERROR_EXECUTION,
        },
        Error::Incomplete(_) => XNND_ERROR_UNSUPPORTED,
        Error::Io { .. } => XNND_ERROR_IO,
        Error::Tensor(_) => XNND_ERROR_INVALID_ARGUMENT,
        _ => XNND_ERROR_INTERNAL,
    }
}

fn model_code(kind: &xnn_model::ErrorKind) -> xnnd_error_code_t {
    match kind {
        xnn_model::ErrorKind::Io(_) => XNND_ERROR_IO,
        _ => XNND_ERROR_INVALID_MODEL,
    }
}

fn runtime_code(error: &RuntimeError) -> xnnd_error_code_t {
    match error.kind() {
        RuntimeErrorKind::InvalidArgument => XNND_ERROR_INVALID_ARGUMENT,
        RuntimeErrorKind::InvalidState => XNND_ERROR_INVALID_STATE,
        RuntimeErrorKind::InvalidGraph => XNND_ERROR_INVALID_MODEL,
        RuntimeErrorKind::OutOfMemory => XNND_ERROR_OUT_OF_MEMORY,
        _ => XNND_ERROR_UNSUPPORTED,
    }
}

fn delegate_code(error: &(dyn StdError + Send + Sync + 'static)) -> xnnd_error_code_t {
    if let Some(error) = error.downcast_ref::<Error>() {
        return code(error);
    }
    error.downcast_ref::<RuntimeError>().map_or(XNND_ERROR_EXECUTION, runtime_code)
}

/// How the caller may avoid an error.
fn advice(error: &Error) -> Option<&'static str> {
    match error.limit()? {
        xnn_model::Excess::MEMORY => {
            Some("if you trust the model, raise XNND_LIMIT_MEMORY with xnnd_options_set_limit")
        }
        xnn_model::Excess::WORK => {
            Some("if you trust the model, raise XNND_LIMIT_WORK with xnnd_options_set_limit")
        }
        _ => None,
    }
}

/// The error of a file that cannot be written.
pub(crate) fn cannot_write(path: &std::path::Path, error: &io::Error) -> xnnd_error_t {
    xnnd_error_t::new(XNND_ERROR_IO, format!("{}: cannot be written: {error}", path.display()))
}

/// Runs the body of a function that can fail. A panic becomes an error.
pub(crate) fn guard(body: impl FnOnce() -> Result) -> *mut xnnd_error_t {
    let result = catch_unwind(AssertUnwindSafe(body));
    match result.unwrap_or_else(|panic| Err(xnnd_error_t::of_panic(&*panic))) {
        Ok(()) => ptr::null_mut(),
        Err(error) => Box::into_raw(Box::new(error)),
    }
}

/// Runs the body of a function that cannot fail. A panic gives the `fallback`.
pub(crate) fn guard_or<T>(fallback: T, body: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(fallback)
}

/// Code of an error. `error` may be NULL, which is no error: `XNND_OK`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn xnnd_error_code(error: *const xnnd_error_t) -> xnnd_error_code_t {
    // SAFETY: the caller passes NULL or an error that it has not deleted.
    unsafe { error.as_ref() }.map_or(XNND_OK, |error| error.code)
}

/// Text of an error in UTF-8, one or several lines without a final newline. It belongs to the error. Empty if `error` is
/// NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn xnnd_error_message(error: *const xnnd_error_t) -> *const c_char {
    // SAFETY: the caller passes NULL or an error that it has not deleted.
    unsafe { error.as_ref() }.map_or(c"".as_ptr(), |error| error.message.as_ptr())
}

/// Deletes an error. `error` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn xnnd_error_delete(error: *mut xnnd_error_t) {
    if !error.is_null() {
        // SAFETY: the caller passes NULL or an error of this library, from `guard`, that it has not deleted.
        drop(unsafe { Box::from_raw(error) });
    }
}
