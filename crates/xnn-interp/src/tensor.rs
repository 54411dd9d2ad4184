//! Element types, sizes and views of tensors.

use bytemuck::{Pod, Zeroable};
use half::{bf16, f16};
use xnn_model::{DType, element_count};

use crate::error::{Refusal, refuse};
use crate::strings::unpack;

/// A complex number of two `f32`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct Complex {
    /// Real part.
    pub re: f32,
    /// Imaginary part.
    pub im: f32,
}

/// A complex number of two `f64`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct WideComplex {
    /// Real part.
    pub re: f64,
    /// Imaginary part.
    pub im: f64,
}

mod sealed {
    pub trait Sealed {}
}

/// A Rust type for the elements of a tensor.
pub trait Element: Pod + PartialEq + Default + Send + Sync + sealed::Sealed {
    /// Element types whose tensors may be viewed as this type.
    const DTYPES: &'static [DType];
}

macro_rules! elements {
    ($($ty:ty: $($dtype:ident)+;)*) => {$(
        impl sealed::Sealed for $ty {}
        impl Element for $ty {
            const DTYPES: &'static [DType] = &[$(DType::$dtype),+];
        }
    )*};
}

elements! {
    f32: F32;
    f64: F64;
    f16: F16;
    bf16: BF16;
    i8: I8;
    i16: I16;
    i32: I32;
    i64: I64;
    // Booleans are bytes of 0 and 1.
    u8: U8 Bool;
    u16: U16;
    u32: U32;
    u64: U64 Resource;
    Complex: Complex64;
    WideComplex: Complex128;
}

/// Bits of one element in memory; resource handles take 64.
fn storage_bits(dtype: DType) -> Option<usize> {
    match dtype {
        DType::Resource => Some(64),
        other => other.bits(),
    }
}

/// Bytes of a tensor, or `None` for types without a fixed element size and on overflow.
pub(crate) fn storage_size(dtype: DType, shape: &[usize]) -> Option<usize> {
    Some(element_count(shape)?.checked_mul(storage_bits(dtype)?)?.div_ceil(8))
}

/// Bytes that are allocated when a shape is known. Strings take none, since their size comes with
/// their values. `None` as in [`storage_size`].
pub(crate) fn reserved_size(dtype: DType, shape: &[usize]) -> Option<usize> {
    match dtype {
        DType::String => Some(0),
        _ => storage_size(dtype, shape),
    }
}

/// Bytes of a tensor, or an error if they exceed the limit. For strings, the limit applies to their
/// offsets.
pub(crate) fn sized(dtype: DType, shape: &[usize], limit: usize) -> Result<usize, Refusal> {
    let counted = if dtype == DType::String { DType::I32 } else { dtype };
    match storage_size(counted, shape).zip(reserved_size(dtype, shape)) {
        Some((counted, bytes)) if counted <= limit => Ok(bytes),
        Some((bytes, _)) => refuse(format!(
            "a tensor of shape {shape:?} takes {bytes} bytes, which exceeds the limit of {limit}"
        )),
        None => refuse(format!("the size of a {dtype} tensor of shape {shape:?} is too large")),
    }
}

/// Bytes of an element, or an error for packed types and strings.
pub(crate) fn width(dtype: DType) -> Result<usize, Refusal> {
    match dtype {
        DType::I4 | DType::U4 | DType::I2 => refuse(format!("packed elements of type {dtype}")),
        _ => match storage_size(dtype, &[]) {
            Some(bytes) => Ok(bytes),
            None => refuse(format!("element type {dtype}")),
        },
    }
}

/// A view of a tensor.
#[derive(Clone, Copy, Debug)]
pub struct TensorView<'a> {
    /// Element type.
    pub dtype: DType,
    /// Dimensions, row-major.
    pub shape: &'a [usize],
    /// Elements in native byte order, dense and aligned for the element type. Strings are packed in
    /// TFLite's layout.
    pub bytes: &'a [u8],
}

/// A mutable view of a tensor.
#[derive(Debug)]
pub struct TensorViewMut<'a> {
    /// Element type.
    pub dtype: DType,
    /// Dimensions, row-major.
    pub shape: &'a [usize],
    /// Elements in native byte order, dense and aligned for the element type.
    pub bytes: &'a mut [u8],
}

impl<'a> TensorView<'a> {
    /// The elements, or `None` if they have another type.
    #[must_use]
    pub fn as_slice<T: Element>(&self) -> Option<&'a [T]> {
        if !T::DTYPES.contains(&self.dtype) {
            return None;
        }
        if self.bytes.is_empty() {
            return Some(&[]);
        }
        bytemuck::try_cast_slice(self.bytes).ok()
    }

    /// The strings, or `None` if the tensor is not a valid string tensor.
    #[must_use]
    pub fn strings(&self) -> Option<Vec<&'a [u8]>> {
        unpack(self.shape, self.bytes).ok().filter(|_| self.dtype == DType::String)
    }

    /// Number of elements.
    #[must_use]
    pub fn elements(&self) -> usize {
        self.shape.iter().product()
    }

    /// Number of dimensions.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.shape.len()
    }
}

impl<'a> TensorViewMut<'a> {
    /// The elements, or `None` if they have another type.
    #[must_use]
    pub fn into_slice<T: Element>(self) -> Option<&'a mut [T]> {
        if !T::DTYPES.contains(&self.dtype) {
            return None;
        }
        if self.bytes.is_empty() {
            return Some(&mut []);
        }
        bytemuck::try_cast_slice_mut(self.bytes).ok()
    }
}
