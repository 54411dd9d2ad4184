//! Tensors and delegates by opaque pointers: `c_api_opaque.h`. A `TfLiteOpaqueTensor` is a
//! `TfLiteTensor`, as in TFLite.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;

use xnn_model::DType;
use xnn_tflite_abi::{
    DYNAMIC, ERROR, OK, TfLiteDelegate, TfLiteQuantization, TfLiteStatus, TfLiteTensor, c_struct,
    ints, type_code,
};

use crate::common::{
    TfLiteTensorGetAllocationStrategy, TfLiteTensorGetBufferAddressStability,
    TfLiteTensorGetDataKnownStep, TfLiteTensorGetDataStability, TfLiteTensorGetShapeKnownStep,
};
use crate::table::set_dynamic;
use crate::tensor::{
    TfLiteQuantizationParams, TfLiteTensorByteSize, TfLiteTensorCopyFromBuffer,
    TfLiteTensorCopyToBuffer, TfLiteTensorData, TfLiteTensorDim, TfLiteTensorName,
    TfLiteTensorNumDims, TfLiteTensorQuantizationParams, TfLiteTensorType,
};
use crate::{delegates, elements, guard, strings};

macro_rules! aliases {
    ($($name:ident = $of:ident -> $result:ty;)*) => {$(
        #[doc = concat!("[`", stringify!($of), "`].")]
        #[unsafe(no_mangle)]
        pub extern "C" fn $name(opaque_tensor: Option<&TfLiteTensor>) -> $result {
            $of(opaque_tensor)
        }
    )*};
}

aliases! {
    TfLiteOpaqueTensorType = TfLiteTensorType -> c_int;
    TfLiteOpaqueTensorNumDims = TfLiteTensorNumDims -> i32;
    TfLiteOpaqueTensorByteSize = TfLiteTensorByteSize -> usize;
    TfLiteOpaqueTensorData = TfLiteTensorData -> *mut c_void;
    TfLiteOpaqueTensorName = TfLiteTensorName -> *const c_char;
    TfLiteOpaqueTensorGetQuantizationParams =
        TfLiteTensorQuantizationParams -> TfLiteQuantizationParams;
    TfLiteOpaqueTensorGetAllocationStrategy = TfLiteTensorGetAllocationStrategy -> c_int;
    TfLiteOpaqueTensorGetBufferAddressStability = TfLiteTensorGetBufferAddressStability -> c_int;
    TfLiteOpaqueTensorGetDataStability = TfLiteTensorGetDataStability -> c_int;
    TfLiteOpaqueTensorGetDataKnownStep = TfLiteTensorGetDataKnownStep -> c_int;
    TfLiteOpaqueTensorGetShapeKnownStep = TfLiteTensorGetShapeKnownStep -> c_int;
}

/// [`TfLiteTensorDim`].
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteOpaqueTensorDim(
    opaque_tensor: Option<&TfLiteTensor>,
    dim_index: i32,
) -> i32 {
    TfLiteTensorDim(opaque_tensor, dim_index)
}

/// [`TfLiteTensorCopyFromBuffer`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TfLiteOpaqueTensorCopyFromBuffer(
    opaque_tensor: Option<&TfLiteTensor>,
    input_data: *const c_void,
    input_data_size: usize,
) -> TfLiteStatus {
    // SAFETY: guaranteed by the caller.
    unsafe { TfLiteTensorCopyFromBuffer(opaque_tensor, input_data, input_data_size) }
}

/// [`TfLiteTensorCopyToBuffer`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TfLiteOpaqueTensorCopyToBuffer(
    opaque_tensor: Option<&TfLiteTensor>,
    output_data: *mut c_void,
    output_data_size: usize,
) -> TfLiteStatus {
    // SAFETY: guaranteed by the caller.
    unsafe { TfLiteTensorCopyToBuffer(opaque_tensor, output_data, output_data_size) }
}

/// Dimensions with -1 for open ones; `None` if all are fixed.
fn signature(tensor: &TfLiteTensor) -> Option<&[c_int]> {
    // SAFETY: null, or a live array of the tensor.
    (!tensor.dims_signature.is_null()).then(|| unsafe { ints(tensor.dims_signature) })
}

/// Stores the number of dimensions of the shape signature; -1 if the tensor has none.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteOpaqueTensorGetNumDimsSignature(
    opaque_tensor: Option<&TfLiteTensor>,
    num_dims: Option<&mut i32>,
) -> TfLiteStatus {
    let (Some(tensor), Some(num_dims)) = (opaque_tensor, num_dims) else { return ERROR };
    *num_dims = signature(tensor).map_or(-1, |dims| dims.len() as i32);
    OK
}

/// Stores a dimension of the shape signature; -1 if it is open, and if the tensor has none.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteOpaqueTensorGetDimSignature(
    opaque_tensor: Option<&TfLiteTensor>,
    dim_index: i32,
    dim_length: Option<&mut i32>,
) -> TfLiteStatus {
    let (Some(tensor), Some(dim_length)) = (opaque_tensor, dim_length) else { return ERROR };
    let Some(dims) = signature(tensor) else {
        *dim_length = -1;
        return OK;
    };
    match usize::try_from(dim_index).ok().and_then(|index| dims.get(index)) {
        Some(dim) => {
            *dim_length = *dim;
            OK
        }
        None => ERROR,
    }
}

/// Returns 1 for a variable, and 0 for other tensors.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteOpaqueTensorIsVariable(opaque_tensor: Option<&TfLiteTensor>) -> c_int {
    opaque_tensor.map_or(0, |tensor| c_int::from(tensor.is_variable != 0))
}

/// Returns the `TfLiteAllocationType`.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteOpaqueTensorGetAllocationType(
    opaque_tensor: Option<&TfLiteTensor>,
) -> c_int {
    opaque_tensor.map_or(0, |tensor| tensor.allocation_type)
}

/// Returns the quantization. Its parameters belong to the tensor.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteOpaqueTensorGetQuantization(
    opaque_tensor: Option<&TfLiteTensor>,
) -> TfLiteQuantization {
    let none = TfLiteQuantization { kind: 0, params: ptr::null() };
    opaque_tensor.map_or(none, |tensor| TfLiteQuantization {
        kind: tensor.quantization.kind,
        params: tensor.quantization.params,
    })
}

/// Makes a tensor own its data.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteOpaqueTensorSetAllocationTypeToDynamic(tensor: Option<&mut TfLiteTensor>) {
    if let Some(tensor) = tensor.filter(|tensor| tensor.allocation_type != DYNAMIC) {
        tensor.allocation_type = DYNAMIC;
        tensor.data = ptr::null_mut();
        tensor.bytes = 0;
    }
}

/// The packed bytes of a tensor of strings.
fn packed(tensor: Option<&TfLiteTensor>) -> Option<&[u8]> {
    let tensor = tensor.filter(|tensor| tensor.element_type == type_code(DType::String))?;
    let data = tensor.data.cast::<u8>();
    // SAFETY: the tensor's data has `bytes` bytes.
    (!data.is_null()).then(|| unsafe { std::slice::from_raw_parts(data, tensor.bytes) })
}

/// Returns the number of strings; -1 for tensors of other types and without data.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteOpaqueTensorGetStringCount(tensor: Option<&TfLiteTensor>) -> c_int {
    guard(-1, || {
        let strings = packed(tensor).and_then(strings::unpack);
        strings.map_or(-1, |strings| strings.len() as c_int)
    })
}

/// Stores the address and length of a string, which is not terminated by zero.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteOpaqueTensorGetString(
    tensor: Option<&TfLiteTensor>,
    index: c_int,
    str: Option<&mut *const c_char>,
    len: Option<&mut c_int>,
) -> TfLiteStatus {
    guard(ERROR, || {
        let strings = packed(tensor).and_then(strings::unpack).unwrap_or_default();
        let string = usize::try_from(index).ok().and_then(|index| strings.get(index));
        let (Some(string), Some(address), Some(len)) = (string, str, len) else { return ERROR };
        *address = string.as_ptr().cast();
        *len = string.len() as c_int;
        OK
    })
}

/// Stores strings in a tensor. The tensor's dimensions do not change, except for those of a tensor
/// that the caller has made.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TfLiteOpaqueTensorWriteStrings(
    tensor: Option<&mut TfLiteTensor>,
    str_array: *const *const c_char,
    str_array_len: c_int,
    str_n_len: *const c_int,
) -> TfLiteStatus {
    guard(ERROR, || {
        let tensor = tensor.filter(|tensor| tensor.element_type == type_code(DType::String));
        let Some(tensor) = tensor else { return ERROR };
        // SAFETY: guaranteed by the caller.
        let (addresses, lengths) =
            unsafe { (elements(str_array, str_array_len), elements(str_n_len, str_array_len)) };
        let strings: Vec<&[u8]> = addresses
            .iter()
            .zip(lengths)
            // SAFETY: guaranteed by the caller.
            .map(|(&address, &len)| unsafe { elements(address.cast::<u8>(), len) })
            .collect();
        let Some(packed) = strings::pack(&strings) else { return ERROR };
        if set_dynamic(tensor, packed.len()).is_err() {
            return ERROR;
        }
        // SAFETY: the data has the size of `packed`.
        unsafe { tensor.data.cast::<u8>().copy_from(packed.as_ptr(), packed.len()) };
        OK
    })
}

/// Stores one string in a tensor.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TfLiteOpaqueTensorWriteString(
    tensor: Option<&mut TfLiteTensor>,
    str: *const c_char,
    len: c_int,
) -> TfLiteStatus {
    // SAFETY: guaranteed by the caller.
    unsafe { TfLiteOpaqueTensorWriteStrings(tensor, &raw const str, 1, &raw const len) }
}

/// A tensor to be added to an interpreter by a delegate, which cannot run here.
#[derive(Debug, Default)]
pub struct TfLiteOpaqueTensorBuilder {
    /// Gives each builder an address.
    _size: u8,
}

/// Creates a builder of tensors.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteOpaqueTensorBuilderCreate() -> Option<Box<TfLiteOpaqueTensorBuilder>> {
    Some(Box::default())
}

/// Destroys a builder of tensors.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteOpaqueTensorBuilderDelete(builder: Option<Box<TfLiteOpaqueTensorBuilder>>) {
    drop(builder);
}

macro_rules! setters {
    ($($name:ident($value:ty);)*) => {$(
        /// Returns the builder, whose tensors no interpreter of this library takes.
        #[unsafe(no_mangle)]
        pub extern "C" fn $name(
            builder: *mut TfLiteOpaqueTensorBuilder,
            _value: $value,
        ) -> *mut TfLiteOpaqueTensorBuilder {
            builder
        }
    )*};
}

setters! {
    TfLiteOpaqueTensorBuilderSetType(c_int);
    TfLiteOpaqueTensorBuilderSetData(*mut c_void);
    TfLiteOpaqueTensorBuilderSetAllocationType(c_int);
    TfLiteOpaqueTensorBuilderSetQuantizationParams(TfLiteQuantizationParams);
    TfLiteOpaqueTensorBuilderSetQuantization(TfLiteQuantization);
}

c_struct! {
    /// Functions and data of a delegate of the caller.
    #[derive(Clone, Copy, Debug)]
    TfLiteOpaqueDelegateBuilder: 48 {
        /// The caller's data.
        data @ 0: *mut c_void,
        /// Never called, like the other functions.
        prepare @ 8: *mut c_void,
        /// Never called.
        copy_from_buffer_handle @ 16: *mut c_void,
        /// Never called.
        copy_to_buffer_handle @ 24: *mut c_void,
        /// Never called.
        free_buffer_handle @ 32: *mut c_void,
        /// No effect.
        flags @ 40: i64,
    }
}

/// Creates a delegate of the caller. No interpreter of this library accepts it.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteOpaqueDelegateCreate(
    opaque_delegate_builder: Option<&TfLiteOpaqueDelegateBuilder>,
) -> *mut TfLiteDelegate {
    guard(ptr::null_mut(), || {
        let Some(builder) = opaque_delegate_builder else { return ptr::null_mut() };
        let mut delegate = Box::new(delegates::plain(builder.data));
        delegate.flags = builder.flags;
        delegate.opaque_delegate_builder = Box::into_raw(Box::new(*builder)).cast();
        Box::into_raw(delegate)
    })
}

/// Destroys a delegate that [`TfLiteOpaqueDelegateCreate`] has made.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TfLiteOpaqueDelegateDelete(delegate: *mut TfLiteDelegate) {
    if delegate.is_null() {
        return;
    }
    // SAFETY: the caller guarantees where the delegate comes from; so does its builder.
    unsafe {
        let delegate = Box::from_raw(delegate);
        let builder = delegate.opaque_delegate_builder.cast::<TfLiteOpaqueDelegateBuilder>();
        if !builder.is_null() {
            drop(Box::from_raw(builder));
        }
    }
}

/// Returns the caller's data of a delegate.
#[unsafe(no_mangle)]
pub extern "C" fn TfLiteOpaqueDelegateGetData(delegate: Option<&TfLiteDelegate>) -> *mut c_void {
    delegate.map_or(ptr::null_mut(), |delegate| delegate.data)
}
