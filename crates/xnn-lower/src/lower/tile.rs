//! Operators that repeat elements: copies joined side by side.

use xnn_format::{NodeOp, ValueId};

use super::builder::Builder;
use super::shape::{join, reshaped};
use crate::partition::rules::tile::{Enlarge, MirrorPad, Tile};

pub(super) fn tile(b: &mut Builder<'_>, plan: &Tile) {
    let input = b.value(plan.input);
    repeat(b, input, &plan.repeats, plan.output);
}

/// Each pixel becomes a block of equal pixels.
pub(super) fn enlarge(b: &mut Builder<'_>, plan: &Enlarge) {
    let input = b.value(plan.input);
    let [fh, fw] = plan.factors;
    let repeats: Vec<(usize, usize)> = match *b.dims(plan.input) {
        [n, h, w, c] => vec![(n, 1), (h, 1), (1, fh), (w, 1), (1, fw), (c, 1)],
        _ => Vec::new(),
    };
    repeat(b, input, &repeats, plan.output);
}

/// Repeats along dimensions one after the other, the innermost first, so that
/// copies are long.
fn repeat(
    b: &mut Builder<'_>,
    input: ValueId,
    repeats: &[(usize, usize)],
    output: xnn_model::TensorId,
) {
    let mut dims: Vec<usize> = repeats.iter().map(|(dim, _)| *dim).collect();
    let mut value = reshaped(b, input, &dims);
    for (axis, &(dim, times)) in repeats.iter().enumerate().rev() {
        if times == 1 {
            continue;
        }
        dims[axis] = dim * times;
        let repeated = b.temporary_like(value, &dims);
        join(b, vec![value; times], axis, repeated);
        value = repeated;
    }
    let new_shape = b.dims(output).to_vec();
    let output = b.value(output);
    b.push(NodeOp::StaticReshape { new_shape, input: value, output });
}

/// The border is put together of slices of one element each.
pub(super) fn mirror_pad(b: &mut Builder<'_>, plan: &MirrorPad) {
    let mut value = b.value(plan.input);
    for (axis, &[before, behind]) in plan.paddings.iter().enumerate() {
        if before == 0 && behind == 0 {
            continue;
        }
        let mut dims = b.value_dims(value);
        let size = dims[axis];
        let first = (0..before).rev().map(|i| i + plan.skip);
        let last = (0..behind).map(|i| size - 1 - plan.skip - i);
        let mut parts: Vec<ValueId> = first.map(|at| line(b, value, axis, at)).collect();
        parts.push(value);
        parts.extend(last.map(|at| line(b, value, axis, at)));
        dims[axis] = before + size + behind;
        let padded = b.temporary_like(value, &dims);
        join(b, parts, axis, padded);
        value = padded;
    }
    let output = b.value(plan.output);
    b.unary(xnn_format::UnaryOp::Copy, value, output);
}

/// The slice of size 1 at `at` along `axis`.
fn line(b: &mut Builder<'_>, input: ValueId, axis: usize, at: usize) -> ValueId {
    let mut sizes = b.value_dims(input);
    let mut offsets = vec![0; sizes.len()];
    (offsets[axis], sizes[axis]) = (at, 1);
    let output = b.temporary_like(input, &sizes);
    b.push(NodeOp::StaticSlice { offsets, sizes, input, output });
    output
}
