//! The extension module `xnn_delegate._native`, on which the Python package `xnn_delegate` is built.
//!
//! It converts arguments, results and errors between Python and the facade `xnn-delegate`. Arrays are views of the runner's
//! memory through numpy's array interface; nothing here depends on numpy's binary interface.

mod arrays;
mod error;
mod memory;
mod model;
mod runner;
mod tools;

use pyo3::prelude::*;

/// Functions and classes for the Python layer. They are not a public interface.
#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::memory::TensorMemory;
    #[pymodule_export]
    use crate::model::Model;
    #[pymodule_export]
    use crate::runner::Runner;
    #[pymodule_export]
    use crate::tools::{convert, explain, file_is_blob, metadata, verify};

    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", xnn::build::VERSION)?;
        module.add("XNNPACK_REVISION", xnn::build::XNNPACK_REVISION)
    }
}
