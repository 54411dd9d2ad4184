//! Reductions.

use xnn_format::{NodeOp, Padding2d, Pooling2d, ReduceOp, Size2d, UnaryOp, ValueId, flags};

use super::builder::Builder;
use super::shape::reshaped;
use crate::partition::rules::reduce::{Reduce, Reduction};

pub(super) fn reduce(b: &mut Builder<'_>, plan: &Reduce) {
    match plan.op {
        Reduction::Mean => sum_or_mean(b, plan, ReduceOp::Mean),
        Reduction::Sum => sum_or_mean(b, plan, ReduceOp::Sum),
        Reduction::Max => {
            let (input, output) = (b.value(plan.input), b.value(plan.output));
            pooled_max(b, input, &plan.axes, output);
        }
        Reduction::Min => {
            let (input, output) = (b.as_f32(plan.input), b.start_f32(plan.output));
            let negated = b.temporary_f32(b.dims(plan.input));
            b.unary(UnaryOp::Negate, input, negated);
            let max = b.temporary_f32(b.dims(plan.output));
            pooled_max(b, negated, &plan.axes, max);
            b.unary(UnaryOp::Negate, max, output);
            b.finish_f32(output, plan.output);
        }
    }
}

fn sum_or_mean(b: &mut Builder<'_>, plan: &Reduce, op: ReduceOp) {
    let (input, output) = (b.value(plan.input), b.value(plan.output));
    let axes = plan.axes.clone();
    let is_image_mean = op == ReduceOp::Mean && axes == [1, 2] && b.dims(plan.input).len() == 4;
    // The mean over an image has a node that ExecuTorch knows too.
    let op = if is_image_mean {
        NodeOp::GlobalAveragePooling2d { input, output }
    } else {
        NodeOp::StaticReduce { op, axes, input, output }
    };
    b.push(op).flags = if plan.keep_dims { flags::KEEP_DIMS } else { 0 };
}

/// The maximum over `axes` (ascending), one run of neighbouring dimensions
/// after the other.
pub(super) fn pooled_max(b: &mut Builder<'_>, input: ValueId, axes: &[usize], output: ValueId) {
    let runs: Vec<&[usize]> = axes.chunk_by(|a, next| a + 1 == *next).collect();
    let Some((last, others)) = runs.split_first() else { return };
    // From the back, so that the dimensions in front keep their places.
    let mut value = input;
    for run in others.iter().rev() {
        let mut dims = b.value_dims(value);
        dims.drain(run[0]..run[0] + run.len());
        let reduced = b.temporary_like(input, &dims);
        pooled_run(b, value, run, reduced);
        value = reduced;
    }
    pooled_run(b, value, last, output);
}

/// The maximum over neighbouring dimensions, as a pooling: they become the
/// height of an image of width 1.
fn pooled_run(b: &mut Builder<'_>, input: ValueId, axes: &[usize], output: ValueId) {
    let dims = b.value_dims(input);
    let (first, end) = (axes[0], axes[0] + axes.len());
    let [outer, reduced, inner] = [&dims[..first], &dims[first..end], &dims[end..]]
        .map(|part| part.iter().product::<usize>());
    let new_shape = b.value_dims(output);
    if reduced == 1 {
        b.push(NodeOp::StaticReshape { new_shape, input, output });
        return;
    }
    let image = reshaped(b, input, &[outer, reduced, 1, inner]);
    let pooled = b.temporary_like(input, &[outer, 1, 1, inner]);
    // A dimension beyond 32 bits does not fit in memory.
    let kernel = Size2d { height: reduced as u32, width: 1 };
    b.push(NodeOp::MaxPooling2d(Pooling2d {
        padding: Padding2d::default(),
        kernel,
        stride: kernel,
        dilation: Size2d::ONE,
        input: image,
        output: pooled,
    }));
    b.push(NodeOp::StaticReshape { new_shape, input: pooled, output });
}
