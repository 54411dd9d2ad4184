//! Poolings. XNNPACK averages floats only, so 8-bit averages go through floats.

use xnn_format::{
    BinaryOp, Node, NodeOp, OutputRange, Padding2d, Pooling2d, Size2d, UnaryOp, ValueId, flags,
};

use super::builder::Builder;
use super::gather::gather_axis;
use crate::rules::mediapipe::ArgMaxPool;
use crate::rules::pool::{Pool, PoolKind};

pub(super) fn pool(b: &mut Builder<'_>, plan: &Pool) {
    if plan.kind == PoolKind::L2 {
        return root_mean_square(b, plan);
    }
    if plan.kernel == Size2d::ONE {
        // XNNPACK has no window of one pixel; the stride is 1 as well.
        let input = b.value(plan.input);
        let (input, output) = (side_by_side(b, plan, input), b.value(plan.output));
        b.unary(UnaryOp::Clamp, input, output).output_range =
            Some(plan.fused.range().unwrap_or(OutputRange::UNBOUNDED));
        return;
    }
    let (input, output) = match plan.kind {
        PoolKind::Average => (b.as_f32(plan.input), b.start_f32(plan.output)),
        PoolKind::L2 | PoolKind::Max => (b.value(plan.input), b.value(plan.output)),
    };
    let input = side_by_side(b, plan, input);
    if plan.kind == PoolKind::Average && plan.of_image {
        // Sums of rows, which are divided in the order of interpreters, and faster.
        let node = b.push(NodeOp::GlobalAveragePooling2d { input, output });
        node.flags = flags::KEEP_DIMS;
        node.output_range = plan.fused.range();
    } else {
        let range = plan.fused.finite_range(b.tensor(plan.output).dtype);
        pooled(b, plan, input, output).output_range = range;
    }
    if plan.kind == PoolKind::Average {
        match b.tensor(plan.output).per_tensor() {
            Some((scale, zero_point)) => {
                let area = plan.kernel.height as f32 * plan.kernel.width as f32;
                let settled = settle_ties(b, output, scale, zero_point as f32 * scale, area);
                b.finish_f32(settled, plan.output);
            }
            None => b.finish_f32(output, plan.output),
        }
    }
}

/// The input without what lies between windows.
fn side_by_side(b: &mut Builder<'_>, plan: &Pool, input: ValueId) -> ValueId {
    plan.windows.iter().fold(input, |value, (axis, runs)| gather_axis(b, value, *axis, runs))
}

/// The node that pools as `plan` says.
fn pooled<'b>(
    b: &'b mut Builder<'_>,
    plan: &Pool,
    input: ValueId,
    output: ValueId,
) -> &'b mut Node {
    let window = Pooling2d {
        padding: Padding2d::default(),
        kernel: plan.kernel,
        stride: plan.stride,
        dilation: Size2d::ONE,
        input,
        output,
    };
    let node = b.push(match plan.kind {
        PoolKind::Average | PoolKind::L2 => NodeOp::AveragePooling2d(window),
        PoolKind::Max => NodeOp::MaxPooling2d(window),
    });
    if plan.same_padding {
        node.flags = flags::TENSORFLOW_SAME_PADDING;
    }
    node
}

fn root_mean_square(b: &mut Builder<'_>, plan: &Pool) {
    let input = b.value(plan.input);
    let input = side_by_side(b, plan, input);
    let mut mean = b.f32_unary(UnaryOp::Square, input);
    if plan.kernel != Size2d::ONE {
        let output = b.temporary_f32(b.dims(plan.output));
        pooled(b, plan, mean, output);
        mean = output;
    }
    let root = b.f32_unary(UnaryOp::SquareRoot, mean);
    let output = b.value(plan.output);
    b.unary(UnaryOp::Clamp, root, output).output_range =
        Some(plan.fused.range().unwrap_or(OutputRange::UNBOUNDED));
}

/// Interpreters round the mean of integers half away from zero, conversions
/// half to even. Means of `area` integers are `1 / area` apart at least, so
/// moving them by a quarter of that settles ties and changes nothing else.
fn settle_ties(b: &mut Builder<'_>, mean: ValueId, scale: f32, zero: f32, area: f32) -> ValueId {
    /// Steep enough that the nearest tie, at half a step, gets the whole move.
    const SLOPE: f32 = 64.0;
    let dims = b.value_dims(mean);
    let step = scale / (4.0 * area);
    let (zero, slope) = (b.scalar(zero), b.scalar(SLOPE));
    let [integer, steep, side, settled] = [(); 4].map(|()| b.temporary_f32(&dims));
    let mut binary = |op, inputs, output| {
        b.push(NodeOp::Binary { op, inputs, output });
    };
    binary(BinaryOp::Add, [mean, zero], integer);
    binary(BinaryOp::Multiply, [integer, slope], steep);
    b.unary(UnaryOp::Clamp, steep, side).output_range = Some(OutputRange { min: -step, max: step });
    b.push(NodeOp::Binary { op: BinaryOp::Add, inputs: [mean, side], output: settled });
    settled
}

/// Maximum with its place in the window, and the way back.
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
