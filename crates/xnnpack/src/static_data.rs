//! Constants of a subgraph.

use std::ops::Range;

use bytes::Bytes;

use crate::buffer::{AlignedBuffer, Element};
use crate::status::{Error, Result};

/// Constant bytes, shared and immutable, kept alive by every object through which XNNPACK may read
/// them.
#[derive(Clone, Debug)]
pub struct StaticData {
    /// Bytes after `range` are readable and serve as padding.
    parent: Bytes,
    range: Range<usize>,
}

impl StaticData {
    /// All of `bytes`, without padding: a tensor whose elements XNNPACK reads in place gets a
    /// padded copy.
    #[must_use]
    pub fn new(bytes: Bytes) -> Self {
        let range = 0..bytes.len();
        Self { parent: bytes, range }
    }

    /// A part of `parent`, such as a constant in a file. The rest serves as padding.
    ///
    /// # Errors
    /// `range` is not inside `parent`.
    pub fn from_slice_of(parent: &Bytes, range: Range<usize>) -> Result<Self> {
        if parent.get(range.clone()).is_none() {
            let reason = format!("the range {range:?} is outside of {} bytes", parent.len());
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

    /// A part of `parent`; the caller has checked that `range` is inside.
    pub(crate) fn from_piece(parent: Bytes, range: Range<usize>) -> Self {
        Self { parent, range }
    }

    pub(crate) fn into_bytes(self) -> Bytes {
        self.parent.slice(self.range)
    }

    /// Pointer to the first byte, valid up to the end of the padding.
    pub(crate) fn start(&self) -> *const u8 {
        self.parent[self.range.start..].as_ptr()
    }

    /// Number of bytes after the data that are known to be readable.
    #[must_use]
    pub fn readable_after(&self) -> usize {
        self.parent.len() - self.range.end
    }

    /// Returns the bytes with the given alignment and padding, copied if necessary. Fails if memory
    /// for the copy is exhausted.
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
        /// A buffer including its padding.
        struct Whole(AlignedBuffer);

        impl AsRef<[u8]> for Whole {
            fn as_ref(&self) -> &[u8] {
                self.0.with_padding()
            }
        }

        let range = 0..buffer.len();
        Self { parent: Bytes::from_owner(Whole(buffer)), range }
    }
}
