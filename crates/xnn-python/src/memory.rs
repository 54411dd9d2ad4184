//! Memory of tensors, which numpy views without copies.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pyo3::prelude::*;
use pyo3::types::PyDict;
use xnn::{DType, Model};

/// Elements of a tensor. `numpy.asarray` makes an array of it, which views the memory and keeps it alive.
#[pyclass(frozen, module = "xnn_delegate._native")]
pub struct TensorMemory {
    address: usize,
    dims: Vec<usize>,
    typestr: &'static str,
    read_only: bool,
    _owner: Owner,
}

/// Keeps memory alive and in its place.
pub enum Owner {
    /// A runner in Python, which refuses to move or free tensors while it is counted.
    Runner(Py<PyAny>, Counted),
    /// A model, whose constants never move.
    Model(Model),
}

/// One of the views that a runner counts.
pub struct Counted(Arc<AtomicUsize>);

impl Counted {
    pub fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(count))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl TensorMemory {
    /// Views `bytes` bytes at `address`; `None` if the size is not that of such a tensor.
    pub fn new(
        (address, bytes): (usize, usize),
        dtype: DType,
        dims: Vec<usize>,
        read_only: bool,
        owner: Owner,
    ) -> Option<Self> {
        let (typestr, size) = numpy_type(dtype)?;
        // Several elements of packed types share a byte, so that they are one-dimensional arrays of bytes.
        let dims = if dtype.bits()? < 8 { vec![bytes] } else { dims };
        let elements = dims.iter().try_fold(1usize, |count, &dim| count.checked_mul(dim))?;
        (elements.checked_mul(size)? == bytes).then_some(Self {
            address,
            dims,
            typestr,
            read_only,
            _owner: owner,
        })
    }
}

#[pymethods]
impl TensorMemory {
    /// Numpy's array interface, version 3.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let interface = PyDict::new(py);
        let dims = self.dims.iter();
        interface.set_item("shape", pyo3::types::PyTuple::new(py, dims)?)?;
        interface.set_item("typestr", self.typestr)?;
        interface.set_item("data", (self.address, self.read_only))?;
        interface.set_item("version", 3)?;
        Ok(interface)
    }
}

/// Numpy's name of an element type, and the size of an element in bytes. Numpy does not have bfloat16 and packed integers,
/// which are their raw bits. `None` for types without a fixed size.
fn numpy_type(dtype: DType) -> Option<(&'static str, usize)> {
    Some(match dtype {
        DType::F32 => ("<f4", 4),
        DType::F64 => ("<f8", 8),
        DType::F16 => ("<f2", 2),
        DType::BF16 | DType::U16 => ("<u2", 2),
        DType::I8 => ("|i1", 1),
        DType::I16 => ("<i2", 2),
        DType::I32 => ("<i4", 4),
        DType::I64 => ("<i8", 8),
        DType::U8 | DType::I4 | DType::U4 | DType::I2 => ("|u1", 1),
        DType::U32 => ("<u4", 4),
        DType::U64 => ("<u8", 8),
        DType::Bool => ("|b1", 1),
        DType::Complex64 => ("<c8", 8),
        DType::Complex128 => ("<c16", 16),
        _ => return None,
    })
}
