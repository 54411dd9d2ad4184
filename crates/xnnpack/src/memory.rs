//! Large pieces of memory, from the system by huge pages where it has them.
//!
//! Weights and intermediate tensors are first written to while a model is loaded, outputs when it first runs, and the system
//! clears memory page by page when they are: 512 times for each 2 MiB, which took longer than packing, or once.

use std::alloc::Layout;
use std::ptr::NonNull;

/// Size and alignment of a huge page, in bytes, on the processors that XNNPACK is for.
pub(crate) const HUGE_PAGE: usize = 1 << 21;

/// Size of the largest ordinary page, in bytes, that Linux has on them.
#[cfg(target_os = "linux")]
const LARGEST_PAGE: usize = 1 << 16;

/// Memory with `len` zeros in it, and `spare` ones behind them that are not likely to be needed, and where they begin: at a multiple
/// of `alignment`, a power of two, or of [`HUGE_PAGE`] where there are many. Ordinary pages are taken only where they are written
/// to. `None` if memory is exhausted.
///
/// An alignment that the system's allocator does not have by itself would make it write all the zeros at once.
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
        // SAFETY: the memory from there on is aligned to huge pages, holds `whole` bytes, and is all zeros.
        unsafe { prefer_huge_pages(memory[start..].as_mut_ptr(), len) };
    }
    Some((memory, start))
}

/// How many bytes of large memory to allocate for `len`: a last page more than half full may as well be huge.
pub(crate) fn whole_pages(len: usize) -> usize {
    let whole = len.saturating_add(HUGE_PAGE / 2) / HUGE_PAGE * HUGE_PAGE;
    len.max(whole)
}

/// Asks for huge pages in memory that was allocated for `len` bytes, [`whole_pages`] of them.
///
/// Of a last one that is not full, what is not needed leaves the process's memory: to take a huge page and give a part of
/// it up takes a third of the time in which the other part is taken by ordinary pages. The system splits such a page when it
/// is short of memory.
///
/// # Safety
/// `start` is aligned to [`HUGE_PAGE`]. The memory is the caller's, to whom it is no loss if it is zeros afterwards.
#[cfg(target_os = "linux")]
pub(crate) unsafe fn prefer_huge_pages(start: *mut u8, len: usize) {
    let whole = whole_pages(len);
    // SAFETY: all ranges lie in the caller's memory, which at worst is zeros afterwards. That the system does not take
    // advice is no error.
    let advise = |from: usize, to: usize, advice| unsafe {
        libc::madvise(start.add(from).cast(), to - from, advice);
    };
    advise(0, whole / HUGE_PAGE * HUGE_PAGE, libc::MADV_HUGEPAGE);
    if len < whole {
        let last = whole - HUGE_PAGE;
        // SAFETY: it lies in the caller's memory.
        unsafe { start.add(last).write_volatile(0) };
        advise(len.next_multiple_of(LARGEST_PAGE), whole, libc::MADV_DONTNEED);
        // Or the system makes the page whole again when it finds the time.
        advise(last, whole, libc::MADV_NOHUGEPAGE);
    }
}

/// How much memory, in bytes, takes its ordinary pages at once.
const POPULATED: usize = 1 << 16;

/// Takes the ordinary pages of some memory that is going to be written to as a whole: one by one, when they are, they take
/// three times as long. What is in them stays.
///
/// # Safety
/// The memory is the caller's.
#[cfg(target_os = "linux")]
pub(crate) unsafe fn populate(start: *mut u8, len: usize) {
    // Of any size that is not larger than the system's own.
    const PAGE: usize = 4096;
    let before = start.addr().next_multiple_of(PAGE) - start.addr();
    if len >= POPULATED {
        let pages = (len - before) / PAGE * PAGE;
        // SAFETY: the range lies in the caller's memory, and no page's content changes. Systems that do not know this advice
        // (Linux before 5.14), or have larger pages, do nothing.
        unsafe { libc::madvise(start.add(before).cast(), pages, libc::MADV_POPULATE_WRITE) };
    }
}

/// Nothing that other systems could be asked.
///
/// # Safety
/// None.
#[cfg(not(target_os = "linux"))]
pub(crate) unsafe fn populate(_start: *mut u8, _len: usize) {}

/// Nothing that other systems could be asked.
///
/// # Safety
/// None.
#[cfg(not(target_os = "linux"))]
pub(crate) unsafe fn prefer_huge_pages(_start: *mut u8, _len: usize) {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::alloc::{alloc, dealloc};
    use std::ptr;

    use super::*;

    /// Which of the pages of some memory take any. Nothing reads it.
    fn resident(start: *const u8, len: usize) -> Vec<bool> {
        // SAFETY: it has no preconditions.
        let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096);
        let mut states = vec![0; len.div_ceil(page)];
        let start = start.cast_mut().cast();
        // SAFETY: there is a state for each page, and what the call does not know it reports.
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
    fn zeros_are_aligned_and_taken_where_they_are_written() {
        for len in [0, 1, 100_000, HUGE_PAGE / 2, 3 * HUGE_PAGE, 3 * HUGE_PAGE + 1] {
            let (memory, start) = zeros(len, 0, 64).unwrap_or_default();
            let zeros = &memory[start..];
            let alignment = if len < HUGE_PAGE / 2 { 64 } else { HUGE_PAGE };
            assert!(zeros.as_ptr().addr().is_multiple_of(alignment), "{len}");
            assert!(zeros.len() >= len && zeros[..len].iter().all(|&byte| byte == 0), "{len}");
        }
        // So large that no freed memory serves for it.
        let (memory, start) = zeros(64 * HUGE_PAGE, 0, 64).unwrap_or_default();
        assert!(resident(memory[start..].as_ptr(), 64 * HUGE_PAGE).iter().all(|&is| !is));
    }

    #[test]
    #[allow(clippy::print_stderr, reason = "says what is not looked at")]
    fn pages_of_a_little_memory_are_taken_at_once() {
        // SAFETY: there is no memory that the advice is for. Systems before Linux 5.14 know none of this number, emulators
        // of processors no advice at all.
        let knows = |advice| unsafe { libc::madvise(ptr::null_mut(), 0, advice) } == 0;
        let is_known = knows(libc::MADV_POPULATE_WRITE) && !knows(libc::c_int::MAX);
        if !is_known {
            assert!(std::env::var_os("CI").is_none(), "this system takes pages one by one");
            eprintln!("this system takes pages one by one: not looked at");
        }
        for len in [1, POPULATED - 1, POPULATED, POPULATED + 5000, HUGE_PAGE / 2 - 1] {
            let layout = Layout::from_size_align(len, 4096).unwrap_or(Layout::new::<u8>());
            // SAFETY: the size is not 0, and the memory is initialized before it is looked at.
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
    fn what_is_not_needed_takes_no_memory() {
        for len in [100_000, HUGE_PAGE / 8 * 5, HUGE_PAGE, HUGE_PAGE * 7 / 4 + 1, HUGE_PAGE * 9 / 4]
        {
            let whole = whole_pages(len);
            let layout = Layout::from_size_align(whole, HUGE_PAGE).unwrap_or(Layout::new::<u8>());
            assert_eq!(layout.size(), whole);
            // SAFETY: the size is not 0, and the memory is initialized as far as it is looked at.
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
