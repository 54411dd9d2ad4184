//! Shapes of recurrent operators.

use super::inputs::{Inputs, Rule, invalid, one, positive};
use crate::op::{BidirectionalSequenceLstmOptions, BidirectionalSequenceRnnOptions, LstmOptions};

/// Positions of inputs of the full LSTM kernels: recurrent weights `[cells, outputs]` of the output
/// gate, forward and backward.
const RECURRENT_TO_OUTPUT: usize = 8;
const BACKWARD_RECURRENT_TO_OUTPUT: usize = 25;
/// Position of the backward input weights `[units, inputs]` of BIDIRECTIONAL_SEQUENCE_RNN.
const BACKWARD_WEIGHTS: usize = 5;

/// The input's shape with another last dimension.
fn with_last(inputs: &Inputs<'_>, last: usize) -> Rule<Vec<usize>> {
    let mut shape = inputs.shape(0)?.to_vec();
    match shape.last_mut() {
        Some(slot) => *slot = last,
        None => return invalid("the input is a scalar"),
    }
    Ok(shape)
}

pub(super) fn lstm(inputs: &Inputs<'_>, options: &LstmOptions, outputs: usize) -> Rule {
    if !options.basic {
        let [_, width] = inputs.dims(RECURRENT_TO_OUTPUT)?;
        return Ok(vec![with_last(inputs, width)?; outputs.max(1)]);
    }
    let [batch, depth] = inputs.dims(0)?;
    let [_, width] = inputs.dims(1)?;
    Ok(vec![
        vec![batch, width],
        vec![batch, width],
        vec![batch, depth.saturating_add(width)],
        vec![batch, width.saturating_mul(4)],
    ])
}

pub(super) fn sequence_lstm(inputs: &Inputs<'_>) -> Rule {
    let [_, width] = inputs.dims(RECURRENT_TO_OUTPUT)?;
    one(with_last(inputs, width)?)
}

/// Forward and backward results, concatenated along the last dimension or separate.
fn bidirectional(inputs: &Inputs<'_>, forward: usize, backward: usize, merge: bool) -> Rule {
    if merge {
        return one(with_last(inputs, forward.saturating_add(backward))?);
    }
    Ok(vec![with_last(inputs, forward)?, with_last(inputs, backward)?])
}

pub(super) fn bidirectional_lstm(
    inputs: &Inputs<'_>,
    options: &BidirectionalSequenceLstmOptions,
) -> Rule {
    let [_, forward] = inputs.dims(RECURRENT_TO_OUTPUT)?;
    let [_, backward] = inputs.dims(BACKWARD_RECURRENT_TO_OUTPUT)?;
    bidirectional(inputs, forward, backward, options.merge_outputs)
}

pub(super) fn rnn(inputs: &Inputs<'_>) -> Rule {
    let [batch, _] = inputs.dims(0)?;
    let [units, _] = inputs.dims(1)?;
    one(vec![batch, units])
}

pub(super) fn sequence_rnn(inputs: &Inputs<'_>) -> Rule {
    let [units, _] = inputs.dims(1)?;
    one(with_last(inputs, units)?)
}

pub(super) fn bidirectional_rnn(
    inputs: &Inputs<'_>,
    options: &BidirectionalSequenceRnnOptions,
) -> Rule {
    let [forward, _] = inputs.dims(1)?;
    let [backward, _] = inputs.dims(BACKWARD_WEIGHTS)?;
    bidirectional(inputs, forward, backward, options.merge_outputs)
}

pub(super) fn svdf(inputs: &Inputs<'_>, rank: i32) -> Rule {
    let [batch, _] = inputs.dims(0)?;
    let [filters, _] = inputs.dims(1)?;
    let rank = positive(rank, "the rank")?;
    if filters % rank != 0 {
        return invalid(format!("{filters} filters do not divide into rank {rank}"));
    }
    one(vec![batch, filters / rank])
}
