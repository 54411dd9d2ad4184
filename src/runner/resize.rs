//! Other shapes of inputs.

use std::sync::Arc;

use xnn_interp::ErrorKind;
use xnn_lower::embedded_graph;
use xnn_model::{Model, SubgraphId};
use xnn_runtime::TensorInfo;

use super::{Engine, Runner, RunnerOptions};
use crate::error::Error;
use crate::tensor_spec::TensorSpec;

/// A subgraph, with the shapes that a runner is for.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    pub model: Model,
    pub subgraph: SubgraphId,
    pub options: RunnerOptions,
}

impl Runner {
    /// Gives inputs, named by position, other dimensions; all at once, since
    /// the shape of one may follow from that of another. Their contents are
    /// lost, those of others are kept. State that the model keeps begins anew.
    ///
    /// The model is lowered anew, since sizes and paddings in lowered graphs follow from shapes; packed weights are kept
    /// where XNNPACK runs all of it. A blob has no model to lower, nor have graphs that a model holds: what they have as
    /// constants, sizes of slices among them, stays.
    ///
    /// # Errors
    ///
    /// There is no such input, the model cannot be computed with these
    /// dimensions, or a limit is reached. Everything is then as before.
    pub fn resize_inputs(&mut self, dims: &[(usize, &[usize])]) -> Result<(), Error> {
        let is_same = |(index, dims): &(usize, &[usize])| {
            self.inputs.get(*index).is_some_and(|spec| spec.dims == *dims)
        };
        if dims.iter().all(is_same) {
            return Ok(());
        }
        if let Some(origin) = &self.origin {
            let origin = origin.resized(dims)?;
            *self = self.lowered_anew(origin)?;
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

    /// A runner of the same model with other shapes, that inputs of the same shapes go on in.
    fn lowered_anew(&mut self, mut origin: Origin) -> Result<Self, Error> {
        if let Engine::Whole(session) = &self.engine {
            origin.options.program.similar = Some(session.program().clone());
        }
        let mut fresh = Self::of_subgraph(origin.model, origin.subgraph, &origin.options)?;
        let same = |(old, new): (&TensorSpec, &TensorSpec)| old.dims == new.dims;
        let kept: Vec<bool> = self.inputs.iter().zip(&fresh.inputs).map(same).collect();
        for (index, _) in kept.into_iter().enumerate().filter(|(_, kept)| *kept) {
            let (from, to) = (self.input_mut(index), fresh.input_mut(index));
            if from.len() == to.len() {
                to.copy_from_slice(from);
            }
        }
        fresh.cancel = self.cancel.clone();
        if let Engine::Partial(interpreter) = &mut fresh.engine {
            interpreter.set_cancel_flag(self.cancel.clone());
        }
        Ok(fresh)
    }
}

impl Origin {
    /// Whether no graphs are in the place of what they were lowered from.
    pub fn can_be_lowered(&self) -> bool {
        let graph = self.model.subgraphs.get(self.subgraph);
        graph.is_some_and(|graph| {
            graph.operators.iter().all(|operator| embedded_graph(&operator.op).is_none())
        })
    }

    /// The same with other dimensions of inputs.
    fn resized(&self, dims: &[(usize, &[usize])]) -> Result<Self, Error> {
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
        // Of a model's inputs these alone are known to be there.
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
