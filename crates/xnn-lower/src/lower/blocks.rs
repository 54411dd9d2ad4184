//! Operators that move blocks of pixels.

use xnn_format::{NodeOp, UnaryOp};

use super::builder::Builder;
use super::shape::{reshape_to, reshaped};
use crate::rules::blocks::{BatchBlocks, Blocks};
use crate::rules::shape::First;

pub(super) fn blocks(b: &mut Builder<'_>, plan: &Blocks) {
    let (input, output, block_size) = (b.value(plan.input), b.value(plan.output), plan.block_size);
    if block_size == 1 {
        b.unary(UnaryOp::Copy, input, output);
        return;
    }
    b.push(if plan.to_depth {
        NodeOp::SpaceToDepth2d { block_size, input, output }
    } else {
        NodeOp::DepthToSpace2d { block_size, input, output }
    });
}

/// A pad or a slice around a transpose of six dimensions.
pub(super) fn batch_blocks(b: &mut Builder<'_>, plan: &BatchBlocks) {
    let ([bh, bw], [top, bottom, left, right]) = (plan.block, plan.border);
    let input = b.value(plan.input);
    let output = b.value(plan.output);
    let [n, h, w, c] = <[usize; 4]>::try_from(b.dims(plan.input)).unwrap_or_default();
    if plan.to_batch {
        let (h, w) = (h + top + bottom, w + left + right);
        let padded = b.temporary_like(input, &[n, h, w, c]);
        b.push(NodeOp::StaticConstantPad {
            pre_paddings: vec![0, top, left, 0],
            post_paddings: vec![0, bottom, right, 0],
            padding_value: 0.0,
            input,
            output: padded,
        });
        let split = reshaped(b, padded, &[n, h / bh, bh, w / bw, bw, c], First::Batch);
        let moved = b.temporary_like(input, &[bh, bw, n, h / bh, w / bw, c]);
        b.push(NodeOp::StaticTranspose {
            perm: vec![2, 4, 0, 1, 3, 5],
            input: split,
            output: moved,
        });
        reshape_to(b, moved, output, First::Batch);
    } else {
        let n = n / (bh * bw);
        let split = b.temporary_like(input, &[bh, bw, n, h, w, c]);
        // The batch is what the blocks leave of it.
        let new_shape = vec![bh, bw, 0, h, w, c];
        b.push(NodeOp::StaticReshape { new_shape, input, output: split });
        let moved = b.temporary_like(input, &[n, h, bh, w, bw, c]);
        b.push(NodeOp::StaticTranspose {
            perm: vec![2, 3, 0, 4, 1, 5],
            input: split,
            output: moved,
        });
        let joined = reshaped(b, moved, &[n, h * bh, w * bw, c], First::Batch);
        b.push(NodeOp::StaticSlice {
            offsets: vec![0, top, left, 0],
            sizes: vec![0, h * bh - top - bottom, w * bw - left - right, 0],
            input: joined,
            output,
        });
    }
}
