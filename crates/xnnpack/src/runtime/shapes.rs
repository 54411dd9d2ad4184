//! Shapes of a runtime: requested by the caller, inferred, and passed on to XNNPACK.

use xnnpack_sys as sys;

use super::{Fp16, Runtime, Stage};
use crate::status::{Error, Result, check};
use crate::value::{ExternalId, Shape};

impl Runtime {
    /// Requests another shape for an input. It takes effect with [`Runtime::reshape`].
    ///
    /// # Errors
    /// `id` is not an input, or `dims` is not a valid shape for its type and quantization.
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

    /// Applies the requested shapes, infers those of all other tensors and plans memory. Does
    /// nothing if no shape has changed.
    ///
    /// If XNNPACK cannot reshape in place safely, the subgraph is compiled again, which also packs
    /// the weights again unless a [`WeightsCache`](crate::WeightsCache) has them.
    ///
    /// # Errors
    /// The shapes do not match the nodes, in which case other shapes can be tried; memory is
    /// exhausted; or the weights cache is not finalized.
    pub fn reshape(&mut self) -> Result<()> {
        const OP: &str = "reshape runtime";
        if self.stage != Stage::Unshaped {
            return Ok(());
        }
        if self.options.weights_cache.as_ref().is_some_and(|cache| !cache.is_finalized()) {
            return Err(Error::state("the weights cache is not finalized").during(OP));
        }
        let shapes = self.subgraph.infer(self.requested_shapes())?;
        let sizes = self.subgraph.sizes(&shapes)?;
        let rewritten = self.options.sparse || self.options.fp16 != Fp16::Never;
        if rewritten && shapes != self.shapes {
            log::debug!("compiling again: nodes may run in another layout or arithmetic");
            self.discard();
        } else if let Some(node) = self.subgraph.stuck_node(&self.shapes, &shapes, &self.peaks) {
            log::debug!("compiling again: {node} cannot be reshaped in place");
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
            self.divided_for = None;
            self.peaks.fill(0);
        }
        self.trial = self.new_trial();
        self.set_threads();
        self.apply_shapes().map_err(|error| error.during(OP))?;
        for (peak, bytes) in self.peaks.iter_mut().zip(sizes) {
            *peak = bytes.max(*peak);
        }
        self.stage = Stage::Shaped;
        Ok(())
    }

    /// Checks the requested shapes against the nodes without applying them. Until
    /// [`Runtime::reshape`] succeeds, runs are refused.
    ///
    /// # Errors
    /// The shapes do not match the nodes.
    pub fn check_shapes(&mut self) -> Result<()> {
        self.stage = Stage::Unshaped;
        self.subgraph.infer(self.requested_shapes()).map(drop)
    }

    fn requested_shapes(&self) -> Vec<Option<Shape>> {
        let mut shapes = self.subgraph.defined_shapes();
        for slot in self.externals.iter().filter(|slot| slot.external.is_input) {
            shapes[slot.value] = Some(slot.pending);
        }
        shapes
    }

    /// Passes the present shapes to XNNPACK, which plans memory.
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
            // SAFETY: the runtime is live and its workspace is locked; all shapes are inferred, and
            // every node was checked with them.
            .and_then(|()| check("reshape", unsafe { sys::xnn_reshape_runtime(raw) }));
        if outcome.is_err() {
            // Memory may have moved, and other runtimes may hold pointers to the old memory.
            workspace.broken = workspace.users > 1;
            drop(workspace);
            self.discard();
        }
        outcome
    }
}
