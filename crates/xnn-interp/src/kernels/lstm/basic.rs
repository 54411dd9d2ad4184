//! The short LSTM kernel: one matrix for all gates, and state that is handed
//! over in the operator's inputs and outputs.

use xnn_model::DType;

use super::super::functions::{logistic, tanh};
use super::super::gemm::{Packed, multiply};
use crate::error::{Refusal, refuse};
use crate::node::{Node, Run, run};

const INPUT: usize = 0;
const PREVIOUS_OUTPUT: usize = 1;
const WEIGHTS: usize = 2;
const BIAS: usize = 3;
const PREVIOUS_STATE: usize = 4;

pub(super) fn prepare(node: &Node<'_>) -> Result<Run, Refusal> {
    for position in [INPUT, PREVIOUS_OUTPUT, WEIGHTS, BIAS, PREVIOUS_STATE] {
        node.expect_input(position, DType::F32)?;
    }
    let outputs = node.operator.outputs.len();
    for position in 0..outputs {
        node.expect_output(position, DType::F32)?;
    }
    run(move |call| {
        let mut kept = [PREVIOUS_OUTPUT, PREVIOUS_STATE].map(|at| call.take_state::<f32>(at).ok());
        let floats = |state: &Option<&mut [f32]>, position| match state {
            Some(state) => Ok(state.to_vec()),
            None => call.input::<f32>(position).map(<[f32]>::to_vec),
        };
        let previous = floats(&kept[0], PREVIOUS_OUTPUT)?;
        let state = floats(&kept[1], PREVIOUS_STATE)?;
        let [batches, depth] = call.dims(INPUT)?;
        let [rows, columns] = call.dims(WEIGHTS)?;
        let width = rows / 4;
        let fits = rows % 4 == 0
            && columns == depth + width
            && previous.len() == batches * width
            && state.len() == previous.len();
        if !fits {
            return refuse(format!("weights [{rows}, {columns}] for an input of {depth}"));
        }
        let (input, weights, bias) =
            (call.input::<f32>(INPUT)?, call.input::<f32>(WEIGHTS)?, call.input::<f32>(BIAS)?);
        let mut joined = Vec::with_capacity(batches * columns);
        for batch in 0..batches {
            joined.extend_from_slice(&input[batch * depth..][..depth]);
            joined.extend_from_slice(&previous[batch * width..][..width]);
        }
        let packed = Packed::from_rows(columns, rows, |row, i| weights[row * columns + i]);
        let mut gates = vec![0.0f32; batches * rows];
        multiply(&joined, &packed, &mut gates);
        for row in gates.chunks_exact_mut(rows.max(1)) {
            row.iter_mut().zip(bias).for_each(|(gate, b)| *gate += b);
        }
        let mut results = Vec::with_capacity(state.len());
        for (at, &old) in state.iter().enumerate() {
            let gate = |index: usize| gates[at / width * rows + index * width + at % width];
            let fresh = logistic(gate(0)) * tanh(gate(1)) + logistic(gate(2)) * old;
            results.push((logistic(gate(3)) * tanh(fresh), fresh));
        }
        let values: [Vec<f32>; 4] = [
            results.iter().map(|(out, _)| *out).collect(),
            results.iter().map(|(_, state)| *state).collect(),
            joined,
            gates,
        ];
        for (position, values) in values.iter().enumerate().take(outputs) {
            call.output::<f32>(position)?.copy_from_slice(values);
        }
        for (state, values) in kept.iter_mut().zip(&values) {
            if let Some(state) = state {
                state.copy_from_slice(values);
            }
        }
        Ok(())
    })
}
