//! RNN, UNIDIRECTIONAL_SEQUENCE_RNN and BIDIRECTIONAL_SEQUENCE_RNN.

use xnn_model::op::Activation;
use xnn_model::{DType, Op};

use super::dense::{Dense, Operand, vector};
use super::lstm::{Activate, Direction, Target};
use crate::call::Call;
use crate::error::{Refusal, refuse};
use crate::operator::{OperatorContext, Run, is_fixed, run};
use crate::scratch::Scratch;
use crate::tensor::TensorView;

/// One direction.
struct Layer {
    weights: Dense,
    recurrent: Dense,
    bias: Vec<f32>,
    activation: Activate,
    asymmetric: bool,
    /// Position of the state among the inputs.
    state: usize,
}

impl Layer {
    /// `first` is the position of the weights. Recurrent weights, bias and state follow.
    fn new(
        context: &OperatorContext<'_>,
        first: usize,
        activation: Activation,
        asymmetric: bool,
    ) -> Result<Self, Refusal> {
        let constant = |position: usize| {
            let tensor = context.input(position)?;
            match (tensor.shape.as_deref(), tensor.data.as_deref()) {
                (Some(shape), Some(bytes)) if is_fixed(tensor) => {
                    Ok((tensor, TensorView { dtype: tensor.dtype, shape, bytes }))
                }
                _ => refuse(format!("input {position} must be constant")),
            }
        };
        let dense = |position: usize| {
            let (tensor, view) = constant(position)?;
            Dense::new(tensor, view)
        };
        let (bias, view) = constant(first + 2)?;
        let layer = Self {
            weights: dense(first)?,
            recurrent: dense(first + 1)?,
            bias: vector(bias, view)?,
            activation: super::lstm::activation(activation)?,
            asymmetric,
            state: first + 3,
        };
        let units = layer.weights.rows();
        if !context.input(layer.state)?.is_variable {
            return refuse("the state must be a variable");
        }
        if layer.recurrent.rows() != units
            || !layer.recurrent.takes(units)
            || layer.bias.len() != units
        {
            return refuse("the sizes of the weights do not match");
        }
        Ok(layer)
    }

    /// Runs all rows and steps of the input.
    fn unroll(
        &self,
        call: &mut Call<'_>,
        scratch: &mut Scratch,
        direction: Direction,
        target: Target,
    ) -> Result<(), Refusal> {
        let Direction { time_major, backwards } = direction;
        let (batches, time, width) = direction.sizes(call.shape(0)?)?;
        let units = self.weights.rows();
        if !self.weights.takes(width) {
            return refuse(format!("the weights do not accept rows of {width}"));
        }
        let input = call.input::<f32>(0)?;
        let state = call.take_state::<f32>(self.state)?;
        if state.len() != batches * units {
            return refuse("the size of the state does not match");
        }
        let output = call.output::<f32>(target.output)?;
        let Scratch { floats: [sums, ..], shorts: [of_row, of_state, ..], .. } = scratch;
        for (batch, state) in state.chunks_exact_mut(units.max(1)).enumerate() {
            for step in 0..time {
                let step = if backwards { time - 1 - step } else { step };
                let at = if time_major { step * batches + batch } else { batch * time + step };
                sums.clone_from(&self.bias);
                let mut row = Operand::new(&input[at * width..][..width], self.asymmetric, of_row);
                self.weights.accumulate(&mut row, sums);
                let mut old = Operand::new(state, self.asymmetric, of_state);
                self.recurrent.accumulate(&mut old, sums);
                (self.activation)(sums);
                state.copy_from_slice(sums);
                target.write(output, at, sums)?;
            }
        }
        Ok(())
    }
}

pub(super) fn prepare(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    let (activation, time_major, asymmetric) = match &context.operator.op {
        Op::Rnn(options) => (options.activation, false, options.asymmetric_quantize_inputs),
        Op::UnidirectionalSequenceRnn(options) => {
            (options.activation, options.time_major, options.asymmetric_quantize_inputs)
        }
        other => return refuse(format!("{other} is not an RNN")),
    };
    if context.common_type()? != DType::F32 {
        return context.unsupported(context.common_type()?);
    }
    let layer = Layer::new(context, 1, activation, asymmetric)?;
    let target = Target { output: 0, stride: layer.weights.rows(), offset: 0 };
    run(move |call| {
        let scratch = call.take_scratch()?;
        layer.unroll(call, scratch, Direction { time_major, backwards: false }, target)
    })
}

pub(super) fn bidirectional(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    let Op::BidirectionalSequenceRnn(options) = context.operator.op.clone() else {
        return refuse(format!("{} is not BIDIRECTIONAL_SEQUENCE_RNN", context.operator.op));
    };
    if context.common_type()? != DType::F32 {
        return context.unsupported(context.common_type()?);
    }
    if context.optional(9).is_some() {
        return refuse("a second input is not supported");
    }
    let asymmetric = options.asymmetric_quantize_inputs;
    let forward = Layer::new(context, 1, options.activation, asymmetric)?;
    let backward = Layer::new(context, 5, options.activation, asymmetric)?;
    let (a, b) = (forward.weights.rows(), backward.weights.rows());
    let targets = if options.merge_outputs {
        [0, a].map(|offset| Target { output: 0, stride: a + b, offset })
    } else {
        [(0, a), (1, b)].map(|(output, stride)| Target { output, stride, offset: 0 })
    };
    run(move |call| {
        let scratch = call.take_scratch()?;
        for (index, (layer, target)) in [&forward, &backward].into_iter().zip(targets).enumerate() {
            let direction = Direction { time_major: options.time_major, backwards: index == 1 };
            layer.unroll(call, scratch, direction, target)?;
        }
        Ok(())
    })
}
