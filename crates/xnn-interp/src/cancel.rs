//! The flag that cancels runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Cancels runs from another thread. Clones share one flag.
#[derive(Clone, Debug, Default)]
pub struct CancelFlag(Arc<AtomicBool>);

impl CancelFlag {
    /// Makes a run in progress, and later runs, end with
    /// [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled) before the next operator.
    pub fn raise(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Allows runs again.
    pub fn lower(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// Whether the flag is raised.
    #[must_use]
    pub fn is_raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
