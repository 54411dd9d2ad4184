//! Functions of two tensors, element by element, with broadcasting.

use xnn_model::op::Activation;
use xnn_model::{DType, Op};

use super::strides::{stretch_to, zip_broadcast};
use crate::call::Call;
use crate::error::{Refusal, refuse};
use crate::fixed::{Multiplier, rounding_shift_right};
use crate::node::{Node, Run, run};
use crate::quant::{
    Affine, Quantized, affine, clamp, float_bounds, is_quantized, quantized_bounds,
};
use crate::tensor::{Complex, Element};

/// Runs `f` on every pair. A copy of what it knows stays in registers.
pub(super) fn zip<A: Element, B: Element, O: Element>(
    f: impl Fn(A, B) -> O + Copy + Send + Sync + 'static,
) -> Result<Run, Refusal> {
    run(move |call| apply(call, f))
}

fn apply<A: Element, B: Element, O: Element>(
    call: &mut Call<'_>,
    f: impl Fn(A, B) -> O,
) -> Result<(), Refusal> {
    let (a_shape, b_shape) = (call.shape(0)?, call.shape(1)?);
    let (a, b) = (call.input::<A>(0)?, call.input::<B>(1)?);
    let shape = call.output_shape(0)?;
    if !stretch_to([a_shape, b_shape], &shape) {
        return refuse(format!("shapes {a_shape:?} and {b_shape:?} do not give {shape:?}"));
    }
    zip_broadcast((a, a_shape), (b, b_shape), (call.output::<O>(0)?, &shape), f);
    Ok(())
}

/// The element type that both inputs share.
pub(super) fn operand_type(node: &Node<'_>) -> Result<DType, Refusal> {
    let (a, b) = (node.input(0)?.dtype, node.input(1)?.dtype);
    if a == b { Ok(a) } else { refuse(format!("inputs are {a} and {b}")) }
}

/// The element type that both inputs and the output share.
fn uniform_type(node: &Node<'_>) -> Result<DType, Refusal> {
    let dtype = operand_type(node)?;
    node.expect_output(0, dtype)?;
    Ok(dtype)
}

/// Bounds of a fused activation on whole numbers of the range `low..=high`.
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

/// Whether 16-bit integers stand for real numbers here, or for themselves.
fn stands_for_reals(node: &Node<'_>) -> Result<bool, Refusal> {
    Ok(is_quantized(node.input(0)?) && is_quantized(node.output(0)?))
}

/// Wrapping arithmetic on plain numbers, clamped to a fused activation.
macro_rules! plain {
    ($node:expr, $dtype:expr, $activation:expr, $float:expr, $wrapping:ident) => {{
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
            other => $node.unsupported(other),
        }
    }};
}

pub(super) fn add(node: &Node<'_>) -> Result<Run, Refusal> {
    let Op::Add(options) = &node.operator.op else {
        return refuse(format!("{} is not ADD", node.operator.op));
    };
    sum(node, options.activation, options.pot_scale_int16, Sign::Plus)
}

pub(super) fn sub(node: &Node<'_>) -> Result<Run, Refusal> {
    let Op::Sub(options) = &node.operator.op else {
        return refuse(format!("{} is not SUB", node.operator.op));
    };
    sum(node, options.activation, options.pot_scale_int16, Sign::Minus)
}

/// The sign of a sum's second operand.
#[derive(Clone, Copy, PartialEq)]
enum Sign {
    Plus,
    Minus,
}

fn sum(
    node: &Node<'_>,
    activation: Activation,
    power_of_two_scales: bool,
    sign: Sign,
) -> Result<Run, Refusal> {
    match uniform_type(node)? {
        DType::U8 => sum_quantized::<u8>(node, activation, sign, 20),
        DType::I8 => sum_quantized::<i8>(node, activation, sign, 20),
        DType::I16 if stands_for_reals(node)? => {
            let shifts = if power_of_two_scales { power_of_two_shifts(node)? } else { None };
            match shifts {
                Some(shifts) => sum_by_shifts(node, activation, sign, shifts),
                None => sum_quantized::<i16>(node, activation, sign, 15),
            }
        }
        dtype if sign == Sign::Plus => {
            plain!(node, dtype, activation, |a: f32, b: f32| a + b, wrapping_add)
        }
        dtype => plain!(node, dtype, activation, |a: f32, b: f32| a - b, wrapping_sub),
    }
}

/// Both operands are brought to a common scale with `headroom` more bits.
fn sum_quantized<T: Quantized>(
    node: &Node<'_>,
    activation: Activation,
    sign: Sign,
    headroom: u32,
) -> Result<Run, Refusal> {
    let (a, b, to) = (affine(node.input(0)?)?, affine(node.input(1)?)?, affine(node.output(0)?)?);
    let bounds = quantized_bounds(activation, node.output(0)?)?;
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

/// How far each operand is shifted right, where all scales are powers of two
/// and one operand has the output's.
fn power_of_two_shifts(node: &Node<'_>) -> Result<Option<[u32; 2]>, Refusal> {
    let log2 = |affine: Affine| {
        let log2 = affine.scale.log2();
        ((log2 - log2.round()).abs() < 1e-3).then_some(log2.round() as i32)
    };
    let logs = (
        log2(affine(node.input(0)?)?),
        log2(affine(node.input(1)?)?),
        log2(affine(node.output(0)?)?),
    );
    let (Some(a), Some(b), Some(to)) = logs else { return Ok(None) };
    match (to - a, to - b) {
        (0, shift @ 0..=31) => Ok(Some([0, shift as u32])),
        (shift @ 0..=31, 0) => Ok(Some([shift as u32, 0])),
        _ => refuse("16-bit scales that are powers of two, too far apart"),
    }
}

fn sum_by_shifts(
    node: &Node<'_>,
    activation: Activation,
    sign: Sign,
    [shift_a, shift_b]: [u32; 2],
) -> Result<Run, Refusal> {
    let bounds = quantized_bounds(activation, node.output(0)?)?;
    zip(move |x: i16, y: i16| {
        let x = rounding_shift_right(x.into(), shift_a);
        let y = rounding_shift_right(y.into(), shift_b);
        let sum = if sign == Sign::Plus { x + y } else { x - y };
        i16::bounded(sum, bounds)
    })
}

pub(super) fn mul(node: &Node<'_>) -> Result<Run, Refusal> {
    let Op::Mul(options) = &node.operator.op else {
        return refuse(format!("{} is not MUL", node.operator.op));
    };
    let activation = options.activation;
    match operand_type(node)? {
        DType::U8 => mul_quantized::<u8, u8>(node, activation),
        DType::I8 => mul_quantized::<i8, i8>(node, activation),
        DType::I16 if stands_for_reals(node)? => match node.output(0)?.dtype {
            DType::I8 => mul_quantized::<i16, i8>(node, activation),
            _ => mul_quantized::<i16, i16>(node, activation),
        },
        DType::Complex64 if activation == Activation::None => zip(|a: Complex, b: Complex| {
            Complex { re: a.re * b.re - a.im * b.im, im: a.re * b.im + a.im * b.re }
        }),
        _ => {
            plain!(node, uniform_type(node)?, activation, |a: f32, b: f32| a * b, wrapping_mul)
        }
    }
}

fn mul_quantized<T: Quantized, O: Quantized>(
    node: &Node<'_>,
    activation: Activation,
) -> Result<Run, Refusal> {
    let (a, b, to) = (affine(node.input(0)?)?, affine(node.input(1)?)?, affine(node.output(0)?)?);
    let bounds = quantized_bounds(activation, node.output(0)?)?;
    // In single precision, as the product of scales is in TFLite.
    let rescale = Multiplier::new(f64::from(a.scale * b.scale / to.scale));
    zip(move |x: T, y: T| {
        let product = (x.into() - a.zero_point).wrapping_mul(y.into() - b.zero_point);
        O::bounded(rescale.apply(product).saturating_add(to.zero_point), bounds)
    })
}

pub(super) fn div(node: &Node<'_>) -> Result<Run, Refusal> {
    let Op::Div(options) = &node.operator.op else {
        return refuse(format!("{} is not DIV", node.operator.op));
    };
    match uniform_type(node)? {
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
        DType::U8 => div_quantized::<u8>(node, options.activation),
        DType::I8 => div_quantized::<i8>(node, options.activation),
        other => node.unsupported(other),
    }
}

/// Refuses if a divisor is zero.
fn nonzero<T: Element>(call: &Call<'_>) -> Result<(), Refusal> {
    if call.input::<T>(1)?.contains(&T::default()) {
        return refuse("division by zero");
    }
    Ok(())
}

/// Multiplies with a fixed-point reciprocal.
fn div_quantized<T: Quantized>(node: &Node<'_>, activation: Activation) -> Result<Run, Refusal> {
    let (a, b, to) = (affine(node.input(0)?)?, affine(node.input(1)?)?, affine(node.output(0)?)?);
    let bounds = quantized_bounds(activation, node.output(0)?)?;
    let rescale = Multiplier::new(f64::from(a.scale / (b.scale * to.scale)));
    run(move |call| {
        if call.input::<T>(1)?.iter().any(|&q| q.into() == b.zero_point) {
            return refuse("division by zero");
        }
        apply(call, |x: T, y: T| {
            let (x, y) = (x.into() - a.zero_point, y.into() - b.zero_point);
            let (x, y) = if y < 0 { (-x, -y) } else { (x, y) };
            let (reciprocal, shift) = crate::fixed::reciprocal(y, 31);
            // As much of the numerator's headroom as there is.
            let headroom = if x < 0 { !x } else { x }.leading_zeros() - 1;
            let quotient = Multiplier { value: reciprocal, shift: headroom as i32 }.apply(x);
            let unscaled =
                Multiplier { value: rescale.value, shift: rescale.shift - shift - headroom as i32 };
            T::bounded(unscaled.apply(quotient).saturating_add(to.zero_point), bounds)
        })
    })
}

/// One of two elements.
macro_rules! extremum {
    ($node:expr, $which:ident, $floats:expr) => {
        match uniform_type($node)? {
            DType::F32 => zip($floats),
            DType::U8 => zip(|a: u8, b: u8| a.$which(b)),
            DType::I8 => zip(|a: i8, b: i8| a.$which(b)),
            DType::I16 => zip(|a: i16, b: i16| a.$which(b)),
            DType::I32 => zip(|a: i32, b: i32| a.$which(b)),
            DType::I64 => zip(|a: i64, b: i64| a.$which(b)),
            other => $node.unsupported(other),
        }
    };
}

pub(super) fn maximum(node: &Node<'_>) -> Result<Run, Refusal> {
    extremum!(node, max, |a: f32, b: f32| if a > b { a } else { b })
}

pub(super) fn minimum(node: &Node<'_>) -> Result<Run, Refusal> {
    extremum!(node, min, |a: f32, b: f32| if a < b { a } else { b })
}

pub(super) fn squared_difference(node: &Node<'_>) -> Result<Run, Refusal> {
    match uniform_type(node)? {
        DType::F32 => zip(|a: f32, b: f32| (a - b) * (a - b)),
        DType::I32 => zip(|a: i32, b: i32| a.wrapping_sub(b).wrapping_mul(a.wrapping_sub(b))),
        DType::I8 => squared_difference_quantized(node),
        other => node.unsupported(other),
    }
}

fn squared_difference_quantized(node: &Node<'_>) -> Result<Run, Refusal> {
    const HEADROOM: u32 = 7;
    let (a, b, to) = (affine(node.input(0)?)?, affine(node.input(1)?)?, affine(node.output(0)?)?);
    let common = f64::from(2.0 * a.scale.max(b.scale));
    let scale_a = Multiplier::new(f64::from(a.scale) / common);
    let scale_b = Multiplier::new(f64::from(b.scale) / common);
    let output =
        Multiplier::new(common * common / f64::from((1u32 << (2 * HEADROOM)) as f32 * to.scale));
    zip(move |x: i8, y: i8| {
        let x = scale_a.apply((i32::from(x) - a.zero_point) << HEADROOM);
        let y = scale_b.apply((i32::from(y) - b.zero_point) << HEADROOM);
        let difference = x.wrapping_sub(y);
        let square = difference.wrapping_mul(difference);
        i8::saturate(output.apply(square).saturating_add(to.zero_point))
    })
}

pub(super) fn floor_div(node: &Node<'_>) -> Result<Run, Refusal> {
    macro_rules! integers {
        ($ty:ty) => {
            run(|call| {
                nonzero::<$ty>(call)?;
                apply(call, |a: $ty, b: $ty| {
                    let quotient = a.wrapping_div(b);
                    let inexact = a.wrapping_rem(b) != 0 && (a < 0) != (b < 0);
                    quotient - <$ty>::from(inexact)
                })
            })
        };
    }
    match uniform_type(node)? {
        DType::F32 => run(|call| {
            nonzero::<f32>(call)?;
            // A quotient just below a whole number stays there.
            apply(call, |a: f32, b: f32| (f64::from(a) / f64::from(b)).floor() as f32)
        }),
        DType::I8 => integers!(i8),
        DType::I16 => integers!(i16),
        DType::I32 => integers!(i32),
        DType::I64 => integers!(i64),
        other => node.unsupported(other),
    }
}

pub(super) fn floor_mod(node: &Node<'_>) -> Result<Run, Refusal> {
    macro_rules! integers {
        ($ty:ty) => {
            run(|call| {
                nonzero::<$ty>(call)?;
                apply(call, |a: $ty, b: $ty| {
                    let rest = a.wrapping_rem(b);
                    if rest != 0 && (rest < 0) != (b < 0) { rest + b } else { rest }
                })
            })
        };
    }
    match uniform_type(node)? {
        DType::F32 => zip(|a: f32, b: f32| {
            let rest = a % b;
            if rest != 0.0 && (rest < 0.0) != (b < 0.0) { rest + b } else { rest }
        }),
        DType::I8 => integers!(i8),
        DType::I16 => integers!(i16),
        DType::I32 => integers!(i32),
        DType::I64 => integers!(i64),
        other => node.unsupported(other),
    }
}

pub(super) fn pow(node: &Node<'_>) -> Result<Run, Refusal> {
    match uniform_type(node)? {
        DType::F32 => zip(f32::powf),
        DType::I32 => run(|call| {
            if call.input::<i32>(1)?.iter().any(|&e| e < 0) {
                return refuse("an integer to a negative power");
            }
            apply(call, |a: i32, e: i32| f64::from(a).powf(f64::from(e)) as i32)
        }),
        other => node.unsupported(other),
    }
}

pub(super) fn atan2(node: &Node<'_>) -> Result<Run, Refusal> {
    match uniform_type(node)? {
        DType::F32 => zip(f32::atan2),
        DType::F64 => zip(f64::atan2),
        other => node.unsupported(other),
    }
}

pub(super) fn logical(node: &Node<'_>) -> Result<Run, Refusal> {
    if uniform_type(node)? != DType::Bool {
        return refuse("operands that are not booleans");
    }
    match node.operator.op {
        Op::LogicalAnd => zip(|a: u8, b: u8| u8::from(a != 0 && b != 0)),
        Op::LogicalOr => zip(|a: u8, b: u8| u8::from(a != 0 || b != 0)),
        _ => refuse(format!("{} is not logical", node.operator.op)),
    }
}

pub(super) fn bitwise(node: &Node<'_>) -> Result<Run, Refusal> {
    macro_rules! integers {
        ($ty:ty) => {
            match node.operator.op {
                Op::BitwiseXor => zip(|a: $ty, b: $ty| a ^ b),
                // A shift by more bits than there are gives the sign.
                Op::RightShift => {
                    zip(|a: $ty, b: $ty| a >> u32::try_from(b).unwrap_or(0).min(<$ty>::BITS - 1))
                }
                _ => refuse(format!("{} is not bitwise", node.operator.op)),
            }
        };
    }
    match uniform_type(node)? {
        DType::I8 => integers!(i8),
        DType::U8 | DType::Bool => integers!(u8),
        DType::I16 => integers!(i16),
        DType::U16 => integers!(u16),
        DType::I32 => integers!(i32),
        DType::U32 => integers!(u32),
        other => node.unsupported(other),
    }
}
