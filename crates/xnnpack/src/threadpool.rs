//! Threads that share the work of an operator.

use std::ffi::c_void;
use std::fmt;
use std::ptr;

use xnnpack_sys as sys;

use crate::status::{Error, Result, Status};

/// Permission to compute with several threads. All pools share the process's threads: an operator that starts while another one
/// has them is computed by its caller alone, so that runtimes in several threads share processors instead of competing for them.
///
/// The caller computes, too, and waits for no thread that the system has not scheduled.
pub struct ThreadPool {
    /// Null for one thread: the caller's own.
    raw: sys::pthreadpool_t,
    threads: usize,
}

impl ThreadPool {
    /// The most threads of a pool.
    pub const MAX_THREADS: usize = 4096;

    /// A pool of `threads` threads, the calling one included; with 1 none is started.
    ///
    /// Where the system refuses to start a thread (a limit of processes or of memory), the pool has fewer.
    ///
    /// # Errors
    /// `threads` is 0 or above [`ThreadPool::MAX_THREADS`], or memory is exhausted.
    pub fn new(threads: usize) -> Result<Self> {
        const OP: &str = "create thread pool";
        let raw = match threads {
            0 => return Err(Error::invalid("a pool needs at least one thread").during(OP)),
            1 => ptr::null_mut(),
            _ if threads > Self::MAX_THREADS => {
                let reason = format!("{threads} threads are more than {}", Self::MAX_THREADS);
                return Err(Error::invalid(reason).during(OP));
            }
            // SAFETY: any number of threads is allowed.
            _ => unsafe { sys::pthreadpool_create(threads) },
        };
        if threads > 1 && raw.is_null() {
            let reason = format!("{threads} threads could not be started");
            return Err(Error::new(Status::OutOfMemory, reason).during(OP));
        }
        // SAFETY: `raw` is null or live.
        let threads = unsafe { sys::pthreadpool_get_threads_count(raw) };
        Ok(Self { raw, threads })
    }

    /// Number of threads, the calling one included.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.threads
    }

    pub(crate) fn raw(&self) -> sys::pthreadpool_t {
        self.raw
    }

    /// Lets all threads but the calling one sleep until there is work again. Otherwise they spin for a while.
    ///
    /// XNNPACK has a runtime's last operator do it, which helps only where that has work for more than one thread: most
    /// networks end with a few numbers.
    pub(crate) fn rest(&self) {
        unsafe extern "C" fn nothing(_: *mut c_void, _: usize) {}
        if !self.raw.is_null() {
            let flags = sys::PTHREADPOOL_FLAG_YIELD_WORKERS;
            // SAFETY: the pool is live, and the task has no use for its context.
            unsafe {
                sys::pthreadpool_parallelize_1d(
                    self.raw,
                    Some(nothing),
                    ptr::null_mut(),
                    self.threads,
                    flags,
                );
            }
        }
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
            // SAFETY: `raw` is live, and no runtime uses it any more: each holds a reference.
            unsafe { sys::pthreadpool_destroy(self.raw) }
        }
    }
}

// SAFETY: a pool belongs to no thread in particular.
unsafe impl Send for ThreadPool {}
// SAFETY: a pool is not changed once it is there, and the threads behind it may be used by several callers.
unsafe impl Sync for ThreadPool {}
