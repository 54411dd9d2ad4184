//! Operators that repeat elements: copies joined side by side.

use xnn_format::ValueId;

use super::builder::Builder;
use super::shape::{MAX_CONCATENATED, join, reshape_to, reshaped};
use crate::rules::shape::First;
use crate::rules::tile::{Enlarge, Tile};

pub(super) fn tile(b: &mut Builder<'_>, plan: &Tile) {
    let input = b.value(plan.input);
    // A dimension that is new or repeated has its length from the model.
    let keeps_batch = b.dims(plan.input).len() == plan.repeats.len()
        && plan.repeats.first().is_some_and(|&(_, times)| times == 1);
    repeat(b, input, &plan.repeats, plan.output, First::batch_if(keeps_batch));
}

/// Each pixel becomes a block of equal pixels.
pub(super) fn enlarge(b: &mut Builder<'_>, plan: &Enlarge) {
    let input = b.value(plan.input);
    let [fh, fw] = plan.factors;
    let repeats: Vec<(usize, usize)> = match *b.dims(plan.input) {
        [n, h, w, c] => vec![(n, 1), (h, 1), (1, fh), (w, 1), (1, fw), (c, 1)],
        _ => Vec::new(),
    };
    repeat(b, input, &repeats, plan.output, First::Batch);
}

/// Repeats along dimensions one after the other, the innermost first, so that
/// copies are long.
fn repeat(
    b: &mut Builder<'_>,
    input: ValueId,
    repeats: &[(usize, usize)],
    output: xnn_model::TensorId,
    first: First,
) {
    let dims: Vec<usize> = repeats.iter().map(|(dim, _)| *dim).collect();
    let mut value = reshaped(b, input, &dims, first);
    for (axis, &(_, times)) in repeats.iter().enumerate().rev() {
        if times == 1 {
            continue;
        }
        value = copies(b, value, axis, times);
    }
    let output = b.value(output);
    reshape_to(b, value, output, first);
}

/// A value side by side with itself; many copies are copies of copies.
pub(super) fn copies(b: &mut Builder<'_>, value: ValueId, axis: usize, times: usize) -> ValueId {
    let parts = match times {
        1 => return value,
        2..=MAX_CONCATENATED => vec![value; times],
        _ => {
            let mut parts =
                vec![copies(b, value, axis, times / MAX_CONCATENATED); MAX_CONCATENATED];
            if !times.is_multiple_of(MAX_CONCATENATED) {
                parts.push(copies(b, value, axis, times % MAX_CONCATENATED));
            }
            parts
        }
    };
    let mut dims = b.value_dims(value);
    dims[axis] *= times;
    let output = b.temporary_like(value, &dims);
    join(b, parts, axis, output);
    output
}
