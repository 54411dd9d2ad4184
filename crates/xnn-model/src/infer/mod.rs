//! Shape inference.
//!
//! The rules are those of TFLite's kernels. A rule sees what is known at the time: constants before
//! a run, for the partitioner, or all inputs, for an interpreter. A shape that is not known yet is
//! [`OutputShape::Dynamic`].

mod arrange;
mod custom;
mod index;
mod inputs;
mod math;
mod recurrent;
mod rules;
mod values;
mod window;

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;

use crate::error::Error;
use crate::graph::{Operator, Subgraph, Tensor};
use crate::op::Op;
use crate::sparse::unpack;
use crate::types::{TensorId, element_count};

pub use index::{StridedSlice, StridedSliceBounds};
pub use inputs::{Fact, OutputShape};
use inputs::{Inputs, Stop};
pub use math::{axes_of_reduction, axis_in_rank, broadcast_shapes};
use rules::apply;
pub use window::{SpatialWindow, Window};

/// Infers the shapes of all tensors of a subgraph.
///
/// Inferred shapes replace the shapes that the file states, as in TFLite. Shapes that depend on
/// unknown values become `None`. Small integer values (of a SHAPE, a slice of it, ...) are
/// propagated, so that the result of a RESHAPE to a computed shape is known.
///
/// Stated shapes of inputs that may be resized and of results of operators without a rule are used
/// unless they do not fit a later operator; the results of that operator are then unknown until a
/// run.
///
/// Sparse constants that operators read as weights become dense, see
/// [`densified`](crate::densified).
///
/// The subgraph is changed in place if this is the only reference; it is copied only if shapes
/// change.
///
/// # Errors
///
/// An operator does not accept the shapes of its inputs. The error names the operator.
pub fn infer_shapes(subgraph: Arc<Subgraph>) -> Result<Arc<Subgraph>, Error> {
    infer(subgraph).map(|inferred| inferred.subgraph)
}

/// Result of [`infer`].
#[derive(Clone, Debug)]
pub struct Inferred {
    /// The subgraph with inferred shapes.
    pub subgraph: Arc<Subgraph>,
    /// For each tensor, the elements (little endian) if an operator writes it and they are known
    /// before a run: small integer tensors that depend on shapes only. Callers may add others.
    pub values: Vec<Option<Bytes>>,
}

/// [`infer_shapes`], with the values propagated on the way.
///
/// # Errors
///
/// Returns the errors of [`infer_shapes`].
pub fn infer(mut subgraph: Arc<Subgraph>) -> Result<Inferred, Error> {
    unpack(&mut subgraph);
    let mut values: Vec<Option<Bytes>> = vec![None; subgraph.tensors.len()];
    // Tensors whose shapes depend on stated shapes, which may differ in a run.
    let mut is_stated = vec![false; subgraph.tensors.len()];
    for &input in &subgraph.inputs {
        if let (Some(stated), Some(tensor)) =
            (is_stated.get_mut(input), subgraph.tensors.get(input))
        {
            *stated = is_open(tensor);
        }
    }
    let mut found: Vec<(TensorId, Option<Vec<usize>>)> = Vec::new();
    for index in 0..subgraph.operators.len() {
        let operator = &subgraph.operators[index];
        let facts = facts_of(&subgraph, &values, operator);
        let follows =
            operator.inputs.iter().flatten().any(|&input| is_stated.get(input) == Some(&true));
        let shapes = match infer_op_shapes(&operator.op, &facts, operator.outputs.len()) {
            Err(_) if follows => vec![OutputShape::Dynamic; operator.outputs.len()],
            shapes => shapes.map_err(|e| e.in_operator(index, operator.op.name()))?,
        };
        let folded = values::fold(&operator.op, &facts, &shapes);
        for (&output, shape) in operator.outputs.iter().zip(shapes) {
            let Some(tensor) = subgraph.tensors.get(output) else { continue };
            is_stated[output] = follows || shape == OutputShape::Stated;
            let shape = match shape {
                OutputShape::Known(shape) => Some(shape),
                OutputShape::Dynamic => None,
                OutputShape::Stated if has_open_rank(tensor) => None,
                OutputShape::Stated => continue,
            };
            if tensor.shape != shape {
                found.push((output, shape));
            }
        }
        for (&output, data) in operator.outputs.iter().zip(folded.into_iter().flatten()) {
            if let Some(value) = values.get_mut(output) {
                *value = Some(data.into());
            }
        }
        if !found.is_empty() {
            let tensors = &mut Arc::make_mut(&mut subgraph).tensors;
            for (output, shape) in found.drain(..) {
                tensors[output].shape = shape;
            }
        }
    }
    Ok(Inferred { subgraph, values })
}

/// Whether an input may have other dimensions in a run than the file states. An input without
/// elements must have others to be useful.
fn is_open(tensor: &Tensor) -> bool {
    tensor.shape_signature.is_some()
        || tensor.shape.as_ref().is_some_and(|shape| shape.contains(&0))
}

/// Whether the file does not state the rank.
fn has_open_rank(tensor: &Tensor) -> bool {
    tensor.shape_signature.as_ref().is_some_and(Vec::is_empty)
}

fn facts_of<'a>(
    subgraph: &'a Subgraph,
    values: &'a [Option<Bytes>],
    operator: &Operator,
) -> Vec<Option<Fact<'a>>> {
    let fact = |id: usize| {
        let tensor = subgraph.tensors.get(id)?;
        let shape = tensor.shape.as_deref();
        let computed = values.get(id).and_then(Option::as_deref);
        // Readers mark empty tensors that no operator produces as constants
        // (`mark_empty_constants`). An input stays an input, which callers may resize; it is known
        // to be empty only if its shape is fixed.
        let is_empty = shape.is_some_and(|shape| shape.contains(&0));
        let none = (is_empty && tensor.shape_signature.is_none()).then_some([].as_slice());
        Some(Fact {
            dtype: tensor.dtype,
            shape: shape.map(Cow::Borrowed),
            data: computed.or(tensor.data.as_deref()).or(none).map(Cow::Borrowed),
        })
    };
    operator.inputs.iter().map(|input| input.and_then(fact)).collect()
}

/// Infers the shapes of the outputs of one operator; `outputs` is their number.
///
/// `inputs` has one entry per input of the operator, `None` for omitted optional inputs.
///
/// ```
/// use xnn_model::infer::{Fact, OutputShape};
/// use xnn_model::{DType, Op, infer_op_shapes};
///
/// # fn main() -> Result<(), xnn_model::Error> {
/// let input = Fact::known(DType::U8, &[2, 3], &[0; 6]);
/// let shapes = infer_op_shapes(&Op::Abs, &[Some(input)], 1)?;
/// assert_eq!(shapes, [OutputShape::Known(vec![2, 3])]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// The operator does not accept these inputs. The error does not name the operator.
pub fn infer_op_shapes(
    op: &Op,
    inputs: &[Option<Fact<'_>>],
    outputs: usize,
) -> Result<Vec<OutputShape>, Error> {
    match apply(op, &Inputs { facts: inputs }, outputs) {
        Ok(shapes) if shapes.len() < outputs => {
            Err(Error::invalid(format!("has {outputs} outputs where {} are defined", shapes.len())))
        }
        Ok(shapes) if shapes.iter().any(|shape| element_count(shape).is_none()) => {
            Err(Error::invalid("the number of output elements overflows"))
        }
        Ok(shapes) => Ok(shapes.into_iter().take(outputs).map(OutputShape::Known).collect()),
        Err(Stop::Dynamic) => Ok(vec![OutputShape::Dynamic; outputs]),
        Err(Stop::Stated) => Ok(vec![OutputShape::Stated; outputs]),
        Err(Stop::Invalid(message)) => Err(Error::invalid(message)),
    }
}

#[cfg(test)]
mod tests;
