//! Softmax, in floats.

use xnn_format::{BinaryOp, Datatype, NodeOp, Quantization, UnaryOp, ValueId};

use super::builder::Builder;
use crate::fold;
use crate::partition::rules::softmax::Softmax;

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
        2 if rows >= MANY_ROWS => two_classes(b, plan.beta, input, output),
        ..=FEW_CLASSES if rows >= MANY_ROWS && is_bounded => {
            few_classes(b, plan.beta, input, output);
        }
        _ => classes(b, plan.beta, input, output),
    }
    b.finish_f32(output, plan.output);
}

fn classes(b: &mut Builder<'_>, beta: f32, input: ValueId, output: ValueId) {
    let input = scaled(b, beta, input);
    b.push(NodeOp::Softmax { input, output });
}

fn scaled(b: &mut Builder<'_>, beta: f32, logits: ValueId) -> ValueId {
    #[allow(clippy::float_cmp, reason = "exactly 1 changes nothing")]
    if beta == 1.0 {
        return logits;
    }
    let beta = b.scalar(beta);
    b.f32_binary(BinaryOp::Multiply, [logits, beta])
}

/// With logits that are bounded, their maximum need not be taken off; a product with ones has the sum of a row's
/// exponentials in each place.
fn few_classes(b: &mut Builder<'_>, beta: f32, input: ValueId, output: ValueId) {
    let input = scaled(b, beta, input);
    let exponentials = b.f32_unary(UnaryOp::Exp, input);
    let dims = b.value_dims(input);
    let count = dims.last().copied().unwrap_or(1);
    let ones = fold::to_bytes(&vec![1.0f32; count * count]);
    let filter = b.constant(Datatype::F32, Quantization::None, &[count, count], ones);
    let sums = b.temporary_f32(&dims);
    let sparse = false;
    let input = exponentials;
    b.push(NodeOp::FullyConnected { input, filter, bias: None, output: sums, sparse });
    b.push(NodeOp::Binary { op: BinaryOp::Divide, inputs: [exponentials, sums], output });
}

/// With two classes, each is the logistic function of how far it is ahead of the other. XNNPACK's
/// softmax calls three kernels for each row, which cost more than such rows take.
fn two_classes(b: &mut Builder<'_>, beta: f32, input: ValueId, output: ValueId) {
    let matrix = fold::to_bytes(&[beta, -beta, -beta, beta]);
    let filter = b.constant(Datatype::F32, Quantization::None, &[2, 2], matrix);
    let ahead = b.temporary_f32(&b.value_dims(input));
    let sparse = false;
    b.push(NodeOp::FullyConnected { input, filter, bias: None, output: ahead, sparse });
    b.unary(UnaryOp::Sigmoid, ahead, output);
}
