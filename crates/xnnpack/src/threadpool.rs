//! Thread pools that share the work of operators.

use std::ffi::c_void;
use std::fmt;
use std::ptr;

use xnnpack_sys as sys;

use crate::status::{Error, Result, Status};

/// Permission to compute with several threads. All pools share the process's threads: runtimes that
/// compute at the same time split the processors, instead of competing for them.
///
/// The caller computes, too, and waits for no thread that the system has not scheduled.
pub struct ThreadPool {
    /// Null for a pool of the calling thread only.
    raw: sys::pthreadpool_t,
    threads: usize,
}

impl ThreadPool {
    /// Maximal number of threads in a pool.
    pub const MAX_THREADS: usize = 1024;

    /// Creates a pool of `threads` threads, including the calling one: with 1, no thread is
    /// started. Others start when a runtime is created or an operator has work for them.
    ///
    /// Where the system refuses to start a thread (a limit of processes or of memory), fewer
    /// compute.
    ///
    /// # Errors
    /// `threads` is 0 or above [`ThreadPool::MAX_THREADS`], or memory is exhausted.
    pub fn new(threads: usize) -> Result<Self> {
        Self::sharing(threads, threads)
    }

    /// Creates a pool as [`ThreadPool::new`] does, for a process with `processors` processors.
    /// Pools that are used at the same time have at most this number of threads together: with `n`
    /// pools in use, each has its `n`th part.
    ///
    /// # Errors
    /// As for [`ThreadPool::new`].
    pub fn sharing(threads: usize, processors: usize) -> Result<Self> {
        const OP: &str = "create thread pool";
        let raw = match threads {
            0 => return Err(Error::invalid("a pool requires at least one thread").during(OP)),
            1 => ptr::null_mut(),
            _ if threads > Self::MAX_THREADS => {
                let reason = format!("{threads} threads exceed the limit of {}", Self::MAX_THREADS);
                return Err(Error::invalid(reason).during(OP));
            }
            _ => sys::create_pool(threads, processors),
        };
        if threads > 1 && raw.is_null() {
            let reason = format!("out of memory: cannot create {threads} threads");
            return Err(Error::new(Status::OutOfMemory, reason).during(OP));
        }
        // SAFETY: `raw` is null or live.
        let threads = unsafe { sys::pthreadpool_get_threads_count(raw) };
        Ok(Self { raw, threads })
    }

    /// Number of threads, including the calling one, also while they have not started.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.threads
    }

    pub(crate) fn raw(&self) -> sys::pthreadpool_t {
        self.raw
    }
}

impl ThreadPool {
    /// Starts the threads, so that they are ready before the first operator.
    pub(crate) fn start(&self) {
        if !self.raw.is_null() {
            // SAFETY: the pool is live.
            unsafe { sys::start_pool(self.raw) }
        }
    }

    /// Calls `task` with each number below `count`. The threads divide the numbers.
    pub(crate) fn for_each<F: Fn(usize) + Sync>(&self, count: usize, task: F) {
        unsafe extern "C" fn call<F: Fn(usize)>(task: *mut c_void, index: usize) {
            // SAFETY: the pointer is that of the task, which outlives the loop.
            let task = unsafe { &*task.cast::<F>() };
            task(index);
        }
        let context = (&raw const task).cast_mut().cast();
        // SAFETY: the pool is null or live. The task may be called on several threads, and `call`
        // does not write to it.
        unsafe { sys::pthreadpool_parallelize_1d(self.raw, Some(call::<F>), context, count, 0) }
    }

    /// The part with `threads` threads: a power of two, or all. Null for one thread.
    pub(crate) fn smaller(&self, threads: usize) -> sys::pthreadpool_t {
        if self.raw.is_null() {
            return self.raw;
        }
        // SAFETY: the pool is live; runtimes use the result no longer than the pool.
        unsafe { sys::smaller_pool(self.raw, threads) }
    }
}

impl fmt::Debug for ThreadPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ThreadPool({})", self.threads)
    }
}

impl Drop for ThreadPool {
    fn drop(&mut self) {
        if !self.raw.is_null() {
            // SAFETY: `raw` is live, and no runtime uses it any longer: each holds a reference.
            unsafe { sys::pthreadpool_destroy(self.raw) }
        }
    }
}

// SAFETY: a pool is not bound to a thread.
unsafe impl Send for ThreadPool {}
// SAFETY: a pool is not changed once it is there, and the threads behind it may be used by several callers.
unsafe impl Sync for ThreadPool {}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn tasks_are_called_once_with_each_number() {
        for (threads, count) in [(1, 5), (3, 0), (3, 1), (3, 1000)] {
            let pool = ThreadPool::new(threads).unwrap();
            let calls: Vec<AtomicUsize> = (0..count).map(|_| AtomicUsize::new(0)).collect();
            pool.for_each(count, |index| {
                calls[index].fetch_add(1, Ordering::Relaxed);
            });
            assert!(calls.iter().all(|calls| calls.load(Ordering::Relaxed) == 1));
        }
    }
}
