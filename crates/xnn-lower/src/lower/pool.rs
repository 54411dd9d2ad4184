//! Lowers poolings.

use xnn_format::{
    BinaryOp, NodeOp, OutputRange, Padding2d, Pooling2d, Size2d, UnaryOp, ValueId, flags,
};

use super::builder::Builder;
use super::gather::gather_axis;
use crate::rules::checks::Q8;
use crate::rules::mediapipe::ArgMaxPool;
use crate::rules::pool::{Pool, PoolForm};

pub(super) fn pool(b: &mut Builder<'_>, plan: &Pool) {
    match plan.form {
        PoolForm::OnePixel => {
            let input = b.value(plan.input);
            let (input, output) = (adjacent_windows(b, plan, input), b.value(plan.output));
            bounded(b, plan, input, output);
        }
        PoolForm::Max => {
            let (input, output) = (b.value(plan.input), b.value(plan.output));
            let input = adjacent_windows(b, plan, input);
            pooled(b, plan, NodeOp::MaxPooling2d, input, output);
        }
        PoolForm::Average => {
            let (input, output) = (b.value(plan.input), b.value(plan.output));
            let input = adjacent_windows(b, plan, input);
            pooled(b, plan, NodeOp::AveragePooling2d, input, output);
        }
        PoolForm::ImageAverage => {
            let (input, output) = (b.value(plan.input), b.value(plan.output));
            let input = adjacent_windows(b, plan, input);
            let node = b.push(NodeOp::GlobalAveragePooling2d { input, output });
            node.flags = flags::KEEP_DIMS | flags::FIXED_SIZE;
            node.output_range = plan.fused.range();
        }
        PoolForm::QuantizedAverage(q) => {
            let (input, mean) = (b.as_f32(plan.input), b.start_f32(plan.output));
            let input = adjacent_windows(b, plan, input);
            pooled(b, plan, NodeOp::AveragePooling2d, input, mean);
            let settled = settle_ties(b, plan, mean, q.zero() * q.scale, q.scale);
            b.finish_f32(settled, plan.output);
        }
        PoolForm::IntegerAverage(q) => integer_average(b, plan, q),
        PoolForm::RootMeanSquare => {
            let squares = squares(b, plan);
            let mean = b.temporary_f32(b.dims(plan.output));
            let window = window(plan, squares, mean);
            b.push(NodeOp::AveragePooling2d(window)).flags = padding_flags(plan);
            bounded_root(b, plan, mean);
        }
        PoolForm::RootSquare => {
            let squares = squares(b, plan);
            bounded_root(b, plan, squares);
        }
    }
}

/// The input without the elements between windows.
fn adjacent_windows(b: &mut Builder<'_>, plan: &Pool, input: ValueId) -> ValueId {
    plan.windows.iter().fold(input, |value, (axis, runs)| gather_axis(b, value, *axis, runs))
}

fn window(plan: &Pool, input: ValueId, output: ValueId) -> Pooling2d {
    Pooling2d {
        padding: Padding2d::default(),
        kernel: plan.kernel,
        stride: plan.stride,
        dilation: Size2d::ONE,
        input,
        output,
    }
}

fn padding_flags(plan: &Pool) -> u32 {
    if plan.same_padding { flags::TENSORFLOW_SAME_PADDING } else { 0 }
}

fn pooled(
    b: &mut Builder<'_>,
    plan: &Pool,
    node: fn(Pooling2d) -> NodeOp,
    input: ValueId,
    output: ValueId,
) {
    let range = plan.fused.finite_range(b.tensor(plan.output).dtype);
    let node = b.push(node(window(plan, input, output)));
    node.output_range = range;
    node.flags = padding_flags(plan);
}

fn squares(b: &mut Builder<'_>, plan: &Pool) -> ValueId {
    let input = b.value(plan.input);
    let input = adjacent_windows(b, plan, input);
    b.f32_unary(UnaryOp::Square, input)
}

fn bounded_root(b: &mut Builder<'_>, plan: &Pool, squares: ValueId) {
    let root = b.f32_unary(UnaryOp::SquareRoot, squares);
    let output = b.value(plan.output);
    bounded(b, plan, root, output);
}

/// A clamp to the fused activation.
fn bounded(b: &mut Builder<'_>, plan: &Pool, input: ValueId, output: ValueId) {
    b.unary(UnaryOp::Clamp, input, output).output_range =
        Some(plan.fused.range().unwrap_or(OutputRange::UNBOUNDED));
}

/// Averages integers, as multiples of the scale, and rounds these means before they become multiples
/// of the scale again.
fn integer_average(b: &mut Builder<'_>, plan: &Pool, q: Q8) {
    let input = b.as_f32(plan.input);
    let input = adjacent_windows(b, plan, input);
    let [scale, per_scale] = [q.scale, q.scale.recip()].map(|factor| b.scalar(factor));
    let multiples = b.f32_binary(BinaryOp::Multiply, [input, per_scale]);
    let integers = b.f32_unary(UnaryOp::BankersRounding, multiples);
    let mean = b.temporary_f32(b.dims(plan.output));
    b.push(NodeOp::AveragePooling2d(window(plan, integers, mean))).flags = padding_flags(plan);
    let settled = settle_ties(b, plan, mean, q.zero(), 1.0);
    let rounded = b.f32_unary(UnaryOp::BankersRounding, settled);
    let result = b.start_f32(plan.output);
    let product =
        NodeOp::Binary { op: BinaryOp::Multiply, inputs: [rounded, scale], output: result };
    b.push(product).output_range = plan.fused.range();
    b.finish_f32(result, plan.output);
}

/// Rounds ties of means away from zero, as interpreters do. Conversions round them to even. Means
/// of `area` integers differ by at least `1 / area`, so that moving them by a quarter of that
/// decides ties and changes nothing else. `mean` plus `zero` is the mean of the integers that
/// interpreters average, times `unit`.
fn settle_ties(b: &mut Builder<'_>, plan: &Pool, mean: ValueId, zero: f32, unit: f32) -> ValueId {
    /// Steep enough that a tie, at half a unit, is moved by the whole distance.
    const SLOPE: f32 = 64.0;
    let area = plan.kernel.height as f32 * plan.kernel.width as f32;
    let step = unit / (4.0 * area);
    let (zero, slope) = (b.scalar(zero), b.scalar(SLOPE));
    let integer = b.f32_binary(BinaryOp::Add, [mean, zero]);
    let steep = b.f32_binary(BinaryOp::Multiply, [integer, slope]);
    let side = b.temporary_f32(&b.value_dims(mean));
    b.unary(UnaryOp::Clamp, steep, side).output_range = Some(OutputRange { min: -step, max: step });
    b.f32_binary(BinaryOp::Add, [mean, side])
}

/// A maximum pooling with positions in the window, or its inverse.
pub(super) fn argmax_pool(b: &mut Builder<'_>, plan: &ArgMaxPool) {
    let (input, output) = (b.value(plan.input), b.value(plan.output));
    let index = b.index_value(plan.index);
    let window = Pooling2d {
        padding: Padding2d::default(),
        kernel: plan.kernel,
        stride: plan.kernel,
        dilation: Size2d::ONE,
        input,
        output,
    };
    b.push(if plan.unpool {
        NodeOp::Unpooling2d { window, index }
    } else {
        NodeOp::ArgMaxPooling2d { window, index }
    });
}
