//! Reductions; CUMSUM and ADD_N.

use xnn_model::infer::axes_of_reduction;
use xnn_model::{DType, Op};

use super::copy::around;
use super::strides::{for_each_row, strides};
use crate::call::{Call, axis};
use crate::dims::Dims;
use crate::error::{Refusal, refuse};
use crate::fixed::Multiplier;
use crate::operator::{OperatorContext, Run, run};
use crate::quant::{Quantized, affine};
use crate::tensor::Element;

/// Which accumulator each row of the last dimension of input 0 is folded into, along the axes of input 1.
struct Rows<'a> {
    shape: &'a [usize],
    /// Distances of accumulators along each dimension: 0 along the axes.
    steps: Dims,
    accumulators: usize,
    /// Number of elements in each accumulator.
    count: usize,
}

impl<'a> Rows<'a> {
    fn new(call: &Call<'a>) -> Result<Self, Refusal> {
        let shape = call.shape(0)?;
        let axes = axes_of_reduction(&call.ints(1)?, shape.len())?;
        let reduced = |d: usize| axes.binary_search(&d).is_ok();
        let kept: Dims =
            shape.iter().enumerate().map(|(d, &n)| if reduced(d) { 1 } else { n }).collect();
        let mut steps = strides(&kept);
        axes.iter().for_each(|&d| steps[d] = 0);
        let count = axes.iter().map(|&d| shape[d]).product();
        Ok(Self { shape, steps, accumulators: kept.iter().product(), count })
    }

    /// Number of elements in a row.
    fn length(&self) -> usize {
        self.shape.last().copied().unwrap_or(1)
    }

    /// Whether all elements of a row go to one accumulator, or each to one of its own.
    fn are_folded(&self) -> bool {
        self.steps.last().copied().unwrap_or(0) == 0
    }

    /// Calls `f` with the first accumulator of each row, in the order of the input.
    fn for_each(&self, f: &mut dyn FnMut(usize)) {
        for_each_row(self.shape, [&self.steps], |[at]| f(at));
    }
}

/// Folds the elements along the axes of input 1 into one accumulator per output, in the order of
/// the input. Returns the accumulators and the number of elements in each.
fn fold<T: Element, A: Copy>(
    call: &Call<'_>,
    start: A,
    add: impl Fn(A, T) -> A,
) -> Result<(Vec<A>, usize), Refusal> {
    let rows = Rows::new(call)?;
    let input = call.input::<T>(0)?;
    let mut sums = vec![start; rows.accumulators];
    let are_folded = rows.are_folded();
    let mut elements = input.chunks_exact(rows.length().max(1));
    rows.for_each(&mut |at| {
        let elements = elements.next().unwrap_or_default();
        if are_folded {
            // A whole row is folded into one accumulator, which stays in a register.
            sums[at] = elements.iter().fold(sums[at], |sum, &x| add(sum, x));
        } else {
            sums[at..].iter_mut().zip(elements).for_each(|(sum, &x)| *sum = add(*sum, x));
        }
    });
    Ok((sums, rows.count))
}

/// Writes one result per accumulator.
fn store<A: Copy, O: Element>(
    call: &mut Call<'_>,
    sums: &[A],
    finish: impl Fn(A) -> O,
) -> Result<(), Refusal> {
    let output = call.output::<O>(0)?;
    output.iter_mut().zip(sums).for_each(|(out, &sum)| *out = finish(sum));
    Ok(())
}

/// A reduction that does not need the number of elements.
fn reduction<T: Element>(
    start: T,
    add: impl Fn(T, T) -> T + Send + Sync + 'static,
) -> Result<Run, Refusal> {
    run(move |call| {
        let (sums, _) = fold(call, start, &add)?;
        store(call, &sums, |sum| sum)
    })
}

pub(super) fn mean(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    match context.common_type()? {
        DType::F32 => run(|call| {
            let (sums, count) = fold(call, 0.0f32, |sum, x: f32| sum + x)?;
            store(call, &sums, |sum| sum / count as f32)
        }),
        DType::I32 => run(|call| {
            let (sums, count) = fold(call, 0i64, |sum, x: i32| sum + i64::from(x))?;
            store(call, &sums, |sum| sum.checked_div(count as i64).unwrap_or(0) as i32)
        }),
        DType::I64 => run(|call| {
            let (sums, count) = fold(call, 0i64, |sum: i64, x: i64| sum.wrapping_add(x))?;
            store(call, &sums, |sum| sum.checked_div(count as i64).unwrap_or(0))
        }),
        DType::U8 => quantized::<u8>(context, Average::Mean),
        DType::I8 => quantized::<i8>(context, Average::Mean),
        DType::I16 => quantized::<i16>(context, Average::Mean),
        other => context.unsupported(other),
    }
}

pub(super) fn sum(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    match context.common_type()? {
        DType::F32 => reduction(0.0f32, |sum, x| sum + x),
        DType::I32 => reduction(0i32, i32::wrapping_add),
        DType::I64 => reduction(0i64, i64::wrapping_add),
        DType::U8 => quantized::<u8>(context, Average::Sum),
        DType::I8 => quantized::<i8>(context, Average::Sum),
        DType::I16 => quantized::<i16>(context, Average::Sum),
        other => context.unsupported(other),
    }
}

/// Whether a sum is divided by the number of its elements.
#[derive(Clone, Copy, PartialEq)]
enum Average {
    Sum,
    Mean,
}

fn quantized<T: Quantized>(
    context: &OperatorContext<'_>,
    average: Average,
) -> Result<Run, Refusal> {
    let (from, to) = (affine(context.input(0)?)?, affine(context.output(0)?)?);
    let rescale = Multiplier::new(f64::from(from.scale) / f64::from(to.scale));
    run(move |call| {
        let (sums, count) = fold(call, 0i32, |sum: i32, x: T| sum.wrapping_add(x.into()))?;
        if count == 0 {
            // TFLite returns the integer 0 for empty sums, regardless of the zero point.
            return store(call, &sums, |_| T::saturate(0));
        }
        let multiplier = match average {
            Average::Mean => divided(rescale, count),
            Average::Sum => rescale,
        };
        let zero = from.zero_point.wrapping_mul(count as i32);
        store(call, &sums, |sum| {
            T::saturate(multiplier.apply(sum.wrapping_sub(zero)).saturating_add(to.zero_point))
        })
    })
}

/// Divides a multiplier by a count, with the precision that the spare bits of the count allow.
fn divided(multiplier: Multiplier, count: usize) -> Multiplier {
    let Some(log2) = count.checked_ilog2() else { return multiplier };
    let shift = (log2 as i32).min(32).min(31 + multiplier.shift);
    Multiplier {
        value: ((i64::from(multiplier.value) << shift) / count as i64) as i32,
        shift: multiplier.shift - shift,
    }
}

pub(super) fn product(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    match context.common_type()? {
        DType::F32 => reduction(1.0f32, |product, x| product * x),
        DType::I32 => reduction(1i32, i32::wrapping_mul),
        DType::I64 => reduction(1i64, i64::wrapping_mul),
        other => context.unsupported(other),
    }
}

pub(super) fn max(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    match context.common_type()? {
        DType::F32 => reduction(f32::MIN, |max, x| if x > max { x } else { max }),
        DType::U8 => reduction(u8::MIN, u8::max),
        DType::I8 => reduction(i8::MIN, i8::max),
        DType::I16 => reduction(i16::MIN, i16::max),
        DType::I32 => reduction(i32::MIN, i32::max),
        DType::I64 => reduction(i64::MIN, i64::max),
        other => context.unsupported(other),
    }
}

pub(super) fn min(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    match context.common_type()? {
        DType::F32 => reduction(f32::MAX, |min, x| if x < min { x } else { min }),
        DType::U8 => reduction(u8::MAX, u8::min),
        DType::I8 => reduction(i8::MAX, i8::min),
        DType::I16 => reduction(i16::MAX, i16::min),
        DType::I32 => reduction(i32::MAX, i32::min),
        DType::I64 => reduction(i64::MAX, i64::min),
        other => context.unsupported(other),
    }
}

pub(super) fn logical(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    match (context.common_type()?, &context.operator.op) {
        (DType::Bool, Op::ReduceAny(_)) => reduction(0u8, |any, x| any | u8::from(x != 0)),
        (DType::Bool, Op::ReduceAll(_)) => reduction(1u8, |all, x| all & u8::from(x != 0)),
        (other, _) => context.unsupported(other),
    }
}

pub(super) fn cumsum(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    match context.common_type()? {
        DType::F32 => cumsum_of::<f32>(context, |a, b| a + b),
        DType::I32 => cumsum_of::<i32>(context, i32::wrapping_add),
        DType::I64 => cumsum_of::<i64>(context, i64::wrapping_add),
        other => context.unsupported(other),
    }
}

fn cumsum_of<T: Element>(
    context: &OperatorContext<'_>,
    add: fn(T, T) -> T,
) -> Result<Run, Refusal> {
    let Op::Cumsum(options) = &context.operator.op else {
        return refuse(format!("{} is not CUMSUM", context.operator.op));
    };
    let (exclusive, backwards) = (options.exclusive, options.reverse);
    run(move |call| {
        let shape = call.shape(0)?;
        let (_, along, behind) = around(shape, axis(call.int(1)?, shape.len())?);
        let input = call.input::<T>(0)?;
        let output = call.output::<T>(0)?;
        let block = (along * behind).max(1);
        for (input, output) in input.chunks_exact(block).zip(output.chunks_exact_mut(block)) {
            for i in 0..behind {
                let mut sum = T::default();
                for j in 0..along {
                    let at = if backwards { along - 1 - j } else { j } * behind + i;
                    let next = add(sum, input[at]);
                    output[at] = if exclusive { sum } else { next };
                    sum = next;
                }
            }
        }
        Ok(())
    })
}

pub(super) fn add_n(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    match context.common_type()? {
        DType::F32 => add_n_of::<f32>(|a, b| a + b),
        DType::I32 => add_n_of::<i32>(i32::wrapping_add),
        other => context.unsupported(other),
    }
}

fn add_n_of<T: Element>(add: fn(T, T) -> T) -> Result<Run, Refusal> {
    run(move |call| {
        let first = call.input::<T>(0)?;
        let others = (1..call.inputs.len()).map(|i| call.input::<T>(i));
        let others = others.collect::<Result<Vec<_>, _>>()?;
        let output = call.output::<T>(0)?;
        output.copy_from_slice(first);
        for other in others {
            if other.len() != output.len() {
                return refuse("the inputs have different shapes");
            }
            output.iter_mut().zip(other).for_each(|(out, &x)| *out = add(*out, x));
        }
        Ok(())
    })
}
