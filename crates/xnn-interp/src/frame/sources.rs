//! Tensors that a step can read.

use xnn_model::TensorId;

use super::value::Value;
use crate::arena::Parts;
use crate::execution_plan::SubgraphPlan;
use crate::resources::Variables;
use crate::storage::{Line, PaddedRef};
use crate::tensor::TensorView;

/// The tensors that a step can read while it writes others.
pub(crate) struct Sources<'a> {
    pub(super) values: Parts<'a, Value>,
    pub(super) lines: Parts<'a, Line>,
    variables: &'a Variables,
}

impl<'a> Sources<'a> {
    /// No tensors; [`Frame::open`](super::Frame::open) adds them.
    pub(crate) fn new(variables: &'a Variables) -> Self {
        Self { values: Parts::new(), lines: Parts::new(), variables }
    }

    /// A tensor of the frame.
    pub(crate) fn padded(&self, id: TensorId) -> Option<PaddedRef<'a>> {
        let value = self.values.get(id..id + 1)?.first().filter(|value| value.exists)?;
        value.padded(self.variables, |place| self.lines.get(place))
    }

    /// A tensor of the frame, or a constant of the subgraph.
    pub(crate) fn tensor(&self, graph: &'a SubgraphPlan, id: TensorId) -> Option<TensorView<'a>> {
        match self.padded(id) {
            Some(value) => Some(value.view()),
            None => graph.constant(id),
        }
    }
}
