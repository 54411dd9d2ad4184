//! Functions of one or two operands.

use xnn_format::{BinaryOp, NodeOp, UnaryOp, ValueId};

use super::builder::Builder;
use super::conv::{finish_fused, start_fused};
use crate::partition::rules::elementwise::{Binary, Gelu, Unary};

pub(super) fn unary(b: &mut Builder<'_>, plan: &Unary) {
    let (mut input, output) = if plan.in_float {
        (b.as_f32(plan.input), b.start_f32(plan.output))
    } else {
        (b.value(plan.input), b.value(plan.output))
    };
    // XNNPACK would fuse a clamp between different scales into the producer of
    // its input, whose own rounding and saturation would be lost.
    let rescales = b.tensor(plan.input).per_tensor() != b.tensor(plan.output).per_tensor();
    if plan.op == UnaryOp::Clamp && rescales && !plan.in_float {
        let converted = b.temporary_like(output, b.dims(plan.input));
        b.unary(UnaryOp::Convert, input, converted);
        input = converted;
    }
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
    if let Some(then) = plan.then {
        let result = b.temporary_f32(b.dims(plan.output));
        b.push(NodeOp::Binary { op: plan.op, inputs, output: result });
        let output = b.value(plan.output);
        b.unary(then, result, output);
        return;
    }
    let (output, tail) = start_fused(b, plan.fused, plan.output);
    b.push(NodeOp::Binary { op: plan.op, inputs, output }).output_range = plan.fused.range();
    finish_fused(b, tail);
}

pub(super) fn gelu(b: &mut Builder<'_>, plan: &Gelu) {
    if !plan.approximate {
        let (input, output) = (b.value(plan.input), b.value(plan.output));
        b.unary(UnaryOp::Gelu, input, output);
        return;
    }
    let input = b.as_f32(plan.input);
    let output = b.start_f32(plan.output);
    tanh_gelu(b, input, output);
    b.finish_f32(output, plan.output);
}

/// `x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))`
/// (Hendrycks and Gimpel, "Gaussian Error Linear Units").
fn tanh_gelu(b: &mut Builder<'_>, x: ValueId, output: ValueId) {
    const CUBIC: f32 = 0.044_715;
    let dims = b.value_dims(x);
    let binary = |b: &mut Builder<'_>, op, inputs| {
        let output = b.temporary_f32(&dims);
        b.push(NodeOp::Binary { op, inputs, output });
        output
    };
    let (cubic, one, half) = (b.scalar(CUBIC), b.scalar(1.0), b.scalar(0.5));
    let scale = b.scalar((2.0 / std::f32::consts::PI).sqrt());
    let square = binary(b, BinaryOp::Multiply, [x, x]);
    let scaled = binary(b, BinaryOp::Multiply, [square, cubic]);
    let shifted = binary(b, BinaryOp::Add, [scaled, one]);
    let inner = binary(b, BinaryOp::Multiply, [shifted, x]);
    let argument = binary(b, BinaryOp::Multiply, [inner, scale]);
    let tanh = b.temporary_f32(&b.value_dims(x));
    b.unary(UnaryOp::Tanh, argument, tanh);
    let gate = binary(b, BinaryOp::Add, [tanh, one]);
    let halved = binary(b, BinaryOp::Multiply, [x, half]);
    b.push(NodeOp::Binary { op: BinaryOp::Multiply, inputs: [halved, gate], output });
}
