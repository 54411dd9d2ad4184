//! Memory for intermediate tensors that runtimes may share.

use std::fmt;
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use xnnpack_sys as sys;

use crate::initialize::initialize;
use crate::status::{Error, Result, check};

/// Memory for the intermediate tensors of one or more runtimes.
///
/// Runtimes that share a workspace need only as much memory as the largest of them. Their reshapes
/// and runs exclude each other.
#[derive(Clone)]
pub struct Workspace(Arc<Shared>);

struct Shared {
    raw: sys::xnn_workspace_t,
    state: Mutex<State>,
}

/// State that the lock of a workspace protects, in addition to XNNPACK's workspace object.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// Number of runtimes that use the workspace.
    pub(crate) users: usize,
    /// Whether one of them has persistent tensors.
    pub(crate) persistent: bool,
    /// Whether a reshape has failed midway, after which the pointers of the runtimes may dangle.
    pub(crate) broken: bool,
}

impl Workspace {
    /// Creates an empty workspace. It grows with the runtimes that use it.
    ///
    /// # Errors
    /// XNNPACK could not be initialized, or memory is exhausted.
    pub fn new() -> Result<Self> {
        initialize()?;
        let mut raw = ptr::null_mut();
        // SAFETY: XNNPACK is initialized and the out pointer is valid.
        check("create workspace", unsafe { sys::xnn_create_workspace(&raw mut raw) })?;
        Ok(Self(Arc::new(Shared { raw, state: Mutex::default() })))
    }

    /// Excludes all other users of the workspace while the guard lives.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        // `State` is changed by single assignments, so a panic leaves it consistent.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// XNNPACK's handle, to be used only under the lock.
    pub(crate) fn raw(&self) -> sys::xnn_workspace_t {
        self.0.raw
    }
}

/// Whether both are the same workspace.
impl PartialEq for Workspace {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Workspace {}

impl State {
    /// Refuses a workspace whose runtimes may hold dangling pointers.
    pub(crate) fn usable(&self) -> Result<()> {
        if self.broken {
            return Err(Error::state(
                "a reshape has failed in this workspace; create new runtimes with another workspace",
            ));
        }
        Ok(())
    }

    /// Refuses to share a workspace with persistent tensors, which XNNPACK would overlay with
    /// tensors of other runtimes.
    pub(crate) fn admit(&self, persistent: bool) -> Result<()> {
        if self.persistent || (persistent && self.users > 0) {
            return Err(Error::unsupported(
                "persistent tensors are not supported in a shared workspace",
            ));
        }
        Ok(())
    }
}

impl fmt::Debug for Workspace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Workspace")
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: `raw` is live, and no runtime uses it: each holds a reference.
        unsafe { sys::xnn_release_workspace(self.raw) };
    }
}

// SAFETY: a workspace is not bound to a thread.
unsafe impl Send for Shared {}
// SAFETY: XNNPACK accesses the workspace only in calls that are made under the lock.
unsafe impl Sync for Shared {}
