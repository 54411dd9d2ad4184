//! What a run shows of itself, step by step.

use xnn_model::{Subgraph, SubgraphId, TensorId};

use crate::frame::Frame;
use crate::program::{Graph, Step};
use crate::resources::Variables;
use crate::tensor::TensorView;

/// Operators that have just run, in any of the subgraphs that take part in a run; see
/// [`Interpreter::run_observed`](crate::Interpreter::run_observed).
pub struct Executed<'a> {
    pub(crate) graph: &'a Graph,
    pub(crate) step: &'a Step,
    pub(crate) frame: &'a Frame,
    pub(crate) variables: &'a Variables,
}

/// What sees every step of a run.
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

    /// Indices of the operators in the subgraph: those of a partition, or a single one. The operators of
    /// the subgraphs that it calls have run, and been shown, before it.
    #[must_use]
    pub fn operators(&self) -> &[usize] {
        &self.step.part.operators
    }

    /// A tensor that the operators read or gave, or a constant; of others, those that exist at the moment. What
    /// went to another subgraph or into a variable may be gone, unless
    /// [`keep_intermediates`](crate::InterpOptions::keep_intermediates) is set.
    #[must_use]
    pub fn tensor(&self, id: TensorId) -> Option<TensorView<'_>> {
        self.frame.tensor(self.graph, id, self.variables)
    }
}
