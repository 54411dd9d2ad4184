//! Errors of the facade as Python exceptions.

use std::io;
use std::path::Path;

use pyo3::PyErr;
use pyo3::exceptions::{PyMemoryError, PyOSError, PyRuntimeError, PyValueError};
use xnn::Error;

/// Converts an error: `MemoryError` for exhausted memory, `OSError` and its subclasses for files that cannot be read or
/// written, `ValueError` for files and arguments that are not valid, `RuntimeError` for everything else.
pub fn exception(error: &Error) -> PyErr {
    let message = error.to_string();
    if error.is_out_of_memory() {
        return PyMemoryError::new_err(message);
    }
    match error {
        Error::Io { path, error } => of_file(path, error),
        Error::Model(error) => match (error.kind(), &error.place().path) {
            (xnn_model::ErrorKind::Io(cause), Some(path)) => of_file(path, cause),
            _ => PyValueError::new_err(message),
        },
        Error::Format(_) | Error::Tensor(_) | Error::Incomplete(_) => {
            PyValueError::new_err(message)
        }
        _ => PyRuntimeError::new_err(message),
    }
}

/// An error of the system about a file. Python chooses the subclass, such as `FileNotFoundError`.
fn of_file(path: &Path, error: &io::Error) -> PyErr {
    match error.raw_os_error() {
        // Python's text of the code, instead of Rust's with the code in parentheses.
        Some(code) => {
            let text = error.to_string();
            let text = text.split(" (os error").next().unwrap_or_default().to_owned();
            PyOSError::new_err((code, text, path.as_os_str().to_owned()))
        }
        None => PyOSError::new_err(format!("{}: {error}", path.display())),
    }
}
