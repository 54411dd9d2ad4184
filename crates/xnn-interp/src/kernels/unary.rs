//! Functions of one tensor, element by element.

use xnn_model::{DType, Op};

use super::table::InterpolatedTable;
use crate::call::Call;
use crate::error::{Refusal, refuse};
use crate::fixed::Multiplier;
use crate::operator::{OperatorContext, Run, run};
use crate::quant::{Quantized, affine, byte_table, is_quantized};
use crate::tensor::{Complex, Element, WideComplex};

/// Applies `f` to every element. It is `Copy`, so that its captures stay in registers.
pub(super) fn map<T: Element, O: Element>(
    f: impl Fn(T) -> O + Copy + Send + Sync + 'static,
) -> Result<Run, Refusal> {
    run(move |call| apply(call, f))
}

/// Applies `f` to every element, with a table for lookups.
pub(super) fn look_up<L: Send + Sync + 'static, T: Element, O: Element>(
    table: L,
    f: impl Fn(&L, T) -> O + Copy + Send + Sync + 'static,
) -> Result<Run, Refusal> {
    run(move |call| apply(call, |x| f(&table, x)))
}

fn apply<T: Element, O: Element>(call: &mut Call<'_>, f: impl Fn(T) -> O) -> Result<(), Refusal> {
    let input = call.input::<T>(0)?;
    let output = call.output::<O>(0)?;
    output.iter_mut().zip(input).for_each(|(out, &x)| *out = f(x));
    Ok(())
}

/// A function that is tabulated for quantized tensors.
pub(super) fn tabulated(
    context: &OperatorContext<'_>,
    f: impl Fn(f32) -> f32,
) -> Result<Run, Refusal> {
    let (from, to) = (affine(context.input(0)?)?, affine(context.output(0)?)?);
    match context.common_type()? {
        DType::I8 => {
            let table = byte_table::<i8>(from, to, f);
            look_up(table, |table, q: i8| table[usize::from(q.cast_unsigned())])
        }
        DType::U8 => {
            let table = byte_table::<u8>(from, to, f);
            look_up(table, |table, q: u8| table[usize::from(q)])
        }
        DType::I16 => {
            let table = InterpolatedTable::in_singles(
                (from.scale, from.zero_point),
                (to.scale, to.zero_point),
                f,
            );
            look_up(table, InterpolatedTable::at)
        }
        other => context.unsupported(other),
    }
}

/// A function of floats only.
macro_rules! float_only {
    ($($name:ident: $f:expr;)*) => {$(
        pub(super) fn $name(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
            match context.common_type()? {
                DType::F32 => map($f),
                DType::F16 => map(|x: half::f16| half::f16::from_f32($f(x.to_f32()))),
                other => context.unsupported(other),
            }
        }
    )*};
}

float_only! {
    ceil: f32::ceil;
    cos: f32::cos;
    floor: f32::floor;
    round: f32::round_ties_even;
    sin: f32::sin;
}

pub(super) fn abs(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    match context.common_type()? {
        DType::F32 => map(f32::abs),
        DType::I32 => map(i32::wrapping_abs),
        DType::I64 => map(i64::wrapping_abs),
        DType::I16 if !is_quantized(context.input(0)?) => map(i16::wrapping_abs),
        DType::I8 => abs_quantized::<i8>(context),
        DType::I16 => abs_quantized::<i16>(context),
        other => context.unsupported(other),
    }
}

fn abs_quantized<T: Quantized>(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    let (from, to) = (affine(context.input(0)?)?, affine(context.output(0)?)?);
    let rescale = (from.scale != to.scale).then(|| Multiplier::new((from.scale / to.scale).into()));
    map(move |q: T| {
        let value = (q.into() - from.zero_point).abs();
        let value = rescale.map_or(value, |multiplier| multiplier.apply(value));
        T::saturate(value.saturating_add(to.zero_point))
    })
}

pub(super) fn elu(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    let elu = |x: f32| if x < 0.0 { x.exp_m1() } else { x };
    match context.common_type()? {
        DType::F32 => map(elu),
        DType::I8 => tabulated(context, elu),
        other => context.unsupported(other),
    }
}

pub(super) fn exp(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    match context.common_type()? {
        DType::F32 => map(f32::exp),
        DType::I8 | DType::I16 => tabulated(context, f32::exp),
        other => context.unsupported(other),
    }
}

pub(super) fn log(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    match context.common_type()? {
        DType::F32 => map(f32::ln),
        dtype @ (DType::I8 | DType::I16) => {
            let to = affine(context.output(0)?)?;
            let least =
                if dtype == DType::I8 { <i8 as Quantized>::MIN } else { <i16 as Quantized>::MIN };
            let low = least.saturating_sub(to.zero_point) as f32 * to.scale;
            tabulated(context, move |x| if x <= 0.0 { low } else { x.ln() })
        }
        other => context.unsupported(other),
    }
}

pub(super) fn sqrt(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    match context.common_type()? {
        DType::F32 => map(f32::sqrt),
        DType::I8 => sqrt_quantized::<i8>(context),
        DType::I16 => sqrt_quantized::<i16>(context),
        other => context.unsupported(other),
    }
}

/// Rounds towards zero.
fn sqrt_quantized<T: Quantized>(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    let (from, to) = (affine(context.input(0)?)?, affine(context.output(0)?)?);
    run(move |call| {
        if call.input::<T>(0)?.iter().any(|&q| q.into() < from.zero_point) {
            return refuse("the input of a square root is negative");
        }
        apply(call, |q: T| {
            let real = from.scale * (q.into() - from.zero_point) as f32;
            T::saturate(((real.sqrt() / to.scale) as i32).saturating_add(to.zero_point))
        })
    })
}

pub(super) fn rsqrt(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    match context.common_type()? {
        DType::F32 => map(|x: f32| 1.0 / x.sqrt()),
        DType::I8 => rsqrt_quantized(context),
        DType::I16 => {
            let most = f32::from(i16::MAX) * affine(context.output(0)?)?.scale;
            tabulated(context, move |x| if x <= 0.0 { most } else { 1.0 / x.sqrt() })
        }
        other => context.unsupported(other),
    }
}

fn rsqrt_quantized(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    const SHIFT: i32 = 20;
    let (from, to) = (affine(context.input(0)?)?, affine(context.output(0)?)?);
    let rescale = Multiplier::new(1.0 / f64::from(from.scale.sqrt() * to.scale));
    run(move |call| {
        if call.input::<i8>(0)?.iter().any(|&q| i32::from(q) < from.zero_point) {
            return refuse("the input of a square root is negative");
        }
        apply(call, |q: i8| {
            let value = i32::from(q) - from.zero_point;
            if value == 0 {
                return i8::MAX;
            }
            let inverse = crate::fixed::inverse_sqrt(value);
            let scaled = Multiplier { value: inverse.value, shift: inverse.shift + SHIFT }.apply(1);
            let output = Multiplier { shift: rescale.shift - SHIFT, ..rescale }.apply(scaled);
            i8::saturate(output.saturating_add(to.zero_point))
        })
    })
}

pub(super) fn square(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    match context.common_type()? {
        DType::F32 => map(|x: f32| x * x),
        other => context.unsupported(other),
    }
}

pub(super) fn neg(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    match context.common_type()? {
        DType::F32 => map(|x: f32| -x),
        DType::I8 => map(i8::wrapping_neg),
        DType::I32 => map(i32::wrapping_neg),
        DType::I64 => map(i64::wrapping_neg),
        other => context.unsupported(other),
    }
}

pub(super) fn sign(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    match context.common_type()? {
        DType::F32 => map(|x: f32| if x == 0.0 { 0.0 } else { x.signum() }),
        DType::F64 => map(|x: f64| if x == 0.0 { 0.0 } else { x.signum() }),
        DType::I32 => map(i32::signum),
        other => context.unsupported(other),
    }
}

pub(super) fn logical_not(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    match context.common_type()? {
        DType::Bool => map(|x: u8| u8::from(x == 0)),
        other => context.unsupported(other),
    }
}

pub(super) fn fake_quant(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    let Op::FakeQuant(options) = &context.operator.op else {
        return refuse(format!("{} is not FAKE_QUANT", context.operator.op));
    };
    if !(2..=16).contains(&options.num_bits) {
        return refuse(format!("{} bits", options.num_bits));
    }
    let low = if options.narrow_range { 1.0 } else { 0.0 };
    let high = ((1u32 << options.num_bits) - 1) as f32;
    let scale = (options.max - options.min) / (high - low);
    let zero = (low - options.min / scale).clamp(low, high).round();
    let (nudged_min, nudged_max) = ((low - zero) * scale, (high - zero) * scale);
    let inverse = 1.0 / scale;
    match context.common_type()? {
        DType::F32 => map(move |x: f32| {
            let clamped = x.max(nudged_min).min(nudged_max) - nudged_min;
            (clamped * inverse).round() * scale + nudged_min
        }),
        other => context.unsupported(other),
    }
}

pub(super) fn complex(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    macro_rules! part_of {
        ($complex:ty) => {
            match context.operator.op {
                Op::Real => map(|z: $complex| z.re),
                Op::Imag => map(|z: $complex| z.im),
                Op::ComplexAbs => map(|z: $complex| z.re.hypot(z.im)),
                _ => {
                    refuse(format!("{} is not a function of complex numbers", context.operator.op))
                }
            }
        };
    }
    match (context.input(0)?.dtype, context.output(0)?.dtype) {
        (DType::Complex64, DType::F32) => part_of!(Complex),
        (DType::Complex128, DType::F64) => part_of!(WideComplex),
        (input, output) => refuse(format!("{input} input with {output} output")),
    }
}

pub(super) fn zeros_like(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    context.common_type()?;
    run(|call| {
        call.output_bytes(0)?.fill(0);
        Ok(())
    })
}
