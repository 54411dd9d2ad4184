//! Runners behind other interfaces of interpreters: any subgraph, with given shapes, and tensors and state of it.

use xnn_interp::TensorView;
use xnn_model::{Model, SubgraphId, TensorId};

use super::resize::Origin;
use super::{Engine, Runner};
use crate::error::Error;
use crate::options::RunnerOptions;

impl Runner {
    /// Makes a subgraph of a model ready to run. `dims` are the dimensions of inputs by position; the other inputs have the
    /// model's.
    ///
    /// ```
    /// use xnn_delegate::{Model, Runner, RunnerOptions};
    ///
    /// # fn main() -> Result<(), xnn_delegate::Error> {
    /// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/models/digits_mobilenet_v2_fp32.tflite");
    /// let model = Model::open(path)?;
    /// let one = Runner::of_subgraph_with(&model, 0, &[], &RunnerOptions::default())?;
    /// let mut dims = one.inputs()[0].dims.clone();
    /// dims[0] = 2;
    /// let two = Runner::of_subgraph_with(&model, 0, &[(0, &dims)], &RunnerOptions::default())?;
    /// assert_eq!(two.outputs()[0].dims[0], 2);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// There is no such subgraph or input, or an error of [`Runner::from_model`].
    pub fn of_subgraph_with(
        model: &Model,
        subgraph: SubgraphId,
        dims: &[(usize, &[usize])],
        options: &RunnerOptions,
    ) -> Result<Self, Error> {
        let origin = Origin { model: model.clone(), subgraph, options: options.clone() };
        let origin = if dims.is_empty() { origin } else { origin.resized(dims)? };
        if origin.model.subgraphs.get(subgraph).is_none() {
            return Err(super::resize::missing("subgraph", subgraph));
        }
        Self::of_subgraph(origin.model, subgraph, &origin.options)
    }

    /// Dimensions of a tensor of the subgraph as they are known before a run; `None` for a blob and for dimensions that only
    /// a run tells.
    #[must_use]
    pub fn dims_of(&self, tensor: TensorId) -> Option<&[usize]> {
        self.graph()?.tensors.get(tensor)?.shape.as_deref()
    }

    /// Value of a tensor of the subgraph, if it has one at the moment: inputs, outputs, variables and constants of a model
    /// that is not fully delegated.
    #[must_use]
    pub fn value_of(&self, tensor: TensorId) -> Option<TensorView<'_>> {
        self.interpreter()?.tensor(tensor)
    }

    /// Moves the values of resource variables and hash tables from a runner of another subgraph of the same model. Called
    /// before each run, with every other runner, it gives all of them one state.
    pub fn adopt_state(&mut self, other: &mut Self) {
        if let (Engine::Partial(mine), Engine::Partial(theirs)) =
            (&mut self.engine, &mut other.engine)
        {
            mine.adopt_state(theirs);
        }
    }
}
