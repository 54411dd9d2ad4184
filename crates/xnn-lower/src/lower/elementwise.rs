//! Functions of one or two operands.

use xnn_format::{BinaryOp, NodeOp, OutputRange, UnaryOp, ValueId};

use super::builder::Builder;
use super::conv::{finish_fused, start_fused};
use super::shape::copied;
use crate::rules::elementwise::{AddN, Binary, FakeQuant, FloorMod, Gelu, Unary};

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
    // Interpreters give the logarithm of a negative number the least value that there is.
    if plan.op == UnaryOp::Log && b.tensor(plan.output).per_tensor().is_some() {
        let positive = b.temporary_like(input, b.dims(plan.input));
        let range = OutputRange { min: 0.0, max: f32::INFINITY };
        b.unary(UnaryOp::Clamp, input, positive).output_range = Some(range);
        input = positive;
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
    let (cubic, one, half) = (b.scalar(CUBIC), b.scalar(1.0), b.scalar(0.5));
    let scale = b.scalar((2.0 / std::f32::consts::PI).sqrt());
    let square = b.f32_binary(BinaryOp::Multiply, [x, x]);
    let scaled = b.f32_binary(BinaryOp::Multiply, [square, cubic]);
    let shifted = b.f32_binary(BinaryOp::Add, [scaled, one]);
    let inner = b.f32_binary(BinaryOp::Multiply, [shifted, x]);
    let argument = b.f32_binary(BinaryOp::Multiply, [inner, scale]);
    let tanh = b.f32_unary(UnaryOp::Tanh, argument);
    let gate = b.f32_binary(BinaryOp::Add, [tanh, one]);
    let halved = b.f32_binary(BinaryOp::Multiply, [x, half]);
    b.push(NodeOp::Binary { op: BinaryOp::Multiply, inputs: [halved, gate], output });
}

/// The rest of the truncated division, and the divisor added where their signs differ.
pub(super) fn floor_mod(b: &mut Builder<'_>, plan: &FloorMod) {
    let [x, divisor] = plan.inputs.map(|id| b.value(id));
    let rest = b.f32_binary(BinaryOp::Modulus, [x, divisor]);
    let signs = [rest, divisor].map(|value| b.f32_unary(UnaryOp::Sign, value));
    let agree = b.f32_binary(BinaryOp::Multiply, signs);
    let differ = b.f32_unary(UnaryOp::Negate, agree);
    let dims = b.value_dims(differ);
    let is_off = b.temporary_f32(&dims);
    b.unary(UnaryOp::Clamp, differ, is_off).output_range = Some(OutputRange { min: 0.0, max: 1.0 });
    let correction = b.f32_binary(BinaryOp::Multiply, [is_off, divisor]);
    let output = b.value(plan.output);
    b.push(NodeOp::Binary { op: BinaryOp::Add, inputs: [rest, correction], output });
}

pub(super) fn add_n(b: &mut Builder<'_>, plan: &AddN) {
    let inputs: Vec<ValueId> = plan.inputs.iter().map(|&id| b.value(id)).collect();
    let [first, middle @ .., last] = inputs.as_slice() else {
        return copied(b, inputs[0], plan.output);
    };
    let sum = middle.iter().fold(*first, |sum, &next| b.f32_binary(BinaryOp::Add, [sum, next]));
    let output = b.value(plan.output);
    b.push(NodeOp::Binary { op: BinaryOp::Add, inputs: [sum, *last], output });
}

/// `round((clamp(x) - min) / scale) * scale + min`, halves away from zero.
pub(super) fn fake_quant(b: &mut Builder<'_>, plan: &FakeQuant) {
    let input = b.value(plan.input);
    let (min, scale) = (b.scalar(plan.range.min), b.scalar(plan.scale));
    // NaN becomes the lowest level, as in interpreters; a clamp would keep it.
    let least = b.f32_binary(BinaryOp::Maximum, [input, min]);
    let max = b.scalar(plan.range.max);
    let clamped = b.f32_binary(BinaryOp::Minimum, [least, max]);
    let (inverse, half, one) = (b.scalar(1.0 / plan.scale), b.scalar(0.5), b.scalar(1.0));
    let above = b.f32_binary(BinaryOp::Subtract, [clamped, min]);
    let level = b.f32_binary(BinaryOp::Multiply, [above, inverse]);
    // Levels are not negative. All steps are exact: adding the half first would not be.
    let lower = b.f32_unary(UnaryOp::Floor, level);
    let fraction = b.f32_binary(BinaryOp::Subtract, [level, lower]);
    let side = b.f32_binary(BinaryOp::Subtract, [fraction, half]);
    let side = b.f32_unary(UnaryOp::Floor, side);
    let up = b.f32_binary(BinaryOp::Add, [side, one]);
    let rounded = b.f32_binary(BinaryOp::Add, [lower, up]);
    let scaled = b.f32_binary(BinaryOp::Multiply, [rounded, scale]);
    let output = b.value(plan.output);
    b.push(NodeOp::Binary { op: BinaryOp::Add, inputs: [scaled, min], output });
}
