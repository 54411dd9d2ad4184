//! Subgraphs compiled by XNNPACK.

mod compiled;
mod external;
mod options;
mod run;
mod shapes;
mod trial;

use std::fmt;
use std::ptr;
use std::sync::Arc;

use xnnpack_sys as sys;

pub use external::{Binding, External};
pub use options::{Fp16, RuntimeOptions};
pub use run::RawRun;

use crate::buffer::{EXTRA_BYTES, SPARSE_EXTRA_BYTES};
use crate::profile::{self, OperatorTiming};
use crate::status::{Error, Result};
use crate::subgraph::Subgraph;
use crate::value::{ExternalId, Shape};
use crate::workspace::Workspace;
use compiled::Compiled;
use external::{Slot, slots};
use trial::Trial;

/// A subgraph compiled for the processor, with the memory to run it.
///
/// After [`Runtime::new`], and after changing the shape of an input, [`Runtime::reshape`] must
/// succeed before [`Runtime::run`].
pub struct Runtime {
    /// Dropped first, in `Drop`, since it points to the other fields. `None` after a failed
    /// reshape.
    compiled: Option<Compiled>,
    subgraph: Arc<Subgraph>,
    options: RuntimeOptions,
    workspace: Workspace,
    /// Shapes of all tensors after the last successful reshape, initially as inferred.
    shapes: Vec<Option<Shape>>,
    /// Maximal size in bytes of each tensor since compilation.
    peaks: Vec<usize>,
    /// External tensors, sorted by id.
    externals: Vec<Slot>,
    /// Pointers that XNNPACK was last given, in the order of `externals`.
    pointers: Vec<sys::xnn_external_value>,
    stage: Stage,
    /// Trial of threads with the present shapes.
    trial: Option<Trial>,
    /// Number of threads for which XNNPACK divides operators; `None` for all threads of the pool.
    divided_for: Option<usize>,
}

/// Preparation of a runtime for the present shapes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// XNNPACK has not been given the present shapes.
    Unshaped,
    /// Shapes are set and memory is planned.
    Shaped,
    /// Pointers are set as well.
    Ready,
}

impl Runtime {
    /// Compiles `subgraph`.
    ///
    /// # Errors
    /// No node computes an output; XNNPACK does not support a node with this combination of
    /// datatypes and parameters, or on this processor; or memory is exhausted.
    pub fn new(subgraph: impl Into<Arc<Subgraph>>, options: &RuntimeOptions) -> Result<Self> {
        let subgraph = subgraph.into();
        let sparse = options.sparse || subgraph.is_sparse();
        if sparse && options.weights_cache.is_some() {
            let reason =
                "sparse kernels modify their packed weights, so they cannot use a weights cache";
            return Err(Error::unsupported(reason).during("create runtime"));
        }
        if options.fp16 != Fp16::Never && options.weights_cache.is_some() {
            let reason = "computation in fp16 cannot use a weights cache, whose keys do not distinguish it from fp32";
            return Err(Error::unsupported(reason).during("create runtime"));
        }
        if options.fp16 == Fp16::Force && !subgraph.is_plain_f32() {
            let reason = "computation in fp16 requires that all tensors are fp32";
            return Err(Error::unsupported(reason).during("create runtime"));
        }
        subgraph.check_complete()?;
        if let Some(pool) = options.threadpool.as_ref().filter(|_| !options.fewest_first) {
            pool.start();
        }
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
            divided_for: None,
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

    /// The input or output with this id.
    #[must_use]
    pub fn external(&self, id: ExternalId) -> Option<&External> {
        self.position(id).map(|position| &self.externals[position].external)
    }

    /// Present shape of an input or output. Requested shapes take effect with [`Runtime::reshape`].
    #[must_use]
    pub fn external_shape(&self, id: ExternalId) -> Option<&[usize]> {
        self.external(id).map(|external| &*external.shape)
    }

    /// Returns the time that each operator took in the last run.
    ///
    /// # Errors
    /// [`RuntimeOptions::profiling`] is off, or no run with the present shapes has succeeded.
    pub fn profile(&self) -> Result<Vec<OperatorTiming>> {
        const OP: &str = "read profile";
        let (Some(compiled), Stage::Ready) = (&self.compiled, self.stage) else {
            return Err(Error::state("no run with the present shapes has succeeded").during(OP));
        };
        // SAFETY: the runtime is live.
        unsafe { profile::read(compiled.raw.as_ptr()) }.map_err(|error| error.during(OP))
    }

    fn compile(&self) -> Result<Compiled> {
        // SAFETY: `self` keeps all of them, and drops the runtime first.
        unsafe { Compiled::new(&self.subgraph, &self.shapes, &self.options, &self.workspace) }
    }

    /// Destroys XNNPACK's runtime.
    fn discard(&mut self) {
        let mut workspace = self.workspace.lock();
        if self.compiled.take().is_some() {
            workspace.users -= 1;
            workspace.persistent &= !self.subgraph.has_persistent();
        }
        drop(workspace);
        self.stage = Stage::Unshaped;
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

// SAFETY: a runtime is not bound to a thread, and objects shared with others (workspace, weights
// cache, pool) are locked. The raw pointers in `pointers` are only compared and passed on.
unsafe impl Send for Runtime {}
