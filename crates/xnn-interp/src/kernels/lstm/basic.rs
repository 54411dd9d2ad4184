//! The basic LSTM kernel: one matrix for all gates, with the state in the operator's inputs and
//! outputs.

use xnn_model::DType;

use super::super::fully_connected::Source;
use super::super::functions::{logistic, tanh};
use super::super::gemm::multiply;
use super::super::weights::float_reader;
use crate::error::{Refusal, refuse};
use crate::operator::{OperatorContext, Run, run};
use crate::scratch::Scratch;

const INPUT: usize = 0;
const PREVIOUS_OUTPUT: usize = 1;
const WEIGHTS: usize = 2;
const BIAS: usize = 3;
const PREVIOUS_STATE: usize = 4;

pub(super) fn prepare(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    for position in [INPUT, PREVIOUS_OUTPUT, WEIGHTS, BIAS, PREVIOUS_STATE] {
        context.expect_input(position, DType::F32)?;
    }
    let outputs = context.operator.outputs.len();
    for position in 0..outputs {
        context.expect_output(position, DType::F32)?;
    }
    let source = Source::new(context, WEIGHTS, float_reader())?;
    run(move |call| {
        let Scratch { floats: [joined, gates, results, cells, ..], .. } = call.take_scratch()?;
        let mut kept = [PREVIOUS_OUTPUT, PREVIOUS_STATE].map(|at| call.take_state::<f32>(at).ok());
        let [previous, state] = &kept;
        let previous = match previous {
            Some(kept) => kept,
            None => call.input::<f32>(PREVIOUS_OUTPUT)?,
        };
        let state = match state {
            Some(kept) => kept,
            None => call.input::<f32>(PREVIOUS_STATE)?,
        };
        let [batches, depth] = call.dims(INPUT)?;
        let [rows, columns] = call.dims(WEIGHTS)?;
        let width = rows / 4;
        let fits = rows % 4 == 0
            && columns == depth + width
            && previous.len() == batches * width
            && state.len() == previous.len();
        if !fits {
            return refuse(format!("weights [{rows}, {columns}] do not match an input of {depth}"));
        }
        let (input, bias) = (call.input::<f32>(INPUT)?, call.input::<f32>(BIAS)?);
        joined.clear();
        for batch in 0..batches {
            joined.extend_from_slice(&input[batch * depth..][..depth]);
            joined.extend_from_slice(&previous[batch * width..][..width]);
        }
        gates.clear();
        gates.resize(batches * rows, 0.0);
        let weights = source.get(call)?;
        multiply(joined, &weights, gates);
        for row in gates.chunks_exact_mut(rows.max(1)) {
            row.iter_mut().zip(bias).for_each(|(gate, b)| *gate += b);
        }
        results.clear();
        cells.clear();
        for (at, &old) in state.iter().enumerate() {
            let gate = |index: usize| gates[at / width * rows + index * width + at % width];
            let fresh = logistic(gate(0)) * tanh(gate(1)) + logistic(gate(2)) * old;
            results.push(logistic(gate(3)) * tanh(fresh));
            cells.push(fresh);
        }
        let values = [&*results, cells, joined, gates];
        for (position, values) in values.into_iter().enumerate().take(outputs) {
            let output = call.output::<f32>(position)?;
            // The output's shape follows from the previous output's, not from the weights.
            if output.len() != values.len() {
                return refuse(format!(
                    "weights [{rows}, {columns}] do not match the width of the outputs"
                ));
            }
            output.copy_from_slice(values);
        }
        for (state, values) in kept.iter_mut().zip(values) {
            if let Some(state) = state {
                state.copy_from_slice(values);
            }
        }
        Ok(())
    })
}
