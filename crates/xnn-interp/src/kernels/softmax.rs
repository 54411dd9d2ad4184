//! SOFTMAX and LOG_SOFTMAX.

use xnn_model::op::SoftmaxOptions;
use xnn_model::{DType, Op};

use super::table::InterpolatedTable;
use crate::error::{Refusal, refuse};
use crate::fixed::{
    Multiplier, doubling_high_mul, exp_on_negative, reciprocal, rounding_shift_right,
};
use crate::operator::{OperatorContext, Run, run};
use crate::quant::{Quantized, affine};

/// Integer bits of differences to the maximum.
const DIFFERENCE_BITS: u32 = 5;
/// Integer bits of the sum of exponentials.
const SUM_BITS: i32 = 12;

pub(super) fn prepare(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    let Op::Softmax(SoftmaxOptions { beta }) = context.operator.op else {
        return refuse(format!("{} is not SOFTMAX", context.operator.op));
    };
    match (context.input(0)?.dtype, context.output(0)?.dtype) {
        (DType::F32, DType::F32) => run(move |call| {
            let depth = depth(call.shape(0)?);
            let input = call.input::<f32>(0)?;
            let output = call.output::<f32>(0)?;
            for (row, out) in input.chunks_exact(depth).zip(output.chunks_exact_mut(depth)) {
                let max = row.iter().fold(f32::MIN, |max, &x| max.max(x));
                let mut sum = 0.0;
                for (out, &x) in out.iter_mut().zip(row) {
                    *out = ((x - max) * beta).exp();
                    sum += *out;
                }
                out.iter_mut().for_each(|out| *out /= sum);
            }
            Ok(())
        }),
        (DType::U8, DType::U8) => quantized::<u8, u8>(context, beta),
        (DType::I8, DType::I8) => quantized::<i8, i8>(context, beta),
        (DType::U8, DType::I16) => quantized::<u8, i16>(context, beta),
        (DType::I8, DType::I16) => quantized::<i8, i16>(context, beta),
        (DType::I16, DType::I16) => sixteen_bit(context, beta),
        (input, output) => refuse(format!("{input} input with {output} output")),
    }
}

/// Length of the last dimension, at least 1.
fn depth(shape: &[usize]) -> usize {
    shape.last().copied().unwrap_or(1).max(1)
}

/// The multiplier that converts differences of `scale * beta` to [`DIFFERENCE_BITS`], and the
/// difference below which exponentials vanish.
fn difference_multiplier(scale: f64) -> (Multiplier, i32) {
    let real = (scale * f64::from(1u32 << (31 - DIFFERENCE_BITS))).min(2f64.powi(31) - 1.0);
    let multiplier = Multiplier::new(real);
    let most = f64::from((1 << DIFFERENCE_BITS) - 1) * f64::from(1 << (31 - DIFFERENCE_BITS));
    let radius = (most / 2f64.powi(multiplier.shift)).floor();
    (multiplier, -(radius as i32))
}

fn quantized<T: Quantized, O: Quantized>(
    context: &OperatorContext<'_>,
    beta: f32,
) -> Result<Run, Refusal> {
    let scale = f64::from(beta) * f64::from(affine(context.input(0)?)?.scale);
    let (multiplier, least) = difference_multiplier(scale);
    let output_bits = 8 * size_of::<O>() as i32;
    run(move |call| {
        let depth = depth(call.shape(0)?);
        let input = call.input::<T>(0)?;
        let output = call.output::<O>(0)?;
        let exp = |difference: i32| exp_on_negative(multiplier.apply(difference), DIFFERENCE_BITS);
        for (row, out) in input.chunks_exact(depth).zip(output.chunks_exact_mut(depth)) {
            let max = row.iter().map(|&q| q.into()).max().unwrap_or(0);
            let differences = row.iter().map(|&q| q.into() - max);
            let sum = differences
                .filter(|&difference| difference >= least)
                .fold(0i32, |sum, d| sum.wrapping_add(rounding_shift_right(exp(d), 12)));
            let (scale, shift) = reciprocal(sum, SUM_BITS);
            let exponent = (shift + 31 - output_bits).clamp(0, 31) as u32;
            for (out, &q) in out.iter_mut().zip(row) {
                let difference = q.into() - max;
                *out = if difference >= least {
                    let product = doubling_high_mul(scale, exp(difference));
                    O::saturate(rounding_shift_right(product, exponent).saturating_add(O::MIN))
                } else {
                    O::narrow(O::MIN)
                };
            }
        }
        Ok(())
    })
}

fn sixteen_bit(context: &OperatorContext<'_>, beta: f32) -> Result<Run, Refusal> {
    const RANGE: f64 = 65535.0;
    let scale = f64::from(affine(context.input(0)?)?.scale);
    // Differences down to -10 use the whole range of 16 bits.
    let rescale = Multiplier::new(scale * f64::from(beta) / (10.0 / RANGE));
    let exp = InterpolatedTable::new((10.0 / RANGE, 32767), (2.0 / RANGE, 0), f64::exp);
    let inverse =
        InterpolatedTable::new((1.0 / RANGE, -32768), (2.0 / RANGE, 0), |x: f64| 1.0 / (1.0 + x));
    run(move |call| {
        let depth = depth(call.shape(0)?);
        let input = call.input::<i16>(0)?;
        let output = call.output::<i16>(0)?;
        for (row, out) in input.chunks_exact(depth).zip(output.chunks_exact_mut(depth)) {
            let max = row.iter().copied().max().unwrap_or(0);
            let mut sum = 0i32;
            for (out, &q) in out.iter_mut().zip(row) {
                let difference = rescale.apply(i32::from(q) - i32::from(max));
                *out = exp.at(i16::saturate(difference.saturating_add(32767)));
                sum = sum.wrapping_add(i32::from(*out));
            }
            let headroom = sum.leading_zeros();
            let shifted = ((i64::from(sum) << (headroom.max(1) - 1)) + (1 << 13)) >> 14;
            let less_one = shifted as i32 - ((1 << 15) + (1 << 16));
            let scale = i64::from(inverse.at(i16::saturate(less_one)));
            let shift = 31u32.saturating_sub(headroom).max(1);
            for out in out {
                let product = (i64::from(*out) * scale + (1 << (shift - 1))) >> shift;
                *out = product.clamp(0, 32767) as i16;
            }
        }
        Ok(())
    })
}

pub(super) fn log_softmax(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    match context.common_type()? {
        DType::F32 => run(|call| {
            let depth = depth(call.shape(0)?);
            let input = call.input::<f32>(0)?;
            let output = call.output::<f32>(0)?;
            for (row, out) in input.chunks_exact(depth).zip(output.chunks_exact_mut(depth)) {
                let max = row.iter().fold(f32::MIN, |max, &x| max.max(x));
                let sum = row.iter().fold(0.0f32, |sum, &x| sum + (x - max).exp());
                let log = sum.ln();
                out.iter_mut().zip(row).for_each(|(out, &x)| *out = x - max - log);
            }
            Ok(())
        }),
        DType::U8 => quantized_log::<u8>(context),
        DType::I8 => quantized_log::<i8>(context),
        other => context.unsupported(other),
    }
}

/// Computes logarithms in double precision, rounded once. The output's quantization is fixed by
/// definition.
fn quantized_log<T: Quantized>(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    let (from, to) = (affine(context.input(0)?)?, affine(context.output(0)?)?);
    if (to.scale, to.zero_point) != (1.0 / 16.0, T::MAX) {
        return refuse("the output scale must be 1/16 and the zero point the largest integer");
    }
    let scale = f64::from(from.scale);
    run(move |call| {
        let depth = depth(call.shape(0)?);
        let input = call.input::<T>(0)?;
        let output = call.output::<T>(0)?;
        for (row, out) in input.chunks_exact(depth).zip(output.chunks_exact_mut(depth)) {
            let max = row.iter().map(|&q| q.into()).max().unwrap_or(0);
            let difference = |q: T| f64::from(q.into() - max) * scale;
            let log = row.iter().map(|&q| difference(q).exp()).sum::<f64>().ln();
            for (out, &q) in out.iter_mut().zip(row) {
                let steps = ((difference(q) - log) * 16.0).round();
                *out = T::saturate(T::MAX.saturating_add(steps as i32));
            }
        }
        Ok(())
    })
}
