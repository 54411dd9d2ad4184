//! QUANTIZE, DEQUANTIZE and CAST.

use half::{bf16, f16};
use xnn_model::{DType, Quantization, Tensor};

use super::unary::map;
use crate::error::{Refusal, refuse};
use crate::fixed::Multiplier;
use crate::operator::{OperatorContext, Run, run};
use crate::quant::{Affine, Quantized, affine, unpack_i4};
use crate::tensor::{Complex, Element};

/// Scale and zero point per slice along a dimension. Per-tensor quantization is a single slice.
struct PerSlice {
    params: Vec<Affine>,
    axis: usize,
}

impl PerSlice {
    fn of(tensor: &Tensor) -> Result<Self, Refusal> {
        match &tensor.quantization {
            Some(Quantization::PerAxis { scales, zero_points, axis }) if scales.len() > 1 => {
                let params = scales.iter().enumerate().map(|(slice, &scale)| {
                    let zero = zero_points.at(slice);
                    i32::try_from(zero)
                        .map(|zero_point| Affine { scale, zero_point })
                        .or_else(|_| refuse(format!("zero point {zero} is out of range")))
                });
                Ok(Self { params: params.collect::<Result<_, _>>()?, axis: *axis })
            }
            _ => Ok(Self { params: vec![affine(tensor)?], axis: 0 }),
        }
    }

    /// The parameters of an element by its position.
    fn lookup(&self, shape: &[usize]) -> Result<impl Fn(usize) -> Affine + '_, Refusal> {
        let behind: usize = shape.get(self.axis + 1..).unwrap_or(&[]).iter().product();
        let count = self.params.len();
        if count > 1 && shape.get(self.axis) != Some(&count) {
            return refuse(format!("{count} scales do not match shape {shape:?}"));
        }
        Ok(move |at: usize| self.params[at / behind.max(1) % count])
    }
}

pub(super) fn quantize(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    match (context.input(0)?.dtype, context.output(0)?.dtype) {
        (DType::F32, DType::U8) => from_floats::<u8>(context),
        (DType::F32, DType::I8) => from_floats::<i8>(context),
        (DType::F32, DType::I16) => from_floats::<i16>(context),
        (DType::U8, DType::U8) => requantize::<u8, u8>(context),
        (DType::U8, DType::I8) => requantize::<u8, i8>(context),
        (DType::U8, DType::I16) => requantize::<u8, i16>(context),
        (DType::I8, DType::U8) => requantize::<i8, u8>(context),
        (DType::I8, DType::I8) => requantize::<i8, i8>(context),
        (DType::I8, DType::I16) => requantize::<i8, i16>(context),
        (DType::I16, DType::I8) => requantize::<i16, i8>(context),
        (DType::I16, DType::I16) => requantize::<i16, i16>(context),
        (DType::I16, DType::I32) => requantize::<i16, i32>(context),
        (DType::I32, DType::I8) => requantize::<i32, i8>(context),
        (DType::I32, DType::I16) => requantize::<i32, i16>(context),
        (input, output) => refuse(format!("{input} input with {output} output")),
    }
}

fn from_floats<T: Quantized>(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    let slices = PerSlice::of(context.output(0)?)?;
    run(move |call| {
        let params = slices.lookup(call.shape(0)?)?;
        let input = call.input::<f32>(0)?;
        for (at, (out, &x)) in call.output::<T>(0)?.iter_mut().zip(input).enumerate() {
            let Affine { scale, zero_point } = params(at);
            *out = T::saturate(((x / scale).round() as i32).saturating_add(zero_point));
        }
        Ok(())
    })
}

fn requantize<T: Quantized, O: Quantized>(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    let (from, to) = (affine(context.input(0)?)?, affine(context.output(0)?)?);
    let rescale = Multiplier::new(f64::from(from.scale) / f64::from(to.scale));
    map(move |q: T| {
        let scaled = rescale.apply(q.into().wrapping_sub(from.zero_point));
        O::saturate(scaled.saturating_add(to.zero_point))
    })
}

pub(super) fn dequantize(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    context.expect_output(0, DType::F32)?;
    match context.input(0)?.dtype {
        DType::F16 => map(f16::to_f32),
        DType::BF16 => map(bf16::to_f32),
        DType::F32 => map(|x: f32| x),
        DType::U8 => to_floats::<u8>(context),
        DType::I8 => to_floats::<i8>(context),
        DType::I16 => to_floats::<i16>(context),
        DType::I32 => to_floats::<i32>(context),
        DType::I4 => {
            let slices = PerSlice::of(context.input(0)?)?;
            run(move |call| {
                let input = call.tensor(0)?;
                let params = slices.lookup(input.shape)?;
                let elements = unpack_i4(input.bytes, input.elements());
                let output = call.output::<f32>(0)?;
                for (at, (out, q)) in output.iter_mut().zip(elements).enumerate() {
                    *out = real(params(at), q.into());
                }
                Ok(())
            })
        }
        other => context.unsupported(other),
    }
}

fn to_floats<T: Quantized>(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    let slices = PerSlice::of(context.input(0)?)?;
    run(move |call| {
        let params = slices.lookup(call.shape(0)?)?;
        let input = call.input::<T>(0)?;
        for (at, (out, &q)) in call.output::<f32>(0)?.iter_mut().zip(input).enumerate() {
            *out = real(params(at), q.into());
        }
        Ok(())
    })
}

/// The real number that an integer represents. The product is rounded once.
pub(super) fn real(Affine { scale, zero_point }: Affine, q: i32) -> f32 {
    (f64::from(scale) * f64::from(q.wrapping_sub(zero_point))) as f32
}

/// Element types of CAST, converted by way of the widest type.
trait Number: Element {
    fn to_number(self) -> Value;
    fn of_number(value: Value) -> Self;
}

/// A value during a conversion.
#[derive(Clone, Copy)]
enum Value {
    Whole(i64),
    Real(f64),
}

macro_rules! numbers {
    (whole: $($whole:ty)*; real: $($real:ty)*;) => {
        $(impl Number for $whole {
            fn to_number(self) -> Value {
                Value::Whole(self as i64)
            }
            fn of_number(value: Value) -> Self {
                match value {
                    Value::Whole(value) => value as Self,
                    // Beyond the range, the nearest integer is used.
                    Value::Real(value) => value as Self,
                }
            }
        })*
        $(impl Number for $real {
            fn to_number(self) -> Value {
                Value::Real(self.into())
            }
            fn of_number(value: Value) -> Self {
                match value {
                    Value::Whole(value) => value as Self,
                    Value::Real(value) => value as Self,
                }
            }
        })*
    };
}

numbers! {
    whole: i8 u8 i16 u16 i32 u32 i64 u64;
    real: f32 f64;
}

macro_rules! halves {
    ($($half:ty)*) => {$(
        impl Number for $half {
            fn to_number(self) -> Value {
                Value::Real(self.to_f64())
            }
            fn of_number(value: Value) -> Self {
                match value {
                    Value::Whole(value) => Self::from_f64(value as f64),
                    Value::Real(value) => Self::from_f32(value as f32),
                }
            }
        }
    )*};
}

halves! { f16 bf16 }

impl Number for Complex {
    fn to_number(self) -> Value {
        Value::Real(self.re.into())
    }
    fn of_number(value: Value) -> Self {
        Self { re: f32::of_number(value), im: 0.0 }
    }
}

pub(super) fn cast(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    match context.input(0)?.dtype {
        DType::F32 => cast_from::<f32>(context),
        DType::F64 => cast_from::<f64>(context),
        DType::F16 => cast_from::<f16>(context),
        DType::BF16 => cast_from::<bf16>(context),
        DType::I8 => cast_from::<i8>(context),
        DType::U8 | DType::Bool => cast_from::<u8>(context),
        DType::I16 => cast_from::<i16>(context),
        DType::U16 => cast_from::<u16>(context),
        DType::I32 => cast_from::<i32>(context),
        DType::U32 => cast_from::<u32>(context),
        DType::I64 => cast_from::<i64>(context),
        DType::U64 => cast_from::<u64>(context),
        DType::Complex64 => cast_from::<Complex>(context),
        DType::I4 => {
            let to = context.output(0)?.dtype;
            let store = |convert: fn(i8) -> f32| {
                run(move |call| {
                    let input = call.tensor(0)?;
                    let elements = unpack_i4(input.bytes, input.elements());
                    let output = call.output::<f32>(0)?;
                    output.iter_mut().zip(elements).for_each(|(out, q)| *out = convert(q));
                    Ok(())
                })
            };
            match to {
                DType::F32 => store(f32::from),
                other => context.unsupported(other),
            }
        }
        other => context.unsupported(other),
    }
}

fn cast_from<T: Number>(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    fn to<T: Number, O: Number>() -> Result<Run, Refusal> {
        map(|x: T| O::of_number(x.to_number()))
    }
    match context.output(0)?.dtype {
        DType::F32 => to::<T, f32>(),
        DType::F64 => to::<T, f64>(),
        DType::F16 => to::<T, f16>(),
        DType::BF16 => to::<T, bf16>(),
        DType::I8 => to::<T, i8>(),
        DType::U8 => to::<T, u8>(),
        DType::I16 => to::<T, i16>(),
        DType::U16 => to::<T, u16>(),
        DType::I32 => to::<T, i32>(),
        DType::U32 => to::<T, u32>(),
        DType::I64 => to::<T, i64>(),
        DType::U64 => to::<T, u64>(),
        DType::Complex64 => to::<T, Complex>(),
        DType::Bool => map(|x: T| {
            u8::from(match x.to_number() {
                Value::Whole(value) => value != 0,
                Value::Real(value) => value != 0.0,
            })
        }),
        other => context.unsupported(other),
    }
}
