//! Runs: binding of memory, choice of threads, and computation.

use std::ffi::c_void;
use std::time::Instant;

use xnnpack_sys as sys;

use super::trial::Trial;
use super::{Binding, Runtime, Stage};
use crate::status::{Error, Result, check};
use crate::value::ExternalId;
use crate::workspace::Workspace;

/// A runtime that can only be run, on raw memory.
pub struct RawRun<'a>(&'a mut Runtime);

impl RawRun<'_> {
    /// Runs with raw pointers to the memory of all inputs and outputs.
    ///
    /// # Errors
    /// See [`Runtime::run_raw`].
    ///
    /// # Safety
    /// See [`Runtime::run_raw`].
    pub unsafe fn run(self, pointers: &[(ExternalId, *mut c_void)]) -> Result<()> {
        // SAFETY: the caller guarantees it.
        unsafe { self.0.run_raw(pointers) }
    }
}

impl Runtime {
    /// Runs with the given memory, which is borrowed during the call. Every input and output must
    /// be bound, in any order.
    ///
    /// XNNPACK is set up again only when pointers change. Outputs may be used for intermediate
    /// tensors: their contents are valid only after a successful run.
    ///
    /// # Errors
    /// [`Runtime::reshape`] is required; a tensor is missing, unknown, bound twice or bound in the
    /// wrong direction; the length of a buffer differs from the tensor's, its alignment does not
    /// suit the elements, or it lacks padding; or XNNPACK fails.
    pub fn run(&mut self, bindings: &mut [Binding<'_>]) -> Result<()> {
        self.bind(bindings).map_err(|error| error.during("bind tensors"))?;
        self.invoke()
    }

    /// Runs with raw pointers to the memory of all inputs and outputs.
    ///
    /// # Errors
    /// [`Runtime::reshape`] is required; a tensor is missing or unknown; or XNNPACK fails.
    ///
    /// # Safety
    /// Each pointer must be aligned for the tensor's elements. For an input, and for an output that
    /// a node of the subgraph reads, the tensor's bytes (see [`Runtime::external`]) and
    /// [`EXTRA_BYTES`](crate::EXTRA_BYTES) after them
    /// ([`SPARSE_EXTRA_BYTES`](crate::SPARSE_EXTRA_BYTES) with
    /// [`RuntimeOptions::sparse`](crate::RuntimeOptions::sparse)) must be readable; for an output,
    /// the tensor's bytes must be writable. During the call nothing else may write to inputs or
    /// access outputs, and an output must not overlap with any other tensor.
    pub unsafe fn run_raw(&mut self, pointers: &[(ExternalId, *mut c_void)]) -> Result<()> {
        const OP: &str = "bind tensors";
        self.start_binding().map_err(|error| error.during(OP))?;
        for &(id, pointer) in pointers {
            let position = self.position(id).ok_or_else(|| {
                Error::invalid(format!("{id} is not an input or output")).during(OP)
            })?;
            self.point(position, pointer);
        }
        self.finish_binding().map_err(|error| error.during(OP))?;
        self.invoke()
    }

    /// Access to [`Runtime::run_raw`] alone, for types that hold a runtime and keep its shapes.
    pub fn raw(&mut self) -> RawRun<'_> {
        RawRun(self)
    }

    /// Maximal number of threads in the next run, including the calling one. Single operators may
    /// use fewer.
    #[must_use]
    pub fn threads(&self) -> usize {
        let most = self.options.threadpool.as_ref().map_or(1, |pool| pool.threads());
        self.trial.as_ref().map_or(most, |trial| (trial.threads() as usize).min(most))
    }

    /// Starts a trial of threads if options require it. With profiling, operators are not measured
    /// one by one, since XNNPACK records a profile only when it runs all operators itself.
    pub(super) fn new_trial(&self) -> Option<Trial> {
        let compiled = self.compiled.as_ref()?;
        let fewest = u32::try_from(self.options.fewest_threads?).ok()?;
        let most = u32::try_from(self.options.threadpool.as_ref()?.threads()).ok()?;
        let operators = if self.options.profiling {
            1
        } else {
            // SAFETY: the runtime is live.
            unsafe { sys::count_operators(compiled.raw.as_ptr()) }
        };
        Some(Trial::new(operators, fewest, most, self.options.fewest_first))
    }

    /// Sets the threads of the next run, for which operators are divided into tiles when shapes are
    /// applied. Returns whether they have changed.
    pub(super) fn set_threads(&mut self) -> bool {
        let threads = self.threads();
        let (Some(compiled), Some(pool)) = (&self.compiled, &self.options.threadpool) else {
            return false;
        };
        let has_changed = threads != self.divided_for.unwrap_or(pool.threads());
        if has_changed {
            // SAFETY: the runtime is live and is reshaped before it runs; the options keep the pool
            // alive.
            unsafe { sys::set_threads(compiled.raw.as_ptr(), pool.smaller(threads)) };
            self.divided_for = Some(threads);
        }
        has_changed
    }

    /// Has XNNPACK divide operators into tiles for the threads of the next run, if these have
    /// changed.
    fn take_threads(&mut self) -> Result<()> {
        if !self.set_threads() {
            return Ok(());
        }
        self.stage = Stage::Shaped;
        self.apply_shapes().map_err(|error| error.during("change threads"))
    }

    fn bind(&mut self, bindings: &mut [Binding<'_>]) -> Result<()> {
        self.start_binding()?;
        for binding in bindings {
            let (id, is_input, extent) = match binding {
                Binding::Input(id, slice) => (*id, true, slice.extent()),
                Binding::Output(id, slice) => (*id, false, slice.extent()),
            };
            let position = self
                .position(id)
                .ok_or_else(|| Error::invalid(format!("{id} is not an input or output")))?;
            self.externals[position].accept(is_input, extent)?;
            self.point(position, extent.start.as_ptr().cast());
        }
        self.finish_binding()
    }

    fn start_binding(&mut self) -> Result<()> {
        if self.stage == Stage::Unshaped {
            return Err(Error::state(
                "the runtime must be reshaped before it runs; call `reshape` first",
            ));
        }
        for slot in &mut self.externals {
            slot.bound = false;
        }
        Ok(())
    }

    fn point(&mut self, position: usize, data: *mut c_void) {
        self.externals[position].bound = true;
        let pointer = &mut self.pointers[position];
        if pointer.data != data {
            pointer.data = data;
            self.stage = Stage::Shaped;
        }
    }

    fn finish_binding(&self) -> Result<()> {
        match self.externals.iter().find(|slot| !slot.bound) {
            Some(slot) => Err(Error::invalid(format!("{} is not bound", slot.external.id))),
            None => Ok(()),
        }
    }

    /// Runs with the bound pointers.
    fn invoke(&mut self) -> Result<()> {
        const OP: &str = "run";
        self.take_threads()?;
        let Some(compiled) = &self.compiled else {
            return Err(Error::state("the last reshape failed").during(OP));
        };
        // A runtime's own workspace has no other users.
        let workspace = self.options.workspace.as_ref().map(Workspace::lock);
        if let Some(workspace) = &workspace {
            workspace.usable().map_err(|error| error.during(OP))?;
        }
        if self.stage != Stage::Ready {
            // SAFETY: the runtime is live and reshaped, its workspace is locked or not shared, and
            // there is a pointer for each external tensor.
            check("set up runtime", unsafe {
                sys::xnn_setup_runtime_v2(
                    compiled.raw.as_ptr(),
                    self.pointers.len(),
                    self.pointers.as_ptr(),
                )
            })?;
            self.stage = Stage::Ready;
        }
        let raw = compiled.raw.as_ptr();
        // SAFETY: the runtime is live and set up, its workspace is locked or not shared, and the
        // memory of all external tensors is borrowed (`run`) or guaranteed by the caller
        // (`run_raw`).
        let run_all = || check(OP, unsafe { sys::xnn_invoke_runtime(raw) });
        let one_by_one = !self.options.profiling;
        let run = |limits: &[u32], range| match one_by_one {
            // SAFETY: as above. A trial has as many operators as the runtime, and runs them in
            // order.
            true => check(OP, unsafe { sys::run_operators(raw, limits, range) }),
            false => run_all(),
        };
        match &mut self.trial {
            Some(trial) => trial.run(run, Instant::now),
            None => run_all(),
        }
    }
}
