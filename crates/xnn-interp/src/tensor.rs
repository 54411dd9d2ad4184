//! Tensors with their elements.

use bytemuck::{Pod, Zeroable};
use half::{bf16, f16};
use xnn_model::{DType, element_count};

/// A pair of singles: real and imaginary part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct Complex {
    /// Real part.
    pub re: f32,
    /// Imaginary part.
    pub im: f32,
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

/// A view of a tensor.
#[derive(Clone, Copy, Debug)]
pub struct TensorRef<'a> {
    /// Element type.
    pub dtype: DType,
    /// Dimensions, row-major.
    pub shape: &'a [usize],
    /// Elements: native byte order, dense; aligned for the element type.
    pub bytes: &'a [u8],
}

/// A mutable view of a tensor.
#[derive(Debug)]
pub struct TensorMut<'a> {
    /// Element type.
    pub dtype: DType,
    /// Dimensions, row-major.
    pub shape: &'a [usize],
    /// Elements: native byte order, dense; aligned for the element type.
    pub bytes: &'a mut [u8],
}

impl<'a> TensorRef<'a> {
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
        TensorBuf {
            dtype: self.dtype,
            shape: self.shape.to_vec(),
            storage: Storage::of_bytes(self.bytes),
        }
    }
}

impl<'a> TensorMut<'a> {
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

/// One cache line; makes a vector of them aligned for every element type and
/// for vector instructions.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C, align(64))]
struct Line([u8; LINE]);

const LINE: usize = 64;

/// Lines behind the last byte that vectorized readers may touch.
const PADDING_LINES: usize = 2;

/// Bytes on a cache line boundary, with readable padding behind.
#[derive(Debug, Default)]
struct Storage {
    lines: Vec<Line>,
    len: usize,
}

impl Storage {
    fn of_bytes(bytes: &[u8]) -> Self {
        let mut storage = Self::default();
        storage.resize(bytes.len());
        storage.bytes_mut().copy_from_slice(bytes);
        storage
    }

    /// Keeps the allocation where it is large enough; the bytes are arbitrary.
    fn resize(&mut self, len: usize) {
        let lines = len.div_ceil(LINE) + PADDING_LINES;
        if lines > self.lines.len() {
            self.lines.resize(lines, Line([0; LINE]));
        }
        self.len = len;
    }

    fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(&self.lines).get(..self.len).unwrap_or(&[])
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        bytemuck::cast_slice_mut(&mut self.lines).get_mut(..self.len).unwrap_or(&mut [])
    }
}

impl Clone for Storage {
    fn clone(&self) -> Self {
        Self::of_bytes(self.bytes())
    }
}

/// A tensor that owns its elements. They start on a 64-byte boundary, and at
/// least 128 readable bytes follow the last.
#[derive(Clone, Debug)]
pub struct TensorBuf {
    dtype: DType,
    shape: Vec<usize>,
    storage: Storage,
}

impl TensorBuf {
    /// A tensor of zeros; `None` if the type has no elements or the size
    /// overflows.
    #[must_use]
    pub fn zeros(dtype: DType, shape: &[usize]) -> Option<Self> {
        let mut buf = Self::empty(dtype);
        buf.reshape(dtype, shape)?;
        buf.storage.bytes_mut().fill(0);
        Some(buf)
    }

    /// A tensor with these elements; `None` if their number is not the shape's.
    #[must_use]
    pub fn from_slice<T: Element>(shape: &[usize], elements: &[T]) -> Option<Self> {
        let dtype = *T::DTYPES.first()?;
        (element_count(shape)? == elements.len()).then(|| Self {
            dtype,
            shape: shape.to_vec(),
            storage: Storage::of_bytes(bytemuck::cast_slice(elements)),
        })
    }

    /// A tensor with these bytes; `None` if their number is not the shape's.
    #[must_use]
    pub fn from_bytes(dtype: DType, shape: &[usize], bytes: &[u8]) -> Option<Self> {
        (storage_size(dtype, shape)? == bytes.len()).then(|| Self {
            dtype,
            shape: shape.to_vec(),
            storage: Storage::of_bytes(bytes),
        })
    }

    pub(crate) fn empty(dtype: DType) -> Self {
        Self { dtype, shape: vec![0], storage: Storage::default() }
    }

    /// Gives type and shape, keeping the allocation where it is large enough;
    /// the elements are arbitrary afterwards.
    pub(crate) fn reshape(&mut self, dtype: DType, shape: &[usize]) -> Option<()> {
        self.storage.resize(storage_size(dtype, shape)?);
        self.dtype = dtype;
        self.shape.clear();
        self.shape.extend_from_slice(shape);
        Some(())
    }

    /// Gives another shape; the elements are arbitrary afterwards.
    ///
    /// Returns `None`, and changes nothing, if the size overflows.
    pub fn resize(&mut self, shape: &[usize]) -> Option<()> {
        self.reshape(self.dtype, shape)
    }

    /// Bytes that the allocation can hold without growing.
    pub(crate) fn capacity(&self) -> usize {
        self.storage.lines.len().saturating_sub(PADDING_LINES) * LINE
    }

    /// Gives shape and elements of a tensor of any type, keeping the allocation
    /// where it is large enough.
    pub(crate) fn assign(&mut self, value: TensorRef<'_>) {
        self.dtype = value.dtype;
        self.shape.clear();
        self.shape.extend_from_slice(value.shape);
        self.storage.resize(value.bytes.len());
        self.storage.bytes_mut().copy_from_slice(value.bytes);
    }

    /// Element type.
    #[must_use]
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Dimensions, row-major.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// A view.
    #[must_use]
    pub fn view(&self) -> TensorRef<'_> {
        TensorRef { dtype: self.dtype, shape: &self.shape, bytes: self.storage.bytes() }
    }

    /// A mutable view.
    #[must_use]
    pub fn view_mut(&mut self) -> TensorMut<'_> {
        TensorMut { dtype: self.dtype, shape: &self.shape, bytes: self.storage.bytes_mut() }
    }

    /// The bytes of the elements and at least 128 behind them, which are
    /// arbitrary: for engines that read further than they use.
    #[must_use]
    pub fn padded(&self) -> &[u8] {
        bytemuck::cast_slice(&self.storage.lines)
    }

    /// [`TensorBuf::padded`], to be written.
    #[must_use]
    pub fn padded_mut(&mut self) -> &mut [u8] {
        bytemuck::cast_slice_mut(&mut self.storage.lines)
    }
}
