//! Lowers SOFTMAX, in floats.

use xnn_format::{BinaryOp, Datatype, NodeOp, Quantization, UnaryOp, ValueId};

use super::builder::Builder;
use super::reduce::pooled_max;
use crate::fold;
use crate::rules::activation::RELU;
use crate::rules::softmax::{Softmax, SoftmaxForm};

pub(super) fn softmax(b: &mut Builder<'_>, plan: &Softmax) {
    let input = b.as_f32(plan.input);
    let output = b.start_f32(plan.output);
    match plan.form {
        SoftmaxForm::Node => {
            b.push(NodeOp::Softmax { input, output });
        }
        SoftmaxForm::ScaledNode => {
            let differences = minus_largest(b, input);
            let input = scaled(b, plan.beta, differences);
            b.push(NodeOp::Softmax { input, output });
        }
        SoftmaxForm::TwoClasses { may_be_infinite } => {
            two_classes(b, plan.beta, may_be_infinite, input, output);
        }
        SoftmaxForm::FewClasses => few_classes(b, plan.beta, input, output),
    }
    b.finish_f32(output, plan.output);
}

/// Subtracts the largest logit of each row. This comes before scaling, where large floats would
/// overflow or lose the digits in which they differ.
fn minus_largest(b: &mut Builder<'_>, logits: ValueId) -> ValueId {
    let mut dims = b.value_dims(logits);
    let last = dims.len() - 1;
    dims[last] = 1;
    let largest = b.temporary_f32(&dims);
    pooled_max(b, logits, &[last], largest);
    b.f32_binary(BinaryOp::Subtract, [logits, largest])
}

fn scaled(b: &mut Builder<'_>, beta: f32, logits: ValueId) -> ValueId {
    #[allow(clippy::float_cmp, reason = "exactly 1 changes nothing")]
    if beta == 1.0 {
        return logits;
    }
    let beta = b.scalar(beta);
    b.f32_binary(BinaryOp::Multiply, [logits, beta])
}

/// Logits are bounded, so their maximum need not be subtracted. A product with ones has the sum of
/// a row's exponentials in each element.
fn few_classes(b: &mut Builder<'_>, beta: f32, input: ValueId, output: ValueId) {
    let input = scaled(b, beta, input);
    let exponentials = b.f32_unary(UnaryOp::Exp, input);
    let count = b.value_dims(input).last().copied().unwrap_or(1);
    let sums = product(b, exponentials, &vec![1.0; count * count]);
    b.push(NodeOp::Binary { op: BinaryOp::Divide, inputs: [exponentials, sums], output });
}

/// The probability of each class is the logistic function of the difference of its logit and the
/// other.
fn two_classes(
    b: &mut Builder<'_>,
    beta: f32,
    may_be_infinite: bool,
    input: ValueId,
    output: ValueId,
) {
    let mut difference = product(b, input, &[1.0, -1.0, -1.0, 1.0]);
    if may_be_infinite {
        // Interpreters subtract the largest logit, so that a row with infinity becomes NaN. Zero
        // times infinity is NaN, too.
        let positive = b.temporary_f32(&b.value_dims(input));
        b.unary(UnaryOp::Clamp, input, positive).output_range = Some(RELU);
        let zero_or_nan = product(b, positive, &[0.0; 4]);
        difference = b.f32_binary(BinaryOp::Add, [difference, zero_or_nan]);
    }
    let difference = scaled(b, beta, difference);
    b.unary(UnaryOp::Sigmoid, difference, output);
}

/// Multiplies rows by a square matrix.
fn product(b: &mut Builder<'_>, input: ValueId, matrix: &[f32]) -> ValueId {
    let dims = b.value_dims(input);
    let count = dims.last().copied().unwrap_or(1);
    let matrix = fold::to_bytes(matrix);
    let filter = b.constant(Datatype::F32, Quantization::None, &[count, count], matrix);
    let output = b.temporary_f32(&dims);
    b.push(NodeOp::FullyConnected { input, filter, bias: None, output, sparse: false });
    output
}
