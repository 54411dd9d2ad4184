//! Softmax, in floats.

use xnn_format::{BinaryOp, NodeOp};

use super::builder::Builder;
use crate::partition::rules::softmax::Softmax;

pub(super) fn softmax(b: &mut Builder<'_>, plan: &Softmax) {
    let mut input = b.as_f32(plan.input);
    #[allow(clippy::float_cmp, reason = "exactly 1 changes nothing")]
    if plan.beta != 1.0 {
        let beta = b.scalar(plan.beta);
        let scaled = b.temporary_f32(b.dims(plan.input));
        b.push(NodeOp::Binary { op: BinaryOp::Multiply, inputs: [input, beta], output: scaled });
        input = scaled;
    }
    let output = b.start_f32(plan.output);
    b.push(NodeOp::Softmax { input, output });
    b.finish_f32(output, plan.output);
}
