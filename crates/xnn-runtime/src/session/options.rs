//! Choices for a session.

use std::sync::Arc;

use xnn_format::Graph;
use xnnpack::{RuntimeOptions, ThreadPool, Workspace};

use crate::error::Result;
use crate::threads::{UseOfThreads, thread_pool};

/// Choices for a [`Session`](crate::Session).
#[derive(Clone, Debug)]
pub struct SessionOptions {
    /// Threads to compute with, the calling one included, but no more than there are processors
    /// ([`thread_pool`](crate::thread_pool)); unless `thread_pool` is given.
    pub threads: usize,
    /// Threads shared with other sessions, which then take turns.
    pub thread_pool: Option<Arc<ThreadPool>>,
    /// Use the calling thread alone where several would not be faster: where operators are very small, and, where they
    /// are not large either, for the whole graph or for single operators if the first 20 runs with a shape show it, and again of
    /// every thousand, which are measured with all threads and without.
    pub threads_by_work: bool,
    /// Memory for intermediate values shared with other sessions, which then take turns.
    pub workspace: Option<Workspace>,
    /// Let the other threads sleep as soon as a run ends. By default they spin for a while, which takes
    /// processor time from others, and spares the next run the time to wake them.
    pub yield_workers: bool,
    /// Take the time of each operator.
    pub profile: bool,
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self {
            threads: 1,
            thread_pool: None,
            threads_by_work: true,
            workspace: None,
            yield_workers: false,
            profile: false,
        }
    }
}

impl SessionOptions {
    /// The choices for the runtime of `graph`; starts threads where none are shared.
    pub(crate) fn for_runtime(&self, graph: &Graph) -> Result<RuntimeOptions> {
        let use_of_threads =
            if self.threads_by_work { UseOfThreads::for_work(graph) } else { UseOfThreads::Sure };
        let alone = use_of_threads == UseOfThreads::None;
        let threadpool = match &self.thread_pool {
            None => thread_pool(if alone { self.threads.min(1) } else { self.threads })?,
            Some(_) if alone => None,
            Some(pool) => Some(Arc::clone(pool)),
        };
        Ok(RuntimeOptions {
            threadpool,
            tries_alone: use_of_threads == UseOfThreads::Unsure,
            workspace: self.workspace.clone(),
            profiling: self.profile,
            yield_workers: self.yield_workers,
            ..RuntimeOptions::default()
        })
    }
}

/// Whether sessions with one or the other would be made and share alike.
impl PartialEq for SessionOptions {
    fn eq(&self, other: &Self) -> bool {
        let Self { threads, thread_pool, threads_by_work, workspace, yield_workers, profile } =
            self;
        let same_pool = match (thread_pool, &other.thread_pool) {
            (Some(mine), Some(theirs)) => Arc::ptr_eq(mine, theirs),
            (mine, theirs) => mine.is_none() && theirs.is_none(),
        };
        same_pool
            && *workspace == other.workspace
            && (*threads, *threads_by_work, *yield_workers, *profile)
                == (other.threads, other.threads_by_work, other.yield_workers, other.profile)
    }
}
