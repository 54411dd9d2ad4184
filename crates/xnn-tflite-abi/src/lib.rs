//! TFLite's C structures: the members that this project's libraries read or write.
//!
//! These offsets are the same from TF 2.10 to LiteRT 2.3; structures have only grown at their ends.
//! Nothing here links to TFLite: all calls use the function pointers of [`TfLiteContext`].

#![allow(missing_docs, reason = "members have the names of TFLite's, whose headers describe them")]

use std::ffi::{c_char, c_int, c_void};

use xnn_model::DType;

/// Defines a structure with its size and the offsets of its fields, which are checked at compile
/// time.
#[macro_export]
macro_rules! c_struct {
    ($($(#[$doc:meta])* $name:ident: $size:literal { $($(#[$field_doc:meta])* $field:ident @ $offset:literal: $ty:ty,)* })*) => {$(
        $(#[$doc])*
        #[repr(C)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $ty,)*
        }

        const _: () = {
            assert!(size_of::<$name>() == $size);
            $(assert!(std::mem::offset_of!($name, $field) == $offset);)*
        };
    )*};
}

#[cfg(not(target_pointer_width = "64"))]
compile_error!("the layout of TFLite's structures is known for 64-bit targets only");

/// `TfLiteStatus`: 0 is success.
pub type TfLiteStatus = c_int;
/// `kTfLiteOk`.
pub const OK: TfLiteStatus = 0;
/// `kTfLiteError`.
pub const ERROR: TfLiteStatus = 1;

/// `kTfLiteDelegateFlagsAllowDynamicTensors`: the delegate's kernels resize their outputs.
pub const ALLOW_DYNAMIC_TENSORS: i64 = 1;
/// `kTfLiteMemNone`: no memory.
pub const MEM_NONE: c_int = 0;
/// `kTfLiteMmapRo`: a constant of the model.
pub const MMAP_RO: c_int = 1;
/// `kTfLiteArenaRw`: memory of the interpreter.
pub const ARENA_RW: c_int = 2;
/// `kTfLiteArenaRwPersistent`: memory of the interpreter that keeps its content between runs.
pub const ARENA_RW_PERSISTENT: c_int = 3;
/// `kTfLiteDynamic`: memory of its own, from `malloc`.
pub const DYNAMIC: c_int = 4;
/// `kTfLiteCustom`: memory of the caller.
pub const CUSTOM: c_int = 6;
/// `kTfLiteAffineQuantization`.
pub const AFFINE_QUANTIZATION: c_int = 1;
/// `kTfLiteBlockwiseQuantization`.
pub const BLOCKWISE_QUANTIZATION: c_int = 2;
/// `kTfLiteDimSparseCSR`.
pub const DIM_SPARSE_CSR: c_int = 1;

pub type GetExecutionPlan =
    unsafe extern "C" fn(*mut TfLiteContext, *mut *mut TfLiteIntArray) -> TfLiteStatus;
pub type ReportError = unsafe extern "C" fn(*mut TfLiteContext, *const c_char, ...);
pub type GetNodeAndRegistration = unsafe extern "C" fn(
    *mut TfLiteContext,
    c_int,
    *mut *mut TfLiteNode,
    *mut *mut TfLiteRegistration,
) -> TfLiteStatus;
pub type ReplaceNodeSubsets = unsafe extern "C" fn(
    *mut TfLiteContext,
    PaddedRegistration,
    *const TfLiteIntArray,
    *mut TfLiteDelegate,
) -> TfLiteStatus;
pub type ResizeTensor = unsafe extern "C" fn(
    *mut TfLiteContext,
    *mut TfLiteTensor,
    *mut TfLiteIntArray,
) -> TfLiteStatus;
pub type PreviewDelegatePartitioning = unsafe extern "C" fn(
    *mut TfLiteContext,
    *const TfLiteIntArray,
    *mut *mut TfLiteDelegateParams,
    *mut c_int,
) -> TfLiteStatus;
pub type Init = unsafe extern "C" fn(*mut TfLiteContext, *const c_char, usize) -> *mut c_void;
pub type Free = unsafe extern "C" fn(*mut TfLiteContext, *mut c_void);
/// `prepare` and `invoke` of a registration.
pub type Step = unsafe extern "C" fn(*mut TfLiteContext, *mut TfLiteNode) -> TfLiteStatus;
pub type PrepareDelegate =
    unsafe extern "C" fn(*mut TfLiteContext, *mut TfLiteDelegate) -> TfLiteStatus;

c_struct! {
    /// An array of integers with its length; `data` continues after the structure.
    TfLiteIntArray: 4 {
        size @ 0: c_int,
        data @ 4: [c_int; 0],
    }

    /// An array of floats with its length; `data` continues after the structure.
    TfLiteFloatArray: 4 {
        size @ 0: c_int,
        data @ 4: [f32; 0],
    }

    /// The interpreter as delegates and kernels see it. The interpreter's own structure is longer.
    TfLiteContext: 160 {
        tensors_size @ 0: usize,
        get_execution_plan @ 8: Option<GetExecutionPlan>,
        /// May move when tensors are added.
        tensors @ 16: *mut TfLiteTensor,
        implementation @ 24: *mut c_void,
        /// Takes ownership of the array, which must come from `malloc`.
        resize_tensor @ 32: Option<ResizeTensor>,
        report_error @ 40: Option<ReportError>,
        add_tensors @ 48: *mut c_void,
        get_node_and_registration @ 56: Option<GetNodeAndRegistration>,
        replace_node_subsets_with_delegate_kernels @ 64: Option<ReplaceNodeSubsets>,
        /// -1 if the user has not set it.
        recommended_num_threads @ 72: c_int,
        get_external_context @ 80: *mut c_void,
        set_external_context @ 88: *mut c_void,
        allow_fp32_relax_to_fp16 @ 96: u8,
        profiler @ 104: *mut c_void,
        allocate_persistent_buffer @ 112: *mut c_void,
        allocate_buffer_for_eval @ 120: *mut c_void,
        request_scratch_buffer_in_arena @ 128: *mut c_void,
        get_scratch_buffer @ 136: *mut c_void,
        /// Null in all tested interpreters.
        resize_tensor_explicit @ 144: *mut c_void,
        preview_delegate_partitioning @ 152: Option<PreviewDelegatePartitioning>,
    }

    TfLiteTensor: 112 {
        /// `TfLiteType`.
        element_type @ 0: c_int,
        /// Null while the tensor has no memory.
        data @ 8: *mut c_void,
        dims @ 16: *const TfLiteIntArray,
        scale @ 24: f32,
        zero_point @ 28: i32,
        allocation_type @ 32: c_int,
        bytes @ 40: usize,
        allocation @ 48: *const c_void,
        name @ 56: *const c_char,
        delegate @ 64: *mut TfLiteDelegate,
        buffer_handle @ 72: c_int,
        data_is_stale @ 76: u8,
        is_variable @ 77: u8,
        quantization @ 80: TfLiteQuantization,
        /// Null if the tensor is dense.
        sparsity @ 96: *const TfLiteSparsity,
        /// Null or empty if no dimension is open.
        dims_signature @ 104: *const TfLiteIntArray,
    }

    TfLiteQuantization: 16 {
        kind @ 0: c_int,
        /// Points to a structure that depends on `kind`.
        params @ 8: *const c_void,
    }

    TfLiteAffineQuantization: 24 {
        scale @ 0: *const TfLiteFloatArray,
        /// May have one element for many scales.
        zero_point @ 8: *const TfLiteIntArray,
        quantized_dimension @ 16: i32,
    }

    /// Scales (and zero points) are tensors.
    #[derive(Clone, Copy, Debug)]
    TfLiteBlockwiseQuantization: 16 {
        scale @ 0: i32,
        zero_point @ 4: i32,
        block_size @ 8: i32,
        quantized_dimension @ 12: i32,
    }

    TfLiteSparsity: 32 {
        traversal_order @ 0: *const TfLiteIntArray,
        block_map @ 8: *const TfLiteIntArray,
        dim_metadata @ 16: *const TfLiteDimensionMetadata,
        dim_metadata_size @ 24: c_int,
    }

    TfLiteDimensionMetadata: 24 {
        format @ 0: c_int,
        dense_size @ 4: c_int,
        array_segments @ 8: *const TfLiteIntArray,
        array_indices @ 16: *const TfLiteIntArray,
    }

    TfLiteNode: 80 {
        inputs @ 0: *const TfLiteIntArray,
        outputs @ 8: *const TfLiteIntArray,
        intermediates @ 16: *const TfLiteIntArray,
        temporaries @ 24: *const TfLiteIntArray,
        /// Pointer that `init` returned.
        user_data @ 32: *mut c_void,
        /// Options of a builtin operator; null if it has none.
        builtin_data @ 40: *const c_void,
        /// Options of a custom operator.
        custom_initial_data @ 48: *const c_void,
        custom_initial_data_size @ 56: c_int,
        delegate @ 64: *mut TfLiteDelegate,
        might_have_side_effect @ 72: u8,
    }

    /// The interpreter's structure has grown from 64 to 88 bytes; delegates read the first 60.
    TfLiteRegistration: 88 {
        init @ 0: Option<Init>,
        free @ 8: Option<Free>,
        prepare @ 16: Option<Step>,
        invoke @ 24: Option<Step>,
        profiling_string @ 32: *mut c_void,
        builtin_code @ 40: i32,
        custom_name @ 48: *const c_char,
        version @ 56: c_int,
        registration_external @ 64: *mut c_void,
        async_kernel @ 72: *mut c_void,
        inplace_operator @ 80: u64,
    }

    /// A registration to pass by value, followed by zeros: the callee reads as many bytes as its
    /// own version of the structure has.
    PaddedRegistration: 152 {
        registration @ 0: TfLiteRegistration,
        spare @ 88: [u64; 8],
    }

    TfLiteDelegate: 56 {
        data @ 0: *mut c_void,
        prepare @ 8: Option<PrepareDelegate>,
        copy_from_buffer_handle @ 16: *mut c_void,
        copy_to_buffer_handle @ 24: *mut c_void,
        free_buffer_handle @ 32: *mut c_void,
        flags @ 40: i64,
        opaque_delegate_builder @ 48: *mut c_void,
    }

    TfLiteDelegateParams: 32 {
        delegate @ 0: *mut TfLiteDelegate,
        nodes_to_replace @ 8: *const TfLiteIntArray,
        input_tensors @ 16: *const TfLiteIntArray,
        output_tensors @ 24: *const TfLiteIntArray,
    }
}

unsafe extern "C" {
    /// The C library's `malloc`, which TFLite's own arrays also use.
    fn malloc(size: usize) -> *mut c_void;
}

/// Elements of an array that TFLite owns; empty for a null pointer.
///
/// # Safety
/// `array` is null, or points to a live array for the lifetime `'a`.
pub unsafe fn ints<'a>(array: *const TfLiteIntArray) -> &'a [c_int] {
    // SAFETY: guaranteed by the caller; `size` elements follow the header.
    unsafe {
        let Some(header) = array.as_ref() else { return &[] };
        let size = usize::try_from(header.size).unwrap_or(0);
        std::slice::from_raw_parts((&raw const (*array).data).cast(), size)
    }
}

/// Like [`ints`], for floats.
///
/// # Safety
/// Like for [`ints`].
pub unsafe fn floats<'a>(array: *const TfLiteFloatArray) -> &'a [f32] {
    // SAFETY: guaranteed by the caller; `size` elements follow the header.
    unsafe {
        let Some(header) = array.as_ref() else { return &[] };
        let size = usize::try_from(header.size).unwrap_or(0);
        std::slice::from_raw_parts((&raw const (*array).data).cast(), size)
    }
}

/// An array for TFLite to read: length and elements in one allocation.
#[derive(Clone, Debug)]
pub struct IntArray(Vec<c_int>);

/// Like [`IntArray`], for floats.
#[derive(Clone, Debug)]
pub struct FloatArray(Vec<u32>);

impl FloatArray {
    /// Copies the elements.
    #[must_use]
    pub fn new(elements: &[f32]) -> Self {
        let size = u32::try_from(elements.len()).unwrap_or(0);
        Self(std::iter::once(size).chain(elements.iter().map(|float| float.to_bits())).collect())
    }

    /// The array, which lives as long as `self`.
    #[must_use]
    pub fn as_ptr(&self) -> *const TfLiteFloatArray {
        self.0.as_ptr().cast()
    }
}

impl IntArray {
    /// Copies the elements.
    #[must_use]
    pub fn new(elements: &[c_int]) -> Self {
        // TFLite counts nodes and dimensions with `int`.
        let size = c_int::try_from(elements.len()).unwrap_or(0);
        Self(std::iter::once(size).chain(elements.iter().copied()).collect())
    }

    /// The array, which lives as long as `self`.
    #[must_use]
    pub fn as_ptr(&self) -> *const TfLiteIntArray {
        self.0.as_ptr().cast()
    }

    /// Returns a copy that TFLite owns and frees with `free`; null if memory is exhausted.
    #[must_use]
    pub fn to_malloc(&self) -> *mut TfLiteIntArray {
        // SAFETY: the allocation has capacity for all elements, and is aligned for any type.
        unsafe {
            let copy = malloc(size_of_val(self.0.as_slice()));
            if !copy.is_null() {
                copy.cast::<c_int>().copy_from_nonoverlapping(self.0.as_ptr(), self.0.len());
            }
            copy.cast()
        }
    }
}

/// TFLite's codes of element types, from 1.
const TYPES: [DType; 21] = [
    DType::F32,
    DType::I32,
    DType::U8,
    DType::I64,
    DType::String,
    DType::Bool,
    DType::I16,
    DType::Complex64,
    DType::I8,
    DType::F16,
    DType::F64,
    DType::Complex128,
    DType::U64,
    DType::Resource,
    DType::Variant,
    DType::U32,
    DType::U16,
    DType::I4,
    DType::BF16,
    DType::I2,
    DType::U4,
];

/// Converts TFLite's code of an element type.
#[must_use]
pub fn dtype(code: c_int) -> DType {
    let place = usize::try_from(code).ok().and_then(|code| code.checked_sub(1));
    let known = place.and_then(|place| TYPES.get(place));
    known.copied().unwrap_or_else(|| DType::Other(i8::try_from(code).unwrap_or(-1)))
}

/// TFLite's code of an element type; 0 (`kTfLiteNoType`) for types that it does not have.
#[must_use]
pub fn type_code(dtype: DType) -> c_int {
    let place = TYPES.iter().position(|known| *known == dtype);
    place.map_or(0, |place| place as c_int + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_are_read_back() {
        let array = IntArray::new(&[3, -1, 7]);
        // SAFETY: the array lives during the call.
        assert_eq!(unsafe { ints(array.as_ptr()) }, [3, -1, 7]);
        // SAFETY: null is allowed.
        assert!(unsafe { ints(std::ptr::null()) }.is_empty());
        // SAFETY: null is allowed.
        assert!(unsafe { floats(std::ptr::null()) }.is_empty());
        let array = FloatArray::new(&[0.5, -1.0]);
        // SAFETY: the array lives during the call.
        assert_eq!(unsafe { floats(array.as_ptr()) }, [0.5, -1.0]);
    }

    #[test]
    fn codes_of_types_are_those_of_tflite() {
        for (code, known) in [(1, DType::F32), (5, DType::String), (9, DType::I8), (21, DType::U4)]
        {
            assert_eq!((dtype(code), type_code(known)), (known, code));
        }
        for code in [-1, 0, 22] {
            assert_eq!(dtype(code), DType::Other(code as i8));
        }
        assert_eq!(type_code(DType::Other(3)), 0);
    }
}
