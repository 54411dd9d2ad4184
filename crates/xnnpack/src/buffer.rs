//! Memory that XNNPACK reads and writes: inputs and outputs.
//!
//! Microkernels read up to [`EXTRA_BYTES`] after the end of a tensor (they never write there), so
//! every buffer passed to them carries the number of readable bytes that follow it.

use std::alloc::Layout;
use std::marker::PhantomData;
use std::ops::Range;
use std::ptr::NonNull;
use std::slice;

use xnnpack_sys as sys;

use crate::memory::zeros;
use crate::status::{Error, Result, Status};

/// Number of bytes after a tensor that XNNPACK may read.
pub const EXTRA_BYTES: usize = sys::XNN_EXTRA_BYTES as usize;

/// Number of bytes after a tensor that the sparse microkernels may read.
pub const SPARSE_EXTRA_BYTES: usize = 2 * EXTRA_BYTES;

/// Alignment of [`AlignedBuffer`], in bytes: a cache line, and the widest vector.
pub const ALIGNMENT: usize = 64;

/// Owned bytes, aligned to [`ALIGNMENT`], initially zero, and followed by at least
/// [`SPARSE_EXTRA_BYTES`] readable bytes.
///
/// Large buffers take memory only where they are written to, in huge pages if the system has them.
pub struct AlignedBuffer {
    memory: Vec<u8>,
    /// Offset of the first aligned address in `memory`.
    start: usize,
    len: usize,
}

impl AlignedBuffer {
    /// Creates a buffer of `len` zero bytes. Aborts the process if memory is exhausted.
    #[must_use]
    pub fn new(len: usize) -> Self {
        Self::zeroed(len).unwrap_or_else(|| {
            std::alloc::handle_alloc_error(Layout::array::<u8>(len).unwrap_or(Layout::new::<u8>()))
        })
    }

    /// Creates a buffer of `len` zero bytes, for a `len` that may exceed the available memory.
    ///
    /// # Errors
    /// Memory is exhausted ([`Status::OutOfMemory`]).
    pub fn try_new(len: usize) -> Result<Self> {
        Self::zeroed(len).ok_or_else(|| {
            Error::new(Status::OutOfMemory, format!("out of memory: cannot allocate {len} bytes"))
                .during("allocate buffer")
        })
    }

    /// `None` if memory is exhausted.
    fn zeroed(len: usize) -> Option<Self> {
        let (memory, start) = zeros(len.checked_add(SPARSE_EXTRA_BYTES)?, 0, ALIGNMENT)?;
        Some(Self { memory, start, len })
    }

    /// Creates a buffer with a copy of `bytes`.
    #[must_use]
    pub fn copy_of(bytes: &[u8]) -> Self {
        let mut buffer = Self::new(bytes.len());
        buffer.as_mut_slice().copy_from_slice(bytes);
        buffer
    }

    /// Creates a buffer with a copy of `bytes`, which may exceed the available memory.
    ///
    /// # Errors
    /// Memory is exhausted ([`Status::OutOfMemory`]).
    pub fn try_copy_of(bytes: &[u8]) -> Result<Self> {
        let mut buffer = Self::try_new(bytes.len())?;
        buffer.as_mut_slice().copy_from_slice(bytes);
        Ok(buffer)
    }

    /// Creates a buffer with the elements of `values` in the byte order of this machine.
    #[must_use]
    pub fn of<T: Element>(values: &[T]) -> Self {
        let mut buffer = Self::new(size_of_val(values));
        if let Some(slots) = buffer.elements_mut() {
            slots.copy_from_slice(values);
        }
        buffer
    }

    /// Length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the length is 0.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        &self.with_padding()[..self.len]
    }

    /// The bytes, mutable.
    #[must_use]
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..][..self.len]
    }

    /// The bytes as elements; `None` if the length is not a multiple of the element's size.
    #[must_use]
    pub fn elements<T: Element>(&self) -> Option<&[T]> {
        let count = self.element_count::<T>()?;
        // SAFETY: `Element` types have no padding, no invalid bit pattern and an alignment of at
        // most that of a buffer; `count` elements have `len` bytes.
        Some(unsafe { slice::from_raw_parts(self.as_slice().as_ptr().cast(), count) })
    }

    /// The bytes as mutable elements; `None` if the length is not a multiple of the element's size.
    #[must_use]
    pub fn elements_mut<T: Element>(&mut self) -> Option<&mut [T]> {
        let count = self.element_count::<T>()?;
        // SAFETY: as in `elements`; `self` is borrowed exclusively.
        Some(unsafe { slice::from_raw_parts_mut(self.as_mut_slice().as_mut_ptr().cast(), count) })
    }

    /// The bytes as memory for XNNPACK to read.
    #[must_use]
    pub fn input(&self) -> PaddedSlice<'_> {
        let padded = self.with_padding();
        PaddedSlice {
            start: NonNull::from(padded).cast(),
            len: self.len,
            readable_after: padded.len() - self.len,
            borrow: PhantomData,
        }
    }

    /// The bytes as memory for XNNPACK to write.
    #[must_use]
    pub fn output(&mut self) -> OutputSlice<'_> {
        let padded = &mut self.memory[self.start..];
        let readable_after = padded.len() - self.len;
        OutputSlice {
            start: NonNull::from(padded).cast(),
            len: self.len,
            readable_after,
            borrow: PhantomData,
        }
    }

    /// The bytes, and the padding after them.
    pub(crate) fn with_padding(&self) -> &[u8] {
        &self.memory[self.start..]
    }

    fn element_count<T: Element>(&self) -> Option<usize> {
        self.len.is_multiple_of(size_of::<T>()).then(|| self.len / size_of::<T>())
    }
}

impl Clone for AlignedBuffer {
    fn clone(&self) -> Self {
        Self::copy_of(self.as_slice())
    }
}

impl AsRef<[u8]> for AlignedBuffer {
    fn as_ref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl std::fmt::Debug for AlignedBuffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "AlignedBuffer({} bytes)", self.len)
    }
}

mod sealed {
    /// Plain numeric types: every bit pattern is valid, no padding, alignment of at most 8.
    ///
    /// # Safety
    /// The implementing type must have these properties.
    pub unsafe trait Plain: Copy {}
}

/// Numeric types that a tensor's bytes can be viewed as.
pub trait Element: sealed::Plain {}

macro_rules! elements {
    ($($type:ty)*) => {
        $(
            // SAFETY: a primitive number has no padding and no invalid bit pattern.
            unsafe impl sealed::Plain for $type {}
            impl Element for $type {}
        )*
    };
}

elements!(u8 i8 u16 i16 u32 i32 f32 u64 i64 f64);

/// Borrowed bytes for XNNPACK to read, with the number of readable bytes after them.
#[derive(Clone, Copy, Debug)]
pub struct PaddedSlice<'a> {
    start: NonNull<u8>,
    len: usize,
    readable_after: usize,
    borrow: PhantomData<&'a [u8]>,
}

impl<'a> PaddedSlice<'a> {
    /// A part of `parent`, whose rest stays borrowed and serves as padding. `None` if `range` is
    /// not inside `parent`.
    #[must_use]
    pub fn within(parent: &'a [u8], range: Range<usize>) -> Option<Self> {
        let readable_after = parent.len().checked_sub(range.end)?;
        let len = range.end.checked_sub(range.start)?;
        // The pointer must be valid for the padding too, so it is derived from the whole rest.
        let rest = parent.get(range.start..)?;
        Some(Self { start: NonNull::from(rest).cast(), len, readable_after, borrow: PhantomData })
    }

    /// Bytes followed by padding that the type system does not know about.
    ///
    /// # Safety
    /// `readable_after` bytes after `bytes` must be readable for the lifetime `'a`.
    #[must_use]
    pub unsafe fn new_unchecked(bytes: &'a [u8], readable_after: usize) -> Self {
        Self {
            start: NonNull::from(bytes).cast(),
            len: bytes.len(),
            readable_after,
            borrow: PhantomData,
        }
    }

    /// Length in bytes, without the padding.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the length is 0.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn extent(&self) -> Extent {
        Extent { start: self.start, len: self.len, readable_after: self.readable_after }
    }
}

// SAFETY: it is a shared borrow of bytes.
unsafe impl Send for PaddedSlice<'_> {}
// SAFETY: it is a shared borrow of bytes.
unsafe impl Sync for PaddedSlice<'_> {}

/// Exclusively borrowed bytes for XNNPACK to write.
///
/// An output that nodes of the subgraph also read requires [`EXTRA_BYTES`] of padding, like an
/// input; other outputs require none.
#[derive(Debug)]
pub struct OutputSlice<'a> {
    start: NonNull<u8>,
    len: usize,
    readable_after: usize,
    borrow: PhantomData<&'a mut [u8]>,
}

impl<'a> OutputSlice<'a> {
    /// A part of `parent`, whose rest stays borrowed and serves as padding. `None` if `range` is
    /// not inside `parent`.
    #[must_use]
    pub fn within(parent: &'a mut [u8], range: Range<usize>) -> Option<Self> {
        let readable_after = parent.len().checked_sub(range.end)?;
        let len = range.end.checked_sub(range.start)?;
        // The pointer must be valid for the padding too, so it is derived from the whole rest.
        let rest = parent.get_mut(range.start..)?;
        Some(Self { start: NonNull::from(rest).cast(), len, readable_after, borrow: PhantomData })
    }

    /// Length in bytes, without the padding.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the length is 0.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn extent(&mut self) -> Extent {
        Extent { start: self.start, len: self.len, readable_after: self.readable_after }
    }
}

impl<'a> From<&'a mut [u8]> for OutputSlice<'a> {
    fn from(bytes: &'a mut [u8]) -> Self {
        let len = bytes.len();
        Self { start: NonNull::from(bytes).cast(), len, readable_after: 0, borrow: PhantomData }
    }
}

// SAFETY: it is an exclusive borrow of bytes.
unsafe impl Send for OutputSlice<'_> {}
// SAFETY: it is an exclusive borrow of bytes; a shared reference gives no access to them.
unsafe impl Sync for OutputSlice<'_> {}

/// Location of a borrowed buffer.
#[derive(Clone, Copy)]
pub(crate) struct Extent {
    pub(crate) start: NonNull<u8>,
    pub(crate) len: usize,
    pub(crate) readable_after: usize,
}
