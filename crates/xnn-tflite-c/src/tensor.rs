//! Tensors: the last part of `c_api.h`.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;

use xnn_tflite_abi::{ERROR, OK, TfLiteStatus, TfLiteTensor, c_struct, ints};

c_struct! {
    /// Per-tensor quantization; the scale is 0 for all other tensors.
    #[derive(Clone, Copy, Debug, Default, PartialEq)]
    TfLiteQuantizationParams: 8 {
        /// Step between two neighbouring integers, in real units.
        scale @ 0: f32,
        /// The integer that represents 0.
        zero_point @ 4: i32,
    }
}

/// Dimensions of a tensor; `None` if it has none.
pub(crate) fn dims(tensor: Option<&TfLiteTensor>) -> Option<&[c_int]> {
    let tensor = tensor.filter(|tensor| !tensor.dims.is_null())?;
    // SAFETY: a live array of the tensor.
    Some(unsafe { ints(tensor.dims) })
}

/// Returns the code of the element type.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteTensorType(tensor: Option<&TfLiteTensor>) -> c_int {
    tensor.map_or(0, |tensor| tensor.element_type)
}

/// Returns the number of dimensions; -1 if the tensor has none.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteTensorNumDims(tensor: Option<&TfLiteTensor>) -> i32 {
    dims(tensor).map_or(-1, |dims| dims.len() as i32)
}

/// Returns a dimension; -1 if it does not exist.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteTensorDim(tensor: Option<&TfLiteTensor>, dim_index: i32) -> i32 {
    let dim = dims(tensor).zip(usize::try_from(dim_index).ok());
    dim.and_then(|(dims, index)| dims.get(index)).copied().unwrap_or(-1)
}

/// Returns the size of the elements in bytes.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteTensorByteSize(tensor: Option<&TfLiteTensor>) -> usize {
    tensor.map_or(0, |tensor| tensor.bytes)
}

/// Returns the elements; null before tensors are allocated.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteTensorData(tensor: Option<&TfLiteTensor>) -> *mut c_void {
    tensor.map_or(ptr::null_mut(), |tensor| tensor.data)
}

/// Returns the name.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteTensorName(tensor: Option<&TfLiteTensor>) -> *const c_char {
    tensor.map_or(ptr::null(), |tensor| tensor.name)
}

/// Returns scale and zero point.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteTensorQuantizationParams(
    tensor: Option<&TfLiteTensor>,
) -> TfLiteQuantizationParams {
    tensor.map_or_else(Default::default, |tensor| {
        let TfLiteTensor { scale, zero_point, .. } = *tensor;
        TfLiteQuantizationParams { scale, zero_point }
    })
}

/// Copies elements into a tensor. The size must be that of the tensor.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TfLiteTensorCopyFromBuffer(
    tensor: Option<&TfLiteTensor>,
    input_data: *const c_void,
    input_data_size: usize,
) -> TfLiteStatus {
    let data = TfLiteTensorData(tensor);
    // SAFETY: guaranteed by the caller; `data` is the tensor's.
    unsafe { copy(input_data, data, input_data_size, TfLiteTensorByteSize(tensor)) }
}

/// Copies the elements of a tensor. The size must be that of the tensor.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TfLiteTensorCopyToBuffer(
    output_tensor: Option<&TfLiteTensor>,
    output_data: *mut c_void,
    output_data_size: usize,
) -> TfLiteStatus {
    let data = TfLiteTensorData(output_tensor);
    // SAFETY: guaranteed by the caller; `data` is the tensor's.
    unsafe { copy(data, output_data, output_data_size, TfLiteTensorByteSize(output_tensor)) }
}

/// Copies `size` bytes, if `expected` ones are needed.
///
/// # Safety
/// Both pointers are null, or have `expected` bytes.
unsafe fn copy(from: *const c_void, to: *mut c_void, size: usize, expected: usize) -> TfLiteStatus {
    if size != expected || (size > 0 && (from.is_null() || to.is_null())) {
        return ERROR;
    }
    if size > 0 {
        // SAFETY: guaranteed by the caller. The buffers may overlap.
        unsafe { to.cast::<u8>().copy_from(from.cast(), size) };
    }
    OK
}
