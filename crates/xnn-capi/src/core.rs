//! The state that a session and its tensors share.

use std::sync::{Mutex, MutexGuard, TryLockError};

use xnn_delegate::Runner;
use xnn_delegate::tensor::Binding;

use crate::arguments::array;
use crate::binding::Bound;
use crate::error::xnnd_error_code_t::XNND_ERROR_INTERNAL;
use crate::error::{Result, xnnd_error_t};

/// Largest number of dimensions of a shape.
const MAX_RANK: usize = 32;

/// The part of a session that its tensors need, too.
pub(crate) struct Core(Mutex<State>);

pub(crate) struct State {
    pub(crate) runner: Runner,
    /// Memory of the caller.
    pub(crate) bindings: Vec<Bound>,
    /// Whether the outputs have been computed for the present shapes.
    pub(crate) has_run: bool,
}

impl Core {
    pub(crate) fn new(runner: Runner) -> Self {
        Self(Mutex::new(State { runner, bindings: vec![], has_run: false }))
    }

    /// The state, unless another thread uses it.
    pub(crate) fn state(&self) -> Result<MutexGuard<'_, State>> {
        self.0.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => xnnd_error_t::state(
                "another thread uses the session; give each thread a session of its own with xnnd_session_fork",
            ),
            TryLockError::Poisoned(_) => xnnd_error_t::new(
                XNND_ERROR_INTERNAL,
                "an earlier call ended with an internal error; create another session",
            ),
        })
    }
}

impl State {
    /// Changes the dimensions of inputs. All bindings end.
    pub(crate) fn resize(&mut self, dims: &[(usize, &[usize])]) -> Result {
        self.runner.resize_inputs(dims)?;
        self.bindings.clear();
        self.has_run = false;
        Ok(())
    }

    pub(crate) fn run(&mut self) -> Result {
        let Self { runner, bindings, has_run } = self;
        if bindings.is_empty() {
            runner.run()?;
        } else {
            // SAFETY: the caller of `xnnd_tensor_bind` keeps the memory while it is bound, does not use it during a run,
            // and bindings do not overlap if one of them is written.
            let bindings = bindings.iter().map(|bound| unsafe { bound.binding() });
            runner.run_bound(bindings.collect::<Vec<Binding<'_>>>())?;
        }
        *has_run = true;
        Ok(())
    }
}

/// Dimensions that the caller passes.
///
/// # Safety
///
/// `dims` is NULL, or has `rank` elements that do not change for `'a`.
pub(crate) unsafe fn dims<'a>(dims: *const usize, rank: usize) -> Result<&'a [usize]> {
    if rank > MAX_RANK {
        let message = format!("rank is {rank}; expected at most {MAX_RANK}");
        return Err(xnnd_error_t::argument(message));
    }
    // SAFETY: as the caller of this function guarantees.
    unsafe { array(dims, rank, "dims") }
}
