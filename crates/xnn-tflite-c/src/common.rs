//! Arrays, and tensors that callers make themselves: `common.h`.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;

use xnn_tflite_abi::{
    AFFINE_QUANTIZATION, ARENA_RW, ARENA_RW_PERSISTENT, BLOCKWISE_QUANTIZATION, DYNAMIC, ERROR,
    IntArray, MEM_NONE, MMAP_RO, OK, TfLiteAffineQuantization, TfLiteDelegate,
    TfLiteDimensionMetadata, TfLiteFloatArray, TfLiteIntArray, TfLiteQuantization, TfLiteSparsity,
    TfLiteStatus, TfLiteTensor, ints,
};

use crate::delegates;
use crate::table::{free, set_dynamic};
use crate::tensor::TfLiteQuantizationParams;
use crate::{elements, guard};

/// `kTfLitePersistentRo`.
const PERSISTENT_RO: c_int = 5;
/// `kTfLiteVariantObject`.
const VARIANT: c_int = 7;

/// Names of the element types, by code.
const NAMES: [&std::ffi::CStr; 22] = [
    c"NOTYPE",
    c"FLOAT32",
    c"INT32",
    c"UINT8",
    c"INT64",
    c"STRING",
    c"BOOL",
    c"INT16",
    c"COMPLEX64",
    c"INT8",
    c"FLOAT16",
    c"FLOAT64",
    c"COMPLEX128",
    c"UINT64",
    c"RESOURCE",
    c"VARIANT",
    c"UINT32",
    c"UINT16",
    c"INT4",
    c"BFLOAT16",
    c"INT2",
    c"UINT4",
];

/// Returns the name of an element type.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteTypeGetName(type_: c_int) -> *const c_char {
    let name = usize::try_from(type_).ok().and_then(|code| NAMES.get(code));
    name.unwrap_or(&c"Unknown type").as_ptr()
}

/// Size in bytes of an array with its length.
fn array_size(size: c_int) -> usize {
    let elements = usize::try_from(size).unwrap_or(0);
    elements.saturating_mul(size_of::<c_int>()).saturating_add(size_of::<TfLiteIntArray>())
}

/// An array of zeros from `malloc`; null for a negative length, and if memory is exhausted.
fn zeros(size: c_int) -> *mut c_int {
    if size < 0 {
        return ptr::null_mut();
    }
    // SAFETY: `calloc` accepts any size.
    let array = unsafe { libc::calloc(1, array_size(size)) }.cast::<c_int>();
    if !array.is_null() {
        // SAFETY: an array begins with its length.
        unsafe { array.write(size) };
    }
    array
}

/// Returns the size in bytes of an array of this length.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteIntArrayGetSizeInBytes(size: c_int) -> usize {
    array_size(size)
}

/// Creates an array of zeros.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteIntArrayCreate(size: c_int) -> *mut TfLiteIntArray {
    zeros(size).cast()
}

/// Returns whether two arrays are equal.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TfLiteIntArrayEqual(
    a: *const TfLiteIntArray,
    b: *const TfLiteIntArray,
) -> c_int {
    if a.is_null() || b.is_null() {
        return c_int::from(a == b);
    }
    // SAFETY: live arrays of the caller.
    c_int::from(unsafe { ints(a) == ints(b) })
}

/// Returns whether an array has these elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TfLiteIntArrayEqualsArray(
    a: *const TfLiteIntArray,
    b_size: c_int,
    b_data: *const c_int,
) -> c_int {
    if a.is_null() {
        return c_int::from(b_size == 0);
    }
    // SAFETY: a live array and `b_size` elements of the caller.
    c_int::from(unsafe { ints(a) == elements(b_data, b_size) })
}

/// Copies an array.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TfLiteIntArrayCopy(src: *const TfLiteIntArray) -> *mut TfLiteIntArray {
    if src.is_null() {
        return ptr::null_mut();
    }
    // SAFETY: a live array of the caller.
    guard(ptr::null_mut(), || IntArray::new(unsafe { ints(src) }).to_malloc())
}

/// Frees an array.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TfLiteIntArrayFree(a: *mut TfLiteIntArray) {
    // SAFETY: null, or an array from `malloc` that the caller forgets.
    unsafe { free(a.cast()) };
}

/// Returns the size in bytes of an array of this length.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteFloatArrayGetSizeInBytes(size: c_int) -> c_int {
    c_int::try_from(array_size(size)).unwrap_or(c_int::MAX)
}

/// Creates an array of zeros.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteFloatArrayCreate(size: c_int) -> *mut TfLiteFloatArray {
    zeros(size).cast()
}

/// Copies an array.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TfLiteFloatArrayCopy(
    src: *const TfLiteFloatArray,
) -> *mut TfLiteFloatArray {
    // SAFETY: floats are as large as integers, and are copied bit by bit.
    unsafe { TfLiteIntArrayCopy(src.cast()) }.cast()
}

/// Frees an array.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TfLiteFloatArrayFree(a: *mut TfLiteFloatArray) {
    // SAFETY: null, or an array from `malloc` that the caller forgets.
    unsafe { free(a.cast()) };
}

/// Frees the data of a dynamic tensor.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TfLiteTensorDataFree(t: Option<&mut TfLiteTensor>) {
    let Some(tensor) = t else { return };
    if matches!(tensor.allocation_type, DYNAMIC | PERSISTENT_RO) {
        // SAFETY: null, or memory from `malloc` that the tensor owns.
        unsafe { free(tensor.data) };
    }
    tensor.data = ptr::null_mut();
}

/// Frees quantization parameters that the caller has made.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TfLiteQuantizationFree(quantization: Option<&mut TfLiteQuantization>) {
    let Some(quantization) = quantization else { return };
    let params = quantization.params.cast_mut();
    if quantization.kind == AFFINE_QUANTIZATION && !params.is_null() {
        // SAFETY: the kind says which structure this is. Its arrays are null or from `malloc`.
        unsafe {
            let TfLiteAffineQuantization { scale, zero_point, .. } =
                params.cast::<TfLiteAffineQuantization>().read();
            free(scale.cast_mut().cast());
            free(zero_point.cast_mut().cast());
        }
    }
    if matches!(quantization.kind, AFFINE_QUANTIZATION | BLOCKWISE_QUANTIZATION) {
        // SAFETY: null, or a structure from `malloc` that the tensor owns.
        unsafe { free(params) };
    }
    (quantization.kind, quantization.params) = (0, ptr::null());
}

/// Frees the layout of a sparse tensor that the caller has made.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TfLiteSparsityFree(sparsity: *mut TfLiteSparsity) {
    if sparsity.is_null() {
        return;
    }
    // SAFETY: a structure from `malloc`, with arrays that are null or from `malloc`, as many
    // dimensions as it says.
    unsafe {
        let TfLiteSparsity { traversal_order, block_map, dim_metadata, dim_metadata_size } =
            sparsity.read();
        free(traversal_order.cast_mut().cast());
        free(block_map.cast_mut().cast());
        for dimension in elements(dim_metadata, dim_metadata_size) {
            let TfLiteDimensionMetadata { array_segments, array_indices, .. } = dimension;
            free(array_segments.cast_mut().cast());
            free(array_indices.cast_mut().cast());
        }
        free(dim_metadata.cast_mut().cast());
        free(sparsity.cast());
    }
}

/// Frees all memory of a tensor that the caller has made.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TfLiteTensorFree(t: Option<&mut TfLiteTensor>) {
    let Some(tensor) = t else { return };
    // SAFETY: arrays are null or from `malloc`, as the caller guarantees.
    unsafe {
        TfLiteTensorDataFree(Some(&mut *tensor));
        free(tensor.dims.cast_mut().cast());
        free(tensor.dims_signature.cast_mut().cast());
        TfLiteQuantizationFree(Some(&mut tensor.quantization));
        TfLiteSparsityFree(tensor.sparsity.cast_mut());
    }
    (tensor.dims, tensor.dims_signature, tensor.sparsity) = (ptr::null(), ptr::null(), ptr::null());
}

/// Replaces the content of a tensor that the caller has made.
#[allow(clippy::too_many_arguments, reason = "the header's")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TfLiteTensorReset(
    type_: c_int,
    name: *const c_char,
    dims: *mut TfLiteIntArray,
    quantization: TfLiteQuantizationParams,
    buffer: *mut c_char,
    size: usize,
    allocation_type: c_int,
    allocation: *const c_void,
    is_variable: bool,
    tensor: Option<&mut TfLiteTensor>,
) {
    let Some(tensor) = tensor else { return };
    // SAFETY: guaranteed by the caller.
    unsafe { TfLiteTensorFree(Some(&mut *tensor)) };
    tensor.element_type = type_;
    tensor.name = name;
    tensor.dims = dims;
    (tensor.scale, tensor.zero_point) = (quantization.scale, quantization.zero_point);
    tensor.data = buffer.cast();
    tensor.bytes = size;
    tensor.allocation_type = allocation_type;
    tensor.allocation = allocation;
    tensor.is_variable = u8::from(is_variable);
}

/// Copies elements, element type and dimensions to a tensor of the same size in bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TfLiteTensorCopy(
    src: *const TfLiteTensor,
    dst: *mut TfLiteTensor,
) -> TfLiteStatus {
    if src.is_null() || dst.is_null() || ptr::eq(src, dst) {
        return OK;
    }
    // SAFETY: two live tensors of the caller, with `bytes` bytes of data.
    let (source, target) = unsafe { (&*src, &mut *dst) };
    if source.bytes != target.bytes {
        return ERROR;
    }
    // SAFETY: see above. Dimensions are null or from `malloc`.
    unsafe {
        free(target.dims.cast_mut().cast());
        target.dims = TfLiteIntArrayCopy(source.dims);
        if !source.data.is_null() && !target.data.is_null() {
            target.data.cast::<u8>().copy_from(source.data.cast(), source.bytes);
        }
    }
    target.element_type = source.element_type;
    OK
}

/// Changes the size of the data of a dynamic tensor. Other tensors do not change.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TfLiteTensorResizeMaybeCopy(
    num_bytes: usize,
    tensor: Option<&mut TfLiteTensor>,
    _preserve_data: bool,
) -> TfLiteStatus {
    match tensor {
        Some(tensor) if tensor.allocation_type == DYNAMIC => match set_dynamic(tensor, num_bytes) {
            Ok(()) => OK,
            Err(_) => ERROR,
        },
        _ => OK,
    }
}

/// Changes the size of the data of a dynamic tensor, and keeps its content.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TfLiteTensorRealloc(
    num_bytes: usize,
    tensor: Option<&mut TfLiteTensor>,
) -> TfLiteStatus {
    // SAFETY: guaranteed by the caller.
    unsafe { TfLiteTensorResizeMaybeCopy(num_bytes, tensor, true) }
}

/// Returns a delegate without functions.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteDelegateCreate() -> TfLiteDelegate {
    TfLiteDelegate { prepare: None, ..delegates::plain(ptr::null_mut()) }
}

/// Returns how the data of a tensor is allocated (`TfLiteAllocationStrategy`).
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteTensorGetAllocationStrategy(t: Option<&TfLiteTensor>) -> c_int {
    match t.map(|tensor| tensor.allocation_type) {
        Some(MEM_NONE) => 1,
        Some(MMAP_RO) => 2,
        Some(ARENA_RW | ARENA_RW_PERSISTENT) => 3,
        Some(DYNAMIC) => 4,
        Some(VARIANT) => 5,
        _ => 0,
    }
}

/// Returns how long the address of the data stays the same (`TfLiteRunStability`).
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteTensorGetBufferAddressStability(t: Option<&TfLiteTensor>) -> c_int {
    match t.map(|tensor| tensor.allocation_type) {
        Some(MEM_NONE | MMAP_RO) => 3,
        Some(ARENA_RW | ARENA_RW_PERSISTENT) => 1,
        Some(DYNAMIC) => 2,
        _ => 0,
    }
}

/// Returns how long the data stays the same (`TfLiteRunStability`).
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteTensorGetDataStability(t: Option<&TfLiteTensor>) -> c_int {
    match t.map(|tensor| tensor.allocation_type) {
        Some(MEM_NONE | MMAP_RO | ARENA_RW_PERSISTENT | PERSISTENT_RO) => 3,
        Some(ARENA_RW | DYNAMIC) => 2,
        _ => 0,
    }
}

/// Returns when the data is known (`TfLiteRunStep`).
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteTensorGetDataKnownStep(t: Option<&TfLiteTensor>) -> c_int {
    match t.map(|tensor| tensor.allocation_type) {
        Some(MEM_NONE | MMAP_RO) => 1,
        Some(PERSISTENT_RO) => 2,
        Some(ARENA_RW | ARENA_RW_PERSISTENT | DYNAMIC) => 3,
        _ => 0,
    }
}

/// Returns when the shape is known (`TfLiteRunStep`).
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteTensorGetShapeKnownStep(t: Option<&TfLiteTensor>) -> c_int {
    match t.map(|tensor| tensor.allocation_type) {
        Some(MEM_NONE | MMAP_RO) => 1,
        Some(PERSISTENT_RO | ARENA_RW | ARENA_RW_PERSISTENT) => 2,
        Some(DYNAMIC) => 3,
        _ => 0,
    }
}
