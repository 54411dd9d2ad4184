//! Reductions.

use xnn_format::{NodeOp, ReduceOp, flags};

use super::builder::Builder;
use crate::partition::rules::reduce::Reduce;

pub(super) fn reduce(b: &mut Builder<'_>, plan: &Reduce) {
    let (input, output) = (b.value(plan.input), b.value(plan.output));
    let is_global_average =
        plan.op == ReduceOp::Mean && plan.axes == [1, 2] && b.dims(plan.input).len() == 4;
    // The mean over an image has a node that ExecuTorch knows too.
    let op = if is_global_average {
        NodeOp::GlobalAveragePooling2d { input, output }
    } else {
        NodeOp::StaticReduce { op: plan.op, axes: plan.axes.clone(), input, output }
    };
    b.push(op).flags = if plan.keep_dims { flags::KEEP_DIMS } else { 0 };
}
