//! Views of tensors.

use bytemuck::{Pod, Zeroable};
use half::{bf16, f16};
use xnn_model::{DType, element_count};

use crate::storage::TensorBuf;
use crate::strings::unpack;

/// A pair of singles: real and imaginary part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct Complex {
    /// Real part.
    pub re: f32,
    /// Imaginary part.
    pub im: f32,
}

/// A pair of doubles: real and imaginary part.
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

/// A Rust type that stands for elements of a tensor.
pub trait Element: Pod + PartialEq + Default + Send + Sync + sealed::Sealed {
    /// The element types whose tensors may be viewed as this one.
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

/// Bits of one element in memory; handles take 64.
fn storage_bits(dtype: DType) -> Option<usize> {
    match dtype {
        DType::Resource => Some(64),
        other => other.bits(),
    }
}

/// Bytes of a tensor; `None` for types without elements and on overflow.
pub(crate) fn storage_size(dtype: DType, shape: &[usize]) -> Option<usize> {
    Some(element_count(shape)?.checked_mul(storage_bits(dtype)?)?.div_ceil(8))
}

/// Bytes that a tensor takes as soon as its shape is known: those of strings come with the strings. `None` as in
/// [`storage_size`].
pub(crate) fn reserved_size(dtype: DType, shape: &[usize]) -> Option<usize> {
    match dtype {
        DType::String => Some(0),
        _ => storage_size(dtype, shape),
    }
}

/// A view of a tensor.
#[derive(Clone, Copy, Debug)]
pub struct TensorView<'a> {
    /// Element type.
    pub dtype: DType,
    /// Dimensions, row-major.
    pub shape: &'a [usize],
    /// Elements: native byte order, dense; aligned for the element type. Strings are packed as TFLite packs them.
    pub bytes: &'a [u8],
}

/// A mutable view of a tensor.
#[derive(Debug)]
pub struct TensorViewMut<'a> {
    /// Element type.
    pub dtype: DType,
    /// Dimensions, row-major.
    pub shape: &'a [usize],
    /// Elements: native byte order, dense; aligned for the element type.
    pub bytes: &'a mut [u8],
}

impl<'a> TensorView<'a> {
    /// The elements; `None` if they are of another type.
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

    /// The strings; `None` if the elements are others.
    #[must_use]
    pub fn strings(&self) -> Option<Vec<&'a [u8]>> {
        unpack(*self).ok().filter(|_| self.dtype == DType::String)
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

    /// A copy that owns its elements.
    #[must_use]
    pub fn to_buf(&self) -> TensorBuf {
        let mut copy = TensorBuf::empty(self.dtype);
        // A tensor that exists has a size that does not overflow.
        let _ = copy.output().assign(*self);
        copy
    }
}

impl<'a> TensorViewMut<'a> {
    /// The elements; `None` if they are of another type.
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
