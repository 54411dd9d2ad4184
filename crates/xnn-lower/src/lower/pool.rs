//! Poolings. XNNPACK averages floats only, so 8-bit averages go through floats.

use xnn_format::{NodeOp, OutputRange, Padding2d, Pooling2d, Size2d, UnaryOp, flags};

use super::builder::Builder;
use crate::partition::rules::mediapipe::ArgMaxPool;
use crate::partition::rules::pool::{Pool, PoolKind};

pub(super) fn pool(b: &mut Builder<'_>, plan: &Pool) {
    if plan.kernel == Size2d::ONE {
        // XNNPACK has no window of one pixel; the stride is 1 as well.
        let (input, output) = (b.value(plan.input), b.value(plan.output));
        b.unary(UnaryOp::Clamp, input, output).output_range =
            Some(plan.fused.range().unwrap_or(OutputRange::UNBOUNDED));
        return;
    }
    let (input, output) = match plan.kind {
        PoolKind::Average => (b.as_f32(plan.input), b.start_f32(plan.output)),
        PoolKind::Max => (b.value(plan.input), b.value(plan.output)),
    };
    let window = Pooling2d {
        padding: Padding2d::default(),
        kernel: plan.kernel,
        stride: plan.stride,
        dilation: Size2d::ONE,
        input,
        output,
    };
    let node = b.push(match plan.kind {
        PoolKind::Average => NodeOp::AveragePooling2d(window),
        PoolKind::Max => NodeOp::MaxPooling2d(window),
    });
    node.output_range = plan.fused.range();
    if plan.same_padding {
        node.flags = flags::TENSORFLOW_SAME_PADDING;
    }
    if plan.kind == PoolKind::Average {
        b.finish_f32(output, plan.output);
    }
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
