//! Numpy arrays as memory for outputs.

use std::ptr;
use std::slice;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

/// Positions of outputs, and the memory of arrays for them.
pub type Outputs<'a> = Vec<(usize, &'a mut [u8])>;

/// The class `numpy.ndarray`.
static NDARRAY: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// The memory of dense, writable arrays.
///
/// # Errors
///
/// An object is not an array of numpy, cannot be written, or is not dense and row-major; two arrays overlap.
pub fn outputs<'a>(arrays: &'a [(usize, Bound<'_, PyAny>)]) -> PyResult<Outputs<'a>> {
    let mut places: Vec<(usize, (usize, usize))> = Vec::with_capacity(arrays.len());
    for (index, array) in arrays {
        let (start, bytes) = place(array)?;
        let overlaps = |&(_, (other, size)): &(usize, (usize, usize))| {
            start < other + size && other < start + bytes
        };
        if places.iter().any(overlaps) {
            return Err(PyValueError::new_err("two arrays of out share memory"));
        }
        places.push((*index, (start, bytes)));
    }
    let memory = places.into_iter().map(|(index, (start, bytes))| {
        if bytes == 0 {
            return (index, &mut [][..]);
        }
        let start = ptr::with_exposed_provenance_mut::<u8>(start);
        // SAFETY: numpy states that `bytes` dense bytes at `start` belong to the array and are writable. The array is
        // borrowed for 'a, and numpy does not move the memory of an array that others refer to. The places do not overlap,
        // so that no other slice is made of these bytes. Python code that accesses the array meanwhile, in another thread,
        // is a race in that code, as with every function of numpy that releases the GIL.
        (index, unsafe { slice::from_raw_parts_mut(start, bytes) })
    });
    Ok(memory.collect())
}

/// Address and size of an array.
fn place(array: &Bound<'_, PyAny>) -> PyResult<(usize, usize)> {
    let ndarray = NDARRAY.import(array.py(), "numpy", "ndarray")?;
    if !array.is_instance(ndarray)? {
        let found = array.get_type().name()?;
        return Err(PyTypeError::new_err(format!("out: expected a numpy array, found {found}")));
    }
    let interface = array.getattr("__array_interface__")?;
    let (address, read_only): (usize, bool) = interface.get_item("data")?.extract()?;
    let is_dense = interface.get_item("strides")?.is_none();
    if read_only || !is_dense {
        return Err(PyValueError::new_err("out: expected a writable, dense, row-major array"));
    }
    Ok((address, array.getattr("nbytes")?.extract()?))
}
