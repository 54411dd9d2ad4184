//! Circle's GRU: runs one sequence from a given state and returns the last one.

use xnn_model::op::Activation;
use xnn_model::{DType, Op};

use super::dense::{Dense, Operand, vector};
use super::functions::{logistic, tanh};
use crate::error::{Refusal, refuse};
use crate::operator::{OperatorContext, Run, is_fixed, run};
use crate::scratch::Scratch;
use crate::tensor::TensorView;

/// Weights of the input, `[3 * units, width]`. Their bias follows.
const INPUT_WEIGHTS: usize = 1;
/// Weights of the state, `[3 * units, units]`. Their bias follows.
const STATE_WEIGHTS: usize = 3;
const STATE: usize = 5;

pub(super) fn prepare(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    let Op::Gru(options) = &context.operator.op else {
        return refuse(format!("{} is not GRU", context.operator.op));
    };
    if options.return_sequences
        || !matches!(options.activation, Activation::None | Activation::Tanh)
    {
        return refuse(format!("{options:?}"));
    }
    context.expect_input(0, DType::F32)?;
    context.expect_input(STATE, DType::F32)?;
    context.expect_output(0, DType::F32)?;
    let constant = |position: usize| {
        let tensor = context.input(position)?;
        match (tensor.shape.as_deref(), tensor.data.as_deref()) {
            (Some(shape), Some(bytes)) if is_fixed(tensor) => {
                Ok((tensor, TensorView { dtype: tensor.dtype, shape, bytes }))
            }
            _ => refuse(format!("input {position} is not constant")),
        }
    };
    let layer = |position: usize| {
        let (tensor, view) = constant(position)?;
        let weights = Dense::new(tensor, view)?;
        let bias = match context.optional(position + 1) {
            Some(_) => {
                let (tensor, view) = constant(position + 1)?;
                vector(tensor, view)?
            }
            None => vec![0.0; weights.rows()],
        };
        if bias.len() == weights.rows() {
            Ok((weights, bias))
        } else {
            refuse("the size of a bias does not match the weights")
        }
    };
    let (input_weights, input_bias) = layer(INPUT_WEIGHTS)?;
    let (state_weights, state_bias) = layer(STATE_WEIGHTS)?;
    let units = state_weights.rows() / 3;
    if input_weights.rows() != 3 * units || !state_weights.takes(units) {
        return refuse("the sizes of the weights do not match");
    }
    run(move |call| {
        let [_, batches, width] = call.dims(0)?;
        let Scratch { floats: [state, fresh, old, ..], shorts: [quantized, ..], .. } =
            call.take_scratch()?;
        state.clear();
        state.extend_from_slice(call.input::<f32>(STATE)?);
        if batches != 1 || !input_weights.takes(width) || state.len() != units {
            return refuse(format!(
                "{batches} rows of {width} do not match a state of {}",
                state.len()
            ));
        }
        for row in call.input::<f32>(0)?.chunks_exact(width.max(1)) {
            fresh.clone_from(&input_bias);
            input_weights.accumulate(&mut Operand::new(row, false, quantized), fresh);
            old.clone_from(&state_bias);
            state_weights.accumulate(&mut Operand::new(state, false, quantized), old);
            for (i, value) in state.iter_mut().enumerate() {
                let update = logistic(fresh[i] + old[i]);
                let reset = logistic(fresh[units + i] + old[units + i]);
                let candidate = tanh(fresh[2 * units + i] + reset * old[2 * units + i]);
                *value = *value * update + candidate * (1.0 - update);
            }
        }
        let shape = call.shape(STATE)?;
        call.allocate(0, shape)?;
        call.output::<f32>(0)?.copy_from_slice(state);
        Ok(())
    })
}
