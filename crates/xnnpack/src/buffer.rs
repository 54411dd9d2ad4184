//! Memory that XNNPACK may read: constants, inputs and outputs.
//!
//! Microkernels read up to [`EXTRA_BYTES`] behind the end of a tensor (they never write there), so
//! every buffer handed to them carries the number of readable bytes that follow it.

use std::alloc::Layout;
use std::marker::PhantomData;
use std::ops::Range;
use std::ptr::NonNull;
use std::slice;

use bytes::Bytes;
use xnnpack_sys as sys;

use crate::memory::zeros;
use crate::status::{Error, Result, Status};

/// Bytes behind a tensor that XNNPACK may read.
pub const EXTRA_BYTES: usize = sys::XNN_EXTRA_BYTES as usize;

/// Bytes behind a tensor that the sparse microkernels may read.
pub const SPARSE_EXTRA_BYTES: usize = 2 * EXTRA_BYTES;

/// Alignment of [`AlignedBuffer`], in bytes: a cache line, and the widest vector.
pub const ALIGNMENT: usize = 64;

/// Owned bytes, aligned to [`ALIGNMENT`], zero at first, with at least [`SPARSE_EXTRA_BYTES`]
/// readable behind them.
///
/// Large ones take memory only where they are written to, by huge pages where the system has them.
pub struct AlignedBuffer {
    memory: Vec<u8>,
    /// Where the first aligned address is in `memory`.
    start: usize,
    len: usize,
}

impl AlignedBuffer {
    /// A buffer of `len` zero bytes.
    #[must_use]
    pub fn new(len: usize) -> Self {
        Self::zeroed(len).unwrap_or_else(|| {
            std::alloc::handle_alloc_error(Layout::array::<u8>(len).unwrap_or(Layout::new::<u8>()))
        })
    }

    /// A buffer of `len` zero bytes, where a `len` from outside may be more than there is.
    ///
    /// # Errors
    /// Memory is exhausted.
    pub fn try_new(len: usize) -> Result<Self> {
        Self::zeroed(len).ok_or_else(|| {
            Error::new(Status::OutOfMemory, format!("there is no memory for {len} bytes"))
                .during("allocate buffer")
        })
    }

    /// `None` if memory is exhausted.
    fn zeroed(len: usize) -> Option<Self> {
        let (memory, start) = zeros(len.checked_add(SPARSE_EXTRA_BYTES)?, 0, ALIGNMENT)?;
        Some(Self { memory, start, len })
    }

    /// A buffer with a copy of `bytes`.
    #[must_use]
    pub fn copy_of(bytes: &[u8]) -> Self {
        let mut buffer = Self::new(bytes.len());
        buffer.as_mut_slice().copy_from_slice(bytes);
        buffer
    }

    /// A buffer with a copy of `bytes`, of which there may be more than there is memory.
    ///
    /// # Errors
    /// Memory is exhausted.
    pub fn try_copy_of(bytes: &[u8]) -> Result<Self> {
        let mut buffer = Self::try_new(bytes.len())?;
        buffer.as_mut_slice().copy_from_slice(bytes);
        Ok(buffer)
    }

    /// A buffer with the elements of `values` in the byte order of this machine.
    #[must_use]
    pub fn of<T: Element>(values: &[T]) -> Self {
        let mut buffer = Self::new(size_of_val(values));
        if let Some(slots) = buffer.elements_mut() {
            slots.copy_from_slice(values);
        }
        buffer
    }

    /// Number of bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        &self.with_padding()[..self.len]
    }

    /// The bytes, to be changed.
    #[must_use]
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..][..self.len]
    }

    /// The bytes as elements, if their number is a multiple of the element's size.
    #[must_use]
    pub fn elements<T: Element>(&self) -> Option<&[T]> {
        let count = self.element_count::<T>()?;
        // SAFETY: `Element` types have no padding, no invalid bit pattern and an alignment below
        // that of a buffer; `count` of them are `len` bytes.
        Some(unsafe { slice::from_raw_parts(self.as_slice().as_ptr().cast(), count) })
    }

    /// The bytes as elements to be changed, if their number is a multiple of the element's size.
    #[must_use]
    pub fn elements_mut<T: Element>(&mut self) -> Option<&mut [T]> {
        let count = self.element_count::<T>()?;
        // SAFETY: as in `elements`; `self` is borrowed exclusively.
        Some(unsafe { slice::from_raw_parts_mut(self.as_mut_slice().as_mut_ptr().cast(), count) })
    }

    /// The bytes for reading by XNNPACK.
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

    /// The bytes for writing by XNNPACK.
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

    fn with_padding(&self) -> &[u8] {
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
    /// Plain numbers: every bit pattern is valid, no padding, alignment of at most 8.
    ///
    /// # Safety
    /// The implementing type must have those properties.
    pub unsafe trait Plain: Copy {}
}

/// Number types that a tensor's bytes can be viewed as.
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

/// Borrowed bytes for XNNPACK to read, with the number of readable bytes that follow them.
#[derive(Clone, Copy, Debug)]
pub struct PaddedSlice<'a> {
    start: NonNull<u8>,
    len: usize,
    readable_after: usize,
    borrow: PhantomData<&'a [u8]>,
}

impl<'a> PaddedSlice<'a> {
    /// A part of `parent`; the rest of it, which stays borrowed, is the padding. `None` if `range`
    /// is not inside `parent`.
    #[must_use]
    pub fn within(parent: &'a [u8], range: Range<usize>) -> Option<Self> {
        let readable_after = parent.len().checked_sub(range.end)?;
        let len = range.end.checked_sub(range.start)?;
        // The pointer must stay valid for the padding too, so it comes from the whole rest.
        let rest = parent.get(range.start..)?;
        Some(Self { start: NonNull::from(rest).cast(), len, readable_after, borrow: PhantomData })
    }

    /// Bytes about whose surroundings the caller knows more than the type does.
    ///
    /// # Safety
    /// `readable_after` bytes behind `bytes` must be readable for the lifetime `'a`.
    #[must_use]
    pub unsafe fn new_unchecked(bytes: &'a [u8], readable_after: usize) -> Self {
        Self {
            start: NonNull::from(bytes).cast(),
            len: bytes.len(),
            readable_after,
            borrow: PhantomData,
        }
    }

    /// Number of bytes, without the padding.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no bytes.
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
/// An output that other nodes of the subgraph read as well needs [`EXTRA_BYTES`] of padding, as
/// inputs do; any other needs none.
#[derive(Debug)]
pub struct OutputSlice<'a> {
    start: NonNull<u8>,
    len: usize,
    readable_after: usize,
    borrow: PhantomData<&'a mut [u8]>,
}

impl<'a> OutputSlice<'a> {
    /// A part of `parent`; the rest of it, which stays borrowed, is the padding. `None` if `range`
    /// is not inside `parent`.
    #[must_use]
    pub fn within(parent: &'a mut [u8], range: Range<usize>) -> Option<Self> {
        let readable_after = parent.len().checked_sub(range.end)?;
        let len = range.end.checked_sub(range.start)?;
        // The pointer must stay valid for the padding too, so it comes from the whole rest.
        let rest = parent.get_mut(range.start..)?;
        Some(Self { start: NonNull::from(rest).cast(), len, readable_after, borrow: PhantomData })
    }

    /// Number of bytes, without the padding.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no bytes.
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

/// Where a borrowed buffer lies.
#[derive(Clone, Copy)]
pub(crate) struct Extent {
    pub(crate) start: NonNull<u8>,
    pub(crate) len: usize,
    pub(crate) readable_after: usize,
}

/// Constant bytes, shared and immutable, kept alive by everything that XNNPACK may read them from.
#[derive(Clone, Debug)]
pub struct StaticData {
    /// Bytes behind `range` are readable too, which makes them the padding.
    parent: Bytes,
    range: Range<usize>,
}

impl StaticData {
    /// All of `bytes`. Nothing behind them is known to be readable, so a tensor whose elements
    /// XNNPACK reads in place gets a padded copy.
    #[must_use]
    pub fn new(bytes: Bytes) -> Self {
        let range = 0..bytes.len();
        Self { parent: bytes, range }
    }

    /// A part of `parent`, such as a constant in a file; the rest serves as padding.
    ///
    /// # Errors
    /// `range` is not inside `parent`.
    pub fn from_slice_of(parent: &Bytes, range: Range<usize>) -> Result<Self> {
        if parent.get(range.clone()).is_none() {
            let reason = format!("bytes {range:?} are not inside {} bytes", parent.len());
            return Err(Error::invalid(reason).during("take static data"));
        }
        Ok(Self { parent: parent.clone(), range })
    }

    /// A copy of `values` in the byte order of this machine, aligned and padded.
    #[must_use]
    pub fn of<T: Element>(values: &[T]) -> Self {
        Self::from(AlignedBuffer::of(values))
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.parent[self.range.clone()]
    }

    /// A part of `parent` that is known to be inside.
    pub(crate) fn from_piece(parent: Bytes, range: Range<usize>) -> Self {
        Self { parent, range }
    }

    pub(crate) fn into_bytes(self) -> Bytes {
        self.parent.slice(self.range)
    }

    /// Where they begin; readable up to the end of the padding.
    pub(crate) fn start(&self) -> *const u8 {
        self.parent[self.range.start..].as_ptr()
    }

    /// How many bytes behind them are known to be readable.
    #[must_use]
    pub fn readable_after(&self) -> usize {
        self.parent.len() - self.range.end
    }

    /// The same bytes where `alignment` and padding are met: a copy only if they are not, for which
    /// there may be no memory.
    pub(crate) fn meeting(self, alignment: usize, padding: usize) -> Result<Self> {
        let bytes = self.bytes();
        if bytes.as_ptr().addr().is_multiple_of(alignment) && self.readable_after() >= padding {
            return Ok(self);
        }
        Ok(Self::from(AlignedBuffer::try_copy_of(bytes)?))
    }
}

impl From<Bytes> for StaticData {
    fn from(bytes: Bytes) -> Self {
        Self::new(bytes)
    }
}

impl From<AlignedBuffer> for StaticData {
    fn from(buffer: AlignedBuffer) -> Self {
        /// The buffer together with its padding.
        struct Whole(AlignedBuffer);

        impl AsRef<[u8]> for Whole {
            fn as_ref(&self) -> &[u8] {
                self.0.with_padding()
            }
        }

        let range = 0..buffer.len;
        Self { parent: Bytes::from_owner(Whole(buffer)), range }
    }
}
