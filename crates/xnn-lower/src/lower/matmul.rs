//! Lowers BATCH_MATMUL.

use xnn_format::{NodeOp, flags};

use super::builder::Builder;
use crate::rules::matmul::MatMul;

pub(super) fn matmul(b: &mut Builder<'_>, plan: &MatMul) {
    let [mut left, right] = plan.inputs.map(|id| b.as_f32(id));
    let [transpose_left, transpose_right] = plan.transpose;
    if transpose_left {
        let mut dims = b.value_dims(left);
        let mut perm: Vec<usize> = (0..dims.len()).collect();
        let rank = dims.len();
        perm.swap(rank - 2, rank - 1);
        dims.swap(rank - 2, rank - 1);
        let output = b.temporary_like(left, &dims);
        b.push(NodeOp::StaticTranspose { perm, input: left, output });
        left = output;
    }
    let output = b.start_f32(plan.output);
    let node = b.push(NodeOp::BatchMatrixMultiply { inputs: [left, right], output });
    node.flags = if transpose_right { flags::TRANSPOSE_WEIGHTS } else { 0 };
    b.finish_f32(output, plan.output);
}
