//! Normalizations over the last dimension, put together in floats.

use xnn_format::{BinaryOp, NodeOp, ReduceOp, UnaryOp, ValueId, flags};

use super::builder::Builder;
use super::reduce::pooled_max;
use crate::partition::rules::normalization::{Normalization, NormalizationKind};

pub(super) fn normalization(b: &mut Builder<'_>, plan: &Normalization) {
    let input = b.as_f32(plan.input);
    let output = b.start_f32(plan.output);
    match plan.kind {
        NormalizationKind::LogSoftmax => log_softmax(b, input, output),
        NormalizationKind::L2 => l2(b, input, output),
    }
    b.finish_f32(output, plan.output);
}

/// TFLite's guard against division by zero.
const L2_EPSILON: f32 = 1e-6;

fn l2(b: &mut Builder<'_>, input: ValueId, output: ValueId) {
    let dims = b.value_dims(input);
    let squares = b.temporary_f32(&dims);
    b.unary(UnaryOp::Square, input, squares);
    let sum = sum(b, squares);
    let norm = b.temporary_f32(&b.value_dims(sum));
    b.unary(UnaryOp::SquareRoot, sum, norm);
    let epsilon = b.scalar(L2_EPSILON);
    let guarded = b.temporary_f32(&b.value_dims(norm));
    binary(b, BinaryOp::Maximum, [norm, epsilon], guarded);
    binary(b, BinaryOp::Divide, [input, guarded], output);
}

fn log_softmax(b: &mut Builder<'_>, input: ValueId, output: ValueId) {
    let dims = b.value_dims(input);
    let last = dims.len() - 1;
    let mut kept = dims.clone();
    kept[last] = 1;
    let max = b.temporary_f32(&kept);
    pooled_max(b, input, &[last], max);
    let shifted = b.temporary_f32(&dims);
    binary(b, BinaryOp::Subtract, [input, max], shifted);
    let exponentials = b.temporary_f32(&dims);
    b.unary(UnaryOp::Exp, shifted, exponentials);
    let sum = sum(b, exponentials);
    let log = b.temporary_f32(&kept);
    b.unary(UnaryOp::Log, sum, log);
    binary(b, BinaryOp::Subtract, [shifted, log], output);
}

/// The sum over the last dimension, which stays with size 1.
fn sum(b: &mut Builder<'_>, input: ValueId) -> ValueId {
    let mut dims = b.value_dims(input);
    let last = dims.len() - 1;
    dims[last] = 1;
    let output = b.temporary_f32(&dims);
    b.push(NodeOp::StaticReduce { op: ReduceOp::Sum, axes: vec![last], input, output }).flags =
        flags::KEEP_DIMS;
    output
}

fn binary(b: &mut Builder<'_>, op: BinaryOp, inputs: [ValueId; 2], output: ValueId) {
    b.push(NodeOp::Binary { op, inputs, output });
}
