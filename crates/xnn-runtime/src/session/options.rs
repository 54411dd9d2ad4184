//! Options of a session.

use std::sync::Arc;

use xnn_format::Graph;
use xnnpack::{RuntimeOptions, ThreadPool, Workspace};

use crate::error::Result;
use crate::threads::{UseOfThreads, thread_pool};

/// Options of a [`Session`](crate::Session).
///
/// ```
/// use xnn_runtime::{SessionOptions, Workspace};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // Sessions with clones of these options share intermediate memory, and take turns.
/// let options = SessionOptions {
///     threads: 4,
///     workspace: Some(Workspace::new()?),
///     ..SessionOptions::default()
/// };
/// # assert_eq!(options, options.clone());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct SessionOptions {
    /// Number of threads, including the calling one, limited to the number of processors
    /// ([`thread_pool`](crate::thread_pool)). Ignored if `thread_pool` is given.
    pub threads: usize,
    /// Thread pool to use. All pools share the threads of the process, and sessions that compute at the
    /// same time split the processors.
    pub thread_pool: Option<Arc<ThreadPool>>,
    /// Use fewer threads where they are faster. Graphs with very small operators always use one
    /// thread. Otherwise some of the first runs with a shape, and of every thousand, are measured
    /// with 1, 2, 4, ... and all threads, to choose threads for the whole graph or for each operator;
    /// one thread is not tried if operators are large. After the choice of the fewest threads, runs are
    /// measured again sooner, since other programs may have slowed the others down.
    pub threads_by_work: bool,
    /// Memory for intermediate tensors shared with other sessions, which then take turns.
    pub workspace: Option<Workspace>,
    /// Measure the time of each operator, for [`Session::profile`](crate::Session::profile).
    pub profile: bool,
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self {
            threads: 1,
            thread_pool: None,
            threads_by_work: true,
            workspace: None,
            profile: false,
        }
    }
}

impl SessionOptions {
    /// Options for the runtime of `graph`. Creates a thread pool unless one is shared.
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
            fewest_threads: self.threads_by_work.then_some(match use_of_threads {
                UseOfThreads::None | UseOfThreads::Later | UseOfThreads::Unsure => 1,
                UseOfThreads::Sure => 2,
            }),
            fewest_first: use_of_threads == UseOfThreads::Later,
            workspace: self.workspace.clone(),
            profiling: self.profile,
            ..RuntimeOptions::default()
        })
    }
}

/// Equal options create equivalent sessions that share the same objects.
impl PartialEq for SessionOptions {
    fn eq(&self, other: &Self) -> bool {
        let Self { threads, thread_pool, threads_by_work, workspace, profile } = self;
        let same_pool = match (thread_pool, &other.thread_pool) {
            (Some(mine), Some(theirs)) => Arc::ptr_eq(mine, theirs),
            (mine, theirs) => mine.is_none() && theirs.is_none(),
        };
        same_pool
            && *workspace == other.workspace
            && (*threads, *threads_by_work, *profile)
                == (other.threads, other.threads_by_work, other.profile)
    }
}
