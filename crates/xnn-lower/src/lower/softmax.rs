//! Softmax, in floats.

use xnn_format::{BinaryOp, Datatype, NodeOp, Quantization, UnaryOp, ValueId};

use super::builder::Builder;
use crate::fold;
use crate::partition::rules::softmax::Softmax;

/// From so many rows on, a product of two matrices is faster than a call of kernels for each row.
const MANY_ROWS: usize = 4;

pub(super) fn softmax(b: &mut Builder<'_>, plan: &Softmax) {
    let input = b.as_f32(plan.input);
    let output = b.start_f32(plan.output);
    match b.dims(plan.input).split_last() {
        Some((2, rows)) if rows.iter().product::<usize>() >= MANY_ROWS => {
            two_classes(b, plan.beta, input, output);
        }
        _ => classes(b, plan.beta, input, output),
    }
    b.finish_f32(output, plan.output);
}

fn classes(b: &mut Builder<'_>, beta: f32, mut input: ValueId, output: ValueId) {
    #[allow(clippy::float_cmp, reason = "exactly 1 changes nothing")]
    if beta != 1.0 {
        let beta = b.scalar(beta);
        input = b.f32_binary(BinaryOp::Multiply, [input, beta]);
    }
    b.push(NodeOp::Softmax { input, output });
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
