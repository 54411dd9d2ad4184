//! What XNNPACK allocates with: the C library's memory, in huge pages where there is much of it.
//!
//! XNNPACK's own allocator takes and frees the same memory, so that it does not matter which one another user of
//! XNNPACK in this process has set.

use std::ffi::c_void;
use std::ptr;

use xnnpack_sys as sys;

use crate::memory::{HUGE_PAGE, populate, prefer_huge_pages, whole_pages};

/// XNNPACK copies it when it is initialized.
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
        // SAFETY: the memory is new, and aligned to huge pages.
        unsafe { prefer_huge_pages(memory.cast(), size) };
    } else {
        // Of this size they are intermediate tensors, which XNNPACK sets to zero.
        // SAFETY: the memory is new, and has this size.
        unsafe { populate(memory.cast(), size) };
    }
    memory
}
