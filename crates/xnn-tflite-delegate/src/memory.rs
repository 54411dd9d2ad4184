//! Memory of the interpreter's tensors, and whether XNNPACK can use it directly.

use std::marker::PhantomData;
use std::ptr::NonNull;
use std::slice;

use xnn_model::TensorId;
use xnnpack::EXTRA_BYTES;

use crate::abi::TfLiteTensor;
use crate::context::Context;
use crate::error::{Error, Result};

/// Smallest page size of a supported system, in bytes.
const PAGE: usize = 4096;

/// Alignment, in bytes, that suffices for every element type. TFLite aligns its own memory to 64
/// bytes; memory from the user may be aligned less.
const ALIGNMENT: usize = 8;

/// Memory of a tensor during one call.
pub(crate) struct Memory<'a> {
    start: NonNull<u8>,
    len: usize,
    lifetime: PhantomData<&'a TfLiteTensor>,
}

impl<'a> Memory<'a> {
    /// Returns the memory of a tensor of `expected` bytes.
    pub(crate) fn of(context: &'a Context, id: TensorId, expected: usize) -> Result<Self> {
        let tensor = context.tensor(id)?;
        if expected == 0 && tensor.bytes == 0 {
            // The interpreter does not allocate memory for such a tensor.
            let start = NonNull::<u64>::dangling().cast();
            return Ok(Self { start, len: 0, lifetime: PhantomData });
        }
        match NonNull::new(tensor.data.cast()) {
            Some(start) if tensor.bytes == expected => {
                Ok(Self { start, len: expected, lifetime: PhantomData })
            }
            start => {
                let found = if start.is_some() { tensor.bytes } else { 0 };
                Err(Error::Memory { id, found, expected })
            }
        }
    }

    pub(crate) fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Whether the two share bytes.
    pub(crate) fn overlaps(&self, other: &Memory<'_>) -> bool {
        let [start, other_start] = [self, other].map(|memory| memory.start.addr().get());
        let first_common = start.max(other_start);
        first_common - start < self.len && first_common - other_start < other.len
    }

    /// Whether the memory is aligned for every element type.
    pub(crate) fn is_aligned(&self) -> bool {
        self.start.addr().get().is_multiple_of(ALIGNMENT)
    }

    /// Whether the [`EXTRA_BYTES`] that XNNPACK reads after an input are certain to be readable.
    /// Memory is mapped by the page, so they are if they lie on the page of the tensor's last byte.
    /// TFLite guarantees nothing about the bytes after a tensor, and an empty tensor has no
    /// address.
    pub(crate) fn has_padding(&self) -> bool {
        let end = self.start.addr().get().saturating_add(self.len);
        let last = end.saturating_sub(1);
        self.len > 0 && last / PAGE == last.saturating_add(EXTRA_BYTES) / PAGE
    }

    /// # Safety
    /// The memory must not be written to during `'a`.
    pub(crate) unsafe fn bytes(&self) -> &'a [u8] {
        // SAFETY: the interpreter allocated this memory for a tensor of `len` bytes, or `len` is 0;
        // the caller guarantees the rest.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    /// # Safety
    /// The memory must not be accessed otherwise during `'a`.
    pub(crate) unsafe fn bytes_mut(&mut self) -> &'a mut [u8] {
        // SAFETY: as in `bytes`.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(start: usize, len: usize) -> Memory<'static> {
        let start = NonNull::new(std::ptr::without_provenance_mut(start)).unwrap();
        Memory { start, len, lifetime: PhantomData }
    }

    #[test]
    fn padding_must_be_on_the_last_page() {
        for (len, padded) in
            [(0, false), (1, true), (4080, true), (4081, false), (4096, false), (4097, true)]
        {
            assert_eq!(memory(PAGE * 3, len).has_padding(), padded, "{len}");
        }
    }

    #[test]
    fn memories_overlap_if_they_share_bytes() {
        for (start, len, overlap) in [
            (8, 2, false),
            (8, 3, true),
            (10, 1, true),
            (19, 9, true),
            (20, 9, false),
            (5, 50, true),
        ] {
            assert_eq!(memory(10, 10).overlaps(&memory(start, len)), overlap, "{start} {len}");
            assert_eq!(memory(start, len).overlaps(&memory(10, 10)), overlap, "{start} {len}");
        }
        assert!(!memory(10, 0).overlaps(&memory(10, 10)));
    }

    #[test]
    fn the_alignment_suffices_for_elements_of_eight_bytes() {
        assert!(memory(PAGE + 8, 16).is_aligned());
        assert!(!memory(PAGE + 4, 16).is_aligned());
    }
}
