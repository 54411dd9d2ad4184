//! Softmax, in floats.

use xnn_format::{BinaryOp, Datatype, NodeOp, Quantization, UnaryOp, ValueId};
use xnn_model::DType;

use super::builder::Builder;
use super::reduce::pooled_max;
use crate::fold;
use crate::rules::checks;
use crate::rules::softmax::Softmax;

/// From so many rows on, a product of two matrices is faster than a call of kernels for each row.
const MANY_ROWS: usize = 4;

/// Up to so many classes a product with all of them is faster, too.
const FEW_CLASSES: usize = 32;

/// Exponentials of numbers up to here, and sums of a few of them, are far from the limits of floats.
const MAX_LOGIT: f32 = 80.0;

pub(super) fn softmax(b: &mut Builder<'_>, plan: &Softmax) {
    let input = b.as_f32(plan.input);
    let output = b.start_f32(plan.output);
    let (count, rows) = b
        .dims(plan.input)
        .split_last()
        .map_or((1, 1), |(&count, rows)| (count, rows.iter().product::<usize>()));
    let is_bounded = plan.bound.is_some_and(|bound| bound <= MAX_LOGIT);
    match count {
        2 if rows >= MANY_ROWS => {
            let may_be_infinite = b.tensor(plan.input).dtype == DType::F32;
            two_classes(b, plan.beta, may_be_infinite, input, output);
        }
        ..=FEW_CLASSES if rows >= MANY_ROWS && is_bounded => {
            few_classes(b, plan.beta, input, output);
        }
        _ => classes(b, plan.beta, input, output),
    }
    b.finish_f32(output, plan.output);
}

fn classes(b: &mut Builder<'_>, beta: f32, mut input: ValueId, output: ValueId) {
    if !is_one(beta) {
        let behind = behind_largest(b, input);
        input = scaled(b, beta, behind);
    }
    b.push(NodeOp::Softmax { input, output });
}

/// How far logits are behind the largest of their row. It is taken off before they are scaled: the largest floats would
/// overflow, and large ones lose the digits in which they differ.
fn behind_largest(b: &mut Builder<'_>, logits: ValueId) -> ValueId {
    let mut dims = b.value_dims(logits);
    let last = dims.len() - 1;
    dims[last] = 1;
    let largest = b.temporary_f32(&dims);
    pooled_max(b, logits, &[last], largest);
    b.f32_binary(BinaryOp::Subtract, [logits, largest])
}

fn scaled(b: &mut Builder<'_>, beta: f32, logits: ValueId) -> ValueId {
    if is_one(beta) {
        return logits;
    }
    let beta = b.scalar(beta);
    b.f32_binary(BinaryOp::Multiply, [logits, beta])
}

#[allow(clippy::float_cmp, reason = "exactly 1 changes nothing")]
fn is_one(beta: f32) -> bool {
    beta == 1.0
}

/// With logits that are bounded, their maximum need not be taken off; a product with ones has the sum of a row's
/// exponentials in each place.
fn few_classes(b: &mut Builder<'_>, beta: f32, input: ValueId, output: ValueId) {
    let input = scaled(b, beta, input);
    let exponentials = b.f32_unary(UnaryOp::Exp, input);
    let count = b.value_dims(input).last().copied().unwrap_or(1);
    let sums = product(b, exponentials, &vec![1.0; count * count]);
    b.push(NodeOp::Binary { op: BinaryOp::Divide, inputs: [exponentials, sums], output });
}

/// With two classes, each is the logistic function of how far it is ahead of the other. XNNPACK's
/// softmax calls three kernels for each row, which cost more than such rows take.
fn two_classes(
    b: &mut Builder<'_>,
    beta: f32,
    may_be_infinite: bool,
    input: ValueId,
    output: ValueId,
) {
    let mut ahead = product(b, input, &[1.0, -1.0, -1.0, 1.0]);
    if may_be_infinite {
        // Of a row with an infinite logit nothing is left but NaN: the largest has been taken off. Zero times infinity is
        // NaN, too.
        let positive = b.temporary_f32(&b.value_dims(input));
        b.unary(UnaryOp::Clamp, input, positive).output_range = Some(checks::RELU);
        let nothing = product(b, positive, &[0.0; 4]);
        ahead = b.f32_binary(BinaryOp::Add, [ahead, nothing]);
    }
    let ahead = scaled(b, beta, ahead);
    b.unary(UnaryOp::Sigmoid, ahead, output);
}

/// Rows multiplied with a square matrix.
fn product(b: &mut Builder<'_>, input: ValueId, matrix: &[f32]) -> ValueId {
    let dims = b.value_dims(input);
    let count = dims.last().copied().unwrap_or(1);
    let matrix = fold::to_bytes(matrix);
    let filter = b.constant(Datatype::F32, Quantization::None, &[count, count], matrix);
    let output = b.temporary_f32(&dims);
    b.push(NodeOp::FullyConnected { input, filter, bias: None, output, sparse: false });
    output
}
