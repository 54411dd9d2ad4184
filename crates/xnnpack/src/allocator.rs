//! XNNPACK's allocator: the C library's memory, in huge pages for large allocations.
//!
//! XNNPACK's default allocator uses the same functions, so the two can be mixed if another user of
//! XNNPACK in this process has initialized it.

use std::ffi::c_void;
use std::ptr;

use xnnpack_sys as sys;

use crate::memory::{HUGE_PAGE, populate, prefer_huge_pages, whole_pages};

/// Allocator that XNNPACK copies when it is initialized.
pub(crate) static ALLOCATOR: Allocator = Allocator(sys::xnn_allocator {
    context: ptr::null_mut(),
    allocate: Some(allocate),
    reallocate: Some(reallocate),
    deallocate: Some(deallocate),
    aligned_allocate: Some(aligned_allocate),
    aligned_deallocate: Some(deallocate),
});

/// Function table of a stateless allocator.
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
    // SAFETY: as in `reallocate`; aligned memory is freed like any other.
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
    // SAFETY: XNNPACK's alignment and that of a huge page are powers of two and multiples of a
    // pointer's size.
    if unsafe { libc::posix_memalign(&raw mut memory, alignment, whole) } != 0 {
        return ptr::null_mut();
    }
    if is_large {
        // SAFETY: the memory is new, and aligned to huge pages.
        unsafe { prefer_huge_pages(memory.cast(), size) };
    } else {
        // Allocations of this size are intermediate tensors, which XNNPACK sets to zero.
        // SAFETY: the memory is new, and has this size.
        unsafe { populate(memory.cast(), size) };
    }
    memory
}
