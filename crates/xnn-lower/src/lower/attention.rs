//! Lowers operators of transformers.

use xnn_format::{BinaryOp, Datatype, NodeOp, Quantization, UnaryOp, ValueId, flags};

use super::builder::Builder;
use super::shape::{join, reshape_to, reshaped, transposed};
use super::slice::sliced;
use crate::fold;
use crate::rules::attention::{Attention, AttentionForm, Rope};
use crate::rules::shape::LeadingDim;

/// `x * cos + rotated(x) * sin`.
pub(super) fn rope(b: &mut Builder<'_>, plan: &Rope) {
    let [input, sines, cosines] = [plan.input, plan.sines, plan.cosines].map(|id| b.value(id));
    let turned = quarter_turn(b, input, plan.interleaved);
    let unrotated = b.f32_binary(BinaryOp::Multiply, [input, cosines]);
    let rotated = b.f32_binary(BinaryOp::Multiply, [turned, sines]);
    let output = b.value(plan.output);
    b.push(NodeOp::Binary { op: BinaryOp::Add, inputs: [unrotated, rotated], output });
}

/// Each pair `(x, y)` as `(-y, x)`.
fn quarter_turn(b: &mut Builder<'_>, input: ValueId, interleaved: bool) -> ValueId {
    let dims = b.value_dims(input);
    let elements: usize = dims.iter().product();
    let half = dims.last().map_or(1, |row| row / 2);
    let rows = elements / (2 * half);
    let (pairs, axis) = if interleaved { ([rows, half, 2], 2) } else { ([rows, 2, half], 1) };
    let leading = LeadingDim::inferred_if(dims.len() > 1);
    let pairs = reshaped(b, input, &pairs, leading);
    let [x, y] = [0, 1].map(|start| sliced(b, pairs, axis, start, 1));
    let negated = b.f32_unary(UnaryOp::Negate, y);
    let turned = b.temporary_f32(&b.value_dims(pairs));
    join(b, vec![negated, x], axis, turned);
    reshaped(b, turned, &dims, leading)
}

pub(super) fn attention(b: &mut Builder<'_>, plan: &Attention) {
    let [batch, keys, groups, channels] =
        <[usize; 4]>::try_from(b.dims(plan.key)).unwrap_or_default();
    let [_, tokens, heads, _] = <[usize; 4]>::try_from(b.dims(plan.query)).unwrap_or_default();
    let [query, key, value] = [plan.query, plan.key, plan.value].map(|id| b.value(id));
    // Heads that share a key become one head with more tokens.
    let shared = heads / groups;
    let rows = [batch, groups, shared * tokens, channels];
    let query =
        reshaped(b, query, &[batch, tokens, groups, shared, channels], LeadingDim::Inferred);
    let query = transposed(b, query, &[0, 2, 3, 1, 4]);
    let query = reshaped(b, query, &rows, LeadingDim::Inferred);
    let [key, value] = [key, value].map(|value| transposed(b, value, &[0, 2, 1, 3]));
    let output = b.temporary_f32(&rows);
    match plan.form {
        AttentionForm::Node { mask } => {
            let mask = b.value(mask);
            let mask = reshaped(b, mask, &[tokens, keys], LeadingDim::Fixed);
            let data = fold::to_bytes(&vec![plan.scale; channels]);
            let scale = b.constant(Datatype::F32, Quantization::None, &[channels], data);
            b.push(NodeOp::ScaledDotProductAttention { query, key, value, scale, mask, output });
        }
        AttentionForm::Products { mask, logit_cap } => {
            let scale = b.scalar(plan.scale);
            let query = b.f32_binary(BinaryOp::Multiply, [query, scale]);
            let mut logits = b.temporary_f32(&[batch, groups, shared * tokens, keys]);
            b.push(NodeOp::BatchMatrixMultiply { inputs: [query, key], output: logits }).flags =
                flags::TRANSPOSE_WEIGHTS;
            if let Some(cap) = logit_cap {
                logits = capped(b, logits, cap);
            }
            if let Some(mask) = mask {
                let mask = b.value(mask);
                logits = masked(b, logits, &[batch, groups, shared, tokens, keys], mask);
            }
            let weights = b.temporary_f32(&b.value_dims(logits));
            b.push(NodeOp::Softmax { input: logits, output: weights });
            b.push(NodeOp::BatchMatrixMultiply { inputs: [weights, value], output });
        }
    }
    let heads_apart =
        reshaped(b, output, &[batch, groups, shared, tokens, channels], LeadingDim::Inferred);
    let tokens_first = transposed(b, heads_apart, &[0, 3, 1, 2, 4]);
    let output = b.value(plan.output);
    reshape_to(b, tokens_first, output, LeadingDim::Inferred);
}

/// `tanh(logits / cap) * cap`.
fn capped(b: &mut Builder<'_>, logits: ValueId, cap: f32) -> ValueId {
    let cap = b.scalar(cap);
    let ratio = b.f32_binary(BinaryOp::Divide, [logits, cap]);
    let bounded = b.f32_unary(UnaryOp::Tanh, ratio);
    b.f32_binary(BinaryOp::Multiply, [bounded, cap])
}

/// Adds a mask `[batch or 1, 1, tokens, keys]` to logits, which are reshaped for that to the
/// dimensions `[batch, groups, shared, tokens, keys]`.
fn masked(b: &mut Builder<'_>, logits: ValueId, heads: &[usize; 5], mask: ValueId) -> ValueId {
    let flat = b.value_dims(logits);
    let [.., tokens, keys] = *heads;
    let masks = b.value_dims(mask)[0];
    let mask = reshaped(b, mask, &[masks, 1, 1, tokens, keys], LeadingDim::Inferred);
    let heads = reshaped(b, logits, heads, LeadingDim::Inferred);
    let sum = b.f32_binary(BinaryOp::Add, [heads, mask]);
    reshaped(b, sum, &flat, LeadingDim::Inferred)
}
