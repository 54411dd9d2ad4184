//! ADD, SUB, MUL and DIV, with fused activations.

use xnn_model::op::Activation;
use xnn_model::{DType, Op};

use super::binary::{apply, nonzero, operand_type, uniform_type, zip};
use crate::error::{Refusal, refuse};
use crate::fixed::{Multiplier, reciprocal, rounding_shift_right};
use crate::operator::{OperatorContext, Run, run};
use crate::quant::{
    Affine, Quantized, affine, clamp, float_bounds, is_quantized, quantized_bounds,
};
use crate::tensor::Complex;

/// Bounds of a fused activation on integers of the range `low..=high`.
fn integer_bounds<T: TryFrom<i64>>(
    activation: Activation,
    (low, high): (T, T),
) -> Result<(T, T), Refusal> {
    let or = |bound: i64, end: T| T::try_from(bound).unwrap_or(end);
    Ok(match activation {
        Activation::None => (low, high),
        Activation::Relu => (or(0, low), high),
        Activation::ReluN1To1 => (or(-1, low), or(1, high)),
        Activation::Relu6 => (or(0, low), or(6, high)),
        other => return refuse(format!("fused activation {other:?}")),
    })
}

/// Whether 16-bit integers are quantized, rather than plain integers.
fn stands_for_reals(context: &OperatorContext<'_>) -> Result<bool, Refusal> {
    Ok(is_quantized(context.input(0)?) && is_quantized(context.output(0)?))
}

/// Wrapping arithmetic on values that are not quantized, clamped to a fused activation.
macro_rules! plain {
    ($context:expr, $dtype:expr, $activation:expr, $float:expr, $wrapping:ident) => {{
        let activation: Activation = $activation;
        let f = $float;
        macro_rules! integers {
            ($ty:ty) => {{
                let (low, high) = integer_bounds(activation, (<$ty>::MIN, <$ty>::MAX))?;
                zip(move |a: $ty, b: $ty| a.$wrapping(b).max(low).min(high))
            }};
        }
        match $dtype {
            DType::F32 => {
                let bounds = float_bounds(activation)?;
                zip(move |a: f32, b: f32| clamp(f(a, b), bounds))
            }
            DType::F16 => {
                let bounds = float_bounds(activation)?;
                zip(move |a: half::f16, b: half::f16| {
                    half::f16::from_f32(clamp(f(a.to_f32(), b.to_f32()), bounds))
                })
            }
            DType::I16 => integers!(i16),
            DType::I32 => integers!(i32),
            DType::U32 => integers!(u32),
            DType::I64 => integers!(i64),
            other => $context.unsupported(other),
        }
    }};
}

pub(super) fn add(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    let Op::Add(options) = &context.operator.op else {
        return refuse(format!("{} is not ADD", context.operator.op));
    };
    sum(context, options.activation, options.pot_scale_int16, Sign::Plus)
}

pub(super) fn sub(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    let Op::Sub(options) = &context.operator.op else {
        return refuse(format!("{} is not SUB", context.operator.op));
    };
    sum(context, options.activation, options.pot_scale_int16, Sign::Minus)
}

/// The sign of a sum's second operand.
#[derive(Clone, Copy, PartialEq)]
enum Sign {
    Plus,
    Minus,
}

fn sum(
    context: &OperatorContext<'_>,
    activation: Activation,
    power_of_two_scales: bool,
    sign: Sign,
) -> Result<Run, Refusal> {
    match uniform_type(context)? {
        DType::U8 => sum_quantized::<u8>(context, activation, sign, 20),
        DType::I8 => sum_quantized::<i8>(context, activation, sign, 20),
        DType::I16 if stands_for_reals(context)? => {
            let shifts = if power_of_two_scales { power_of_two_shifts(context)? } else { None };
            match shifts {
                Some(shifts) => sum_by_shifts(context, activation, sign, shifts),
                None => sum_quantized::<i16>(context, activation, sign, 15),
            }
        }
        dtype if sign == Sign::Plus => {
            plain!(context, dtype, activation, |a: f32, b: f32| a + b, wrapping_add)
        }
        dtype => plain!(context, dtype, activation, |a: f32, b: f32| a - b, wrapping_sub),
    }
}

/// Brings both operands to a common scale with `headroom` more bits.
fn sum_quantized<T: Quantized>(
    context: &OperatorContext<'_>,
    activation: Activation,
    sign: Sign,
    headroom: u32,
) -> Result<Run, Refusal> {
    let (a, b, to) =
        (affine(context.input(0)?)?, affine(context.input(1)?)?, affine(context.output(0)?)?);
    let bounds = quantized_bounds(activation, context.output(0)?)?;
    let common = f64::from(2.0 * a.scale.max(b.scale));
    let scale_a = Multiplier::new(f64::from(a.scale) / common);
    let scale_b = Multiplier::new(f64::from(b.scale) / common);
    let output = Multiplier::new(common / f64::from((1u32 << headroom) as f32 * to.scale));
    zip(move |x: T, y: T| {
        let x = scale_a.apply((x.into() - a.zero_point) << headroom);
        let y = scale_b.apply((y.into() - b.zero_point) << headroom);
        let sum = if sign == Sign::Plus { x.wrapping_add(y) } else { x.wrapping_sub(y) };
        T::bounded(output.apply(sum).saturating_add(to.zero_point), bounds)
    })
}

/// The right shift of each operand, if all scales are powers of two and one operand has the
/// output's.
fn power_of_two_shifts(context: &OperatorContext<'_>) -> Result<Option<[u32; 2]>, Refusal> {
    let log2 = |affine: Affine| {
        let log2 = affine.scale.log2();
        ((log2 - log2.round()).abs() < 1e-3).then_some(log2.round() as i32)
    };
    let logs = (
        log2(affine(context.input(0)?)?),
        log2(affine(context.input(1)?)?),
        log2(affine(context.output(0)?)?),
    );
    let (Some(a), Some(b), Some(to)) = logs else { return Ok(None) };
    match (to - a, to - b) {
        (0, shift @ 0..=31) => Ok(Some([0, shift as u32])),
        (shift @ 0..=31, 0) => Ok(Some([shift as u32, 0])),
        _ => refuse("16-bit scales that are powers of two and differ by too large a factor"),
    }
}

fn sum_by_shifts(
    context: &OperatorContext<'_>,
    activation: Activation,
    sign: Sign,
    [shift_a, shift_b]: [u32; 2],
) -> Result<Run, Refusal> {
    let bounds = quantized_bounds(activation, context.output(0)?)?;
    zip(move |x: i16, y: i16| {
        let x = rounding_shift_right(x.into(), shift_a);
        let y = rounding_shift_right(y.into(), shift_b);
        let sum = if sign == Sign::Plus { x + y } else { x - y };
        i16::bounded(sum, bounds)
    })
}

pub(super) fn mul(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    let Op::Mul(options) = &context.operator.op else {
        return refuse(format!("{} is not MUL", context.operator.op));
    };
    let activation = options.activation;
    match operand_type(context)? {
        DType::U8 => mul_quantized::<u8, u8>(context, activation),
        DType::I8 => mul_quantized::<i8, i8>(context, activation),
        DType::I16 if stands_for_reals(context)? => match context.output(0)?.dtype {
            DType::I8 => mul_quantized::<i16, i8>(context, activation),
            _ => mul_quantized::<i16, i16>(context, activation),
        },
        DType::Complex64 if activation == Activation::None => zip(|a: Complex, b: Complex| {
            Complex { re: a.re * b.re - a.im * b.im, im: a.re * b.im + a.im * b.re }
        }),
        _ => {
            plain!(
                context,
                uniform_type(context)?,
                activation,
                |a: f32, b: f32| a * b,
                wrapping_mul
            )
        }
    }
}

fn mul_quantized<T: Quantized, O: Quantized>(
    context: &OperatorContext<'_>,
    activation: Activation,
) -> Result<Run, Refusal> {
    let (a, b, to) =
        (affine(context.input(0)?)?, affine(context.input(1)?)?, affine(context.output(0)?)?);
    let bounds = quantized_bounds(activation, context.output(0)?)?;
    // In single precision, like the product of scales in TFLite.
    let rescale = Multiplier::new(f64::from(a.scale * b.scale / to.scale));
    zip(move |x: T, y: T| {
        let product = (x.into() - a.zero_point).wrapping_mul(y.into() - b.zero_point);
        O::bounded(rescale.apply(product).saturating_add(to.zero_point), bounds)
    })
}

pub(super) fn div(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    let Op::Div(options) = &context.operator.op else {
        return refuse(format!("{} is not DIV", context.operator.op));
    };
    match uniform_type(context)? {
        DType::F32 => {
            let bounds = float_bounds(options.activation)?;
            zip(move |a: f32, b: f32| clamp(a / b, bounds))
        }
        DType::I32 => {
            let (low, high) = integer_bounds(options.activation, (i32::MIN, i32::MAX))?;
            run(move |call| {
                nonzero::<i32>(call)?;
                apply(call, |a: i32, b: i32| a.wrapping_div(b).max(low).min(high))
            })
        }
        DType::U8 => div_quantized::<u8>(context, options.activation),
        DType::I8 => div_quantized::<i8>(context, options.activation),
        other => context.unsupported(other),
    }
}

/// Multiplies with a fixed-point reciprocal.
fn div_quantized<T: Quantized>(
    context: &OperatorContext<'_>,
    activation: Activation,
) -> Result<Run, Refusal> {
    let (a, b, to) =
        (affine(context.input(0)?)?, affine(context.input(1)?)?, affine(context.output(0)?)?);
    let bounds = quantized_bounds(activation, context.output(0)?)?;
    let rescale = Multiplier::new(f64::from(a.scale / (b.scale * to.scale)));
    run(move |call| {
        if call.input::<T>(1)?.iter().any(|&q| q.into() == b.zero_point) {
            return refuse("division by zero");
        }
        apply(call, |x: T, y: T| {
            let (x, y) = (x.into() - a.zero_point, y.into() - b.zero_point);
            let (x, y) = if y < 0 { (-x, -y) } else { (x, y) };
            let (reciprocal, shift) = reciprocal(y, 31);
            // Shifts the numerator by all its headroom.
            let headroom = if x < 0 { !x } else { x }.leading_zeros() - 1;
            let quotient = Multiplier { value: reciprocal, shift: headroom as i32 }.apply(x);
            let unscaled =
                Multiplier { value: rescale.value, shift: rescale.shift - shift - headroom as i32 };
            T::bounded(unscaled.apply(quotient).saturating_add(to.zero_point), bounds)
        })
    })
}
