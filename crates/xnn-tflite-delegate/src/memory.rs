//! Tensors' memory in the interpreter, and whether XNNPACK may use it as it is.

use std::marker::PhantomData;
use std::ptr::NonNull;
use std::slice;

use xnn_model::TensorId;
use xnnpack::EXTRA_BYTES;

use crate::abi::TfLiteTensor;
use crate::context::Context;
use crate::error::{Error, Result};

/// The smallest page that a supported system has, in bytes.
const PAGE: usize = 4096;

/// Alignment, in bytes, that suits every element type. TFLite's own memory is aligned to 64; memory
/// that the user provides need not be.
const ALIGNMENT: usize = 8;

/// A tensor's memory for the time of one call.
pub(crate) struct Memory<'a> {
    start: NonNull<u8>,
    len: usize,
    lifetime: PhantomData<&'a TfLiteTensor>,
}

impl<'a> Memory<'a> {
    /// The memory of a tensor of `expected` bytes.
    pub(crate) fn of(context: &'a Context, id: TensorId, expected: usize) -> Result<Self> {
        let tensor = context.tensor(id)?;
        if expected == 0 && tensor.bytes == 0 {
            // The interpreter gives such a tensor no memory.
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

    /// Whether they have bytes in common.
    pub(crate) fn overlaps(&self, other: &Memory<'_>) -> bool {
        let [start, other_start] = [self, other].map(|memory| memory.start.addr().get());
        let first_common = start.max(other_start);
        first_common - start < self.len && first_common - other_start < other.len
    }

    /// Whether elements may lie here.
    pub(crate) fn is_aligned(&self) -> bool {
        self.start.addr().get().is_multiple_of(ALIGNMENT)
    }

    /// Whether the [`EXTRA_BYTES`] that XNNPACK reads behind inputs are readable for sure: memory is
    /// mapped by the page, so they are if they begin and end on the page of the last byte. TFLite
    /// promises nothing about what lies behind a tensor, and a tensor without elements lies nowhere.
    pub(crate) fn has_padding(&self) -> bool {
        let end = self.start.addr().get().saturating_add(self.len);
        let last = end.saturating_sub(1);
        self.len > 0 && last / PAGE == last.saturating_add(EXTRA_BYTES) / PAGE
    }

    /// # Safety
    /// Nobody writes to the memory during `'a`.
    pub(crate) unsafe fn bytes(&self) -> &'a [u8] {
        // SAFETY: the interpreter gave a tensor of this many bytes this memory, or there are none; the rest is the
        // caller's promise.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    /// # Safety
    /// Nobody else accesses the memory during `'a`.
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
    fn padding_must_lie_on_the_last_page() {
        for (len, padded) in
            [(0, false), (1, true), (4080, true), (4081, false), (4096, false), (4097, true)]
        {
            assert_eq!(memory(PAGE * 3, len).has_padding(), padded, "{len}");
        }
    }

    #[test]
    fn memories_overlap_where_they_have_bytes_in_common() {
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
    fn elements_of_eight_bytes_decide_the_alignment() {
        assert!(memory(PAGE + 8, 16).is_aligned());
        assert!(!memory(PAGE + 4, 16).is_aligned());
    }
}
