//! Observation of a run, step by step.

use xnn_model::{Subgraph, SubgraphId, TensorId};

use crate::execution_plan::{Step, SubgraphPlan};
use crate::frame::Frame;
use crate::resources::Variables;
use crate::tensor::TensorView;

/// Operators that have just run, in any subgraph of a run; see
/// [`Interpreter::run_observed`](crate::Interpreter::run_observed).
pub struct Executed<'a> {
    pub(crate) graph: &'a SubgraphPlan,
    pub(crate) step: &'a Step,
    pub(crate) frame: &'a Frame,
    pub(crate) variables: &'a Variables,
}

/// A callback for every step of a run.
pub(crate) type Observer<'o> = dyn FnMut(&Executed<'_>) + 'o;

impl Executed<'_> {
    /// Index of the subgraph in the model.
    #[must_use]
    pub fn subgraph_id(&self) -> SubgraphId {
        self.graph.id
    }

    /// The subgraph, with the shapes that are known before a run.
    #[must_use]
    pub fn subgraph(&self) -> &Subgraph {
        &self.graph.subgraph
    }

    /// Indices of the operators in the subgraph: those of a partition, or a single one. A control
    /// operator is shown after the operators of the subgraphs that it runs.
    #[must_use]
    pub fn operators(&self) -> &[usize] {
        &self.step.set.operators
    }

    /// A tensor that the operators read or wrote, a constant, or another tensor that exists at the
    /// moment. Tensors that were moved to another subgraph or into a variable may be missing,
    /// unless [`keep_intermediates`](crate::InterpOptions::keep_intermediates) is set.
    #[must_use]
    pub fn tensor(&self, id: TensorId) -> Option<TensorView<'_>> {
        self.frame.tensor(self.graph, id, self.variables)
    }
}
