//! Slices put together in another order.

use xnn_format::{NodeOp, ValueId};

use super::builder::Builder;
use super::shape::{join, reshaped};
use super::slice::sliced;
use crate::partition::rules::pick::{Pick, Run};

pub(super) fn pick(b: &mut Builder<'_>, plan: &Pick) {
    let mut value = b.value(plan.input);
    for (axis, runs) in &plan.axes {
        value = pick_axis(b, value, *axis, runs);
    }
    let new_shape = b.dims(plan.output).to_vec();
    let output = b.value(plan.output);
    b.push(NodeOp::StaticReshape { new_shape, input: value, output });
}

pub(super) fn pick_axis(b: &mut Builder<'_>, input: ValueId, axis: usize, runs: &[Run]) -> ValueId {
    let parts: Vec<ValueId> = runs.iter().map(|run| part(b, input, axis, *run)).collect();
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
    let groups = reshaped(b, value, &[outer, count, step, inner]);
    let first = sliced(b, groups, 2, 0, width);
    dims[axis] = run.length();
    reshaped(b, first, &dims)
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
            reshaped(b, block, &[outer, run.count, width, inner])
        })
        .collect();
    let frames = b.temporary_like(input, &[outer, run.count, run.width, inner]);
    join(b, blocks, 2, frames);
    dims[axis] = run.length();
    reshaped(b, frames, &dims)
}
