//! Gates, weights and options of LSTM cells.

use xnn_model::Tensor;
use xnn_model::op::Activation;

use crate::error::{Refusal, refuse};
use crate::operator::{OperatorContext, is_fixed};
use crate::scratch::Scratch;
use crate::tensor::{Element, TensorView};

/// Positions of the inputs of one direction.
#[derive(Clone, Copy)]
pub(super) struct Positions {
    /// Position of the input gate's weights. Those of forget, cell and output gate follow.
    pub(super) input_weights: usize,
    pub(super) recurrent_weights: usize,
    /// Position of the input gate's peephole weights. Those of forget and output gate follow.
    pub(super) peepholes: usize,
    pub(super) biases: usize,
    pub(super) projection: usize,
    pub(super) output_state: usize,
    pub(super) cell_state: usize,
    /// Position of the input gate's layer normalization coefficients.
    pub(super) layer_norm: Option<usize>,
    /// Positions of a second input and its weights.
    pub(super) auxiliary: Option<(usize, usize)>,
}

/// The four gates, in the order of their inputs.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Gate {
    Input = 0,
    Forget = 1,
    Cell = 2,
    Output = 3,
}

impl Gate {
    /// Offset among the peephole weights, which the cell gate does not have.
    pub(super) fn peephole(self) -> Option<usize> {
        match self {
            Self::Input => Some(0),
            Self::Forget => Some(1),
            Self::Cell => None,
            Self::Output => Some(2),
        }
    }
}

/// Options that all variants have.
#[derive(Clone, Copy)]
pub(super) struct Options {
    pub(super) activation: Activation,
    pub(super) cell_clip: f32,
    pub(super) projection_clip: f32,
    pub(super) time_major: bool,
    pub(super) asymmetric: bool,
}

/// A cell, which computes one step of one row.
pub(super) trait Cell<T>: Send + Sync {
    type State: Element;

    /// Lengths of output and cell state.
    fn sizes(&self) -> (usize, usize);

    /// Whether the cell accepts inputs of these lengths.
    fn takes(&self, width: usize, auxiliary: Option<usize>) -> bool;

    /// Computes the next output state from the input.
    fn step(
        &self,
        input: &[T],
        auxiliary: Option<&[T]>,
        output: &mut [T],
        cell: &mut [Self::State],
        scratch: &mut Scratch,
    );
}

/// An operator's weights, which must be constant when the model is loaded.
pub(super) struct Weights<'a> {
    pub(super) context: &'a OperatorContext<'a>,
}

impl<'a> Weights<'a> {
    /// An optional constant.
    pub(super) fn optional(
        &self,
        position: usize,
    ) -> Result<Option<(&'a Tensor, TensorView<'a>)>, Refusal> {
        let Some(tensor) = self.context.optional(position) else { return Ok(None) };
        match (tensor.shape.as_deref(), tensor.data.as_deref()) {
            (Some(shape), Some(bytes)) if is_fixed(tensor) => {
                Ok(Some((tensor, TensorView { dtype: tensor.dtype, shape, bytes })))
            }
            _ => refuse(format!("input {position} must be constant")),
        }
    }

    pub(super) fn required(
        &self,
        position: usize,
    ) -> Result<(&'a Tensor, TensorView<'a>), Refusal> {
        self.optional(position)?.ok_or_else(|| Refusal(format!("input {position} is missing")))
    }
}
