//! Lowers operators that move blocks of pixels.

use xnn_format::{NodeOp, UnaryOp};

use super::builder::Builder;
use super::shape::{reshape_to, reshaped};
use crate::rules::blocks::{BatchBlocks, BatchBlocksDirection, Blocks, BlocksForm};
use crate::rules::shape::LeadingDim;

pub(super) fn blocks(b: &mut Builder<'_>, plan: &Blocks) {
    let (input, output, block_size) = (b.value(plan.input), b.value(plan.output), plan.block_size);
    b.push(match plan.form {
        BlocksForm::Copy => NodeOp::Unary { op: UnaryOp::Copy, input, output },
        BlocksForm::SpaceToDepth => NodeOp::SpaceToDepth2d { block_size, input, output },
        BlocksForm::DepthToSpace => NodeOp::DepthToSpace2d { block_size, input, output },
    });
}

pub(super) fn batch_blocks(b: &mut Builder<'_>, plan: &BatchBlocks) {
    match plan.direction {
        BatchBlocksDirection::ToBatch => space_to_batch(b, plan),
        BatchBlocksDirection::ToSpace => batch_to_space(b, plan),
    }
}

/// A pad, then a transpose of six dimensions.
fn space_to_batch(b: &mut Builder<'_>, plan: &BatchBlocks) {
    let ([bh, bw], [top, bottom, left, right]) = (plan.block, plan.border);
    let input = b.value(plan.input);
    let output = b.value(plan.output);
    let [n, h, w, c] = <[usize; 4]>::try_from(b.dims(plan.input)).unwrap_or_default();
    let (h, w) = (h + top + bottom, w + left + right);
    let padded = b.temporary_like(input, &[n, h, w, c]);
    b.push(NodeOp::StaticConstantPad {
        pre_paddings: vec![0, top, left, 0],
        post_paddings: vec![0, bottom, right, 0],
        padding_value: 0.0,
        input,
        output: padded,
    });
    let split = reshaped(b, padded, &[n, h / bh, bh, w / bw, bw, c], LeadingDim::Inferred);
    let moved = b.temporary_like(input, &[bh, bw, n, h / bh, w / bw, c]);
    let perm = vec![2, 4, 0, 1, 3, 5];
    b.push(NodeOp::StaticTranspose { perm, input: split, output: moved });
    reshape_to(b, moved, output, LeadingDim::Inferred);
}

/// A transpose of six dimensions, then a slice.
fn batch_to_space(b: &mut Builder<'_>, plan: &BatchBlocks) {
    let ([bh, bw], [top, bottom, left, right]) = (plan.block, plan.border);
    let input = b.value(plan.input);
    let output = b.value(plan.output);
    let [n, h, w, c] = <[usize; 4]>::try_from(b.dims(plan.input)).unwrap_or_default();
    let n = n / (bh * bw);
    let split = b.temporary_like(input, &[bh, bw, n, h, w, c]);
    // The batch is inferred.
    let new_shape = vec![bh, bw, 0, h, w, c];
    b.push(NodeOp::StaticReshape { new_shape, input, output: split });
    let moved = b.temporary_like(input, &[n, h, bh, w, bw, c]);
    let perm = vec![2, 3, 0, 4, 1, 5];
    b.push(NodeOp::StaticTranspose { perm, input: split, output: moved });
    let joined = reshaped(b, moved, &[n, h * bh, w * bw, c], LeadingDim::Inferred);
    b.push(NodeOp::StaticSlice {
        offsets: vec![0, top, left, 0],
        sizes: vec![0, h * bh - top - bottom, w * bw - left - right, 0],
        input: joined,
        output,
    });
}
