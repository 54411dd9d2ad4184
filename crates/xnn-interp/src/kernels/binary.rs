//! Functions of two tensors, element by element, with broadcasting.

use std::marker::PhantomData;

use xnn_model::{DType, Op};

use super::strides::{ZipRow, broadcasts_to, zip_row, zip_rows};
use crate::call::Call;
use crate::dims::Dims;
use crate::error::{Refusal, refuse};
use crate::fixed::Multiplier;
use crate::operator::{Kernel, OperatorContext, Run, Single, run};
use crate::quant::{Quantized, affine};
use crate::tensor::{Element, TensorView};

/// Applies `f` to every pair of elements. It is `Copy`, so that its captures stay in registers.
pub(super) fn zip<A: Element, B: Element, O: Element>(
    f: impl Fn(A, B) -> O + Copy + Send + Sync + 'static,
) -> Result<Run, Refusal> {
    let kernel = Zip { row: zip_row(f), elements: PhantomData::<fn(A, B) -> O> };
    Ok(Box::new(kernel))
}

/// The kernel of [`zip`].
struct Zip<R, E> {
    row: R,
    elements: PhantomData<E>,
}

impl<A, B, O, R> Kernel for Zip<R, fn(A, B) -> O>
where
    A: Element,
    B: Element,
    O: Element,
    R: Fn(&[A], &[B], &mut [O]) + Send + Sync,
{
    fn compute(&self, call: &mut Call<'_>) -> Result<(), Refusal> {
        apply_rows(call, &self.row)
    }

    fn compute_single(&self, operands: [TensorView<'_>; 2]) -> Option<Single> {
        single(operands, &self.row)
    }
}

/// Not inlined: if the function were called in two places, compilers would inline it in neither.
#[inline(never)]
fn single<A: Element, B: Element, O: Element>(
    [a, b]: [TensorView<'_>; 2],
    row: &ZipRow<'_, A, B, O>,
) -> Option<Single> {
    let (a @ &[_], b @ &[_]) = (a.as_slice()?, b.as_slice()?) else { return None };
    let mut result = [O::default()];
    row(a, b, &mut result);
    Single::of(result[0])
}

pub(super) fn apply<A: Element, B: Element, O: Element>(
    call: &mut Call<'_>,
    f: impl Fn(A, B) -> O,
) -> Result<(), Refusal> {
    apply_rows(call, &zip_row(f))
}

fn apply_rows<A: Element, B: Element, O: Element>(
    call: &mut Call<'_>,
    row: &ZipRow<'_, A, B, O>,
) -> Result<(), Refusal> {
    let ([a_shape, b_shape], shape) = shapes(call)?;
    let (a, b) = (call.input::<A>(0)?, call.input::<B>(1)?);
    zip_rows((a, a_shape), (b, b_shape), (call.output::<O>(0)?, &shape), row);
    Ok(())
}

/// The shapes of two operands that broadcast to the output's, and that shape.
fn shapes<'a>(call: &Call<'a>) -> Result<([&'a [usize]; 2], Dims), Refusal> {
    let (a, b, shape) = (call.shape(0)?, call.shape(1)?, call.output_shape(0)?);
    if broadcasts_to([a, b], &shape) {
        Ok(([a, b], shape))
    } else {
        refuse(format!("shapes {a:?} and {b:?} do not broadcast to {shape:?}"))
    }
}

/// The element type of both inputs, which must be equal.
pub(super) fn operand_type(context: &OperatorContext<'_>) -> Result<DType, Refusal> {
    let (a, b) = (context.input(0)?.dtype, context.input(1)?.dtype);
    if a == b {
        Ok(a)
    } else {
        refuse(format!("the inputs are {a} and {b}; expected one element type"))
    }
}

/// The element type of both inputs and the output, which must be equal.
pub(super) fn uniform_type(context: &OperatorContext<'_>) -> Result<DType, Refusal> {
    let dtype = operand_type(context)?;
    context.expect_output(0, dtype)?;
    Ok(dtype)
}

/// Returns an error if a divisor is zero.
pub(super) fn nonzero<T: Element>(call: &Call<'_>) -> Result<(), Refusal> {
    if call.input::<T>(1)?.contains(&T::default()) {
        return refuse("division by zero");
    }
    Ok(())
}

/// The larger or smaller of two elements.
macro_rules! extremum {
    ($context:expr, $which:ident, $floats:expr) => {
        match uniform_type($context)? {
            DType::F32 => zip($floats),
            DType::U8 => zip(|a: u8, b: u8| a.$which(b)),
            DType::I8 => zip(|a: i8, b: i8| a.$which(b)),
            DType::I16 => zip(|a: i16, b: i16| a.$which(b)),
            DType::I32 => zip(|a: i32, b: i32| a.$which(b)),
            DType::I64 => zip(|a: i64, b: i64| a.$which(b)),
            other => $context.unsupported(other),
        }
    };
}

pub(super) fn maximum(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    extremum!(context, max, |a: f32, b: f32| if a > b { a } else { b })
}

pub(super) fn minimum(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    extremum!(context, min, |a: f32, b: f32| if a < b { a } else { b })
}

pub(super) fn squared_difference(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    match uniform_type(context)? {
        DType::F32 => zip(|a: f32, b: f32| (a - b) * (a - b)),
        DType::I32 => zip(|a: i32, b: i32| a.wrapping_sub(b).wrapping_mul(a.wrapping_sub(b))),
        DType::I8 => squared_difference_quantized(context),
        other => context.unsupported(other),
    }
}

fn squared_difference_quantized(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    const HEADROOM: u32 = 7;
    let (a, b, to) =
        (affine(context.input(0)?)?, affine(context.input(1)?)?, affine(context.output(0)?)?);
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

pub(super) fn floor_div(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
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
    match uniform_type(context)? {
        DType::F32 => run(|call| {
            nonzero::<f32>(call)?;
            // In double precision, a quotient just below an integer is not rounded up to it.
            apply(call, |a: f32, b: f32| (f64::from(a) / f64::from(b)).floor() as f32)
        }),
        DType::I8 => integers!(i8),
        DType::I16 => integers!(i16),
        DType::I32 => integers!(i32),
        DType::I64 => integers!(i64),
        other => context.unsupported(other),
    }
}

pub(super) fn floor_mod(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
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
    match uniform_type(context)? {
        DType::F32 => zip(|a: f32, b: f32| {
            let rest = a % b;
            if rest != 0.0 && (rest < 0.0) != (b < 0.0) { rest + b } else { rest }
        }),
        DType::I8 => integers!(i8),
        DType::I16 => integers!(i16),
        DType::I32 => integers!(i32),
        DType::I64 => integers!(i64),
        other => context.unsupported(other),
    }
}

pub(super) fn pow(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    match uniform_type(context)? {
        DType::F32 => zip(f32::powf),
        DType::I32 => run(|call| {
            if call.input::<i32>(1)?.iter().any(|&e| e < 0) {
                return refuse("an integer cannot be raised to a negative power");
            }
            apply(call, |a: i32, e: i32| f64::from(a).powf(f64::from(e)) as i32)
        }),
        other => context.unsupported(other),
    }
}

pub(super) fn atan2(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    match uniform_type(context)? {
        DType::F32 => zip(f32::atan2),
        DType::F64 => zip(f64::atan2),
        other => context.unsupported(other),
    }
}

pub(super) fn logical(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    if uniform_type(context)? != DType::Bool {
        return refuse("operands must be booleans");
    }
    match context.operator.op {
        Op::LogicalAnd => zip(|a: u8, b: u8| u8::from(a != 0 && b != 0)),
        Op::LogicalOr => zip(|a: u8, b: u8| u8::from(a != 0 || b != 0)),
        _ => refuse(format!("{} is not a logical operator", context.operator.op)),
    }
}

pub(super) fn bitwise(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    macro_rules! integers {
        ($ty:ty) => {
            match context.operator.op {
                Op::BitwiseXor => zip(|a: $ty, b: $ty| a ^ b),
                // A shift by more bits than the type has results in the sign.
                Op::RightShift => {
                    zip(|a: $ty, b: $ty| a >> u32::try_from(b).unwrap_or(0).min(<$ty>::BITS - 1))
                }
                _ => refuse(format!("{} is not a bitwise operator", context.operator.op)),
            }
        };
    }
    match uniform_type(context)? {
        DType::I8 => integers!(i8),
        DType::U8 | DType::Bool => integers!(u8),
        DType::I16 => integers!(i16),
        DType::U16 => integers!(u16),
        DType::I32 => integers!(i32),
        DType::U32 => integers!(u32),
        other => context.unsupported(other),
    }
}
