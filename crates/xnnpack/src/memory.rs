//! Large pieces of memory, from the system by huge pages where it has them.
//!
//! Weights and intermediate tensors are first written to while a model is loaded, and the system clears memory
//! page by page when it is: 512 times for each 2 MiB, which took longer than packing, or once.

use std::alloc::Layout;
use std::ffi::c_void;
use std::ptr::{self, NonNull};

use xnnpack_sys as sys;

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

fn advise(start: *mut u8, len: usize) {
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

/// What XNNPACK allocates with. All memory is the C library's: what the process allocated or frees by another
/// allocator of the kind is the same to it.
pub(crate) static ALLOCATOR: Allocator = Allocator(sys::xnn_allocator {
    context: ptr::null_mut(),
    allocate: Some(allocate),
    reallocate: Some(reallocate),
    deallocate: Some(deallocate),
    aligned_allocate: Some(aligned_allocate),
    aligned_deallocate: Some(deallocate),
});

/// The table of an allocator without a state.
pub(crate) struct Allocator(pub(crate) sys::xnn_allocator);

// SAFETY: the context is null and the functions may be called from any thread.
unsafe impl Sync for Allocator {}

unsafe extern "C" fn allocate(_: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: `malloc` takes any size.
    unsafe { libc::malloc(size) }
}

unsafe extern "C" fn reallocate(_: *mut c_void, memory: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: XNNPACK passes memory that one of these functions returned, or null.
    unsafe { libc::realloc(memory, size) }
}

unsafe extern "C" fn deallocate(_: *mut c_void, memory: *mut c_void) {
    // SAFETY: as in `reallocate`; aligned memory is freed as any other is.
    unsafe { libc::free(memory) }
}

unsafe extern "C" fn aligned_allocate(
    _: *mut c_void,
    alignment: usize,
    size: usize,
) -> *mut c_void {
    let whole = whole_pages(size);
    let is_large = whole >= HUGE_PAGE;
    let alignment = if is_large { alignment.max(HUGE_PAGE) } else { alignment };
    let mut memory = ptr::null_mut();
    // SAFETY: the alignment is a power of two that pointers fit: XNNPACK's is, and so is a huge page's.
    if unsafe { libc::posix_memalign(&raw mut memory, alignment, whole) } != 0 {
        return ptr::null_mut();
    }
    if is_large {
        advise(memory.cast(), whole);
    }
    memory
}
