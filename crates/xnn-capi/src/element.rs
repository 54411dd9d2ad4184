//! Types of elements.

use std::ffi::c_char;

use xnn_delegate::DType;

/// Element type of a tensor.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum xnnd_type_t {
    /// A type without elements for programs: resources, variants, types of later schemas.
    XNND_TYPE_OTHER = 0,
    /// IEEE 754 single precision.
    XNND_TYPE_F32 = 1,
    /// IEEE 754 half precision.
    XNND_TYPE_F16 = 2,
    /// bfloat16: the upper half of a single.
    XNND_TYPE_BF16 = 3,
    /// IEEE 754 double precision.
    XNND_TYPE_F64 = 4,
    /// Signed 8-bit integer.
    XNND_TYPE_I8 = 5,
    /// Signed 16-bit integer.
    XNND_TYPE_I16 = 6,
    /// Signed 32-bit integer.
    XNND_TYPE_I32 = 7,
    /// Signed 64-bit integer.
    XNND_TYPE_I64 = 8,
    /// Unsigned 8-bit integer.
    XNND_TYPE_U8 = 9,
    /// Unsigned 16-bit integer.
    XNND_TYPE_U16 = 10,
    /// Unsigned 32-bit integer.
    XNND_TYPE_U32 = 11,
    /// Unsigned 64-bit integer.
    XNND_TYPE_U64 = 12,
    /// One byte, 0 or 1.
    XNND_TYPE_BOOL = 13,
    /// Strings of any length: `xnnd_tensor_write_strings`, `xnnd_tensor_read_strings`.
    XNND_TYPE_STRING = 14,
    /// Signed 4-bit integers, two in a byte, the first in the low bits.
    XNND_TYPE_I4 = 15,
    /// Unsigned 4-bit integers, two in a byte, the first in the low bits.
    XNND_TYPE_U4 = 16,
    /// Signed 2-bit integers, four in a byte, the first in the low bits.
    XNND_TYPE_I2 = 17,
    /// Pairs of singles.
    XNND_TYPE_COMPLEX64 = 18,
    /// Pairs of doubles.
    XNND_TYPE_COMPLEX128 = 19,
}

impl From<DType> for xnnd_type_t {
    fn from(dtype: DType) -> Self {
        match dtype {
            DType::F32 => Self::XNND_TYPE_F32,
            DType::F16 => Self::XNND_TYPE_F16,
            DType::BF16 => Self::XNND_TYPE_BF16,
            DType::F64 => Self::XNND_TYPE_F64,
            DType::I8 => Self::XNND_TYPE_I8,
            DType::I16 => Self::XNND_TYPE_I16,
            DType::I32 => Self::XNND_TYPE_I32,
            DType::I64 => Self::XNND_TYPE_I64,
            DType::U8 => Self::XNND_TYPE_U8,
            DType::U16 => Self::XNND_TYPE_U16,
            DType::U32 => Self::XNND_TYPE_U32,
            DType::U64 => Self::XNND_TYPE_U64,
            DType::Bool => Self::XNND_TYPE_BOOL,
            DType::String => Self::XNND_TYPE_STRING,
            DType::I4 => Self::XNND_TYPE_I4,
            DType::U4 => Self::XNND_TYPE_U4,
            DType::I2 => Self::XNND_TYPE_I2,
            DType::Complex64 => Self::XNND_TYPE_COMPLEX64,
            DType::Complex128 => Self::XNND_TYPE_COMPLEX128,
            _ => Self::XNND_TYPE_OTHER,
        }
    }
}

/// An element of a tensor of strings: any bytes, without a terminating NUL.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct xnnd_string_t {
    /// The bytes. May be NULL if `size` is 0.
    pub data: *const c_char,
    /// Number of bytes.
    pub size: usize,
}
