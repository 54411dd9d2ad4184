//! Large pieces of memory, from the system by huge pages where it has them.
//!
//! Weights and intermediate tensors are first written to while a model is loaded, and the system clears memory
//! page by page when it is: 512 times for each 2 MiB, which took longer than packing, or once.

use std::alloc::Layout;
use std::ptr::NonNull;

/// Size and alignment of a huge page, in bytes, on the processors that XNNPACK is for.
pub(crate) const HUGE_PAGE: usize = 1 << 21;

/// `count` zeros, at least one, in memory that is taken only where it is written to; `None` if it is exhausted.
pub(crate) fn zeros(count: usize) -> Option<Vec<u8>> {
    let layout = Layout::array::<u8>(count).ok().filter(|layout| layout.size() > 0)?;
    // SAFETY: the size is not 0.
    let memory = NonNull::new(unsafe { std::alloc::alloc_zeroed(layout) })?;
    // SAFETY: the global allocator gave the memory, of `count` bytes, all of them initialized.
    Some(unsafe { Vec::from_raw_parts(memory.as_ptr(), count, count) })
}

/// How many bytes of large memory to allocate for `len`: a last page more than half full may as well be huge.
pub(crate) fn whole_pages(len: usize) -> usize {
    let whole = len.saturating_add(HUGE_PAGE / 2) / HUGE_PAGE * HUGE_PAGE;
    len.max(whole)
}

/// Asks for huge pages wherever whole ones lie inside of `memory`.
pub(crate) fn prefer_huge_pages(memory: &mut [u8]) {
    advise(memory.as_mut_ptr(), memory.len());
}

/// [`prefer_huge_pages`] of memory that may not be initialized.
pub(crate) fn advise(start: *mut u8, len: usize) {
    let skipped = start.addr().next_multiple_of(HUGE_PAGE) - start.addr();
    let whole = len.saturating_sub(skipped) / HUGE_PAGE * HUGE_PAGE;
    if whole > 0 {
        #[cfg(target_os = "linux")]
        // SAFETY: the advice changes nothing that a program could see, wherever it is given. That the system
        // does not take it is no error.
        unsafe {
            libc::madvise(start.wrapping_add(skipped).cast(), whole, libc::MADV_HUGEPAGE);
        }
    }
}
