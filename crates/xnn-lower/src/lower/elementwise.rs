//! Functions of one or two operands.

use xnn_format::{NodeOp, UnaryOp};

use super::builder::Builder;
use super::conv::{finish_fused, start_fused};
use crate::partition::rules::elementwise::{Binary, Unary};

pub(super) fn unary(b: &mut Builder<'_>, plan: &Unary) {
    let (input, output) = if plan.in_float {
        (b.as_f32(plan.input), b.start_f32(plan.output))
    } else {
        (b.value(plan.input), b.value(plan.output))
    };
    // A conversion that goes through floats is two conversions already.
    if plan.in_float && plan.op == UnaryOp::Convert {
        let output = b.value(plan.output);
        b.unary(UnaryOp::Convert, input, output);
        return;
    }
    b.unary(plan.op, input, output).output_range = plan.range;
    if plan.in_float {
        b.finish_f32(output, plan.output);
    }
}

pub(super) fn binary(b: &mut Builder<'_>, plan: &Binary) {
    let [x, y] = plan.inputs;
    if plan.in_float {
        let inputs = [b.as_f32(x), b.as_f32(y)];
        let output = b.start_f32(plan.output);
        b.push(NodeOp::Binary { op: plan.op, inputs, output }).output_range = plan.fused.range();
        b.finish_f32(output, plan.output);
        return;
    }
    let inputs = [b.value(x), b.value(y)];
    let (output, tail) = start_fused(b, plan.fused, plan.output);
    b.push(NodeOp::Binary { op: plan.op, inputs, output }).output_range = plan.fused.range();
    finish_fused(b, tail);
}
