//! Slices put together in another order.

use xnn_format::{NodeOp, ValueId};

use super::builder::Builder;
use super::shape::{join, reshape_to, reshaped};
use super::slice::{cut, sliced};
use crate::rules::gather::{Gather, Run};
use crate::rules::shape::First;

pub(super) fn gather(b: &mut Builder<'_>, plan: &Gather) {
    let mut value = b.value(plan.input);
    for (axis, runs) in &plan.axes {
        value = gather_axis(b, value, *axis, runs);
    }
    let output = b.value(plan.output);
    reshape_to(b, value, output, plan.first);
}

/// The runs along an axis, which cannot become longer.
pub(super) fn gather_axis(
    b: &mut Builder<'_>,
    input: ValueId,
    axis: usize,
    runs: &[Run],
) -> ValueId {
    let mut parts: Vec<ValueId> = runs.iter().map(|run| part(b, input, axis, *run)).collect();
    if parts.iter().all(|&part| part == input) {
        let whole = cut(b, input, axis, 0, b.value_dims(input)[axis]);
        parts.fill(whole);
    }
    if let [part] = *parts {
        return part;
    }
    let mut dims = b.value_dims(input);
    dims[axis] = runs.iter().map(Run::length).sum();
    let output = b.temporary_like(input, &dims);
    join(b, parts, axis, output);
    output
}

fn part(b: &mut Builder<'_>, input: ValueId, axis: usize, run: Run) -> ValueId {
    let mut dims = b.value_dims(input);
    let Run { start, width, step, count } = run;
    if count == 1 || width == step {
        return sliced(b, input, axis, start, run.length());
    }
    if width > step {
        return overlapping(b, input, axis, run);
    }
    // What lies between the elements goes with them, and is cut off where it is an axis of its own.
    let length = (count * step).min(dims[axis] - start);
    let mut value = sliced(b, input, axis, start, length);
    if length < count * step {
        dims[axis] = count * step;
        let padded = b.temporary_like(value, &dims);
        let mut post_paddings = vec![0; dims.len()];
        post_paddings[axis] = count * step - length;
        b.push(NodeOp::StaticConstantPad {
            pre_paddings: vec![0; dims.len()],
            post_paddings,
            padding_value: 0.0,
            input: value,
            output: padded,
        });
        value = padded;
    }
    let [outer, inner] = [&dims[..axis], &dims[axis + 1..]].map(|part| part.iter().product());
    let groups = reshaped(b, value, &[outer, count, step, inner], First::batch_if(axis > 0));
    let first = sliced(b, groups, 2, 0, width);
    dims[axis] = run.length();
    reshaped(b, first, &dims, First::batch_if(axis > 0))
}

/// Frames that overlap are put together of blocks that do not.
fn overlapping(b: &mut Builder<'_>, input: ValueId, axis: usize, run: Run) -> ValueId {
    let mut dims = b.value_dims(input);
    let [outer, inner] = [&dims[..axis], &dims[axis + 1..]].map(|part| part.iter().product());
    let blocks: Vec<ValueId> = (0..run.width)
        .step_by(run.step)
        .map(|offset| {
            let width = run.step.min(run.width - offset);
            let block = part(b, input, axis, Run { start: run.start + offset, width, ..run });
            reshaped(b, block, &[outer, run.count, width, inner], First::batch_if(axis > 0))
        })
        .collect();
    let frames = b.temporary_like(input, &[outer, run.count, run.width, inner]);
    join(b, blocks, 2, frames);
    dims[axis] = run.length();
    reshaped(b, frames, &dims, First::batch_if(axis > 0))
}
