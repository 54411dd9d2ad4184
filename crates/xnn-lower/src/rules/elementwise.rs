//! Partitioning rules for elementwise functions.

use xnn_format::{BinaryOp, OutputRange, UnaryOp};
use xnn_model::TensorId;
use xnn_model::op::{Activation, FakeQuantOptions, GeluOptions};

use super::activation::{FusedActivation, activation as fused_activation};
use super::checks::{self, Elem};
use super::options::RuleOptions;
use crate::view::{OpView, Operand};
use crate::why_not::WhyNot;

/// Plan for a function of one operand.
#[derive(Clone, Debug)]
pub(crate) struct Unary {
    pub form: UnaryForm,
    pub op: UnaryOp,
    pub range: Option<OutputRange>,
    pub input: TensorId,
    pub output: TensorId,
}

/// The nodes that compute a function of one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnaryForm {
    /// One node.
    Node,
    /// One node on floats, between conversions, because XNNPACK cannot compute it in 8 bits.
    InFloat,
    /// Two conversions, from 8-bit integers to floats and back.
    ConvertThroughFloat,
    /// A conversion to the output's scale, then a clamp. XNNPACK would fuse a clamp between
    /// different scales into the node before, whose own rounding and saturation would be lost.
    ConvertThenClamp,
    /// The logarithm of positive values. Interpreters return the lowest integer for the logarithm
    /// of a negative value.
    LogOfPositive,
}

/// Plan for a function of two operands.
#[derive(Clone, Debug)]
pub(crate) struct Binary {
    pub form: BinaryForm,
    pub op: BinaryOp,
    pub inputs: [TensorId; 2],
    pub output: TensorId,
    pub fused: FusedActivation,
}

/// The nodes that compute a function of two operands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum BinaryForm {
    /// One node.
    Node,
    /// One node on floats, between conversions, because XNNPACK cannot compute it in 8 bits, or not
    /// with these scales.
    InFloat,
    /// One node on floats, then a function of its result.
    Then(UnaryOp),
}

/// Plan for GELU.
#[derive(Clone, Debug)]
pub(crate) struct Gelu {
    /// The form with tanh instead of erf.
    pub approximate: bool,
    pub input: TensorId,
    pub output: TensorId,
}

/// Plan for a remainder with the sign of the divisor, which is finite.
#[derive(Clone, Debug)]
pub(crate) struct FloorMod {
    pub inputs: [TensorId; 2],
    pub output: TensorId,
}

/// Plan for a sum of operands of one shape.
#[derive(Clone, Debug)]
pub(crate) struct AddN {
    pub inputs: Vec<TensorId>,
    pub output: TensorId,
}

/// Plan for quantizing floats and dequantizing them again.
#[derive(Clone, Debug)]
pub(crate) struct FakeQuant {
    pub input: TensorId,
    pub output: TensorId,
    /// Difference of two neighbouring levels.
    pub scale: f32,
    /// The lowest and the highest level.
    pub range: OutputRange,
}

/// Rule for functions of one operand.
pub(crate) fn unary(view: OpView<'_>, op: UnaryOp) -> Result<Unary, WhyNot> {
    view.arity(1..=1, 1..=1)?;
    let (input, output) = (view.input(0)?, view.output(0)?);
    let (from, to) = checks::same_type(input, output)?;
    let form = match op {
        UnaryOp::Convert if !unary_in_8_bits(op, from, to) => UnaryForm::ConvertThroughFloat,
        _ if !unary_in_8_bits(op, from, to) => UnaryForm::InFloat,
        UnaryOp::Clamp if from != to => UnaryForm::ConvertThenClamp,
        UnaryOp::Log if !to.is_f32() => UnaryForm::LogOfPositive,
        _ => UnaryForm::Node,
    };
    Ok(Unary { form, op, range: None, input: input.id, output: output.id })
}

/// Rule for NEG of floats. Interpreters negate 8-bit integers without regard to their quantization.
pub(crate) fn float_unary(view: OpView<'_>, op: UnaryOp) -> Result<Unary, WhyNot> {
    let unary = unary(view, op)?;
    checks::f32_operand(view.output(0)?)?;
    Ok(unary)
}

/// Rule for activations that bound their operand.
pub(crate) fn clamp(view: OpView<'_>, range: OutputRange) -> Result<Unary, WhyNot> {
    Ok(Unary { range: Some(range), ..unary(view, UnaryOp::Clamp)? })
}

/// Whether XNNPACK's 8-bit form of the function, which is a table of 256 entries for most
/// functions, supports these scales.
pub(crate) fn unary_in_8_bits(op: UnaryOp, from: Elem, to: Elem) -> bool {
    let (Elem::Q8(from), Elem::Q8(to)) = (from, to) else { return true };
    let ratio = from.scale / to.scale;
    match op {
        UnaryOp::Convert => CONVERT_RATIO.contains(&ratio),
        // A conversion to the output's scale comes before the clamp.
        UnaryOp::Clamp => from == to || CONVERT_RATIO.contains(&ratio),
        UnaryOp::LeakyRelu { negative_slope } => {
            let negative = ratio * negative_slope;
            CONVERT_RATIO.contains(&ratio)
                && (-127.996_09..=128.0).contains(&negative)
                && negative.abs() >= 1.0 / 256.0
        }
        _ => true,
    }
}

/// Ratios of scales that XNNPACK's 8-bit conversions support.
pub(crate) const CONVERT_RATIO: std::ops::RangeInclusive<f32> = 1.0 / 256.0..=128.0;

/// Rule for functions of two operands, which may broadcast.
pub(crate) fn binary(
    view: OpView<'_>,
    op: BinaryOp,
    activation: Activation,
) -> Result<Binary, WhyNot> {
    view.arity(2..=2, 1..=1)?;
    let (a, b, output) = (view.input(0)?, view.input(1)?, view.output(0)?);
    let (ea, eb) = checks::same_type(a, b)?;
    let (_, eo) = checks::same_type(a, output)?;
    for operand in [a, b] {
        checks::usable(operand)?;
    }
    broadcasts(a, b)?;
    Ok(Binary {
        op,
        inputs: [a.id, b.id],
        output: output.id,
        fused: fused_activation(activation, eo)?,
        form: if binary_in_8_bits(op, ea, eb, eo) { BinaryForm::Node } else { BinaryForm::InFloat },
    })
}

/// Rule for MAXIMUM and MINIMUM. Interpreters compare integers without regard to their
/// quantization.
pub(crate) fn choice(
    view: OpView<'_>,
    op: BinaryOp,
    rule_options: RuleOptions,
) -> Result<Binary, WhyNot> {
    let binary = binary(view, op, Activation::None)?;
    let (a, b, output) = (view.input(0)?, view.input(1)?, view.output(0)?);
    for other in [b, output] {
        checks::same_elem(a, other)?;
    }
    // A maximum or minimum of floats with a constant becomes part of the nodes around it.
    let has_bound = a.tensor.is_constant() || b.tensor.is_constant();
    let in_float = has_bound || rule_options.widely_known;
    Ok(if in_float { binary } else { Binary { form: BinaryForm::Node, ..binary } })
}

/// Rule for PRELU, whose slope must be constant.
pub(crate) fn prelu(view: OpView<'_>) -> Result<Binary, WhyNot> {
    let binary = binary(view, BinaryOp::Prelu, Activation::None)?;
    checks::constant(view.input(1)?)?;
    Ok(binary)
}

/// Rule for GELU. XNNPACK has a node for the exact form; the approximation is composed.
pub(crate) fn gelu(view: OpView<'_>, options: &GeluOptions) -> Result<Gelu, WhyNot> {
    let Unary { input, output, .. } = unary(view, UnaryOp::Gelu)?;
    Ok(Gelu { approximate: options.approximate, input, output })
}

/// Rule for FLOOR_DIV, the floor of a quotient. Interpreters divide in double precision. In single
/// precision a quotient just below an integer may be rounded to it, except if the divisor is a
/// power of two.
pub(crate) fn floor_div(view: OpView<'_>) -> Result<Binary, WhyNot> {
    let binary = float_binary(view, BinaryOp::Divide)?;
    let divisor = view.input(1)?;
    let power_of_two = |value: &f32| value.is_normal() && value.to_bits() << 9 == 0;
    if constant_floats(divisor)?.iter().all(power_of_two) {
        return Ok(Binary { form: BinaryForm::Then(UnaryOp::Floor), ..binary });
    }
    Err(WhyNot::Unusable {
        tensor: divisor.to_ref(),
        why: "the divisor is not a power of two".into(),
    })
}

/// Rule for ATAN2. Interpreters do not broadcast its operands.
pub(crate) fn atan2(view: OpView<'_>) -> Result<Binary, WhyNot> {
    let binary = float_binary(view, BinaryOp::Atan2)?;
    let (y, x) = (view.input(0)?, view.input(1)?);
    if y.shape == x.shape {
        return Ok(binary);
    }
    let expected = format!("{:?} is not {:?}", x.shape, y.shape);
    Err(WhyNot::Shape { tensor: x.to_ref(), expected })
}

/// Rule for FLOOR_MOD. The divisor must be constant and finite, because 0 times infinity is NaN.
pub(crate) fn floor_mod(view: OpView<'_>) -> Result<FloorMod, WhyNot> {
    let Binary { inputs, output, .. } = float_binary(view, BinaryOp::Modulus)?;
    let divisor = view.input(1)?;
    if constant_floats(divisor)?.iter().any(|value| !value.is_finite()) {
        return Err(WhyNot::Unusable {
            tensor: divisor.to_ref(),
            why: "the divisor is not finite".into(),
        });
    }
    Ok(FloorMod { inputs, output })
}

fn constant_floats(operand: Operand<'_>) -> Result<Vec<f32>, WhyNot> {
    checks::constant(operand)?;
    Ok(operand.tensor.constant_floats().unwrap_or_default())
}

/// Rule for ADD_N of floats of one shape.
pub(crate) fn add_n(view: OpView<'_>) -> Result<AddN, WhyNot> {
    view.arity(1..=usize::MAX, 1..=1)?;
    let (inputs, output) = (view.inputs()?, view.output(0)?);
    for input in &inputs {
        checks::f32_operand(*input)?;
        if input.shape != output.shape {
            return Err(WhyNot::Shape {
                tensor: input.to_ref(),
                expected: format!("{:?} is not {:?}", input.shape, output.shape),
            });
        }
    }
    checks::f32_operand(output)?;
    Ok(AddN { inputs: inputs.iter().map(|t| t.id).collect(), output: output.id })
}

/// Rule for FAKE_QUANT.
pub(crate) fn fake_quant(
    view: OpView<'_>,
    options: &FakeQuantOptions,
) -> Result<FakeQuant, WhyNot> {
    view.arity(1..=1, 1..=1)?;
    let (input, output) = (view.input(0)?, view.output(0)?);
    checks::f32_operand(input)?;
    checks::f32_operand(output)?;
    let FakeQuantOptions { min, max, num_bits, narrow_range } = *options;
    let levels = u32::try_from(num_bits).ok().filter(|bits| (2..=16).contains(bits));
    let (Some(bits), true) = (levels, min.is_finite() && max.is_finite() && min < max) else {
        return Err(WhyNot::Attribute {
            name: "min, max, num_bits",
            value: format!("{min}, {max}, {num_bits}"),
            expected: "finite bounds, and 2 to 16 bits",
        });
    };
    let low = if narrow_range { 1.0 } else { 0.0 };
    let high = ((1u32 << bits) - 1) as f32;
    let scale = (max - min) / (high - low);
    // The range is shifted so that zero is a level.
    let zero = (low - min / scale).clamp(low, high).round();
    let range = OutputRange { min: (low - zero) * scale, max: (high - zero) * scale };
    checks::check_scale(input, scale)?;
    Ok(FakeQuant { input: input.id, output: output.id, scale, range })
}

/// Rule for functions that interpreters only support for floats.
pub(crate) fn float_binary(view: OpView<'_>, op: BinaryOp) -> Result<Binary, WhyNot> {
    let binary = binary(view, op, Activation::None)?;
    checks::f32_operand(view.output(0)?)?;
    Ok(binary)
}

fn broadcasts(a: Operand<'_>, b: Operand<'_>) -> Result<(), WhyNot> {
    let fits =
        a.shape.iter().rev().zip(b.shape.iter().rev()).all(|(&x, &y)| x == y || x == 1 || y == 1);
    if fits {
        Ok(())
    } else {
        Err(WhyNot::Shape {
            tensor: b.to_ref(),
            expected: format!("{:?} does not broadcast against {:?}", b.shape, a.shape),
        })
    }
}

/// Whether XNNPACK has an 8-bit kernel for the function, with fixed-point arithmetic that supports
/// these scales.
pub(crate) fn binary_in_8_bits(op: BinaryOp, a: Elem, b: Elem, output: Elem) -> bool {
    let (Elem::Q8(a), Elem::Q8(b), Elem::Q8(output)) = (a, b, output) else { return true };
    match op {
        BinaryOp::Add | BinaryOp::Subtract => {
            let range = 1.0 / 1024.0..256.0;
            range.contains(&(a.scale / output.scale)) && range.contains(&(b.scale / output.scale))
        }
        BinaryOp::Multiply => (1.0 / 65536.0..256.0).contains(&(a.scale * b.scale / output.scale)),
        _ => false,
    }
}
