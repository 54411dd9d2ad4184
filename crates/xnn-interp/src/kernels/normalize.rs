//! L2_NORMALIZATION, LOCAL_RESPONSE_NORMALIZATION, and Circle's INSTANCE_NORM
//! and RMS_NORM.

use xnn_model::{DType, Op};

use crate::error::{Refusal, refuse};
use crate::fixed::{Multiplier, inverse_sqrt};
use crate::operator::{OperatorContext, Run, run};
use crate::quant::{Quantized, affine, clamp, float_bounds};

/// Length of the last dimension, at least 1.
fn depth(shape: &[usize]) -> usize {
    shape.last().copied().unwrap_or(1).max(1)
}

pub(super) fn l2(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    const EPSILON: f32 = 1e-6;
    match context.common_type()? {
        DType::F32 => run(|call| {
            let depth = depth(call.shape(0)?);
            let input = call.input::<f32>(0)?;
            let output = call.output::<f32>(0)?;
            for (row, out) in input.chunks_exact(depth).zip(output.chunks_exact_mut(depth)) {
                let norm = row.iter().fold(0.0f32, |sum, x| sum + x * x).sqrt();
                // A NaN norm stays NaN.
                let norm = if norm < EPSILON { EPSILON } else { norm };
                out.iter_mut().zip(row).for_each(|(out, x)| *out = x / norm);
            }
            Ok(())
        }),
        // Unsigned outputs are shifted by 128 and have the same 7 bits.
        DType::U8 => l2_quantized::<u8>(context, 128),
        DType::I8 => l2_quantized::<i8>(context, 0),
        other => context.unsupported(other),
    }
}

fn l2_quantized<T: Quantized>(context: &OperatorContext<'_>, shift: i32) -> Result<Run, Refusal> {
    const OUTPUT_BITS: i32 = 7;
    let (from, to) = (affine(context.input(0)?)?, affine(context.output(0)?)?);
    if to.scale != 1.0 / 128.0 || to.zero_point != shift {
        return refuse(format!(
            "the output has scale {} and zero point {}, expected 1/128 and {shift}",
            to.scale, to.zero_point
        ));
    }
    run(move |call| {
        let depth = depth(call.shape(0)?);
        let input = call.input::<T>(0)?;
        let output = call.output::<T>(0)?;
        for (row, out) in input.chunks_exact(depth).zip(output.chunks_exact_mut(depth)) {
            let squares = row.iter().map(|&q| (q.into() - from.zero_point).pow(2));
            let inverse = inverse_sqrt(squares.fold(0, i32::wrapping_add));
            for (out, &q) in out.iter_mut().zip(row) {
                let value = q.into() - from.zero_point;
                // Distributes the bits of the output over the factor and the value.
                let scaled = if T::MIN < 0 {
                    let shift = inverse.shift + OUTPUT_BITS;
                    Multiplier { shift, ..inverse }.apply(value)
                } else {
                    inverse.apply(value << OUTPUT_BITS)
                };
                *out = T::saturate(scaled.saturating_add(shift));
            }
        }
        Ok(())
    })
}

pub(super) fn local_response(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    let Op::LocalResponseNormalization(options) = context.operator.op.clone() else {
        return refuse(format!("{} is not LOCAL_RESPONSE_NORMALIZATION", context.operator.op));
    };
    let radius = usize::try_from(options.radius)
        .or_else(|_| refuse(format!("the radius is negative: {}", options.radius)))?;
    match context.common_type()? {
        DType::F32 => run(move |call| {
            let depth = depth(call.shape(0)?);
            let input = call.input::<f32>(0)?;
            let output = call.output::<f32>(0)?;
            for (row, out) in input.chunks_exact(depth).zip(output.chunks_exact_mut(depth)) {
                for (c, out) in out.iter_mut().enumerate() {
                    let end = c.saturating_add(radius).saturating_add(1).min(depth);
                    let near = &row[c.saturating_sub(radius)..end];
                    let sum = near.iter().fold(0.0f32, |sum, x| sum + x * x);
                    *out = row[c] * (options.bias + options.alpha * sum).powf(-options.beta);
                }
            }
            Ok(())
        }),
        other => context.unsupported(other),
    }
}

/// INSTANCE_NORM: normalizes by mean and variance over height and width, per image and channel,
/// then applies gain and offset per channel.
pub(super) fn instance(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    let Op::InstanceNorm(options) = context.operator.op.clone() else {
        return refuse(format!("{} is not INSTANCE_NORM", context.operator.op));
    };
    let bounds = float_bounds(options.activation)?;
    if context.common_type()? != DType::F32 {
        return context.unsupported(context.common_type()?);
    }
    run(move |call| {
        let [_, height, width, channels] = call.dims(0)?;
        let (input, gain, offset) =
            (call.input::<f32>(0)?, call.input::<f32>(1)?, call.input::<f32>(2)?);
        let single = |values: &[f32]| values.len() == 1 || values.len() == channels;
        if !single(gain) || !single(offset) {
            return refuse(format!("{} gains, expected {channels}", gain.len()));
        }
        let of = |values: &[f32], c: usize| values[if values.len() == 1 { 0 } else { c }];
        let image = (height * width * channels).max(1);
        let count = (height * width) as f64;
        let output = call.output::<f32>(0)?;
        for (input, output) in input.chunks_exact(image).zip(output.chunks_exact_mut(image)) {
            for c in 0..channels {
                let values = || input[c..].iter().step_by(channels).map(|&x| f64::from(x));
                let mean = values().sum::<f64>() / count;
                let variance = values().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
                let scale = f64::from(of(gain, c)) / (variance + f64::from(options.epsilon)).sqrt();
                let shift = f64::from(of(offset, c)) - mean * scale;
                let targets = output[c..].iter_mut().step_by(channels);
                targets.zip(values()).for_each(|(out, x)| {
                    *out = clamp((x * scale + shift) as f32, bounds);
                });
            }
        }
        Ok(())
    })
}

/// RMS_NORM: divides rows by their root mean square, then multiplies by a gain per element.
pub(super) fn rms(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    let Op::RmsNorm(options) = context.operator.op.clone() else {
        return refuse(format!("{} is not RMS_NORM", context.operator.op));
    };
    if context.common_type()? != DType::F32 {
        return context.unsupported(context.common_type()?);
    }
    run(move |call| {
        let depth = depth(call.shape(0)?);
        let (input, gain) = (call.input::<f32>(0)?, call.input::<f32>(1)?);
        if gain.len() != depth && gain.len() != 1 {
            return refuse(format!("{} gains, expected {depth}", gain.len()));
        }
        let output = call.output::<f32>(0)?;
        for (row, out) in input.chunks_exact(depth).zip(output.chunks_exact_mut(depth)) {
            let squares: f64 = row.iter().map(|&x| f64::from(x).powi(2)).sum();
            let scale = 1.0 / (squares / depth as f64 + f64::from(options.epsilon)).sqrt();
            for (i, (out, &x)) in out.iter_mut().zip(row).enumerate() {
                *out = (f64::from(x) * scale) as f32 * gain[i % gain.len()];
            }
        }
        Ok(())
    })
}

/// Circle's ROPE: rotates pairs of elements by angles whose sines and cosines are inputs.
pub(super) fn rope(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    let Op::Rope(options) = context.operator.op.clone() else {
        return refuse(format!("{} is not ROPE", context.operator.op));
    };
    if context.common_type()? != DType::F32 {
        return context.unsupported(context.common_type()?);
    }
    run(move |call| {
        let depth = depth(call.shape(0)?);
        let (input, sines, cosines) =
            (call.input::<f32>(0)?, call.input::<f32>(1)?, call.input::<f32>(2)?);
        let half = depth / 2;
        if !depth.is_multiple_of(2)
            || sines.is_empty()
            || sines.len() != cosines.len()
            || sines.len() % depth != 0
            || input.len() % sines.len() != 0
        {
            return refuse("the tables of sines and cosines do not match the input");
        }
        let output = call.output::<f32>(0)?;
        for (at, out) in output.iter_mut().enumerate() {
            let (row, i) = (at / depth * depth, at % depth);
            let partner = if options.interleaved { i ^ 1 } else { (i + half) % depth };
            let first = if options.interleaved { i % 2 == 0 } else { i < half };
            let other = input[row + partner];
            let rotated = if first { -other } else { other };
            let angle = at % sines.len();
            *out = input[at] * cosines[angle] + rotated * sines[angle];
        }
        Ok(())
    })
}
