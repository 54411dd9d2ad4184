//! How many threads compute.

use std::sync::Arc;
use std::thread;

use xnnpack::ThreadPool;

use crate::error::Result;

/// A pool of `threads` threads, the calling one included, but not of more than this process has
/// processors for; `None` where that leaves the calling thread alone.
///
/// Threads wait for each other after every operator, and they spin. One too many waits for its turn on
/// a processor where another spins: with two threads on one processor a run takes thousands of times as
/// long. Processors that the process may not use (affinity, quotas of containers) do not count.
///
/// # Errors
/// `threads` is 0, or the threads cannot be started.
pub fn thread_pool(threads: usize) -> Result<Option<Arc<ThreadPool>>> {
    let processors = thread::available_parallelism().map_or(usize::MAX, Into::into);
    let used = threads.min(processors);
    if used < threads {
        log::info!("{used} of {threads} threads compute: there are no more processors");
    }
    match used {
        1 => Ok(None),
        used => Ok(Some(Arc::new(ThreadPool::new(used)?))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_no_more_threads_than_processors() -> Result<()> {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let threads = |count| thread_pool(count).map(|pool| pool.map_or(1, |pool| pool.threads()));
        assert_eq!(threads(1)?, 1);
        assert_eq!(threads(2)?, processors.min(2));
        assert_eq!(threads(processors)?, processors);
        assert_eq!(threads(processors + 1)?, processors);
        assert!(thread_pool(0).is_err());
        Ok(())
    }
}
