//! Activation functions.

use xnn_model::op::GeluOptions;
use xnn_model::{DType, Op};

use super::binary::zip;
use super::functions;
use super::unary::{look_up, map, tabulated};
use crate::error::{Refusal, refuse};
use crate::fixed::{
    Multiplier, doubling_high_mul_16, downscale_multiplier, rounding_shift_right,
    saturating_shift_left,
};
use crate::operator::{OperatorContext, Run};
use crate::quant::{Quantized, affine};

pub(super) fn tanh(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    match context.common_type()? {
        DType::F32 => map(functions::tanh),
        DType::U8 | DType::I8 => tabulated(context, f32::tanh),
        DType::I16 => look_up(Gate::new(context, 1.0 / 32768.0)?, Gate::tanh),
        other => context.unsupported(other),
    }
}

pub(super) fn logistic(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    match context.common_type()? {
        DType::F32 => map(functions::logistic),
        DType::U8 | DType::I8 => tabulated(context, |x| 1.0 / (1.0 + (-x).exp())),
        DType::I16 => look_up(Gate::new(context, 1.0 / 32768.0)?, Gate::logistic),
        other => context.unsupported(other),
    }
}

/// Logistic and tanh of 16-bit integers, interpolated in a table of the logistic function with 24
/// steps per unit.
struct Gate {
    table: Vec<u32>,
    multiplier: i32,
    shift: u32,
    /// The input's scale is the power of two for which the function is defined.
    direct: Option<u32>,
}

impl Gate {
    fn new(context: &OperatorContext<'_>, output_scale: f32) -> Result<Self, Refusal> {
        let (from, to) = (affine(context.input(0)?)?, affine(context.output(0)?)?);
        if from.zero_point != 0 || to.zero_point != 0 || to.scale != output_scale {
            return refuse(
                "a 16-bit input or output with a zero point, or an output range other than [-1, 1]",
            );
        }
        let log2 = from.scale.log2().round();
        let is_power = (from.scale.log2() - log2).abs() < 1e-3;
        let direct =
            (is_power && matches!(log2 as i32, -12 | -11)).then_some((log2 as i32 + 12) as u32);
        let (mut multiplier, mut shift) = (f64::from(from.scale) * 4096.0 * 3.0, 0);
        while multiplier <= 32767.0 / 2.0 && shift <= 30 {
            multiplier *= 2.0;
            shift += 1;
        }
        let sample = |i: u32| 65536.0 / (1.0 + (-f64::from(i) / 24.0).exp());
        Ok(Self {
            table: (0..256).map(|i| sample(i).round().min(65535.0) as u32).collect(),
            multiplier: multiplier as i32,
            shift,
            direct,
        })
    }

    /// The input with 12288 steps per unit.
    #[inline]
    fn rescaled(&self, q: i16, direct: Option<u32>) -> i32 {
        let (multiplier, shift) = match direct {
            Some(left) => (3 << left, 0),
            None => (self.multiplier, self.shift),
        };
        let round = if shift > 0 { 1i64 << (shift - 1) } else { 0 };
        ((i64::from(q) * i64::from(multiplier) + round) >> shift) as i32
    }

    #[inline]
    fn logistic(&self, q: i16) -> i16 {
        let x = self.rescaled(q, self.direct.filter(|&left| left == 0));
        let (index, fraction) = (x.unsigned_abs() >> 9, x.unsigned_abs() & 0x1ff);
        let result = if index >= 255 {
            0x7fff << 10
        } else {
            let (a, b) = (self.table[index as usize], self.table[index as usize + 1]);
            (a << 9) + fraction * (b - a)
        };
        let rounded = if x >= 0 { result + (1 << 9) } else { (1 << 25) - result + (1 << 9) - 1 };
        (rounded >> 10) as i16
    }

    #[inline]
    fn tanh(&self, q: i16) -> i16 {
        let x = self.rescaled(q, self.direct);
        let (index, fraction) = (x.unsigned_abs() >> 8, x.unsigned_abs() & 0xff);
        let result = if index >= 255 {
            0xffff << 8
        } else {
            let (a, b) = (self.table[index as usize], self.table[index as usize + 1]);
            (a << 8) + fraction * (b - a)
        } as i32;
        let rounded = if x >= 0 {
            result - (1 << (14 + 9)) + (1 << (9 - 2))
        } else {
            -result + (1 << (14 + 9)) + (1 << (9 - 2)) - 1
        };
        (rounded >> (9 - 1)) as i16
    }
}

pub(super) fn gelu(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    let Op::Gelu(GeluOptions { approximate }) = context.operator.op else {
        return refuse(format!("{} is not GELU", context.operator.op));
    };
    let gelu = if approximate { gelu_by_tanh } else { gelu_by_erf };
    match context.common_type()? {
        DType::F32 => map(gelu),
        DType::U8 | DType::I8 | DType::I16 => tabulated(context, gelu),
        other => context.unsupported(other),
    }
}

fn gelu_by_tanh(x: f32) -> f32 {
    use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI};
    const SQRT_TWO_OVER_PI: f32 = (FRAC_2_SQRT_PI * FRAC_1_SQRT_2) as f32;
    0.5 * x * (1.0 + (SQRT_TWO_OVER_PI * (x + 0.044_715 * x * x * x)).tanh())
}

fn gelu_by_erf(x: f32) -> f32 {
    0.5 * x * libm::erfcf(x * -std::f32::consts::FRAC_1_SQRT_2)
}

/// The functions that only clamp, with their bounds.
pub(super) fn relu(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    let (low, high) = match context.operator.op {
        Op::Relu => (0.0, None),
        Op::Relu6 => (0.0, Some(6.0)),
        Op::ReluN1To1 => (-1.0, Some(1.0)),
        Op::Relu0To1 => (0.0, Some(1.0)),
        _ => return refuse(format!("{} is not a clamping activation", context.operator.op)),
    };
    match context.common_type()? {
        DType::F32 => map(move |x: f32| {
            let x = if x < low { low } else { x };
            high.map_or(x, |high| if x > high { high } else { x })
        }),
        DType::U8 => relu_quantized::<u8>(context, low, high),
        DType::I8 => relu_quantized::<i8>(context, low, high),
        DType::I16 => relu_quantized::<i16>(context, low, high),
        other => context.unsupported(other),
    }
}

fn relu_quantized<T: Quantized>(
    context: &OperatorContext<'_>,
    low: f32,
    high: Option<f32>,
) -> Result<Run, Refusal> {
    let (from, to) = (affine(context.input(0)?)?, affine(context.output(0)?)?);
    let rescale = Multiplier::new(f64::from(from.scale / to.scale));
    let quantize = |real: f32| to.zero_point.saturating_add((real / to.scale).round() as i32);
    let low = quantize(low).max(T::MIN);
    let high = high.map_or(T::MAX, |high| quantize(high).min(T::MAX));
    map(move |q: T| {
        let value = rescale.apply(q.into() - from.zero_point).saturating_add(to.zero_point);
        T::narrow(value.max(low).min(high))
    })
}

pub(super) fn leaky_relu(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    let Op::LeakyRelu(options) = &context.operator.op else {
        return refuse(format!("{} is not LEAKY_RELU", context.operator.op));
    };
    let alpha = options.alpha;
    match context.common_type()? {
        DType::F32 => map(move |x: f32| if x > 0.0 { x } else { x * alpha }),
        DType::U8 => leaky_relu_quantized::<u8>(context, alpha),
        DType::I8 => leaky_relu_quantized::<i8>(context, alpha),
        DType::I16 => leaky_relu_quantized::<i16>(context, alpha),
        other => context.unsupported(other),
    }
}

fn leaky_relu_quantized<T: Quantized>(
    context: &OperatorContext<'_>,
    alpha: f32,
) -> Result<Run, Refusal> {
    let (from, to) = (affine(context.input(0)?)?, affine(context.output(0)?)?);
    let positive = Multiplier::new(f64::from(from.scale / to.scale));
    let negative = Multiplier::new(f64::from((from.scale * alpha).abs() / to.scale));
    let sign = if alpha < 0.0 { -1 } else { 1 };
    map(move |q: T| {
        let value = q.into() - from.zero_point;
        let scaled = if value >= 0 {
            positive.apply(value)
        } else {
            negative.apply(value).wrapping_mul(sign)
        };
        T::saturate(scaled.saturating_add(to.zero_point))
    })
}

pub(super) fn hard_swish(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    match context.common_type()? {
        DType::F32 => map(|x: f32| x * (x + 3.0).clamp(0.0, 6.0) / 6.0),
        DType::U8 => hard_swish_quantized::<u8>(context),
        DType::I8 => hard_swish_quantized::<i8>(context),
        other => context.unsupported(other),
    }
}

fn hard_swish_quantized<T: Quantized>(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    let (from, to) = (affine(context.input(0)?)?, affine(context.output(0)?)?);
    // Inputs get 7 more bits; 3.0 becomes 2^15 in the factor.
    let scale = (1.0 / 128.0) * from.scale;
    let output = Multiplier::new(f64::from(scale / to.scale));
    let relu = Multiplier::new(f64::from(scale / (3.0f32 / 32768.0)));
    if output.shift > 0 {
        return refuse("the output scale is less than 1/128 of the input scale");
    }
    let (output_factor, relu_factor) =
        (downscale_multiplier(output.value), downscale_multiplier(relu.value));
    let table = move |q: T| {
        let input = ((q.into() - from.zero_point) << 7) as i16;
        let on_output_scale = doubling_high_mul_16(input, output_factor);
        let mut factor = input;
        if relu.shift > 0 {
            factor = shift_left(factor, relu.shift - 1);
        }
        factor = doubling_high_mul_16(factor, relu_factor);
        if relu.shift > 0 {
            factor = shift_left(factor, 1);
        }
        if relu.shift < 0 {
            factor = rounding_shift_right(factor.into(), (-relu.shift).min(31) as u32) as i16;
        }
        // From [-1, 1] to [0, 1].
        let factor = ((i32::from(factor) + (1 << 15)) >> 1) as i16;
        let product = truncating_high_mul(factor, on_output_scale);
        let value = rounding_shift_right(product.into(), (-output.shift).min(31) as u32);
        T::saturate(value.saturating_add(to.zero_point).clamp(i16::MIN.into(), i16::MAX.into()))
    };
    map(table)
}

fn shift_left(x: i16, exponent: i32) -> i16 {
    i16::saturate(saturating_shift_left(x.into(), exponent.min(31) as u32))
}

/// `a * b / 2^15`, rounded towards zero.
fn truncating_high_mul(a: i16, b: i16) -> i16 {
    if a == i16::MIN && b == i16::MIN {
        return i16::MAX;
    }
    (i32::from(a) * i32::from(b) / (1 << 15)) as i16
}

pub(super) fn prelu(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    match context.common_type()? {
        DType::F32 => {
            context.expect_input(1, DType::F32)?;
            zip(|x: f32, alpha: f32| if x >= 0.0 { x } else { x * alpha })
        }
        DType::U8 => prelu_quantized::<u8>(context),
        DType::I8 => prelu_quantized::<i8>(context),
        other => context.unsupported(other),
    }
}

fn prelu_quantized<T: Quantized>(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    context.expect_input(1, context.input(0)?.dtype)?;
    let (from, alpha, to) =
        (affine(context.input(0)?)?, affine(context.input(1)?)?, affine(context.output(0)?)?);
    let positive = Multiplier::new(f64::from(from.scale / to.scale));
    let negative = Multiplier::new(f64::from(from.scale * alpha.scale / to.scale));
    zip(move |x: T, slope: T| {
        let value = x.into() - from.zero_point;
        let scaled = if value >= 0 {
            positive.apply(value)
        } else {
            negative.apply(value * (slope.into() - alpha.zero_point))
        };
        T::saturate(scaled.saturating_add(to.zero_point))
    })
}
