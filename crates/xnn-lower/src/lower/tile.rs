//! Lowers operators that repeat elements.

use xnn_format::ValueId;

use super::builder::Builder;
use super::shape::{MAX_CONCATENATED, join, reshape_to, reshaped};
use crate::rules::tile::Tile;

/// Repeats along one dimension after the other, the innermost first, so that copies are long.
pub(super) fn tile(b: &mut Builder<'_>, plan: &Tile) {
    let input = b.value(plan.input);
    let dims: Vec<usize> = plan.repeats.iter().map(|(dim, _)| *dim).collect();
    let mut value = reshaped(b, input, &dims, plan.leading);
    for (axis, &(_, times)) in plan.repeats.iter().enumerate().rev() {
        value = copies(b, value, axis, times);
    }
    let output = b.value(plan.output);
    reshape_to(b, value, output, plan.leading);
}

/// Copies of a value joined along an axis. Many copies are copies of copies.
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
