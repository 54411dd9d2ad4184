//! Shapes of what steps give, inferred when the shapes of what they take change.

use std::borrow::Cow;
use std::collections::BTreeMap;

use smallvec::SmallVec;
use xnn_model::infer::{Fact, OutputShape};
use xnn_model::{Operator, Shape, TensorId, infer_op_shapes, work};

use crate::INLINE;
use crate::delegate::Partition;
use crate::error::Error;
use crate::frame::Frame;
use crate::program::Graph;
use crate::resources::Variables;

/// The shapes of what a step gives, with what they follow from.
#[derive(Debug, Default)]
pub(crate) struct Shapes {
    basis: Basis,
    /// One per output of the step.
    pub(crate) outputs: Vec<OutputShape>,
    /// Whether no output has elements.
    pub(crate) is_empty: bool,
    /// Whether only the kernel knows the shape of some output.
    pub(crate) is_open: bool,
    /// See [`xnn_model::work`].
    pub(crate) work: u64,
}

#[derive(Debug, Default)]
enum Basis {
    /// Nothing has been inferred yet.
    #[default]
    None,
    /// These shapes of the step's inputs; constants are left out.
    Shapes(Vec<Option<Vec<usize>>>),
    /// Values, which may be others in every run.
    Values,
}

/// What inference sees of tensors that are no constants.
#[derive(Clone, Copy, PartialEq)]
enum Sight {
    Shapes,
    Values,
}

impl Shapes {
    /// Whether the outputs have their shapes already, from a run on inputs of the
    /// same shapes.
    pub(crate) fn are_settled(&self, graph: &Graph, part: &Partition, frame: &Frame) -> bool {
        self.are_current(part, frame)
            && part.outputs.iter().zip(&self.outputs).all(|(&id, shape)| match shape {
                OutputShape::Known(shape) => {
                    frame.is_prepared(id, graph.subgraph.tensor(id).dtype, shape)
                }
                _ => false,
            })
    }

    fn are_current(&self, part: &Partition, frame: &Frame) -> bool {
        let Basis::Shapes(inputs) = &self.basis else { return false };
        let mut pairs = inputs.iter().zip(&part.inputs);
        pairs.all(|(shape, &id)| match (shape, frame.shape(id)) {
            (Some(shape), Some(now)) => are_equal(shape, now),
            (None, None) => true,
            _ => false,
        })
    }

    /// Brings the shapes up to date.
    pub(crate) fn update(
        &mut self,
        graph: &Graph,
        part: &Partition,
        frame: &Frame,
        variables: &Variables,
    ) -> Result<(), Error> {
        if self.are_current(part, frame) {
            return Ok(());
        }
        let inferred = match self.basis {
            Basis::Values => None,
            Basis::None | Basis::Shapes(_) => {
                Some(infer(graph, part, frame, variables, Sight::Shapes)?)
            }
        };
        self.outputs = match &inferred {
            Some(outputs) if !outputs.contains(&OutputShape::Dynamic) => outputs.clone(),
            _ => infer(graph, part, frame, variables, Sight::Values)?,
        };
        // Values that tell nothing more, as where only the operators inside of a partition know them, are not looked at
        // again.
        self.basis = if inferred.is_some_and(|outputs| outputs == self.outputs) {
            let shapes = part.inputs.iter().map(|&id| frame.shape(id).map(<[usize]>::to_vec));
            Basis::Shapes(shapes.collect())
        } else {
            Basis::Values
        };
        let is_empty =
            |shape: &OutputShape| matches!(shape, OutputShape::Known(s) if s.contains(&0));
        self.is_open = self.outputs.iter().any(|shape| !matches!(shape, OutputShape::Known(_)));
        self.work = self.work(graph, part, frame, variables);
        self.is_empty = !self.outputs.is_empty() && self.outputs.iter().all(is_empty);
        Ok(())
    }

    /// What a run of the operator takes; a partition's is its own to say.
    fn work(&self, graph: &Graph, part: &Partition, frame: &Frame, variables: &Variables) -> u64 {
        let &[index] = part.operators.as_slice() else { return 0 };
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

/// Whether two shapes are the same. Most have few dimensions, for which calling a function takes longer than comparing.
pub(crate) fn are_equal(a: &[usize], b: &[usize]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a == b)
}

/// The shapes of what a set of operators gives.
fn infer<'a>(
    graph: &'a Graph,
    part: &Partition,
    frame: &'a Frame,
    variables: &'a Variables,
    sight: Sight,
) -> Result<Vec<OutputShape>, Error> {
    let mut shapes: BTreeMap<TensorId, OutputShape> = BTreeMap::new();
    for &index in &part.operators {
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
            if !part.inputs.contains(&id) && !graph.subgraph.tensor(id).is_constant() {
                // The delegate alone knows it.
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
    let outputs = part.outputs.iter();
    Ok(outputs.map(|id| shapes.remove(id).unwrap_or(OutputShape::Dynamic)).collect())
}
