//! Resizing of inputs.

use std::sync::Arc;

use xnn_interp::ErrorKind;
use xnn_lower::embedded_graph;
use xnn_model::{Model, SubgraphId};
use xnn_runtime::TensorInfo;

use super::tensors::inputs;
use super::{Engine, Runner, RunnerOptions};
use crate::error::Error;
use crate::tensor::TensorKey;
use crate::tensor_spec::TensorSpec;

/// A subgraph with the shapes that a runner was made for.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    pub model: Model,
    pub subgraph: SubgraphId,
    pub options: RunnerOptions,
}

impl Runner {
    /// Gives one input other dimensions. See [`Runner::resize_inputs`].
    ///
    /// # Errors
    ///
    /// See [`Runner::resize_inputs`].
    pub fn resize_input<'k>(
        &mut self,
        key: impl Into<TensorKey<'k>>,
        dims: &[usize],
    ) -> Result<(), Error> {
        self.resize_inputs(&[(key.into(), dims)])
    }

    /// Gives inputs other dimensions, all at once, because the shape of one may depend on that of another. These inputs lose
    /// their values, others keep them. State of the model is reset.
    ///
    /// The model is lowered again, because sizes and paddings in lowered graphs depend on shapes. Packed weights are kept if
    /// XNNPACK runs all operators. Blobs, and graphs in a model, cannot be lowered again: their constants, such as sizes of
    /// slices, do not change.
    ///
    /// # Errors
    ///
    /// There is no such input, the model cannot be computed with these dimensions, or a limit is exceeded. The runner is
    /// unchanged then.
    pub fn resize_inputs<'k, K>(&mut self, dims: &[(K, &[usize])]) -> Result<(), Error>
    where
        K: Into<TensorKey<'k>> + Copy,
    {
        let mut changed: Vec<(usize, &[usize])> = Vec::with_capacity(dims.len());
        let mut is_same = true;
        for &(key, dims) in dims {
            let (index, spec) = inputs(&self.inputs).find(key.into())?;
            is_same &= spec.dims == dims;
            changed.push((index, dims));
        }
        if is_same { Ok(()) } else { self.resize(&changed) }
    }

    fn resize(&mut self, dims: &[(usize, &[usize])]) -> Result<(), Error> {
        if let Some(origin) = &self.origin {
            let origin = origin.resized(dims)?;
            *self = self.lowered_again(origin)?;
            return Ok(());
        }
        match &mut self.engine {
            Engine::Whole(session) => {
                for (index, dims) in dims {
                    if let Some(spec) = self.inputs.get(*index) {
                        xnn_interp::check_size(spec.dtype, dims, &self.limits)?;
                    }
                }
                session.resize_inputs(dims.iter().copied())?;
                adopt(&mut self.inputs, session.inputs());
                adopt(&mut self.outputs, session.outputs());
            }
            Engine::Partial(interpreter) => {
                for (index, dims) in dims {
                    interpreter.resize_input(*index, dims)?;
                    if let Some(spec) = self.inputs.get_mut(*index) {
                        spec.dims = dims.to_vec();
                    }
                }
            }
        }
        Ok(())
    }

    /// A runner of the same model with other shapes. Inputs whose shape does not change keep their values.
    fn lowered_again(&mut self, mut origin: Origin) -> Result<Self, Error> {
        if let Engine::Whole(session) = &self.engine {
            origin.options.program.similar = Some(session.program().clone());
        }
        let mut fresh = Self::of_subgraph(origin.model, origin.subgraph, &origin.options)?;
        let same = |(old, new): (&TensorSpec, &TensorSpec)| old.dims == new.dims;
        let kept: Vec<bool> = self.inputs.iter().zip(&fresh.inputs).map(same).collect();
        for (index, _) in kept.into_iter().enumerate().filter(|(_, kept)| *kept) {
            let memory = (self.input_bytes_mut(index), fresh.input_bytes_mut(index));
            if let (Ok(from), Ok(to)) = memory
                && from.len() == to.len()
            {
                to.copy_from_slice(from);
            }
        }
        fresh.session.clone_from(&self.session);
        fresh.cancel = self.cancel.clone();
        if let Engine::Partial(interpreter) = &mut fresh.engine {
            interpreter.set_cancel_flag(self.cancel.clone());
        }
        Ok(fresh)
    }
}

impl Origin {
    /// Whether the subgraph holds no lowered graphs.
    pub fn can_be_lowered(&self) -> bool {
        let graph = self.model.subgraphs.get(self.subgraph);
        graph.is_some_and(|graph| {
            graph.operators.iter().all(|operator| embedded_graph(&operator.op).is_none())
        })
    }

    /// The subgraph with other dimensions of inputs.
    pub fn resized(&self, dims: &[(usize, &[usize])]) -> Result<Self, Error> {
        let mut origin = self.clone();
        let graph = origin.model.subgraphs.get_mut(self.subgraph).map(Arc::make_mut);
        let graph = graph.ok_or_else(|| missing("subgraph", self.subgraph))?;
        let mut given = 0u64;
        for &(index, dims) in dims {
            let tensor = graph.inputs.get(index).and_then(|&id| graph.tensors.get_mut(id));
            let tensor = tensor.ok_or_else(|| missing("input", index))?;
            xnn_interp::check_size(tensor.dtype, dims, &self.options.limits)?;
            tensor.shape = Some(dims.to_vec());
            given = given.saturating_add(tensor.byte_size().unwrap_or(0) as u64);
        }
        // The caller provides these inputs, so their size counts for the limits.
        origin.options.limits.amplification.inputs = given;
        Ok(origin)
    }
}

fn missing(what: &str, index: usize) -> Error {
    xnn_interp::Error::from(ErrorKind::Invalid(format!("there is no {what} {index}"))).into()
}

fn adopt(specs: &mut [TensorSpec], infos: &[TensorInfo]) {
    for (spec, info) in specs.iter_mut().zip(infos) {
        spec.dims.clone_from(&info.dims);
    }
}
