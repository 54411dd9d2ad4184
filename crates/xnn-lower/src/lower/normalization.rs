//! Lowers normalizations, in floats.

use xnn_format::{
    BinaryOp, NodeOp, OutputRange, Padding2d, Pooling2d, ReduceOp, Size2d, UnaryOp, ValueId, flags,
};

use super::builder::Builder;
use super::reduce::pooled_max;
use super::shape::{copied, reshaped};
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
    // Each row of channels becomes an image of width 1.
    let image = reshaped(b, squares, &[rows, depth, 1, 1], LeadingDim::Inferred);
    let radius = plan.radius as usize;
    let window = 2 * plan.radius + 1;
    let padded = b.temporary_f32(&[rows, depth + 2 * radius, 1, 1]);
    b.push(NodeOp::StaticConstantPad {
        pre_paddings: vec![0, radius, 0, 0],
        post_paddings: vec![0, radius, 0, 0],
        padding_value: 0.0,
        input: image,
        output: padded,
    });
    let means = b.temporary_f32(&[rows, depth, 1, 1]);
    b.push(NodeOp::AveragePooling2d(Pooling2d {
        padding: Padding2d::default(),
        kernel: Size2d { height: window, width: 1 },
        stride: Size2d::ONE,
        dilation: Size2d::ONE,
        input: padded,
        output: means,
    }));
    let means = reshaped(b, means, &dims, LeadingDim::Inferred);
    let factor = b.scalar(plan.alpha * window as f32);
    let (bias, exponent) = (b.scalar(plan.bias), b.scalar(-plan.beta));
    let scaled = b.f32_binary(BinaryOp::Multiply, [means, factor]);
    let base = b.f32_binary(BinaryOp::Add, [scaled, bias]);
    let power = b.f32_binary(BinaryOp::Pow, [base, exponent]);
    let output = b.value(plan.output);
    binary(b, BinaryOp::Multiply, [input, power], output);
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
