//! Lowers operators that gather slices.

use xnn_format::{NodeOp, ValueId};

use super::builder::Builder;
use super::shape::{join, reshape_to, reshaped, with_contiguous_slices};
use super::slice::{cut, sliced};
use crate::rules::gather::{Gather, Run, RunForm};
use crate::rules::shape::LeadingDim;

pub(super) fn gather(b: &mut Builder<'_>, plan: &Gather) {
    let mut value = b.value(plan.input);
    for (axis, runs) in &plan.axes {
        value = gather_axis(b, value, *axis, runs);
    }
    let output = b.value(plan.output);
    reshape_to(b, value, output, plan.leading);
}

/// Gathers runs along an axis. In the graph, the axis has a fixed size.
pub(super) fn gather_axis(
    b: &mut Builder<'_>,
    input: ValueId,
    axis: usize,
    runs: &[Run],
) -> ValueId {
    let row: usize = b.value_dims(input)[axis..].iter().product();
    let are_slices = runs.iter().all(|run| run.form() == RunForm::Slice);
    if are_slices && runs.len() * TRANSPOSED_PER_SLICE >= row {
        return with_contiguous_slices(b, input, axis, |b, value, axis| {
            gather_runs(b, value, axis, runs)
        });
    }
    gather_runs(b, input, axis, runs)
}

/// To cut a slice of each row takes as long as to transpose this number of elements twice.
const TRANSPOSED_PER_SLICE: usize = 8;

fn gather_runs(b: &mut Builder<'_>, input: ValueId, axis: usize, runs: &[Run]) -> ValueId {
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
    match run.form() {
        RunForm::Slice => sliced(b, input, axis, run.start, run.length()),
        RunForm::Strided => strided(b, input, axis, run),
        RunForm::Overlapping => overlapping(b, input, axis, run),
    }
}

/// The axis is split in two, and elements between the wanted ones are sliced off the inner axis.
fn strided(b: &mut Builder<'_>, input: ValueId, axis: usize, run: Run) -> ValueId {
    let mut dims = b.value_dims(input);
    let Run { start, width, step, count } = run;
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
    let groups =
        reshaped(b, value, &[outer, count, step, inner], LeadingDim::inferred_if(axis > 0));
    let first = sliced(b, groups, 2, 0, width);
    dims[axis] = run.length();
    reshaped(b, first, &dims, LeadingDim::inferred_if(axis > 0))
}

/// Overlapping frames are concatenated from blocks that do not overlap.
fn overlapping(b: &mut Builder<'_>, input: ValueId, axis: usize, run: Run) -> ValueId {
    let mut dims = b.value_dims(input);
    let [outer, inner] = [&dims[..axis], &dims[axis + 1..]].map(|part| part.iter().product());
    let blocks: Vec<ValueId> = (0..run.width)
        .step_by(run.step)
        .map(|offset| {
            let width = run.step.min(run.width - offset);
            let block = part(b, input, axis, Run { start: run.start + offset, width, ..run });
            reshaped(b, block, &[outer, run.count, width, inner], LeadingDim::inferred_if(axis > 0))
        })
        .collect();
    let frames = b.temporary_like(input, &[outer, run.count, run.width, inner]);
    join(b, blocks, 2, frames);
    dims[axis] = run.length();
    reshaped(b, frames, &dims, LeadingDim::inferred_if(axis > 0))
}
