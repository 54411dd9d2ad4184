//! XNNPACK's runtime object: made, given shapes, destroyed.

use std::ptr::{self, NonNull};

use xnnpack_sys as sys;

use super::{Runtime, Stage};
use crate::fp16_weights::{Halves, Widened};
use crate::status::{Error, Result, check};
use crate::subgraph::lower::RawSubgraph;
use crate::weights_cache::WeightsCache;
use crate::weights_cache::probe::packed_size;

/// XNNPACK's runtime object.
pub(super) struct Compiled {
    pub(super) raw: NonNull<sys::xnn_runtime>,
    /// Weights that it may read at any time: there is no cache to tell when it has packed them.
    _widened: Vec<Widened>,
}

impl Drop for Compiled {
    fn drop(&mut self) {
        // SAFETY: the runtime is live. Whoever drops it holds the lock of its workspace.
        unsafe { sys::xnn_delete_runtime(self.raw.as_ptr()) };
    }
}

impl Runtime {
    /// Tells XNNPACK the present shapes and lets it plan memory.
    pub(super) fn apply_shapes(&mut self) -> Result<()> {
        let Some(compiled) = &self.compiled else {
            return Err(Error::state("the subgraph is not compiled"));
        };
        let raw = compiled.raw.as_ptr();
        let mut workspace = self.workspace.lock();
        workspace.usable()?;
        let outcome = self
            .externals
            .iter()
            .zip(&self.pointers)
            .filter(|(slot, _)| slot.external.is_input)
            .try_for_each(|(slot, pointer)| {
                let shape = slot.external.shape;
                // SAFETY: the runtime is live; the shape has at most `MAX_DIMS` dimensions.
                check("reshape input", unsafe {
                    sys::xnn_reshape_external_value(raw, pointer.id, shape.len(), shape.as_ptr())
                })
            })
            // SAFETY: the runtime is live and its workspace is locked; the shapes are inferred and
            // checked for every node.
            .and_then(|()| check("reshape", unsafe { sys::xnn_reshape_runtime(raw) }));
        if outcome.is_err() {
            // Memory may have moved without all runtimes having followed.
            workspace.broken = workspace.users > 1;
            drop(workspace);
            self.discard();
        }
        outcome
    }

    /// Creates XNNPACK's runtime for the present shapes.
    pub(super) fn compile(&self) -> Result<Compiled> {
        const OP: &str = "create runtime";
        let mut workspace = self.workspace.lock();
        workspace.usable().map_err(|error| error.during(OP))?;
        workspace.admit(self.subgraph.has_persistent()).map_err(|error| error.during(OP))?;
        let options = &self.options;
        let create = || {
            // XNNPACK changes what it creates a runtime from.
            let graph = RawSubgraph::new(&self.subgraph, &self.shapes)?;
            let widened = match &options.weights_cache {
                Some(_) => Vec::new(),
                None => self.subgraph.halves().map(Halves::widen).collect(),
            };
            let mut raw = ptr::null_mut();
            // SAFETY: all handles are live and stay so: `self` keeps subgraph, cache, workspace and
            // pool as long as the runtime. The workspace is locked.
            check(OP, unsafe {
                sys::xnn_create_runtime_v4(
                    graph.raw(),
                    options.weights_cache.as_ref().map_or(ptr::null_mut(), WeightsCache::raw),
                    self.workspace.raw(),
                    options.threadpool.as_ref().map_or(ptr::null_mut(), |pool| pool.raw()),
                    options.flags(&self.subgraph),
                    &raw mut raw,
                )
            })?;
            let compiled = NonNull::new(raw).map(|raw| Compiled { raw, _widened: widened });
            compiled.ok_or_else(|| Error::state("no runtime").during(OP))
        };
        let compiled = match &options.weights_cache {
            Some(cache) => cache.creating(&self.subgraph, create, |node, seed| {
                let flags = options.flags(&self.subgraph);
                packed_size(&self.subgraph, &self.shapes, node, seed, flags, &self.workspace)
            }),
            None => create(),
        }
        .map_err(|error| error.during(OP))?;
        workspace.users += 1;
        workspace.persistent |= self.subgraph.has_persistent();
        Ok(compiled)
    }

    /// Destroys XNNPACK's runtime.
    pub(super) fn discard(&mut self) {
        let mut workspace = self.workspace.lock();
        if self.compiled.take().is_some() {
            workspace.users -= 1;
            workspace.persistent &= !self.subgraph.has_persistent();
        }
        drop(workspace);
        self.stage = Stage::Unshaped;
    }
}
