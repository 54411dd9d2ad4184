//! How often a piece of code allocates.

#![allow(unsafe_code, reason = "an allocator is unsafe to implement")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, counting the calls of each thread: the
/// `#[global_allocator]` of tests that ask for [`allocations`].
pub struct CountingAllocator;

thread_local! {
    static CALLS: Cell<usize> = const { Cell::new(0) };
}

fn count() {
    // A thread that ends may allocate when its counter is gone.
    let _ = CALLS.try_with(|calls| calls.set(calls.get() + 1));
}

// SAFETY: all is left to the system's allocator; the counter does not allocate.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
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
