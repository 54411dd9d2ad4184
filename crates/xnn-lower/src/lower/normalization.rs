//! Lowers normalizations, in floats.

use xnn_format::{BinaryOp, NodeOp, OutputRange, ReduceOp, UnaryOp, ValueId, flags};

use super::builder::Builder;
use super::reduce::pooled_max;
use super::shape::{copied, reshaped, with_contiguous_slices};
use super::slice::sliced;
use crate::rules::normalization::{
    LocalResponse, MeanSquareNorm, Normalization, NormalizationKind,
};
use crate::rules::shape::LeadingDim;

pub(super) fn normalization(b: &mut Builder<'_>, plan: &Normalization) {
    let input = b.as_f32(plan.input);
    let output = b.start_f32(plan.output);
    match plan.kind {
        NormalizationKind::LogSoftmax => log_softmax(b, input, output),
        NormalizationKind::L2 => l2(b, input, output),
    }
    b.finish_f32(output, plan.output);
}

/// Smallest norm, with which TFLite avoids division by zero.
const L2_EPSILON: f32 = 1e-6;

fn l2(b: &mut Builder<'_>, input: ValueId, output: ValueId) {
    let last = b.value_dims(input).len() - 1;
    let squares = b.f32_unary(UnaryOp::Square, input);
    let sum = reduced(b, ReduceOp::Sum, squares, vec![last]);
    let norm = b.f32_unary(UnaryOp::SquareRoot, sum);
    let guarded = b.temporary_f32(&b.value_dims(norm));
    let range = OutputRange { min: L2_EPSILON, max: f32::INFINITY };
    b.unary(UnaryOp::Clamp, norm, guarded).output_range = Some(range);
    binary(b, BinaryOp::Divide, [input, guarded], output);
}

fn log_softmax(b: &mut Builder<'_>, input: ValueId, output: ValueId) {
    let mut kept = b.value_dims(input);
    let last = kept.len() - 1;
    kept[last] = 1;
    let max = b.temporary_f32(&kept);
    pooled_max(b, input, &[last], max);
    let shifted = b.f32_binary(BinaryOp::Subtract, [input, max]);
    let exponentials = b.f32_unary(UnaryOp::Exp, shifted);
    let sum = reduced(b, ReduceOp::Sum, exponentials, vec![last]);
    let log = b.f32_unary(UnaryOp::Log, sum);
    binary(b, BinaryOp::Subtract, [shifted, log], output);
}

/// `(x - mean) / sqrt(mean of squares + epsilon) * gain + offset`, with the mean and the offset if
/// the plan has them.
pub(super) fn mean_square_norm(b: &mut Builder<'_>, plan: &MeanSquareNorm) {
    let mut value = b.value(plan.input);
    if plan.centered {
        let mean = reduced(b, ReduceOp::Mean, value, plan.axes.clone());
        value = b.f32_binary(BinaryOp::Subtract, [value, mean]);
    }
    let squares = b.f32_unary(UnaryOp::Square, value);
    let mean = reduced(b, ReduceOp::Mean, squares, plan.axes.clone());
    let epsilon = b.scalar(plan.epsilon);
    let guarded = b.f32_binary(BinaryOp::Add, [mean, epsilon]);
    let inverse = b.f32_unary(UnaryOp::ReciprocalSquareRoot, guarded);
    value = b.f32_binary(BinaryOp::Multiply, [value, inverse]);
    let gain = b.value(plan.gain);
    value = b.f32_binary(BinaryOp::Multiply, [value, gain]);
    if let Some(offset) = plan.offset {
        let offset = b.value(offset);
        value = b.f32_binary(BinaryOp::Add, [value, offset]);
    }
    match plan.fused.range() {
        None => copied(b, value, plan.output),
        range => {
            let output = b.value(plan.output);
            b.unary(UnaryOp::Clamp, value, output).output_range = range;
        }
    }
}

/// `x * (bias + alpha * sum of neighbouring squares) ^ -beta`.
pub(super) fn local_response(b: &mut Builder<'_>, plan: &LocalResponse) {
    let input = b.value(plan.input);
    let dims = b.value_dims(input);
    let depth = dims[dims.len() - 1];
    let rows = dims.iter().product::<usize>() / depth;
    let squares = b.f32_unary(UnaryOp::Square, input);
    let matrix = reshaped(b, squares, &[rows, depth], LeadingDim::Inferred);
    // All channels are in reach of a larger radius.
    let radius = (plan.radius as usize).min(depth - 1);
    let sums = with_contiguous_slices(b, matrix, 1, |b, value, axis| {
        neighbourhood_sums(b, value, axis, radius)
    });
    let sums = reshaped(b, sums, &dims, LeadingDim::Inferred);
    let (alpha, bias) = (b.scalar(plan.alpha), b.scalar(plan.bias));
    let scaled = b.f32_binary(BinaryOp::Multiply, [sums, alpha]);
    let base = b.f32_binary(BinaryOp::Add, [scaled, bias]);
    let power = negative_power(b, base, plan.beta);
    let output = b.value(plan.output);
    binary(b, BinaryOp::Multiply, [input, power], output);
}

/// Sums of the elements up to `radius` away along an axis of a matrix. Sums of 1, 2, 4, ...
/// elements are added to those of twice as many.
fn neighbourhood_sums(b: &mut Builder<'_>, input: ValueId, axis: usize, radius: usize) -> ValueId {
    let mut dims = b.value_dims(input);
    let (count, window) = (dims[axis], 2 * radius + 1);
    dims[axis] += 2 * radius;
    let mut paddings = vec![0; dims.len()];
    paddings[axis] = radius;
    let mut value = b.temporary_f32(&dims);
    b.push(NodeOp::StaticConstantPad {
        pre_paddings: paddings.clone(),
        post_paddings: paddings,
        padding_value: 0.0,
        input,
        output: value,
    });
    let mut sum = None;
    let (mut covered, mut length) = (0, 1);
    while length <= window {
        if window & length != 0 {
            let part = sliced(b, value, axis, covered, count);
            covered += length;
            sum = Some(sum.map_or(part, |sum| b.f32_binary(BinaryOp::Add, [sum, part])));
        }
        if 2 * length <= window {
            let kept = b.value_dims(value)[axis] - length;
            let halves = [0, length].map(|start| sliced(b, value, axis, start, kept));
            value = b.f32_binary(BinaryOp::Add, halves);
        }
        length *= 2;
    }
    sum.unwrap_or(value)
}

/// `base ^ -beta`. Roots take a twentieth of the time of powers.
fn negative_power(b: &mut Builder<'_>, base: ValueId, beta: f32) -> ValueId {
    if beta != 0.5 && beta != 0.75 {
        let exponent = b.scalar(-beta);
        return b.f32_binary(BinaryOp::Pow, [base, exponent]);
    }
    let inverse_root = b.f32_unary(UnaryOp::ReciprocalSquareRoot, base);
    if beta == 0.5 {
        return inverse_root;
    }
    let root = b.f32_unary(UnaryOp::SquareRoot, inverse_root);
    b.f32_binary(BinaryOp::Multiply, [inverse_root, root])
}

/// A reduction over axes, which keep the size 1.
fn reduced(b: &mut Builder<'_>, op: ReduceOp, input: ValueId, axes: Vec<usize>) -> ValueId {
    let mut dims = b.value_dims(input);
    for &axis in &axes {
        dims[axis] = 1;
    }
    let output = b.temporary_f32(&dims);
    b.push(NodeOp::StaticReduce { op, axes, input, output }).flags = flags::KEEP_DIMS;
    output
}

fn binary(b: &mut Builder<'_>, op: BinaryOp, inputs: [ValueId; 2], output: ValueId) {
    b.push(NodeOp::Binary { op, inputs, output });
}
