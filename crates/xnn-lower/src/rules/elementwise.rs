//! May the functions of one or two operands go, element by element?

use xnn_format::{BinaryOp, OutputRange, UnaryOp};
use xnn_model::TensorId;
use xnn_model::op::{Activation, FakeQuantOptions, GeluOptions};

use super::checks::{self, Elem, Fused};
use crate::view::{OpView, Operand};
use crate::why_not::WhyNot;

/// A function of one operand that XNNPACK takes.
#[derive(Clone, Debug)]
pub(crate) struct Unary {
    pub op: UnaryOp,
    pub range: Option<OutputRange>,
    pub input: TensorId,
    pub output: TensorId,
    /// XNNPACK cannot do it in 8 bits: go through floats.
    pub in_float: bool,
}

/// A function of two operands that XNNPACK takes.
#[derive(Clone, Debug)]
pub(crate) struct Binary {
    pub op: BinaryOp,
    pub inputs: [TensorId; 2],
    pub output: TensorId,
    pub fused: Fused,
    /// A function of the result.
    pub then: Option<UnaryOp>,
    /// XNNPACK cannot do it in 8 bits, or not with these scales: go through
    /// floats.
    pub in_float: bool,
}

/// GELU.
#[derive(Clone, Debug)]
pub(crate) struct Gelu {
    /// The tanh form instead of erf.
    pub approximate: bool,
    pub input: TensorId,
    pub output: TensorId,
}

/// What is left by a division, with the sign of the divisor, which is finite.
#[derive(Clone, Debug)]
pub(crate) struct FloorMod {
    pub inputs: [TensorId; 2],
    pub output: TensorId,
}

/// A sum of operands of one shape.
#[derive(Clone, Debug)]
pub(crate) struct AddN {
    pub inputs: Vec<TensorId>,
    pub output: TensorId,
}

/// Floats as they would come out of a quantization.
#[derive(Clone, Debug)]
pub(crate) struct FakeQuant {
    pub input: TensorId,
    pub output: TensorId,
    /// Distance of two levels.
    pub scale: f32,
    /// The lowest level and the highest one.
    pub range: OutputRange,
}

pub(crate) fn unary(view: OpView<'_>, op: UnaryOp) -> Result<Unary, WhyNot> {
    view.arity(1..=1, 1..=1)?;
    let (input, output) = (view.input(0)?, view.output(0)?);
    let (from, to) = checks::same_type(input, output)?;
    Ok(Unary {
        op,
        range: None,
        input: input.id,
        output: output.id,
        in_float: !unary_in_8_bits(op, from, to),
    })
}

/// NEG: interpreters negate 8-bit integers as they are, whatever they stand for.
pub(crate) fn float_unary(view: OpView<'_>, op: UnaryOp) -> Result<Unary, WhyNot> {
    let unary = unary(view, op)?;
    checks::f32_operand(view.output(0)?)?;
    Ok(unary)
}

pub(crate) fn clamp(view: OpView<'_>, range: OutputRange) -> Result<Unary, WhyNot> {
    Ok(Unary { range: Some(range), ..unary(view, UnaryOp::Clamp)? })
}

/// Whether XNNPACK's 8-bit form of the function (a table of 256 entries for
/// most) serves these scales.
pub(crate) fn unary_in_8_bits(op: UnaryOp, from: Elem, to: Elem) -> bool {
    let (Elem::Q8(from), Elem::Q8(to)) = (from, to) else { return true };
    let ratio = from.scale / to.scale;
    match op {
        UnaryOp::Convert => CONVERT_RATIO.contains(&ratio),
        // Bounds are taken in the output's scale, behind a conversion.
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

/// Ratios of scales that XNNPACK's 8-bit conversions express.
pub(crate) const CONVERT_RATIO: std::ops::RangeInclusive<f32> = 1.0 / 256.0..=128.0;

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
        fused: checks::activation(activation, eo)?,
        then: None,
        in_float: !binary_in_8_bits(op, ea, eb, eo),
    })
}

/// MAXIMUM and MINIMUM: interpreters compare integers as they are, whatever they stand for.
pub(crate) fn choice(view: OpView<'_>, op: BinaryOp) -> Result<Binary, WhyNot> {
    let binary = binary(view, op, Activation::None)?;
    let a = view.input(0)?;
    for other in [view.input(1)?, view.output(0)?] {
        checks::same_elem(a, other)?;
    }
    Ok(binary)
}

/// PRELU: the slope is a constant.
pub(crate) fn prelu(view: OpView<'_>) -> Result<Binary, WhyNot> {
    let binary = binary(view, BinaryOp::Prelu, Activation::None)?;
    checks::constant(view.input(1)?)?;
    Ok(binary)
}

/// GELU: XNNPACK has the exact form; the approximation is put together.
pub(crate) fn gelu(view: OpView<'_>, options: &GeluOptions) -> Result<Gelu, WhyNot> {
    let Unary { input, output, .. } = unary(view, UnaryOp::Gelu)?;
    Ok(Gelu { approximate: options.approximate, input, output })
}

/// FLOOR_DIV: a quotient, then its floor. Interpreters divide in double precision; in single
/// precision a quotient just below a whole number may be rounded to it, but by powers of two none is.
pub(crate) fn floor_div(view: OpView<'_>) -> Result<Binary, WhyNot> {
    let binary = float_binary(view, BinaryOp::Divide)?;
    let divisor = view.input(1)?;
    let power_of_two = |value: &f32| value.is_normal() && value.to_bits() << 9 == 0;
    if constant_floats(divisor)?.iter().all(power_of_two) {
        return Ok(Binary { then: Some(UnaryOp::Floor), ..binary });
    }
    Err(WhyNot::Unusable { tensor: divisor.to_ref(), why: "not a power of two".into() })
}

/// ATAN2: interpreters do not broadcast its operands.
pub(crate) fn atan2(view: OpView<'_>) -> Result<Binary, WhyNot> {
    let binary = float_binary(view, BinaryOp::Atan2)?;
    let (y, x) = (view.input(0)?, view.input(1)?);
    if y.shape == x.shape {
        return Ok(binary);
    }
    let expected = format!("{:?} is not {:?}", x.shape, y.shape);
    Err(WhyNot::Shape { tensor: x.to_ref(), expected })
}

/// FLOOR_MOD: the divisor must be known, because 0 times an infinite one is no number.
pub(crate) fn floor_mod(view: OpView<'_>) -> Result<FloorMod, WhyNot> {
    let Binary { inputs, output, .. } = float_binary(view, BinaryOp::Modulus)?;
    let divisor = view.input(1)?;
    if constant_floats(divisor)?.iter().any(|value| !value.is_finite()) {
        return Err(WhyNot::Unusable {
            tensor: divisor.to_ref(),
            why: "an infinite divisor".into(),
        });
    }
    Ok(FloorMod { inputs, output })
}

fn constant_floats(operand: Operand<'_>) -> Result<Vec<f32>, WhyNot> {
    checks::constant(operand)?;
    Ok(operand.tensor.constant_floats().unwrap_or_default())
}

/// ADD_N: floats of one shape.
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

/// FAKE_QUANT.
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
            expected: "a range, and 2 to 16 bits",
        });
    };
    let low = if narrow_range { 1.0 } else { 0.0 };
    let high = ((1u32 << bits) - 1) as f32;
    let scale = (max - min) / (high - low);
    // The range moves until zero is a level.
    let zero = (low - min / scale).clamp(low, high).round();
    let range = OutputRange { min: (low - zero) * scale, max: (high - zero) * scale };
    checks::check_scale(input, scale)?;
    Ok(FakeQuant { input: input.id, output: output.id, scale, range })
}

/// Functions that interpreters have for floats only.
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

/// Whether XNNPACK has an 8-bit kernel for the function, and its fixed-point
/// arithmetic can express these scales.
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
