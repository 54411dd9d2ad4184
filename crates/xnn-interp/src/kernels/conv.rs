//! CONV_2D and DEPTHWISE_CONV_2D.

pub(super) mod geometry;
mod weights;

use xnn_model::infer::SpatialWindow;
use xnn_model::op::{Activation, Conv2dOptions, DepthwiseConv2dOptions};
use xnn_model::{DType, Op};

use self::geometry::Geometry;
use self::weights::{Kind, Source};
use super::hybrid;
use super::weights::{float_reader, integer_reader};
use crate::call::{Call, Ints};
use crate::error::{Refusal, refuse};
use crate::operator::{OperatorContext, Run, run};
use crate::quant::{
    Quantized, Requantize, affine, clamp, float_bounds, quantized_bounds, weight_scales,
};

/// Options that both operators have.
#[derive(Clone, Copy)]
struct Options {
    kind: Kind,
    strides: (i32, i32),
    dilations: (i32, i32),
    activation: Activation,
}

impl Options {
    fn of(op: &Op) -> Result<Self, Refusal> {
        Ok(match op {
            Op::Conv2d(Conv2dOptions {
                stride_h,
                stride_w,
                dilation_h,
                dilation_w,
                activation,
                ..
            }) => Self {
                kind: Kind::Dense,
                strides: (*stride_h, *stride_w),
                dilations: (*dilation_h, *dilation_w),
                activation: *activation,
            },
            Op::DepthwiseConv2d(DepthwiseConv2dOptions {
                stride_h,
                stride_w,
                dilation_h,
                dilation_w,
                activation,
                ..
            }) => Self {
                kind: Kind::Depthwise,
                strides: (*stride_h, *stride_w),
                dilations: (*dilation_h, *dilation_w),
                activation: *activation,
            },
            other => return refuse(format!("{other} is not a convolution")),
        })
    }

    /// The dimension of the weights that is the output channel.
    fn output_axis(&self) -> usize {
        match self.kind {
            Kind::Dense => 0,
            Kind::Depthwise => 3,
        }
    }

    fn geometry(&self, call: &Call<'_>) -> Result<Geometry, Refusal> {
        let [_, height, width, _] = call.dims(1)?;
        let window = SpatialWindow::of_filter((height, width), self.strides, self.dilations)?;
        Ok(Geometry::new(call.dims(0)?, call.output_dims(0)?, window))
    }
}

/// The place of a pixel's sums in the output.
fn slot<T>(output: &mut [T], at: usize, width: usize) -> &mut [T] {
    output.get_mut(at..).and_then(|rest| rest.get_mut(..width)).unwrap_or(&mut [])
}

pub(super) fn prepare(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    let options = Options::of(&context.operator.op)?;
    let (input, weights) = (context.input(0)?.dtype, context.input(1)?.dtype);
    context.expect_output(0, input)?;
    match (input, weights) {
        (DType::F32, DType::F32) => float(context, options),
        (DType::F32, DType::I8 | DType::I4) => dynamic_range(context, options),
        (DType::U8, DType::U8) => eight_bit::<u8>(context, options),
        (DType::I8, DType::I8 | DType::I4) => eight_bit::<i8>(context, options),
        (DType::I16, DType::I8 | DType::I4) => sixteen_bit(context, options),
        _ => refuse(format!("{input} input with {weights} weights")),
    }
}

fn float(context: &OperatorContext<'_>, options: Options) -> Result<Run, Refusal> {
    let source = Source::new(context, options.kind, float_reader())?;
    let bounds = float_bounds(options.activation)?;
    run(move |call| {
        let geometry = options.geometry(call)?;
        let [_, _, _, channels] = call.output_dims(0)?;
        let weights = source.get(call)?;
        let input = call.input::<f32>(0)?;
        let bias = call.bias::<f32>(2, channels)?.unwrap_or(&[]);
        let output = call.output::<f32>(0)?;
        let pixels = geometry.pixels();
        weights.convolve(
            &geometry,
            input,
            |_, x| x,
            |batch, pixel, first, sums: &[f32]| {
                let output = slot(output, (batch * pixels + pixel) * channels + first, sums.len());
                for (i, (out, &sum)) in output.iter_mut().zip(sums).enumerate() {
                    *out = clamp(sum + bias.get(first + i).copied().unwrap_or(0.0), bounds);
                }
            },
        );
        Ok(())
    })
}

/// 8-bit inputs and outputs. `u8` weights are per-tensor, `i8` ones per-tensor or per-channel.
fn eight_bit<T: Quantized>(
    context: &OperatorContext<'_>,
    options: Options,
) -> Result<Run, Refusal> {
    let (input, weights, output) = (context.input(0)?, context.input(1)?, context.output(0)?);
    let (from, to) = (affine(input)?, affine(output)?);
    let (requantize, weights_zero) =
        Requantize::of_layer(from, weights, options.output_axis(), to)?;
    let source = Source::new(context, options.kind, integer_reader(weights_zero))?;
    let bounds = quantized_bounds(options.activation, output)?;
    run(move |call| {
        let geometry = options.geometry(call)?;
        let [_, _, _, channels] = call.output_dims(0)?;
        if !requantize.fits(channels) {
            return refuse(format!(
                "the number of weight scales differs from the {channels} output channels"
            ));
        }
        let weights = source.get(call)?;
        let input = call.input::<T>(0)?;
        let bias = call.bias::<i32>(2, channels)?.unwrap_or(&[]);
        let output = call.output::<T>(0)?;
        let pixels = geometry.pixels();
        let lift = |_, x: T| (x.into() - from.zero_point) as i16;
        weights.convolve(&geometry, input, lift, |batch, pixel, first, sums: &[i32]| {
            let output = slot(output, (batch * pixels + pixel) * channels + first, sums.len());
            for (i, (out, &sum)) in output.iter_mut().zip(sums).enumerate() {
                let sum = sum.wrapping_add(bias.get(first + i).copied().unwrap_or(0));
                let scaled = requantize.multiplier(first + i).apply(sum);
                *out = T::bounded(scaled.saturating_add(to.zero_point), bounds);
            }
        });
        Ok(())
    })
}

/// 16-bit inputs and outputs with 8-bit weights. The bias determines the width of sums.
fn sixteen_bit(context: &OperatorContext<'_>, options: Options) -> Result<Run, Refusal> {
    let (input, weights, output) = (context.input(0)?, context.input(1)?, context.output(0)?);
    let (from, to) = (affine(input)?, affine(output)?);
    if from.zero_point != 0 || to.zero_point != 0 {
        return refuse("16-bit tensors with a nonzero zero point");
    }
    let scales = weight_scales(weights, options.output_axis())?;
    let requantize = Requantize::of_scales(from.scale, &scales, to.scale);
    let source = Source::new(context, options.kind, integer_reader(0))?;
    let bounds = quantized_bounds(options.activation, output)?;
    let narrow_sums = context.optional(2).is_some_and(|bias| bias.dtype == DType::I32);
    run(move |call| {
        let geometry = options.geometry(call)?;
        let [_, _, _, channels] = call.output_dims(0)?;
        if !requantize.fits(channels) {
            return refuse(format!(
                "the number of weight scales differs from the {channels} output channels"
            ));
        }
        let weights = source.get(call)?;
        let input = call.input::<i16>(0)?;
        let bias = match call.optional(2) {
            Some(_) => call.ints(2)?,
            None => Ints::new(),
        };
        let output = call.output::<i16>(0)?;
        let pixels = geometry.pixels();
        weights.convolve(
            &geometry,
            input,
            |_, x| x,
            |batch, pixel, first, sums: &[i64]| {
                let output = slot(output, (batch * pixels + pixel) * channels + first, sums.len());
                for (i, (out, &sum)) in output.iter_mut().zip(sums).enumerate() {
                    let sum = sum + bias.get(first + i).copied().unwrap_or(0);
                    let multiplier = requantize.multiplier(first + i);
                    let scaled = if narrow_sums {
                        multiplier.apply(sum as i32)
                    } else {
                        multiplier.apply_wide(sum)
                    };
                    *out = i16::bounded(scaled, bounds);
                }
            },
        );
        Ok(())
    })
}

/// Dynamic-range quantization: float inputs and outputs with 8-bit weights. Inputs are quantized
/// per batch in each run.
fn dynamic_range(context: &OperatorContext<'_>, options: Options) -> Result<Run, Refusal> {
    let scales = weight_scales(context.input(1)?, options.output_axis())?;
    // Equal scales count as one. Only with a single scale are inputs quantized with zero point 0.
    let depthwise = matches!(options.kind, Kind::Depthwise);
    let per_channel = depthwise || scales.iter().any(|scale| Some(scale) != scales.first());
    // Multiplies in the order of the reference kernels, which determines the last bits.
    let rescales_twice = per_channel && !depthwise;
    let source = Source::new(context, options.kind, integer_reader(0))?;
    let bounds = float_bounds(options.activation)?;
    run(move |call| {
        let geometry = options.geometry(call)?;
        let [_, _, _, channels] = call.output_dims(0)?;
        if scales.len() != 1 && scales.len() != channels {
            return refuse(format!(
                "the weights have {} scales, expected {channels}",
                scales.len()
            ));
        }
        let weights = source.get(call)?;
        let rows = hybrid::quantize_rows(call.input::<f32>(0)?, geometry.batches, per_channel);
        let bias = call.bias::<f32>(2, channels)?.unwrap_or(&[]);
        let output = call.output::<f32>(0)?;
        let pixels = geometry.pixels();
        let last = scales.len() - 1;
        weights.convolve(
            &geometry,
            &rows.values,
            |_, x| x,
            |batch, pixel, first, sums: &[i32]| {
                let output = slot(output, (batch * pixels + pixel) * channels + first, sums.len());
                let row_scale = rows.scales[batch];
                for (i, (out, &sum)) in output.iter_mut().zip(sums).enumerate() {
                    let scale = scales[(first + i).min(last)];
                    let real = if rescales_twice {
                        sum as f32 * scale * row_scale
                    } else {
                        sum as f32 * (row_scale * scale)
                    };
                    *out = clamp(real + bias.get(first + i).copied().unwrap_or(0.0), bounds);
                }
            },
        );
        Ok(())
    })
}
