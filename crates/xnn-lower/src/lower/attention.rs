//! Operators of transformers.

use xnn_format::{BinaryOp, Datatype, NodeOp, Quantization, UnaryOp, ValueId, flags};

use super::builder::Builder;
use super::shape::{join, reshape_to, reshaped, transposed};
use super::slice::sliced;
use crate::fold;
use crate::rules::attention::{Attention, Rope};
use crate::rules::shape::First;

/// `x * cos + rotated(x) * sin`.
pub(super) fn rope(b: &mut Builder<'_>, plan: &Rope) {
    let [input, sines, cosines] = [plan.input, plan.sines, plan.cosines].map(|id| b.value(id));
    let turned = quarter_turn(b, input, plan.interleaved);
    let along = b.f32_binary(BinaryOp::Multiply, [input, cosines]);
    let across = b.f32_binary(BinaryOp::Multiply, [turned, sines]);
    let output = b.value(plan.output);
    b.push(NodeOp::Binary { op: BinaryOp::Add, inputs: [along, across], output });
}

/// Each pair `(x, y)` as `(-y, x)`.
fn quarter_turn(b: &mut Builder<'_>, input: ValueId, interleaved: bool) -> ValueId {
    let dims = b.value_dims(input);
    let elements: usize = dims.iter().product();
    let half = dims.last().map_or(1, |row| row / 2);
    let rows = elements / (2 * half);
    let (pairs, axis) = if interleaved { ([rows, half, 2], 2) } else { ([rows, 2, half], 1) };
    let first = First::batch_if(dims.len() > 1);
    let pairs = reshaped(b, input, &pairs, first);
    let [x, y] = [0, 1].map(|start| sliced(b, pairs, axis, start, 1));
    let negated = b.f32_unary(UnaryOp::Negate, y);
    let turned = b.temporary_f32(&b.value_dims(pairs));
    join(b, vec![negated, x], axis, turned);
    reshaped(b, turned, &dims, first)
}

/// XNNPACK's node wants a scale for each channel, in memory.
const MAX_SCALES: usize = 1 << 16;

pub(super) fn attention(b: &mut Builder<'_>, plan: &Attention) {
    let [batch, keys, groups, channels] =
        <[usize; 4]>::try_from(b.dims(plan.key)).unwrap_or_default();
    let [_, tokens, heads, _] = <[usize; 4]>::try_from(b.dims(plan.query)).unwrap_or_default();
    let [query, key, value] = [plan.query, plan.key, plan.value].map(|id| b.value(id));
    // Heads that share a key stand one below the other, as more tokens of one head.
    let shared = heads / groups;
    let rows = [batch, groups, shared * tokens, channels];
    let query = reshaped(b, query, &[batch, tokens, groups, shared, channels], First::Batch);
    let query = transposed(b, query, &[0, 2, 3, 1, 4]);
    let query = reshaped(b, query, &rows, First::Batch);
    let [key, value] = [key, value].map(|value| transposed(b, value, &[0, 2, 1, 3]));
    let mask = plan.mask.map(|mask| b.value(mask));
    let one_mask = mask.filter(|&mask| b.value_dims(mask)[0] == 1);
    let fits_node = shared == 1 && plan.logit_cap.is_none() && channels <= MAX_SCALES;
    let result = b.temporary_f32(&rows);
    if let (true, Some(mask)) = (fits_node, one_mask) {
        let mask = reshaped(b, mask, &[tokens, keys], First::Fixed);
        let data = fold::to_bytes(&vec![plan.scale; channels]);
        let scale = b.constant(Datatype::F32, Quantization::None, &[channels], data);
        let output = result;
        b.push(NodeOp::ScaledDotProductAttention { query, key, value, scale, mask, output });
    } else {
        let scale = b.scalar(plan.scale);
        let query = b.f32_binary(BinaryOp::Multiply, [query, scale]);
        let flat = [batch, groups, shared * tokens, keys];
        let mut logits = b.temporary_f32(&flat);
        b.push(NodeOp::BatchMatrixMultiply { inputs: [query, key], output: logits }).flags =
            flags::TRANSPOSE_WEIGHTS;
        if let Some(cap) = plan.logit_cap {
            let cap = b.scalar(cap);
            let ratio = b.f32_binary(BinaryOp::Divide, [logits, cap]);
            let bounded = b.f32_unary(UnaryOp::Tanh, ratio);
            logits = b.f32_binary(BinaryOp::Multiply, [bounded, cap]);
        }
        if let Some(mask) = mask {
            let masks = b.value_dims(mask)[0];
            let mask = reshaped(b, mask, &[masks, 1, 1, tokens, keys], First::Batch);
            let heads = reshaped(b, logits, &[batch, groups, shared, tokens, keys], First::Batch);
            let masked = b.f32_binary(BinaryOp::Add, [heads, mask]);
            logits = reshaped(b, masked, &flat, First::Batch);
        }
        let weights = b.temporary_f32(&flat);
        b.push(NodeOp::Softmax { input: logits, output: weights });
        b.push(NodeOp::BatchMatrixMultiply { inputs: [weights, value], output: result });
    }
    let heads_apart = reshaped(b, result, &[batch, groups, shared, tokens, channels], First::Batch);
    let tokens_first = transposed(b, heads_apart, &[0, 3, 1, 2, 4]);
    let output = b.value(plan.output);
    reshape_to(b, tokens_first, output, First::Batch);
}
