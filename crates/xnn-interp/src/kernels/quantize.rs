//! QUANTIZE, DEQUANTIZE, CAST, and CONCATENATION of differing scales.

use half::{bf16, f16};
use xnn_model::{DType, Quantization, Tensor};

use super::arrange::rows_of_inputs;
use super::unary::map;
use crate::call::axis;
use crate::error::{Refusal, refuse};
use crate::fixed::Multiplier;
use crate::node::{Node, Run, run};
use crate::quant::{Affine, Quantized, affine, integer_range, unpack_i4};
use crate::tensor::{Complex, Element};

/// Scale and zero point per slice along a dimension; one for all elements is
/// an only slice.
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
                        .or_else(|_| refuse(format!("a zero point of {zero}")))
                });
                Ok(Self { params: params.collect::<Result<_, _>>()?, axis: *axis })
            }
            _ => Ok(Self { params: vec![affine(tensor)?], axis: 0 }),
        }
    }

    /// The parameters of the element at this position.
    fn lookup(&self, shape: &[usize]) -> Result<impl Fn(usize) -> Affine + '_, Refusal> {
        let behind: usize = shape.get(self.axis + 1..).unwrap_or(&[]).iter().product();
        let count = self.params.len();
        if count > 1 && shape.get(self.axis) != Some(&count) {
            return refuse(format!("{count} scales for shape {shape:?}"));
        }
        Ok(move |at: usize| self.params[at / behind.max(1) % count])
    }
}

pub(super) fn quantize(node: &Node<'_>) -> Result<Run, Refusal> {
    match (node.input(0)?.dtype, node.output(0)?.dtype) {
        (DType::F32, DType::U8) => from_floats::<u8>(node),
        (DType::F32, DType::I8) => from_floats::<i8>(node),
        (DType::F32, DType::I16) => from_floats::<i16>(node),
        (DType::U8, DType::U8) => requantize::<u8, u8>(node),
        (DType::U8, DType::I8) => requantize::<u8, i8>(node),
        (DType::U8, DType::I16) => requantize::<u8, i16>(node),
        (DType::I8, DType::U8) => requantize::<i8, u8>(node),
        (DType::I8, DType::I8) => requantize::<i8, i8>(node),
        (DType::I8, DType::I16) => requantize::<i8, i16>(node),
        (DType::I16, DType::I8) => requantize::<i16, i8>(node),
        (DType::I16, DType::I16) => requantize::<i16, i16>(node),
        (DType::I16, DType::I32) => requantize::<i16, i32>(node),
        (DType::I32, DType::I8) => requantize::<i32, i8>(node),
        (DType::I32, DType::I16) => requantize::<i32, i16>(node),
        (input, output) => refuse(format!("input is {input}, output is {output}")),
    }
}

fn from_floats<T: Quantized>(node: &Node<'_>) -> Result<Run, Refusal> {
    let slices = PerSlice::of(node.output(0)?)?;
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

fn requantize<T: Quantized, O: Quantized>(node: &Node<'_>) -> Result<Run, Refusal> {
    let (from, to) = (affine(node.input(0)?)?, affine(node.output(0)?)?);
    let rescale = Multiplier::new(f64::from(from.scale) / f64::from(to.scale));
    map(move |q: T| {
        let scaled = rescale.apply(q.into().wrapping_sub(from.zero_point));
        O::saturate(scaled.saturating_add(to.zero_point))
    })
}

pub(super) fn dequantize(node: &Node<'_>) -> Result<Run, Refusal> {
    node.expect_output(0, DType::F32)?;
    match node.input(0)?.dtype {
        DType::F16 => map(f16::to_f32),
        DType::BF16 => map(bf16::to_f32),
        DType::F32 => map(|x: f32| x),
        DType::U8 => to_floats::<u8>(node),
        DType::I8 => to_floats::<i8>(node),
        DType::I16 => to_floats::<i16>(node),
        DType::I32 => to_floats::<i32>(node),
        DType::I4 => {
            let slices = PerSlice::of(node.input(0)?)?;
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
        other => node.unsupported(other),
    }
}

fn to_floats<T: Quantized>(node: &Node<'_>) -> Result<Run, Refusal> {
    let slices = PerSlice::of(node.input(0)?)?;
    run(move |call| {
        let params = slices.lookup(call.shape(0)?)?;
        let input = call.input::<T>(0)?;
        for (at, (out, &q)) in call.output::<f32>(0)?.iter_mut().zip(input).enumerate() {
            *out = real(params(at), q.into());
        }
        Ok(())
    })
}

/// The number that an integer stands for; the product is rounded once.
pub(super) fn real(Affine { scale, zero_point }: Affine, q: i32) -> f32 {
    (f64::from(scale) * f64::from(q.wrapping_sub(zero_point))) as f32
}

/// 8-bit inputs whose scales differ from the output's.
pub(super) fn concatenation(
    dtype: DType,
    along: i32,
    inputs: Vec<Affine>,
    to: Affine,
) -> Result<Run, Refusal> {
    if dtype != DType::U8 {
        return refuse(format!("{dtype} inputs with other scales than the output"));
    }
    let (low, high) = integer_range(dtype)?;
    let inverse = 1.0 / to.scale;
    run(move |call| {
        let at = axis(along.into(), call.shape(0)?.len())?;
        let rows = rows_of_inputs(call, at)?;
        let data = (0..rows.len()).map(|position| call.input::<u8>(position));
        let data = data.collect::<Result<Vec<_>, _>>()?;
        let mut output = call.output::<u8>(0)?.iter_mut();
        let total = rows.iter().sum::<usize>().max(1);
        for index in 0..output.len() / total {
            for ((&row, data), from) in rows.iter().zip(&data).zip(&inputs) {
                let scale = from.scale * inverse;
                let bias = -from.zero_point as f32 * scale;
                for &q in &data[index * row..][..row] {
                    let value = if *from == to {
                        q.into()
                    } else {
                        ((f32::from(q) * scale + bias).round() as i32).saturating_add(to.zero_point)
                    };
                    if let Some(out) = output.next() {
                        *out = value.clamp(low, high) as u8;
                    }
                }
            }
        }
        Ok(())
    })
}

/// Numbers that CAST converts, by way of the widest type that holds them.
trait Number: Element {
    fn to_number(self) -> Value;
    fn of_number(value: Value) -> Self;
}

/// A number on its way from one type to another.
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
                    // Beyond the range the nearest integer is taken.
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

pub(super) fn cast(node: &Node<'_>) -> Result<Run, Refusal> {
    match node.input(0)?.dtype {
        DType::F32 => cast_from::<f32>(node),
        DType::F64 => cast_from::<f64>(node),
        DType::F16 => cast_from::<f16>(node),
        DType::BF16 => cast_from::<bf16>(node),
        DType::I8 => cast_from::<i8>(node),
        DType::U8 | DType::Bool => cast_from::<u8>(node),
        DType::I16 => cast_from::<i16>(node),
        DType::U16 => cast_from::<u16>(node),
        DType::I32 => cast_from::<i32>(node),
        DType::U32 => cast_from::<u32>(node),
        DType::I64 => cast_from::<i64>(node),
        DType::U64 => cast_from::<u64>(node),
        DType::Complex64 => cast_from::<Complex>(node),
        DType::I4 => {
            let to = node.output(0)?.dtype;
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
                other => node.unsupported(other),
            }
        }
        other => node.unsupported(other),
    }
}

fn cast_from<T: Number>(node: &Node<'_>) -> Result<Run, Refusal> {
    fn to<T: Number, O: Number>() -> Result<Run, Refusal> {
        map(|x: T| O::of_number(x.to_number()))
    }
    match node.output(0)?.dtype {
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
        other => node.unsupported(other),
    }
}
