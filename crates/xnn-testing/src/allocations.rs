//! How often and how much a piece of code allocates.

#![allow(unsafe_code, reason = "an allocator is unsafe to implement")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, counting the calls and bytes of each thread: the
/// `#[global_allocator]` of tests that ask for [`allocations`] or [`peak_bytes`].
pub struct CountingAllocator;

thread_local! {
    static CALLS: Cell<usize> = const { Cell::new(0) };
    /// Bytes in use, and the most so far. A thread may free what others allocated.
    static BYTES: Cell<(isize, isize)> = const { Cell::new((0, 0)) };
}

// A thread that ends may allocate when its counters are gone.
fn count() {
    let _ = CALLS.try_with(|calls| calls.set(calls.get() + 1));
}

fn grow(bytes: isize) {
    let _ = BYTES.try_with(|all| {
        let (used, most) = all.get();
        let used = used.wrapping_add(bytes);
        all.set((used, most.max(used)));
    });
}

// SAFETY: all is left to the system's allocator; the counters do not allocate.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        grow(layout.size().cast_signed());
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        grow(layout.size().cast_signed());
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        grow(-layout.size().cast_signed());
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // The old and the new memory may exist at the same time.
        grow(size.cast_signed());
        grow(-layout.size().cast_signed());
        // SAFETY: the caller's promise.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

/// How many times this thread allocates in `run`.
///
/// # Panics
///
/// If [`CountingAllocator`] is not the allocator.
pub fn allocations(run: impl FnOnce()) -> usize {
    let counted = |run: &mut dyn FnMut()| {
        let before = CALLS.get();
        run();
        CALLS.get() - before
    };
    let probe = counted(&mut || drop(std::hint::black_box(Box::new(1))));
    assert_eq!(probe, 1, "the test needs CountingAllocator as its global allocator");
    let mut run = Some(run);
    counted(&mut || run.take().into_iter().for_each(|run| run()))
}

/// The most bytes that this thread has in use at the same time in `run`, besides those before.
///
/// # Panics
///
/// If [`CountingAllocator`] is not the allocator.
pub fn peak_bytes(run: impl FnOnce()) -> usize {
    assert_eq!(allocations(|| drop(std::hint::black_box(Box::new(1)))), 1);
    let before = BYTES.with(|all| {
        let (used, _) = all.get();
        all.set((used, used));
        used
    });
    run();
    let (_, most) = BYTES.get();
    usize::try_from(most - before).unwrap_or(0)
}
