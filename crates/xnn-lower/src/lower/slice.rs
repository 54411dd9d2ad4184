//! Lowers slices and updates of slices.

use xnn_format::{NodeOp, ValueId};

use super::builder::Builder;
use super::shape::{copied, join, reshape_to};
use crate::rules::slice::{Slice, Update};

pub(super) fn slice(b: &mut Builder<'_>, plan: &Slice) {
    let input = b.value(plan.input);
    for cut in &plan.cuts {
        let output = b.value(cut.output);
        let (offsets, sizes) = (cut.offsets.clone(), cut.sizes.clone());
        let Some(leading) = cut.reshaped else {
            b.push(NodeOp::StaticSlice { offsets, sizes, input, output });
            continue;
        };
        let dims = b.value_dims(input).into_iter().zip(&sizes);
        let dims: Vec<usize> =
            dims.map(|(dim, &size)| if size == 0 { dim } else { size }).collect();
        let boxed = b.temporary_like(input, &dims);
        b.push(NodeOp::StaticSlice { offsets, sizes, input, output: boxed });
        reshape_to(b, boxed, output, leading);
    }
}

/// `length` elements from `start` on along an axis, or the value itself if it has no others.
pub(super) fn sliced(
    b: &mut Builder<'_>,
    input: ValueId,
    axis: usize,
    start: usize,
    length: usize,
) -> ValueId {
    if b.value_dims(input)[axis] == length {
        return input;
    }
    cut(b, input, axis, start, length)
}

/// A slice of `length` elements from `start` on along an axis, whose other dimensions may vary.
pub(super) fn cut(
    b: &mut Builder<'_>,
    input: ValueId,
    axis: usize,
    start: usize,
    length: usize,
) -> ValueId {
    let mut dims = b.value_dims(input);
    dims[axis] = length;
    let output = b.temporary_like(input, &dims);
    let (mut offsets, mut sizes) = (vec![0; dims.len()], vec![0; dims.len()]);
    (offsets[axis], sizes[axis]) = (start, length);
    b.push(NodeOp::StaticSlice { offsets, sizes, input, output });
    output
}

pub(super) fn update(b: &mut Builder<'_>, plan: &Update) {
    let (operand, update) = (b.value(plan.operand), b.value(plan.update));
    let result = replaced(b, operand, update, &plan.starts);
    copied(b, result, plan.output);
}

/// `whole` with `part` in place of the box at `starts`. Along the first axis that the box does not
/// fill, the parts before and after the box are joined with the replacement, which recursion builds
/// along the other axes.
fn replaced(b: &mut Builder<'_>, whole: ValueId, part: ValueId, starts: &[usize]) -> ValueId {
    let (dims, box_dims) = (b.value_dims(whole), b.value_dims(part));
    let mut open = (0..dims.len()).filter(|&axis| dims[axis] != box_dims[axis]);
    let Some(axis) = open.next() else { return part };
    let (start, end) = (starts[axis], starts[axis] + box_dims[axis]);
    let middle = if open.next().is_some() {
        let middle = sliced(b, whole, axis, start, box_dims[axis]);
        replaced(b, middle, part, starts)
    } else {
        part
    };
    let mut parts = Vec::new();
    if start > 0 {
        parts.push(sliced(b, whole, axis, 0, start));
    }
    parts.push(middle);
    if end < dims[axis] {
        parts.push(sliced(b, whole, axis, end, dims[axis] - end));
    }
    let output = b.temporary_like(whole, &dims);
    join(b, parts, axis, output);
    output
}
