//! FULLY_CONNECTED.

use std::borrow::Cow;

use xnn_model::op::{FullyConnectedOptions, WeightsFormat};
use xnn_model::{DType, Op, Quantization};

use super::gemm::{Packed, Weight, multiply};
use super::hybrid;
use super::weights::{Reader, float_reader, integer_reader};
use crate::call::{Call, Ints};
use crate::error::{Refusal, refuse};
use crate::operator::{OperatorContext, Run, is_fixed, run};
use crate::quant::{Quantized, affine, clamp, float_bounds, quantized_bounds, weight_scales};
use crate::tensor::TensorView;

/// Weights `[units, depth]` that are packed when the model is loaded, or in each call if another
/// operator computes them.
pub(super) struct Source<W> {
    read: Reader<W>,
    position: usize,
    fixed: Option<Packed<W>>,
}

impl<W: Weight> Source<W> {
    /// The weights at this position among an operator's inputs.
    pub(super) fn new(
        context: &OperatorContext<'_>,
        position: usize,
        read: Reader<W>,
    ) -> Result<Self, Refusal> {
        let weights = context.input(position)?;
        let fixed = match (weights.shape.as_deref(), weights.data.as_deref()) {
            (Some(shape), Some(bytes)) if is_fixed(weights) => {
                let view = TensorView { dtype: weights.dtype, shape, bytes };
                Some(pack(&read, view)?)
            }
            _ => None,
        };
        Ok(Self { read, position, fixed })
    }

    pub(super) fn get(&self, call: &Call<'_>) -> Result<Cow<'_, Packed<W>>, Refusal> {
        match &self.fixed {
            Some(weights) => Ok(Cow::Borrowed(weights)),
            None => Ok(Cow::Owned(pack(&self.read, call.tensor(self.position)?)?)),
        }
    }
}

fn pack<W: Weight>(read: &Reader<W>, view: TensorView<'_>) -> Result<Packed<W>, Refusal> {
    let &[units, depth] = view.shape else {
        return refuse(format!("the weights have shape {:?}, expected two dimensions", view.shape));
    };
    let elements = read(view)?;
    Ok(Packed::from_rows(depth, units, |unit, i| elements[unit * depth + i]))
}

pub(super) fn prepare(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    let Op::FullyConnected(options) = &context.operator.op else {
        return refuse(format!("{} is not FULLY_CONNECTED", context.operator.op));
    };
    if options.weights_format != WeightsFormat::Default {
        return refuse(format!("weights format {:?}", options.weights_format));
    }
    if context.input(1)?.shape.as_deref().is_some_and(|shape| shape.ends_with(&[0])) {
        return nothing_to_add(context);
    }
    let (input, weights) = (context.input(0)?.dtype, context.input(1)?.dtype);
    if let Some(Quantization::Blockwise { .. }) = context.input(1)?.quantization {
        return blockwise(context, options);
    }
    match (input, weights, context.output(0)?.dtype) {
        (DType::F32, DType::F32, DType::F32) => float(context, options),
        (DType::F32, DType::I8 | DType::I4, DType::F32) => dynamic_range(context, options),
        (DType::U8, DType::U8, DType::U8) => quantized::<u8, u8>(context, options),
        (DType::U8, DType::U8, DType::I16) => quantized::<u8, i16>(context, options),
        (DType::I8, DType::I8 | DType::I4, DType::I8) => quantized::<i8, i8>(context, options),
        (DType::I8, DType::I8, DType::I16) => quantized::<i8, i16>(context, options),
        (DType::I16, DType::I8 | DType::I4, DType::I16) => quantized::<i16, i16>(context, options),
        (input, weights, output) => {
            refuse(format!("{input} input with {weights} weights and {output} output"))
        }
    }
}

/// Rows without elements. TFLite's kernels then write zeros, regardless of bias, activation and
/// zero point.
fn nothing_to_add(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    context.expect_output(0, context.input(0)?.dtype)?;
    run(|call| {
        call.output_bytes(0)?.fill(0);
        Ok(())
    })
}

fn float(context: &OperatorContext<'_>, options: &FullyConnectedOptions) -> Result<Run, Refusal> {
    let source = Source::new(context, 1, float_reader())?;
    let bounds = float_bounds(options.activation)?;
    run(move |call| {
        let [units, _] = call.dims(1)?;
        let weights = source.get(call)?;
        let input = call.input::<f32>(0)?;
        let bias = call.bias::<f32>(2, units)?;
        let output = call.output::<f32>(0)?;
        multiply(input, &weights, output);
        for row in output.chunks_exact_mut(units.max(1)) {
            for (i, out) in row.iter_mut().enumerate() {
                *out = clamp(*out + bias.map_or(0.0, |bias| bias[i]), bounds);
            }
        }
        Ok(())
    })
}

/// Rescales accumulators in double precision: unlike in convolutions, multipliers are not rounded.
fn quantized<T: Quantized, O: Quantized>(
    context: &OperatorContext<'_>,
    options: &FullyConnectedOptions,
) -> Result<Run, Refusal> {
    let (from, weights, to) =
        (affine(context.input(0)?)?, context.input(1)?, affine(context.output(0)?)?);
    let scales = weight_scales(weights, 0)?;
    let weights_zero = if scales.len() == 1 { affine(weights)?.zero_point } else { 0 };
    let rescale: Vec<f64> = scales
        .iter()
        .map(|&scale| f64::from(from.scale) * f64::from(scale) / f64::from(to.scale))
        .collect();
    let source = Source::new(context, 1, integer_reader(weights_zero))?;
    let bounds = quantized_bounds(options.activation, context.output(0)?)?;
    run(move |call| {
        let [units, depth] = call.dims(1)?;
        if rescale.len() != 1 && rescale.len() != units {
            return refuse(format!("the weights have {} scales, expected {units}", rescale.len()));
        }
        let weights = source.get(call)?;
        let input = call.input::<T>(0)?;
        let bias = match call.optional(2) {
            Some(_) => call.ints(2)?,
            None => Ints::new(),
        };
        let output = call.output::<O>(0)?;
        // Sums are wider than results: one row at a time takes less memory, and no longer.
        let (mut lifted, mut sums) = (Vec::with_capacity(depth), vec![0i64; units]);
        for (number, row) in output.chunks_exact_mut(units.max(1)).enumerate() {
            let input = input.get(number * depth..).and_then(|rest| rest.get(..depth));
            lifted.clear();
            lifted
                .extend(input.unwrap_or(&[]).iter().map(|&q| (q.into() - from.zero_point) as i16));
            multiply(&lifted, &weights, &mut sums);
            for (i, (out, &sum)) in row.iter_mut().zip(&sums).enumerate() {
                let sum = sum + bias.get(i).copied().unwrap_or(0);
                let scale = rescale[i.min(rescale.len() - 1)];
                let scaled = (sum as f64 * scale).round() as i32;
                *out = O::bounded(scaled.saturating_add(to.zero_point), bounds);
            }
        }
        Ok(())
    })
}

/// Dynamic-range quantization: float inputs and outputs with 8-bit weights. Inputs are quantized
/// per row in each run.
fn dynamic_range(
    context: &OperatorContext<'_>,
    options: &FullyConnectedOptions,
) -> Result<Run, Refusal> {
    let scales = weight_scales(context.input(1)?, 0)?;
    let source = Source::new(context, 1, integer_reader(0))?;
    let bounds = float_bounds(options.activation)?;
    let asymmetric = options.asymmetric_quantize_inputs;
    run(move |call| {
        let [units, depth] = call.dims(1)?;
        if scales.len() != 1 && scales.len() != units {
            return refuse(format!("the weights have {} scales, expected {units}", scales.len()));
        }
        let weights = source.get(call)?;
        let input = call.input::<f32>(0)?;
        let count = input.len().checked_div(depth).unwrap_or(0);
        let rows = hybrid::quantize_rows(input, count, asymmetric);
        let bias = call.bias::<f32>(2, units)?;
        let output = call.output::<f32>(0)?;
        let mut sums = vec![0i32; output.len()];
        multiply(&rows.values, &weights, &mut sums);
        let width = units.max(1);
        let outputs = output.chunks_exact_mut(width).zip(sums.chunks_exact(width));
        for ((row, sums), row_scale) in outputs.zip(&rows.scales) {
            for (i, (out, &sum)) in row.iter_mut().zip(sums).enumerate() {
                let scale = row_scale * scales[i.min(scales.len() - 1)];
                let bias = bias.map_or(0.0, |bias| bias[i]);
                *out = clamp(bias + sum as f32 * scale, bounds);
            }
        }
        Ok(())
    })
}

/// Like [`dynamic_range`], with a scale for every block of consecutive weights.
fn blockwise(
    context: &OperatorContext<'_>,
    options: &FullyConnectedOptions,
) -> Result<Run, Refusal> {
    let weights = context.input(1)?;
    let (Some(Quantization::Blockwise { scales, zero_points, block_size }), DType::F32) =
        (&weights.quantization, context.input(0)?.dtype)
    else {
        return refuse("blockwise weights need float inputs");
    };
    context.expect_output(0, DType::F32)?;
    let block = *block_size;
    let (Some(&[units, depth]), Some(bytes)) =
        (weights.shape.as_deref(), weights.data.as_deref().filter(|_| is_fixed(weights)))
    else {
        return refuse("blockwise weights must be a constant matrix");
    };
    if zero_points.is_some() || block == 0 || depth % block != 0 {
        return refuse(format!(
            "blocks of {block} weights have zero points or do not divide rows of {depth}"
        ));
    }
    let scales = context.subgraph.tensors.get(*scales).and_then(|tensor| tensor.constant_floats());
    let scales =
        scales.filter(|scales| scales.len() == units * (depth / block)).ok_or_else(|| {
            Refusal("the number of blockwise scales does not match the weights".into())
        })?;
    let view = TensorView { dtype: weights.dtype, shape: &[units, depth], bytes };
    let elements = integer_reader(0)(view)?;
    let bounds = float_bounds(options.activation)?;
    run(move |call| {
        let input = call.input::<f32>(0)?;
        let count = input.len().checked_div(depth).unwrap_or(0);
        let rows = hybrid::quantize_rows(input, count, true);
        let bias = call.bias::<f32>(2, units)?;
        let mut outputs = call.output::<f32>(0)?.iter_mut();
        for (row, row_scale) in rows.values.chunks_exact(depth.max(1)).zip(&rows.scales) {
            for (unit, weights) in elements.chunks_exact(depth.max(1)).enumerate() {
                let blocks = row.chunks_exact(block).zip(weights.chunks_exact(block));
                let own = &scales[unit * (depth / block)..];
                let sum = blocks.zip(own).fold(0.0f32, |sum, ((x, w), scale)| {
                    let products = x.iter().zip(w).map(|(&x, &w)| i32::from(x) * i32::from(w));
                    sum + products.sum::<i32>() as f32 * scale
                });
                if let Some(out) = outputs.next() {
                    *out = clamp(sum * row_scale + bias.map_or(0.0, |bias| bias[unit]), bounds);
                }
            }
        }
        Ok(())
    })
}
