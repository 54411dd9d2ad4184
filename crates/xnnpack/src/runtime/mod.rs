//! A subgraph compiled by XNNPACK.

mod compiled;
mod external;
mod options;
mod trial;

use std::ffi::c_void;
use std::fmt;
use std::ptr;
use std::sync::Arc;
use std::time::Instant;

use xnnpack_sys as sys;

pub use external::{Binding, External};
pub use options::{Fp16, RuntimeOptions};

use crate::buffer::{EXTRA_BYTES, SPARSE_EXTRA_BYTES};
use crate::profile::{self, OperatorTiming};
use crate::status::{Error, Result, check};
use crate::subgraph::Subgraph;
use crate::value::{ExternalId, Shape};
use crate::workspace::Workspace;
use compiled::Compiled;
use external::{Slot, slots};
use trial::{Threads, Trial};

/// A subgraph compiled for the processor, with the memory to run it.
///
/// After [`Runtime::new`], and after changing the shape of an input, [`Runtime::reshape`] must
/// succeed before [`Runtime::run`].
pub struct Runtime {
    /// Dropped first, in `Drop`; the rest is what it points to. `None` after a failed reshape.
    compiled: Option<Compiled>,
    subgraph: Arc<Subgraph>,
    options: RuntimeOptions,
    workspace: Workspace,
    /// Shapes of all tensors, as of the last successful reshape (or inferred from the start).
    shapes: Vec<Option<Shape>>,
    /// Most bytes that each tensor has had since compiling.
    peaks: Vec<usize>,
    /// Sorted by id.
    externals: Vec<Slot>,
    /// What XNNPACK was last told, in the order of `externals`.
    pointers: Vec<sys::xnn_external_value>,
    stage: Stage,
    /// Of the present shapes.
    trial: Option<Trial>,
    /// Whether XNNPACK has been told that the calling thread computes alone.
    alone: bool,
}

/// How far a runtime has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// XNNPACK does not have the present shapes.
    Unshaped,
    /// Shapes are set and memory is planned.
    Shaped,
    /// The pointers are set too.
    Ready,
}

impl Runtime {
    /// Compiles `subgraph`.
    ///
    /// # Errors
    /// An output that no node computes; a node that XNNPACK does not support in this combination
    /// of datatypes and parameters, or on this processor; memory is exhausted.
    pub fn new(subgraph: impl Into<Arc<Subgraph>>, options: &RuntimeOptions) -> Result<Self> {
        let subgraph = subgraph.into();
        let sparse = options.sparse || subgraph.is_sparse();
        if sparse && options.weights_cache.is_some() {
            let reason = "sparse kernels change their packed weights, which cannot be shared";
            return Err(Error::unsupported(reason).during("create runtime"));
        }
        if options.fp16 != Fp16::Never && options.weights_cache.is_some() {
            let reason = "weights in fp16 are packed under the same names as those in fp32, and cannot be shared";
            return Err(Error::unsupported(reason).during("create runtime"));
        }
        if options.fp16 == Fp16::Force && !subgraph.is_plain_f32() {
            let reason = "only fp32 tensors can be computed in fp16";
            return Err(Error::unsupported(reason).during("create runtime"));
        }
        subgraph.check_complete()?;
        let workspace = match &options.workspace {
            Some(workspace) => workspace.clone(),
            None => Workspace::new()?,
        };
        let shapes = subgraph.infer(subgraph.defined_shapes())?;
        let externals =
            slots(&subgraph, &shapes, if sparse { SPARSE_EXTRA_BYTES } else { EXTRA_BYTES })?;
        let mut runtime = Self {
            compiled: None,
            pointers: vec![
                sys::xnn_external_value { id: 0, data: ptr::null_mut() };
                externals.len()
            ],
            peaks: vec![0; shapes.len()],
            options: options.clone(),
            stage: Stage::Unshaped,
            trial: None,
            alone: false,
            externals,
            subgraph,
            workspace,
            shapes,
        };
        for (pointer, slot) in runtime.pointers.iter_mut().zip(&runtime.externals) {
            pointer.id = slot.raw_id;
        }
        runtime.compiled = Some(runtime.compile()?);
        Ok(runtime)
    }

    /// Inputs and outputs, sorted by id.
    pub fn externals(&self) -> impl ExactSizeIterator<Item = &External> {
        self.externals.iter().map(|slot| &slot.external)
    }

    /// An input or output.
    #[must_use]
    pub fn external(&self, id: ExternalId) -> Option<&External> {
        self.position(id).map(|position| &self.externals[position].external)
    }

    /// Present shape of an input or output; a change takes effect with [`Runtime::reshape`].
    #[must_use]
    pub fn external_shape(&self, id: ExternalId) -> Option<&[usize]> {
        self.external(id).map(|external| &*external.shape)
    }

    /// Asks for another shape of an input, to be taken on by [`Runtime::reshape`].
    ///
    /// # Errors
    /// `id` is not an input, or `dims` is not a possible shape of its type and quantization.
    pub fn reshape_external(&mut self, id: ExternalId, dims: &[usize]) -> Result<()> {
        const OP: &str = "reshape input";
        let shape = Shape::new(dims).map_err(|error| error.during(OP))?;
        let position = self.position(id).filter(|&at| self.externals[at].external.is_input);
        let Some(position) = position else {
            return Err(Error::invalid(format!("{id} is not an input")).during(OP));
        };
        let value = self.externals[position].value;
        self.subgraph.check_shape(value, &shape).map_err(|error| error.during(OP))?;
        self.externals[position].pending = shape;
        if shape != self.externals[position].external.shape {
            self.stage = Stage::Unshaped;
        }
        Ok(())
    }
}

impl Runtime {
    /// Takes on the shapes asked for, computes those of all other tensors and plans memory. Does
    /// nothing if no shape has changed since the last time.
    ///
    /// Where XNNPACK cannot take on the shapes safely the subgraph is compiled anew, which packs
    /// the weights again unless a [`WeightsCache`](crate::WeightsCache) has them.
    ///
    /// # Errors
    /// The shapes do not fit the nodes, in which case the next `reshape` may try others; memory is
    /// exhausted; the weights cache is not finalized.
    pub fn reshape(&mut self) -> Result<()> {
        const OP: &str = "reshape runtime";
        if self.stage != Stage::Unshaped {
            return Ok(());
        }
        if self.options.weights_cache.as_ref().is_some_and(|cache| !cache.is_finalized()) {
            return Err(Error::state("the weights cache is not finalized").during(OP));
        }
        let shapes = self.subgraph.infer(self.shapes_asked_for())?;
        let sizes = self.subgraph.sizes(&shapes)?;
        let rewritten = self.options.sparse || self.options.fp16 != Fp16::Never;
        if rewritten && shapes != self.shapes {
            log::debug!("compiling anew: nodes may run in another layout or arithmetic");
            self.discard();
        } else if let Some(node) = self.subgraph.stuck_node(&self.shapes, &shapes, &self.peaks) {
            log::debug!("compiling anew: {node} cannot be reshaped in place");
            self.discard();
        }
        self.shapes = shapes;
        for slot in &mut self.externals {
            let Some(shape) = self.shapes[slot.value] else { continue };
            slot.external.bytes = sizes[slot.value];
            slot.external.shape = shape;
        }
        if self.compiled.is_none() {
            self.compiled = Some(self.compile()?);
            self.alone = false;
            self.peaks.fill(0);
        }
        self.trial = self.new_trial();
        self.apply_shapes().map_err(|error| error.during(OP))?;
        for (peak, bytes) in self.peaks.iter_mut().zip(sizes) {
            *peak = bytes.max(*peak);
        }
        self.stage = Stage::Shaped;
        Ok(())
    }

    /// Whether [`Runtime::reshape`] could take on the shapes asked for, as far as the nodes tell. Refuses to run until it
    /// has: for callers that compute nothing in the meantime.
    ///
    /// # Errors
    /// The shapes do not fit the nodes.
    pub fn check_shapes(&mut self) -> Result<()> {
        self.stage = Stage::Unshaped;
        self.subgraph.infer(self.shapes_asked_for()).map(drop)
    }

    fn shapes_asked_for(&self) -> Vec<Option<Shape>> {
        let mut shapes = self.subgraph.defined_shapes();
        for slot in self.externals.iter().filter(|slot| slot.external.is_input) {
            shapes[slot.value] = Some(slot.pending);
        }
        shapes
    }

    /// Runs with the given memory, which is borrowed for the time of the call. Every input and
    /// output must be bound, in any order.
    ///
    /// XNNPACK is told the pointers only when they change. Intermediate tensors may lie in an output before
    /// something is written to it: it has its values only when the run has succeeded.
    ///
    /// # Errors
    /// [`Runtime::reshape`] is due; a tensor is missing, unknown, bound twice or in the wrong
    /// direction; a buffer has another length than the tensor, is not aligned to the element, or
    /// lacks padding; XNNPACK fails.
    pub fn run(&mut self, bindings: &mut [Binding<'_>]) -> Result<()> {
        self.bind(bindings).map_err(|error| error.during("bind tensors"))?;
        self.invoke()
    }

    /// Runs with raw pointers to the memory of all inputs and outputs.
    ///
    /// # Errors
    /// [`Runtime::reshape`] is due; a tensor is missing or unknown; XNNPACK fails.
    ///
    /// # Safety
    /// Each pointer must be aligned for the tensor's elements. For an input, and for an output that
    /// a node of the subgraph reads, the tensor's bytes (see [`Runtime::external`]) and
    /// [`EXTRA_BYTES`] behind them ([`SPARSE_EXTRA_BYTES`] with [`RuntimeOptions::sparse`]) must be
    /// readable; for an output the tensor's bytes must be writable. Nothing may write to the inputs,
    /// or access the outputs, during the call, and no two tensors may overlap where one is an output.
    pub unsafe fn run_raw(&mut self, pointers: &[(ExternalId, *mut c_void)]) -> Result<()> {
        const OP: &str = "bind tensors";
        self.start_binding().map_err(|error| error.during(OP))?;
        for &(id, pointer) in pointers {
            let position = self
                .position(id)
                .ok_or_else(|| Error::invalid(format!("{id} is not external")).during(OP))?;
            self.point(position, pointer);
        }
        self.finish_binding().map_err(|error| error.during(OP))?;
        self.invoke()
    }

    /// How many threads compute the next run, the calling one included: at most, where operators have as many as pay.
    #[must_use]
    pub fn threads(&self) -> usize {
        let pool = self.options.threadpool.as_ref();
        pool.filter(|_| !self.computes_alone()).map_or(1, |pool| pool.threads())
    }

    fn computes_alone(&self) -> bool {
        self.trial.as_ref().is_some_and(|trial| trial.threads() == Threads::One)
    }

    /// Where threads are to be tried. XNNPACK takes the times of a profile only where it runs all operators.
    fn new_trial(&self) -> Option<Trial> {
        let compiled = self.compiled.as_ref().filter(|_| self.options.tries_alone)?;
        self.options.threadpool.as_ref()?;
        let operators = if self.options.profiling {
            1
        } else {
            // SAFETY: the runtime is live.
            unsafe { sys::count_operators(compiled.raw.as_ptr()) }
        };
        Some(Trial::new(operators))
    }

    /// Has XNNPACK cut operators into tiles for the threads of the next run, where those are others than before.
    fn take_threads(&mut self) -> Result<()> {
        let alone = self.computes_alone();
        let Some(compiled) = self.compiled.as_ref().filter(|_| alone != self.alone) else {
            return Ok(());
        };
        let pool = self.options.threadpool.as_ref().filter(|_| !alone);
        // SAFETY: the runtime is live and is reshaped next; the options keep the pool.
        unsafe {
            sys::set_threads(
                compiled.raw.as_ptr(),
                pool.map_or(ptr::null_mut(), |pool| pool.raw()),
            );
        }
        self.alone = alone;
        self.stage = Stage::Shaped;
        self.apply_shapes().map_err(|error| error.during("change threads"))
    }

    /// Time that each operator took in the last run.
    ///
    /// # Errors
    /// [`RuntimeOptions::profiling`] is off, or nothing has run.
    pub fn profile(&self) -> Result<Vec<OperatorTiming>> {
        const OP: &str = "read profile";
        let (Some(compiled), Stage::Ready) = (&self.compiled, self.stage) else {
            return Err(Error::state("nothing has run with the present shapes").during(OP));
        };
        // SAFETY: the runtime is live.
        unsafe { profile::read(compiled.raw.as_ptr()) }.map_err(|error| error.during(OP))
    }

    fn bind(&mut self, bindings: &mut [Binding<'_>]) -> Result<()> {
        self.start_binding()?;
        for binding in bindings {
            let (id, is_input, extent) = match binding {
                Binding::Input(id, slice) => (*id, true, slice.extent()),
                Binding::Output(id, slice) => (*id, false, slice.extent()),
            };
            let position =
                self.position(id).ok_or_else(|| Error::invalid(format!("{id} is not external")))?;
            self.externals[position].accept(is_input, extent)?;
            self.point(position, extent.start.as_ptr().cast());
        }
        self.finish_binding()
    }

    fn start_binding(&mut self) -> Result<()> {
        if self.stage == Stage::Unshaped {
            return Err(Error::state("shapes are not set; call `reshape` first"));
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

    /// Runs with the pointers that have just been bound.
    fn invoke(&mut self) -> Result<()> {
        const OP: &str = "run";
        self.take_threads()?;
        let Some(compiled) = &self.compiled else {
            return Err(Error::state("the last reshape failed").during(OP));
        };
        // A workspace of its own has no other users.
        let workspace = self.options.workspace.as_ref().map(Workspace::lock);
        if let Some(workspace) = &workspace {
            workspace.usable().map_err(|error| error.during(OP))?;
        }
        if self.stage != Stage::Ready {
            // SAFETY: the runtime is live, reshaped, and its workspace is locked or its own; the pointers are
            // those of all external tensors.
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
        // SAFETY: the runtime is live and set up, its workspace is locked or its own, and the memory of all
        // external tensors is borrowed (`run`) or vouched for (`run_raw`).
        let run_all = || check(OP, unsafe { sys::xnn_invoke_runtime(raw) });
        let one_by_one = !self.options.profiling;
        let run = |alone: &[bool], range| match one_by_one {
            // SAFETY: as above. A trial has as many operators as the runtime, and runs them in their order.
            true => check(OP, unsafe { sys::run_operators(raw, alone, range) }),
            false => run_all(),
        };
        let outcome = match &mut self.trial {
            Some(trial) => trial.run(run, Instant::now),
            None => run_all(),
        };
        if let Some(pool) =
            self.options.threadpool.as_ref().filter(|_| self.options.yield_workers && !self.alone)
        {
            pool.rest();
        }
        outcome
    }

    fn position(&self, id: ExternalId) -> Option<usize> {
        self.externals.binary_search_by_key(&id, |slot| slot.external.id).ok()
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime")
            .field("nodes", &self.subgraph.node_count())
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        self.discard();
    }
}

// SAFETY: a runtime belongs to no thread in particular, and what it shares with others (workspace,
// weights cache, pool) is locked. The raw pointers in `pointers` are only compared and passed on.
unsafe impl Send for Runtime {}
