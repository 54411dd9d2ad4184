//! Lowers BATCH_MATMUL.

use xnn_format::{NodeOp, ValueId, flags};

use super::builder::Builder;
use super::shape::transposed;
use super::weights::{matrix_filter, min_weight_scale, quantized_at_run_time};
use crate::rules::matmul::{MatMul, MatMulForm};

pub(super) fn matmul(b: &mut Builder<'_>, plan: &MatMul) {
    let [left, right] = plan.inputs;
    let [transpose_left, transpose_right] = plan.transpose;
    let mut left = match plan.form {
        MatMulForm::PerChannel => b.value(left),
        MatMulForm::DynamicRows | MatMulForm::Floats => b.as_f32(left),
    };
    if transpose_left {
        let rank = b.value_dims(left).len();
        let mut perm: Vec<usize> = (0..rank).collect();
        perm.swap(rank - 2, rank - 1);
        left = transposed(b, left, &perm);
    }
    match plan.form {
        MatMulForm::DynamicRows => {
            let input = quantized_at_run_time(b, left, 1);
            layer(b, plan, input, 0.0);
        }
        MatMulForm::PerChannel => {
            let min_scale = min_weight_scale(b, plan.inputs[0], plan.output);
            layer(b, plan, left, min_scale);
        }
        MatMulForm::Floats => {
            let (right, output) = (b.as_f32(right), b.start_f32(plan.output));
            let node = b.push(NodeOp::BatchMatrixMultiply { inputs: [left, right], output });
            node.flags = if transpose_right { flags::TRANSPOSE_WEIGHTS } else { 0 };
            b.finish_f32(output, plan.output);
        }
    }
}

/// A fully connected layer with the right operand as weights, whose scales are raised to `min_scale`.
fn layer(b: &mut Builder<'_>, plan: &MatMul, input: ValueId, min_scale: f32) {
    let filter = matrix_filter(b, plan.inputs[1], plan.transpose[1], min_scale);
    let output = b.value(plan.output);
    b.push(NodeOp::FullyConnected { input, filter, bias: None, output, sparse: false });
}
