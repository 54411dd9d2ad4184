//! Lowers elementwise functions.

use xnn_format::{BinaryOp, NodeOp, OutputRange, UnaryOp, ValueId};

use super::activation::{finish_fused, start_fused};
use super::builder::Builder;
use super::shape::copied;
use crate::rules::activation::RELU;
use crate::rules::elementwise::{
    AddN, Binary, BinaryForm, FakeQuant, FloorMod, Gelu, Unary, UnaryForm,
};

pub(super) fn unary(b: &mut Builder<'_>, plan: &Unary) {
    let &Unary { form, op, range, .. } = plan;
    match form {
        UnaryForm::Node => {
            let (input, output) = (b.value(plan.input), b.value(plan.output));
            b.unary(op, input, output).output_range = range;
        }
        UnaryForm::InFloat => {
            let (input, output) = (b.as_f32(plan.input), b.start_f32(plan.output));
            b.unary(op, input, output).output_range = range;
            b.finish_f32(output, plan.output);
        }
        UnaryForm::ConvertThroughFloat => {
            let (input, output) = (b.as_f32(plan.input), b.value(plan.output));
            b.unary(UnaryOp::Convert, input, output);
        }
        UnaryForm::ConvertThenClamp => {
            let (input, output) = (b.value(plan.input), b.value(plan.output));
            let converted = b.temporary_like(output, b.dims(plan.input));
            b.unary(UnaryOp::Convert, input, converted);
            b.unary(op, converted, output).output_range = range;
        }
        UnaryForm::LogOfPositive => {
            let (input, output) = (b.value(plan.input), b.value(plan.output));
            let positive = b.temporary_like(input, b.dims(plan.input));
            b.unary(UnaryOp::Clamp, input, positive).output_range = Some(RELU);
            b.unary(op, positive, output).output_range = range;
        }
    }
}

pub(super) fn binary(b: &mut Builder<'_>, plan: &Binary) {
    let [x, y] = plan.inputs;
    match plan.form {
        BinaryForm::Node => {
            let inputs = [b.value(x), b.value(y)];
            let (output, activation) = start_fused(b, plan.fused, plan.output);
            b.push(NodeOp::Binary { op: plan.op, inputs, output }).output_range =
                plan.fused.range();
            finish_fused(b, activation);
        }
        BinaryForm::InFloat => {
            let inputs = [b.as_f32(x), b.as_f32(y)];
            let output = b.start_f32(plan.output);
            b.push(NodeOp::Binary { op: plan.op, inputs, output }).output_range =
                plan.fused.range();
            b.finish_f32(output, plan.output);
        }
        BinaryForm::Then(function) => {
            let inputs = [b.value(x), b.value(y)];
            let result = b.temporary_f32(b.dims(plan.output));
            b.push(NodeOp::Binary { op: plan.op, inputs, output: result });
            let output = b.value(plan.output);
            b.unary(function, result, output);
        }
    }
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

/// The remainder of a truncating division, plus the divisor if their signs differ.
pub(super) fn floor_mod(b: &mut Builder<'_>, plan: &FloorMod) {
    let [x, divisor] = plan.inputs.map(|id| b.value(id));
    let remainder = b.f32_binary(BinaryOp::Modulus, [x, divisor]);
    let signs = [remainder, divisor].map(|value| b.f32_unary(UnaryOp::Sign, value));
    let agree = b.f32_binary(BinaryOp::Multiply, signs);
    let differ = b.f32_unary(UnaryOp::Negate, agree);
    let dims = b.value_dims(differ);
    let needs_correction = b.temporary_f32(&dims);
    b.unary(UnaryOp::Clamp, differ, needs_correction).output_range =
        Some(OutputRange { min: 0.0, max: 1.0 });
    let correction = b.f32_binary(BinaryOp::Multiply, [needs_correction, divisor]);
    let output = b.value(plan.output);
    b.push(NodeOp::Binary { op: BinaryOp::Add, inputs: [remainder, correction], output });
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

/// `round((clamp(x) - min) / scale) * scale + min`, with ties away from zero.
pub(super) fn fake_quant(b: &mut Builder<'_>, plan: &FakeQuant) {
    let input = b.value(plan.input);
    let (min, scale) = (b.scalar(plan.range.min), b.scalar(plan.scale));
    // NaN becomes the lowest level, as in interpreters. A clamp would keep it.
    let bounded_below = b.f32_binary(BinaryOp::Maximum, [input, min]);
    let max = b.scalar(plan.range.max);
    let clamped = b.f32_binary(BinaryOp::Minimum, [bounded_below, max]);
    let (inverse, half, one) = (b.scalar(1.0 / plan.scale), b.scalar(0.5), b.scalar(1.0));
    let above = b.f32_binary(BinaryOp::Subtract, [clamped, min]);
    let level = b.f32_binary(BinaryOp::Multiply, [above, inverse]);
    // Levels are not negative. Each operation is exact, while adding 0.5 first would round.
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
