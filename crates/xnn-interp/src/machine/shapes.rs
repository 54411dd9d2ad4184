//! Inference of the shapes of a step's outputs when its inputs' shapes change.

use std::borrow::Cow;
use std::collections::BTreeMap;

use smallvec::SmallVec;
use xnn_model::infer::{Fact, OutputShape};
use xnn_model::{Operator, Shape, TensorId, infer_op_shapes, work};

use crate::delegate::OperatorSet;
use crate::dims::{INLINE, are_equal};
use crate::error::Error;
use crate::execution_plan::SubgraphPlan;
use crate::frame::{Basis, Frame, Shapes};
use crate::resources::Variables;

/// How much inference may use of tensors that are not constant.
#[derive(Clone, Copy, PartialEq)]
enum Sight {
    Shapes,
    Values,
}

impl Shapes {
    /// Whether the outputs already have their shapes, from a run with inputs of the same shapes.
    pub(crate) fn are_settled(
        &self,
        graph: &SubgraphPlan,
        set: &OperatorSet,
        frame: &Frame,
    ) -> bool {
        self.are_current(set, frame)
            && set.outputs.iter().zip(&self.outputs).all(|(&id, shape)| match shape {
                OutputShape::Known(shape) => {
                    frame.is_prepared(id, graph.subgraph.tensor(id).dtype, shape)
                }
                _ => false,
            })
    }

    fn are_current(&self, set: &OperatorSet, frame: &Frame) -> bool {
        let Basis::Shapes(inputs) = &self.basis else { return false };
        let mut pairs = inputs.iter().zip(&set.inputs);
        pairs.all(|(shape, &id)| match (shape, frame.shape(id)) {
            (Some(shape), Some(now)) => are_equal(shape, now),
            (None, None) => true,
            _ => false,
        })
    }

    /// Updates the shapes.
    pub(crate) fn update(
        &mut self,
        graph: &SubgraphPlan,
        set: &OperatorSet,
        frame: &Frame,
        variables: &Variables,
    ) -> Result<(), Error> {
        if self.are_current(set, frame) {
            return Ok(());
        }
        let inferred = match self.basis {
            Basis::Values => None,
            Basis::None | Basis::Shapes(_) => {
                Some(infer(graph, set, frame, variables, Sight::Shapes)?)
            }
        };
        self.outputs = match &inferred {
            Some(outputs) if !outputs.contains(&OutputShape::Dynamic) => outputs.clone(),
            _ => infer(graph, set, frame, variables, Sight::Values)?,
        };
        // If values make no difference, as when only operators inside of a partition depend on
        // them, they are not read again.
        self.basis = if inferred.is_some_and(|outputs| outputs == self.outputs) {
            let shapes = set.inputs.iter().map(|&id| frame.shape(id).map(<[usize]>::to_vec));
            Basis::Shapes(shapes.collect())
        } else {
            Basis::Values
        };
        let is_empty =
            |shape: &OutputShape| matches!(shape, OutputShape::Known(s) if s.contains(&0));
        self.is_open = self.outputs.iter().any(|shape| !matches!(shape, OutputShape::Known(_)));
        self.work = self.work(graph, set, frame, variables);
        self.is_empty = !self.outputs.is_empty() && self.outputs.iter().all(is_empty);
        Ok(())
    }

    /// Work of the operator. A partition reports its own.
    fn work(
        &self,
        graph: &SubgraphPlan,
        set: &OperatorSet,
        frame: &Frame,
        variables: &Variables,
    ) -> u64 {
        let &[index] = set.operators.as_slice() else { return 0 };
        let Operator { op, inputs, .. } = graph.operator(index);
        let shape = |id: &Option<TensorId>| Some(frame.tensor(graph, (*id)?, variables)?.shape);
        let inputs: SmallVec<[Shape<'_>; INLINE]> = inputs.iter().map(shape).collect();
        let outputs: SmallVec<[Shape<'_>; INLINE]> = self.outputs.iter().map(known).collect();
        work(op, &inputs, &outputs)
    }
}

/// The shape, if inference knows it.
fn known(shape: &OutputShape) -> Shape<'_> {
    match shape {
        OutputShape::Known(shape) => Some(shape),
        OutputShape::Dynamic | OutputShape::Stated => None,
    }
}

/// Infers the shapes of a set's outputs.
fn infer<'a>(
    graph: &'a SubgraphPlan,
    set: &OperatorSet,
    frame: &'a Frame,
    variables: &'a Variables,
    sight: Sight,
) -> Result<Vec<OutputShape>, Error> {
    let mut shapes: BTreeMap<TensorId, OutputShape> = BTreeMap::new();
    for &index in &set.operators {
        let operator = graph.operator(index);
        let facts = operator.inputs.iter().map(|id| {
            let id = (*id)?;
            let dtype = graph.subgraph.tensor(id).dtype;
            if let Some(inferred) = shapes.get(&id) {
                let shape = match inferred {
                    OutputShape::Known(shape) => Some(Cow::Borrowed(shape.as_slice())),
                    _ => None,
                };
                return Some(Fact { dtype, shape, data: None });
            }
            if !set.inputs.contains(&id) && !graph.subgraph.tensor(id).is_constant() {
                // Only the delegate knows the tensor.
                return Some(Fact { dtype, shape: None, data: None });
            }
            let view = frame.tensor(graph, id, variables)?;
            let fact = Fact::known(view.dtype, view.shape, view.bytes);
            let hidden = sight == Sight::Shapes && frame.exists(id);
            Some(if hidden { Fact { data: None, ..fact } } else { fact })
        });
        let facts: Vec<Option<Fact<'_>>> = facts.collect();
        let inferred = infer_op_shapes(&operator.op, &facts, operator.outputs.len())?;
        shapes.extend(operator.outputs.iter().copied().zip(inferred));
    }
    let outputs = set.outputs.iter();
    Ok(outputs.map(|id| shapes.remove(id).unwrap_or(OutputShape::Dynamic)).collect())
}
