//! Large allocations, in huge pages if the system has them.
//!
//! Weights and intermediate tensors are first written to while a model is loaded, and outputs
//! during its first run. The system clears each page when it is first written to: 512 times per 2
//! MiB with ordinary pages, which took longer than packing, or once with a huge page.

use std::alloc::Layout;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU8, Ordering};

use crate::threadpool::ThreadPool;

/// Size and alignment of a huge page, in bytes, on the processors that XNNPACK supports.
pub(crate) const HUGE_PAGE: usize = 1 << 21;

/// Size of Linux's largest ordinary page, in bytes, on these processors.
#[cfg(target_os = "linux")]
const LARGEST_PAGE: usize = 1 << 16;

/// Allocates `len` zeros, followed by `spare` zeros that are unlikely to be needed. Returns the
/// memory and the offset of the first zero, which is aligned to `alignment` (a power of two), or to
/// [`HUGE_PAGE`] for large allocations. Ordinary pages are taken only when they are written to.
/// `None` if memory is exhausted.
///
/// The alignment is not requested from the system's allocator, which would then write all zeros at
/// once.
pub(crate) fn zeros(len: usize, spare: usize, alignment: usize) -> Option<(Vec<u8>, usize)> {
    let whole = whole_pages(len);
    let is_large = whole >= HUGE_PAGE;
    let alignment = if is_large { alignment.max(HUGE_PAGE) } else { alignment };
    let count = whole.max(len.checked_add(spare)?).checked_add(alignment)?;
    let layout = Layout::array::<u8>(count).ok().filter(|layout| layout.size() > 0)?;
    // SAFETY: the size is not 0.
    let memory = NonNull::new(unsafe { std::alloc::alloc_zeroed(layout) })?;
    // SAFETY: the global allocator gave the memory, of `count` bytes, all of them initialized.
    let mut memory = unsafe { Vec::from_raw_parts(memory.as_ptr(), count, count) };
    let address = memory.as_ptr().addr();
    let start = address.next_multiple_of(alignment) - address;
    if is_large {
        // SAFETY: the memory from `start` is aligned to huge pages, has `whole` bytes, and is all
        // zeros.
        unsafe { prefer_huge_pages(memory[start..].as_mut_ptr(), len) };
    }
    Some((memory, start))
}

/// Offset of the first address that a huge page can begin at. It may be beyond the memory.
fn first_huge_page(memory: &[u8]) -> usize {
    let start = memory.as_ptr().addr();
    start.next_multiple_of(HUGE_PAGE) - start
}

/// Takes the huge pages that begin in zeroed memory of [`zeros`]. Each is cleared by one thread of
/// the pool: where several threads write to a new page at the same time, the system clears a page
/// for each of them.
pub(crate) fn take_huge_pages(memory: &mut [u8], pool: &ThreadPool) {
    let first = first_huge_page(memory);
    let count = memory.len().saturating_sub(first).div_ceil(HUGE_PAGE);
    // SAFETY: atomic bytes have the layout of bytes, and the memory is borrowed exclusively.
    let memory = unsafe { &*(ptr::from_mut(memory) as *const [AtomicU8]) };
    pool.for_each(count, |page| {
        if let Some(byte) = memory.get(first + page * HUGE_PAGE) {
            byte.store(0, Ordering::Relaxed);
        }
    });
}

/// Returns the huge pages within zeroed memory to the system, which gives zeros again when it is
/// used.
pub(crate) fn return_huge_pages(memory: &mut [u8]) {
    let first = first_huge_page(memory);
    let len = memory.len().saturating_sub(first) / HUGE_PAGE * HUGE_PAGE;
    #[cfg(target_os = "linux")]
    if len > 0 {
        // SAFETY: the range lies in the memory, which is borrowed exclusively, consists of whole
        // pages, and is zero before and afterwards. Rejected advice is not an error.
        unsafe { libc::madvise(memory[first..].as_mut_ptr().cast(), len, libc::MADV_DONTNEED) };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = len;
}

/// Number of bytes to allocate for `len`: rounded up to whole huge pages if the last one is at
/// least half full.
pub(crate) fn whole_pages(len: usize) -> usize {
    let whole = len.saturating_add(HUGE_PAGE / 2) / HUGE_PAGE * HUGE_PAGE;
    len.max(whole)
}

/// Requests huge pages for memory of [`whole_pages`]`(len)` bytes.
///
/// The unused part of the last huge page is returned to the system: taking a huge page and
/// returning a part of it takes a third of the time that taking the other part in ordinary pages
/// does. The system splits such a page when it is short of memory.
///
/// # Safety
/// `start` is aligned to [`HUGE_PAGE`]. The caller owns the memory and does not need its contents,
/// which may become zeros.
#[cfg(target_os = "linux")]
pub(crate) unsafe fn prefer_huge_pages(start: *mut u8, len: usize) {
    let whole = whole_pages(len);
    // SAFETY: all ranges lie in the caller's memory, whose contents may become zeros. Rejected
    // advice is not an error.
    let advise = |from: usize, to: usize, advice| unsafe {
        libc::madvise(start.add(from).cast(), to - from, advice);
    };
    advise(0, whole / HUGE_PAGE * HUGE_PAGE, libc::MADV_HUGEPAGE);
    if len < whole {
        let last = whole - HUGE_PAGE;
        // SAFETY: the byte lies in the caller's memory.
        unsafe { start.add(last).write_volatile(0) };
        advise(len.next_multiple_of(LARGEST_PAGE), whole, libc::MADV_DONTNEED);
        // Without this, the system would later make the page whole again.
        advise(last, whole, libc::MADV_NOHUGEPAGE);
    }
}

/// Size in bytes from which ordinary pages are taken at once.
#[cfg(target_os = "linux")]
const POPULATED: usize = 1 << 16;

/// Takes the ordinary pages of memory that will be written to completely: taking them one by one on
/// first write takes three times as long. The contents do not change.
///
/// # Safety
/// The caller owns the memory.
#[cfg(target_os = "linux")]
pub(crate) unsafe fn populate(start: *mut u8, len: usize) {
    // Any size up to that of the system's pages works.
    const PAGE: usize = 4096;
    let before = start.addr().next_multiple_of(PAGE) - start.addr();
    if len >= POPULATED {
        let pages = (len - before) / PAGE * PAGE;
        // SAFETY: the range lies in the caller's memory, and no contents change. Systems without
        // this advice (Linux before 5.14) or with larger pages do nothing.
        unsafe { libc::madvise(start.add(before).cast(), pages, libc::MADV_POPULATE_WRITE) };
    }
}

/// Does nothing: other systems have no such advice.
///
/// # Safety
/// None.
#[cfg(all(unix, not(target_os = "linux")))]
pub(crate) unsafe fn populate(_start: *mut u8, _len: usize) {}

/// Does nothing: other systems have no such advice.
///
/// # Safety
/// None.
#[cfg(not(target_os = "linux"))]
pub(crate) unsafe fn prefer_huge_pages(_start: *mut u8, _len: usize) {}

#[cfg(all(test, target_os = "linux"))]
pub(crate) mod tests {
    use std::alloc::{alloc, dealloc};
    use std::ptr;

    use super::*;

    /// Returns for each page of the memory whether it is resident, without reading it.
    pub(crate) fn resident(start: *const u8, len: usize) -> Vec<bool> {
        // SAFETY: `sysconf` has no preconditions.
        let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096);
        let mut states = vec![0; len.div_ceil(page)];
        let start = start.cast_mut().cast();
        // SAFETY: `states` has an element for each page, and the call reports unmapped memory as an
        // error.
        assert_eq!(unsafe { libc::mincore(start, len, states.as_mut_ptr()) }, 0);
        states.iter().map(|state| state & 1 != 0).collect()
    }

    #[test]
    fn pages_are_huge_where_they_are_half_full() {
        for (len, whole) in [
            (1, 1),
            (HUGE_PAGE / 2 - 1, HUGE_PAGE / 2 - 1),
            (HUGE_PAGE / 2, HUGE_PAGE),
            (HUGE_PAGE, HUGE_PAGE),
            (HUGE_PAGE + 1, HUGE_PAGE + 1),
            (HUGE_PAGE / 2 * 3, 2 * HUGE_PAGE),
        ] {
            assert_eq!(whole_pages(len), whole, "{len}");
        }
    }

    #[test]
    fn zeros_are_aligned_and_resident_only_where_written() {
        for len in [0, 1, 100_000, HUGE_PAGE / 2, 3 * HUGE_PAGE, 3 * HUGE_PAGE + 1] {
            let (memory, start) = zeros(len, 0, 64).unwrap_or_default();
            let zeros = &memory[start..];
            let alignment = if len < HUGE_PAGE / 2 { 64 } else { HUGE_PAGE };
            assert!(zeros.as_ptr().addr().is_multiple_of(alignment), "{len}");
            assert!(zeros.len() >= len && zeros[..len].iter().all(|&byte| byte == 0), "{len}");
        }
        // Larger than any freed memory that could be reused.
        let (memory, start) = zeros(64 * HUGE_PAGE, 0, 64).unwrap_or_default();
        assert!(resident(memory[start..].as_ptr(), 64 * HUGE_PAGE).iter().all(|&is| !is));
    }

    #[test]
    fn ordinary_pages_are_taken_at_once() {
        // SAFETY: the range is empty. Linux before 5.14 does not know this advice, and emulators of
        // processors accept any.
        let knows = |advice| unsafe { libc::madvise(ptr::null_mut(), 0, advice) } == 0;
        let is_known = knows(libc::MADV_POPULATE_WRITE) && !knows(libc::c_int::MAX);
        if !is_known {
            xnn_testing::skip("this system takes pages one by one");
        }
        for len in [1, POPULATED - 1, POPULATED, POPULATED + 5000, HUGE_PAGE / 2 - 1] {
            let layout = Layout::from_size_align(len, 4096).unwrap_or(Layout::new::<u8>());
            // SAFETY: the size is not 0, and the memory is initialized before it is read.
            unsafe {
                let start = alloc(layout);
                assert!(!start.is_null());
                populate(start, len);
                let pages = len / 4096 * 4096;
                if is_known && len >= POPULATED {
                    let taken = resident(start, pages);
                    assert!(taken.iter().all(|&is| is), "{len}");
                }
                start.write_bytes(3, len);
                populate(start, len);
                assert!(std::slice::from_raw_parts(start, len).iter().all(|&byte| byte == 3));
                dealloc(start, layout);
            }
        }
    }

    #[test]
    fn the_unused_part_of_the_last_page_is_not_resident() {
        for len in [100_000, HUGE_PAGE / 8 * 5, HUGE_PAGE, HUGE_PAGE * 7 / 4 + 1, HUGE_PAGE * 9 / 4]
        {
            let whole = whole_pages(len);
            let layout = Layout::from_size_align(whole, HUGE_PAGE).unwrap_or(Layout::new::<u8>());
            assert_eq!(layout.size(), whole);
            // SAFETY: the size is not 0, and the memory is initialized before it is read.
            unsafe {
                let start = alloc(layout);
                assert!(!start.is_null());
                prefer_huge_pages(start, len);
                start.write_bytes(1, len);
                let needed = resident(start, len);
                assert!(needed.iter().all(|&is| is), "{len}");
                let end = len.next_multiple_of(LARGEST_PAGE);
                if end < whole {
                    let rest = resident(start.add(end), whole - end);
                    assert!(rest.iter().all(|&is| !is), "{len}");
                }
                dealloc(start, layout);
            }
        }
    }
}
