//! Operators that join or split tensors.

use xnnpack_sys as sys;

use super::checks::check_move;
use super::context::{Context, RawIds};
use super::operator::{Links, Operator};
use crate::status::{Error, Result};
use crate::value::{Shape, ValueId};

/// Joins 2 to 5 tensors along a dimension.
#[derive(Clone, Debug)]
pub struct Concatenate {
    /// The dimension; a negative one counts from the innermost, -1.
    pub axis: i32,
    /// Tensors of the same shape, except for that dimension.
    pub inputs: Vec<ValueId>,
    /// The joined shape.
    pub output: ValueId,
}

/// Splits a tensor into 2 to 4 equal parts along a dimension.
#[derive(Clone, Debug)]
pub struct EvenSplit {
    /// The dimension; a negative one counts from the innermost, -1.
    pub axis: i32,
    /// Tensor whose dimension is a multiple of the number of parts.
    pub input: ValueId,
    /// The parts.
    pub outputs: Vec<ValueId>,
}

impl Operator for Concatenate {
    fn kind(&self) -> &'static str {
        "concatenate"
    }

    fn links(&self) -> Links {
        Links::new(self.inputs.iter().copied(), [self.output])
    }

    fn check(&self, cx: &Context<'_>) -> Result<()> {
        if !(2..=5).contains(&self.inputs.len()) {
            return Err(Error::unsupported(format!(
                "expected 2 to 5 inputs, found {}",
                self.inputs.len()
            )));
        }
        self.inputs.iter().try_for_each(|&input| check_move(cx, input, self.output))
    }

    fn infer(&self, cx: &Context<'_>) -> Result<Vec<Shape>> {
        let shapes =
            self.inputs.iter().map(|&input| cx.shape(input)).collect::<Result<Vec<_>>>()?;
        let Some(&first) = shapes.first() else {
            return Err(Error::unsupported("expected 2 to 5 inputs, found none"));
        };
        let axis = resolve_axis(self.axis, first)?;
        let mut dims = first.to_vec();
        dims[axis] = 0;
        for shape in shapes {
            let fits = shape.len() == first.len()
                && (0..first.len()).all(|other| other == axis || shape[other] == first[other]);
            if !fits {
                return Err(Error::invalid(format!(
                    "shapes {first:?} and {shape:?} cannot be joined along dimension {axis}"
                )));
            }
            dims[axis] += shape[axis];
        }
        Ok(vec![Shape::new(&dims)?])
    }

    unsafe fn define(&self, graph: sys::xnn_subgraph_t, ids: &RawIds<'_>) -> sys::xnn_status {
        let (axis, output) = (self.axis, ids.of(self.output));
        let inputs = self.inputs.iter().map(|&id| ids.of(id)).collect::<Vec<_>>();
        // SAFETY: the caller upholds the contract of `Operator::define`.
        unsafe {
            match *inputs {
                [a, b] => sys::xnn_define_concatenate2(graph, axis, a, b, output, 0),
                [a, b, c] => sys::xnn_define_concatenate3(graph, axis, a, b, c, output, 0),
                [a, b, c, d] => sys::xnn_define_concatenate4(graph, axis, a, b, c, d, output, 0),
                [a, b, c, d, e] => {
                    sys::xnn_define_concatenate5(graph, axis, a, b, c, d, e, output, 0)
                }
                _ => sys::xnn_status_unsupported_parameter,
            }
        }
    }
}

impl Operator for EvenSplit {
    fn kind(&self) -> &'static str {
        "even_split"
    }

    fn links(&self) -> Links {
        Links::new([self.input], self.outputs.iter().copied())
    }

    fn check(&self, cx: &Context<'_>) -> Result<()> {
        if !(2..=4).contains(&self.outputs.len()) {
            return Err(Error::unsupported(format!(
                "expected 2 to 4 outputs, found {}",
                self.outputs.len()
            )));
        }
        self.outputs.iter().try_for_each(|&output| check_move(cx, self.input, output))
    }

    fn infer(&self, cx: &Context<'_>) -> Result<Vec<Shape>> {
        let input = cx.shape(self.input)?;
        let axis = resolve_axis(self.axis, input)?;
        let parts = self.outputs.len();
        if !input[axis].is_multiple_of(parts) {
            return Err(Error::invalid(format!(
                "dimension {axis} of shape {input:?} cannot be split into {parts} equal parts"
            )));
        }
        let mut dims = input.to_vec();
        dims[axis] /= parts;
        Ok(vec![Shape::new(&dims)?; parts])
    }

    unsafe fn define(&self, graph: sys::xnn_subgraph_t, ids: &RawIds<'_>) -> sys::xnn_status {
        let (axis, input) = (self.axis, ids.of(self.input));
        let outputs = self.outputs.iter().map(|&id| ids.of(id)).collect::<Vec<_>>();
        // SAFETY: the caller upholds the contract of `Operator::define`.
        unsafe {
            match *outputs {
                [a, b] => sys::xnn_define_even_split2(graph, axis, input, a, b, 0),
                [a, b, c] => sys::xnn_define_even_split3(graph, axis, input, a, b, c, 0),
                [a, b, c, d] => sys::xnn_define_even_split4(graph, axis, input, a, b, c, d, 0),
                _ => sys::xnn_status_unsupported_parameter,
            }
        }
    }
}

/// Converts an axis, which may be negative, to a dimension.
fn resolve_axis(axis: i32, shape: Shape) -> Result<usize> {
    let rank = i64::try_from(shape.len()).unwrap_or(i64::MAX);
    let index = i64::from(axis) + if axis < 0 { rank } else { 0 };
    usize::try_from(index)
        .ok()
        .filter(|&index| index < shape.len())
        .ok_or_else(|| Error::invalid(format!("axis {axis} is out of range for shape {shape:?}")))
}
