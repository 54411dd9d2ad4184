//! Lowers reductions and running sums.

use xnn_format::{
    BinaryOp, Datatype, NodeOp, Padding2d, Pooling2d, Quantization, Size2d, UnaryOp, ValueId, flags,
};

use super::builder::Builder;
use super::shape::{copied, join, reshape_to, reshaped, with_contiguous_slices};
use super::slice::{cut, sliced};
use crate::rules::reduce::{ArgReduce, Cumsum, Reduce, ReduceForm};
use crate::rules::shape::LeadingDim;

pub(super) fn reduce(b: &mut Builder<'_>, plan: &Reduce) {
    match plan.form {
        ReduceForm::Node(op) => {
            let (input, output) = (b.value(plan.input), b.value(plan.output));
            let axes = plan.axes.clone();
            b.push(NodeOp::StaticReduce { op, axes, input, output }).flags = keep_dims(plan);
        }
        ReduceForm::ImageMean => {
            let (input, output) = (b.value(plan.input), b.value(plan.output));
            b.push(NodeOp::GlobalAveragePooling2d { input, output }).flags = keep_dims(plan);
        }
        ReduceForm::Max => {
            let (input, output) = (b.value(plan.input), b.value(plan.output));
            pooled_max(b, input, &plan.axes, output);
        }
        ReduceForm::Product => product(b, plan),
        ReduceForm::Min => {
            let (input, output) = (b.value(plan.input), b.value(plan.output));
            let negated = b.temporary_negated(input, b.dims(plan.input));
            b.unary(UnaryOp::Negate, input, negated);
            let max = b.temporary_like(negated, b.dims(plan.output));
            pooled_max(b, negated, &plan.axes, max);
            b.unary(UnaryOp::Negate, max, output);
        }
    }
}

fn keep_dims(plan: &Reduce) -> u32 {
    if plan.keep_dims { flags::KEEP_DIMS } else { 0 }
}

/// The maximum over `axes` (ascending), one run of neighbouring dimensions at a time.
pub(super) fn pooled_max(b: &mut Builder<'_>, input: ValueId, axes: &[usize], output: ValueId) {
    let runs: Vec<&[usize]> = axes.chunk_by(|a, next| a + 1 == *next).collect();
    let Some((last, others)) = runs.split_first() else { return };
    // Backwards, so that the dimensions before keep their positions.
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

/// The maximum over neighbouring dimensions, as a pooling of an image of width 1 with these
/// dimensions as its height.
fn pooled_run(b: &mut Builder<'_>, input: ValueId, axes: &[usize], output: ValueId) {
    let [outer, reduced, inner] = around(&b.value_dims(input), axes[0], axes.len());
    let leading = LeadingDim::inferred_if(axes[0] > 0);
    if reduced == 1 {
        reshape_to(b, input, output, leading);
        return;
    }
    let image = reshaped(b, input, &[outer, reduced, 1, inner], leading);
    let pooled = b.temporary_like(input, &[outer, 1, 1, inner]);
    b.push(NodeOp::MaxPooling2d(column(reduced, image, pooled)));
    reshape_to(b, pooled, output, leading);
}

/// Number of elements before, in and after `count` dimensions from `first` on.
fn around(dims: &[usize], first: usize, count: usize) -> [usize; 3] {
    let end = first + count;
    [&dims[..first], &dims[first..end], &dims[end..]].map(|part| part.iter().product())
}

/// The window over a whole image of width 1.
fn column(height: usize, input: ValueId, output: ValueId) -> Pooling2d {
    // A larger dimension than 32 bits does not fit in memory.
    let kernel = Size2d { height: height as u32, width: 1 };
    Pooling2d {
        padding: Padding2d::default(),
        kernel,
        stride: kernel,
        dilation: Size2d::ONE,
        input,
        output,
    }
}

/// Multiplies the first half of the elements by the second until one element is left.
fn product(b: &mut Builder<'_>, plan: &Reduce) {
    let mut value = b.value(plan.input);
    for run in plan.axes.chunk_by(|a, next| a + 1 == *next) {
        let mut dims = b.value_dims(value);
        let [outer, mut length, inner] = around(&dims, run[0], run.len());
        let leading = LeadingDim::inferred_if(run[0] > 0);
        value = reshaped(b, value, &[outer, length, inner], leading);
        let mut odd = Vec::new();
        while length > 1 {
            if !length.is_multiple_of(2) {
                odd.push(sliced(b, value, 1, length - 1, 1));
            }
            length /= 2;
            let halves = [0, length].map(|start| sliced(b, value, 1, start, length));
            value = b.f32_binary(BinaryOp::Multiply, halves);
        }
        value = odd
            .into_iter()
            .fold(value, |product, element| b.f32_binary(BinaryOp::Multiply, [product, element]));
        for &axis in run {
            dims[axis] = 1;
        }
        value = reshaped(b, value, &dims, leading);
    }
    let output = b.value(plan.output);
    reshape_to(
        b,
        value,
        output,
        LeadingDim::inferred_if(plan.axes.first().is_some_and(|&axis| axis > 0)),
    );
}

/// A pooling that returns positions of maxima. They are integers, which only conversions can read.
pub(super) fn arg_reduce(b: &mut Builder<'_>, plan: &ArgReduce) {
    let mut value = b.as_f32(plan.input);
    if plan.min {
        value = b.f32_unary(UnaryOp::Negate, value);
    }
    let [outer, length, inner] = around(b.dims(plan.input), plan.axis, 1);
    let leading = LeadingDim::inferred_if(plan.axis > 0);
    let image = reshaped(b, value, &[outer, length, 1, inner], leading);
    let dims = [outer, 1, 1, inner];
    let most = b.temporary_f32(&dims);
    let index = b.temporary(Datatype::Int32, Quantization::None, &dims);
    b.push(NodeOp::ArgMaxPooling2d { window: column(length, image, most), index });
    let positions = b.f32_unary(UnaryOp::Convert, index);
    // A node must read the maximum. A maximum of a position and a number up to 0 is the position.
    let zero = b.scalar(0.0);
    let below = b.f32_binary(BinaryOp::Minimum, [most, zero]);
    let positions = b.f32_binary(BinaryOp::Maximum, [positions, below]);
    let new_shape = b.dims(plan.output).to_vec();
    let shaped = reshaped(b, positions, &new_shape, leading);
    let output = b.value(plan.output);
    b.unary(UnaryOp::Convert, shaped, output);
}

/// Adds the elements at the distances 1, 2, 4, ..., so that each sum covers twice as many.
pub(super) fn cumsum(b: &mut Builder<'_>, plan: &Cumsum) {
    let input = b.value(plan.input);
    let sums = with_contiguous_slices(b, input, plan.axis, |b, value, axis| {
        running_sums(b, value, axis, plan)
    });
    copied(b, sums, plan.output);
}

fn running_sums(b: &mut Builder<'_>, input: ValueId, axis: usize, plan: &Cumsum) -> ValueId {
    let dims = b.value_dims(input);
    let length = dims[axis];
    let mut value = cut(b, input, axis, 0, length);
    if plan.exclusive {
        value = shifted_by_one(b, value, axis, plan.reverse);
    }
    let mut distance = 1;
    while distance < length {
        let kept = length - distance;
        let addends = [0, distance].map(|start| sliced(b, value, axis, start, kept));
        let sums = b.f32_binary(BinaryOp::Add, addends);
        // The others have no element at this distance.
        let start = if plan.reverse { kept } else { 0 };
        let others = sliced(b, value, axis, start, distance);
        let parts = if plan.reverse { [sums, others] } else { [others, sums] };
        value = b.temporary_f32(&dims);
        join(b, parts.to_vec(), axis, value);
        distance *= 2;
    }
    value
}

/// The value shifted along an axis by one element, with a zero in its place.
fn shifted_by_one(b: &mut Builder<'_>, value: ValueId, axis: usize, reverse: bool) -> ValueId {
    let dims = b.value_dims(value);
    let input = sliced(b, value, axis, usize::from(reverse), dims[axis] - 1);
    let (mut pre_paddings, mut post_paddings) = (vec![0; dims.len()], vec![0; dims.len()]);
    let paddings = if reverse { &mut post_paddings } else { &mut pre_paddings };
    paddings[axis] = 1;
    let output = b.temporary_f32(&dims);
    b.push(NodeOp::StaticConstantPad {
        pre_paddings,
        post_paddings,
        padding_value: 0.0,
        input,
        output,
    });
    output
}
