//! TRANSPOSE_CONV, and MediaPipe's variant with a bias.

use std::borrow::Cow;

use xnn_model::infer::Window;
use xnn_model::op::{Activation, Padding};
use xnn_model::{DType, Op};

use super::gemm::Accumulator;
use super::hybrid;
use super::weights::{Reader, float_reader, integer_reader};
use crate::call::{Call, Ints};
use crate::error::{Refusal, refuse};
use crate::operator::{OperatorContext, Run, is_fixed, run};
use crate::quant::{
    Quantized, Requantize, affine, clamp, float_bounds, quantized_bounds, weight_scales,
};
use crate::tensor::TensorView;

/// Positions of a filter on the output.
#[derive(Clone, Copy)]
struct Geometry {
    input: [usize; 4],
    filter: [usize; 2],
    output: [usize; 4],
    strides: [usize; 2],
    /// Padding above and left of the output, which is cut off.
    padding: [usize; 2],
}

impl Geometry {
    fn new(
        input: [usize; 4],
        filter: [usize; 2],
        output: [usize; 4],
        strides: [usize; 2],
        padding: Padding,
    ) -> Self {
        // The convolution from the output to the input has the same window.
        let before = |axis: usize| {
            let window = Window { size: filter[axis], stride: strides[axis], dilation: 1 };
            let size = output[axis + 1];
            window.padding(size, window.output(size, padding)).0
        };
        Self { input, filter, output, strides, padding: [before(0), before(1)] }
    }

    /// The output pixel under a filter element at an input pixel.
    fn target(&self, (y, x): (usize, usize), tap: usize) -> Option<usize> {
        let (ky, kx) = (tap / self.filter[1], tap % self.filter[1]);
        let y = (y * self.strides[0] + ky).checked_sub(self.padding[0])?;
        let x = (x * self.strides[1] + kx).checked_sub(self.padding[1])?;
        let [_, height, width, _] = self.output;
        (y < height && x < width).then(|| y * width + x)
    }

    /// Adds the contribution of every input pixel to `sums`. `weights` is `[taps, inputs,
    /// outputs]`.
    fn scatter<T: Copy, A: Copy, W: Copy, C: Accumulator<A, W>>(
        &self,
        input: &[T],
        lift: impl Fn(T) -> A,
        weights: &[W],
        sums: &mut [C],
    ) {
        let [_, height, width, channels] = self.input;
        let [_, out_height, out_width, outputs] = self.output;
        let taps = self.filter[0] * self.filter[1];
        let image = (height * width * channels).max(1);
        let out_image = (out_height * out_width * outputs).max(1);
        for (input, sums) in input.chunks_exact(image).zip(sums.chunks_exact_mut(out_image)) {
            for (at, pixel) in input.chunks_exact(channels.max(1)).enumerate() {
                for tap in 0..taps {
                    let Some(target) = self.target((at / width, at % width), tap) else { continue };
                    let sums = &mut sums[target * outputs..][..outputs];
                    let weights = &weights[tap * channels * outputs..][..channels * outputs];
                    for (&x, weights) in pixel.iter().zip(weights.chunks_exact(outputs.max(1))) {
                        let x = lift(x);
                        for (sum, &w) in sums.iter_mut().zip(weights) {
                            *sum = sum.add_product(x, w);
                        }
                    }
                }
            }
        }
    }
}

/// Weights `[outputs, height, width, inputs]`, rearranged when the model is loaded or in each call.
struct Source<W> {
    read: Reader<W>,
    fixed: Option<Vec<W>>,
}

impl<W: Copy> Source<W> {
    fn new(context: &OperatorContext<'_>, read: Reader<W>) -> Result<Self, Refusal> {
        let weights = context.input(1)?;
        let fixed = match (weights.shape.as_deref(), weights.data.as_deref()) {
            (Some(shape), Some(bytes)) if is_fixed(weights) => {
                Some(rearrange(&read, TensorView { dtype: weights.dtype, shape, bytes })?)
            }
            _ => None,
        };
        Ok(Self { read, fixed })
    }

    fn get(&self, call: &Call<'_>) -> Result<Cow<'_, [W]>, Refusal> {
        match &self.fixed {
            Some(weights) => Ok(Cow::Borrowed(weights)),
            None => Ok(Cow::Owned(rearrange(&self.read, call.tensor(1)?)?)),
        }
    }
}

fn rearrange<W: Copy>(read: &Reader<W>, view: TensorView<'_>) -> Result<Vec<W>, Refusal> {
    let &[outputs, height, width, inputs] = view.shape else {
        return refuse(format!(
            "the weights have shape {:?}, expected four dimensions",
            view.shape
        ));
    };
    let elements = read(view)?;
    let taps = height * width;
    let at =
        |tap: usize, input: usize, output: usize| elements[(output * taps + tap) * inputs + input];
    let mut rearranged = Vec::with_capacity(elements.len());
    for tap in 0..taps {
        for input in 0..inputs {
            rearranged.extend((0..outputs).map(|output| at(tap, input, output)));
        }
    }
    Ok(rearranged)
}

/// The options that the kernel needs.
#[derive(Clone, Copy)]
struct Options {
    strides: [usize; 2],
    padding: Padding,
    activation: Activation,
}

impl Options {
    fn of(op: &Op) -> Result<Self, Refusal> {
        let Op::TransposeConv(options) = op else {
            return refuse(format!("{op} is not TRANSPOSE_CONV"));
        };
        Ok(Self {
            strides: strides(options.stride_h, options.stride_w)?,
            padding: options.padding,
            activation: options.activation,
        })
    }

    fn geometry(&self, call: &Call<'_>) -> Result<Geometry, Refusal> {
        let (input, output) = (call.dims(2)?, call.output_dims(0)?);
        let [outputs, height, width, inputs] = call.dims(1)?;
        if input[3] != inputs || output[3] != outputs || input[0] != output[0] {
            return refuse(format!(
                "weights [{outputs}, {height}, {width}, {inputs}] do not match input {input:?} and output {output:?}"
            ));
        }
        Ok(Geometry::new(input, [height, width], output, self.strides, self.padding))
    }
}

fn strides(height: i32, width: i32) -> Result<[usize; 2], Refusal> {
    match (usize::try_from(height), usize::try_from(width)) {
        (Ok(height @ 1..), Ok(width @ 1..)) => Ok([height, width]),
        _ => refuse(format!("the strides {height} and {width} must be positive")),
    }
}

pub(super) fn prepare(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    let options = Options::of(&context.operator.op)?;
    let (input, weights) = (context.input(2)?.dtype, context.input(1)?.dtype);
    context.expect_output(0, input)?;
    match (input, weights) {
        (DType::F32, DType::F32) => float(context, options),
        (DType::F32, DType::I8) => dynamic_range(context, options),
        (DType::U8, DType::U8) => eight_bit::<u8>(context, options),
        (DType::I8, DType::I8 | DType::I4) => eight_bit::<i8>(context, options),
        (DType::I16, DType::I8) => sixteen_bit(context, options),
        _ => refuse(format!("{input} input with {weights} weights")),
    }
}

fn float(context: &OperatorContext<'_>, options: Options) -> Result<Run, Refusal> {
    let source = Source::new(context, float_reader())?;
    let bounds = float_bounds(options.activation)?;
    run(move |call| {
        let geometry = options.geometry(call)?;
        let weights = source.get(call)?;
        let input = call.input::<f32>(2)?;
        let bias = call.bias::<f32>(3, geometry.output[3])?;
        let output = call.output::<f32>(0)?;
        output.fill(0.0);
        geometry.scatter(input, |x| x, &weights, output);
        for pixel in output.chunks_exact_mut(geometry.output[3].max(1)) {
            for (c, out) in pixel.iter_mut().enumerate() {
                *out = clamp(bias.map_or(*out, |bias| *out + bias[c]), bounds);
            }
        }
        Ok(())
    })
}

/// Dynamic-range quantization: float inputs and outputs with 8-bit weights. Inputs are quantized
/// per batch in each run, always over their range.
fn dynamic_range(context: &OperatorContext<'_>, options: Options) -> Result<Run, Refusal> {
    let scales = weight_scales(context.input(1)?, 0)?;
    let source = Source::new(context, integer_reader(0))?;
    let bounds = float_bounds(options.activation)?;
    run(move |call| {
        let geometry = options.geometry(call)?;
        let channels = geometry.output[3];
        if scales.len() != 1 && scales.len() != channels {
            return refuse(format!(
                "the weights have {} scales, expected {channels}",
                scales.len()
            ));
        }
        let weights = source.get(call)?;
        let rows = hybrid::quantize_rows(call.input::<f32>(2)?, geometry.input[0], true);
        let bias = call.bias::<f32>(3, channels)?.unwrap_or(&[]);
        let output = call.output::<f32>(0)?;
        let mut sums = vec![0i32; output.len()];
        geometry.scatter(&rows.values, |x| x, &weights, &mut sums);
        let image = output.len().checked_div(rows.scales.len()).unwrap_or(0).max(1);
        let images = output.chunks_exact_mut(image).zip(sums.chunks_exact(image));
        for ((output, sums), row_scale) in images.zip(&rows.scales) {
            for (at, (out, &sum)) in output.iter_mut().zip(sums).enumerate() {
                let c = at % channels;
                let scale = scales[if scales.len() == 1 { 0 } else { c }];
                let real = sum as f32 * scale * row_scale;
                *out = clamp(real + bias.get(c).copied().unwrap_or(0.0), bounds);
            }
        }
        Ok(())
    })
}

fn eight_bit<T: Quantized>(
    context: &OperatorContext<'_>,
    options: Options,
) -> Result<Run, Refusal> {
    let (from, weights, to) =
        (affine(context.input(2)?)?, context.input(1)?, affine(context.output(0)?)?);
    let (requantize, weights_zero) = Requantize::of_layer(from, weights, 0, to)?;
    let source = Source::new(context, integer_reader(weights_zero))?;
    let bounds = quantized_bounds(options.activation, context.output(0)?)?;
    run(move |call| {
        let geometry = options.geometry(call)?;
        if !requantize.fits(geometry.output[3]) {
            return refuse("the number of weight scales differs from the output channels");
        }
        let weights = source.get(call)?;
        let input = call.input::<T>(2)?;
        let bias = call.bias::<i32>(3, geometry.output[3])?;
        let output = call.output::<T>(0)?;
        let mut sums = vec![0i32; output.len()];
        let lift = |q: T| (q.into() - from.zero_point) as i16;
        geometry.scatter(input, lift, &weights, &mut sums);
        let channels = geometry.output[3].max(1);
        for (at, (out, sum)) in output.iter_mut().zip(sums).enumerate() {
            let c = at % channels;
            let sum = sum.wrapping_add(bias.map_or(0, |bias| bias[c]));
            let scaled = requantize.multiplier(c).apply(sum);
            *out = T::bounded(scaled.saturating_add(to.zero_point), bounds);
        }
        Ok(())
    })
}

fn sixteen_bit(context: &OperatorContext<'_>, options: Options) -> Result<Run, Refusal> {
    let (from, to) = (affine(context.input(2)?)?, affine(context.output(0)?)?);
    if from.zero_point != 0 || to.zero_point != 0 {
        return refuse("16-bit tensors with a nonzero zero point");
    }
    let scales = weight_scales(context.input(1)?, 0)?;
    let requantize = Requantize::of_scales(from.scale, &scales, to.scale);
    let source = Source::new(context, integer_reader(0))?;
    let bounds = quantized_bounds(options.activation, context.output(0)?)?;
    let narrow_sums = context.optional(3).is_some_and(|bias| bias.dtype == DType::I32);
    run(move |call| {
        let geometry = options.geometry(call)?;
        if !requantize.fits(geometry.output[3]) {
            return refuse("the number of weight scales differs from the output channels");
        }
        let weights = source.get(call)?;
        let input = call.input::<i16>(2)?;
        let bias = match call.optional(3) {
            Some(_) => call.ints(3)?,
            None => Ints::new(),
        };
        let output = call.output::<i16>(0)?;
        let mut sums = vec![0i64; output.len()];
        geometry.scatter(input, |x| x, &weights, &mut sums);
        let channels = geometry.output[3].max(1);
        for (at, (out, sum)) in output.iter_mut().zip(sums).enumerate() {
            let c = at % channels;
            let sum = sum + bias.get(c).copied().unwrap_or(0);
            let multiplier = requantize.multiplier(c);
            let scaled =
                if narrow_sums { multiplier.apply(sum as i32) } else { multiplier.apply_wide(sum) };
            *out = i16::bounded(scaled, bounds);
        }
        Ok(())
    })
}

/// MediaPipe's Convolution2DTransposeBias: the output's size follows from the options, and sums
/// begin with the bias.
pub(super) fn with_bias(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    let Op::Custom(custom) = &context.operator.op else {
        return refuse(format!("{} is not a custom operator", context.operator.op));
    };
    // TfLiteTransposeConvParams: padding, stride_width, stride_height.
    let [padding, stride_w, stride_h] = super::mediapipe::ints(&custom.options)?;
    let padding = super::mediapipe::padding(padding)?;
    let strides = strides(stride_h, stride_w)?;
    for position in 0..3 {
        context.expect_input(position, DType::F32)?;
    }
    context.expect_output(0, DType::F32)?;
    let source = Source::new(context, float_reader())?;
    run(move |call| {
        let input: [usize; 4] = call.dims(0)?;
        let [outputs, height, width, inputs] = call.dims(1)?;
        let filter = [height, width];
        let bias = call.input::<f32>(2)?;
        if inputs != input[3] || bias.len() != outputs || input.contains(&0) {
            return refuse(format!(
                "weights with {inputs} input channels do not match input {input:?}"
            ));
        }
        let cut = |axis: usize| match padding {
            Padding::Same => filter[axis].saturating_sub((input[axis + 1] - 1) % strides[axis] + 1),
            Padding::Valid => 0,
        };
        let size = |axis: usize| {
            (strides[axis] * (input[axis + 1] - 1) + filter[axis]).saturating_sub(cut(axis))
        };
        let output = [input[0], size(0), size(1), outputs];
        call.allocate(0, &output)?;
        let geometry =
            Geometry { input, filter, output, strides, padding: [cut(0) / 2, cut(1) / 2] };
        let weights = source.get(call)?;
        let input = call.input::<f32>(0)?;
        let sums = call.output::<f32>(0)?;
        sums.chunks_exact_mut(outputs.max(1)).for_each(|pixel| pixel.copy_from_slice(bias));
        geometry.scatter(input, |x| x, &weights, sums);
        Ok(())
    })
}
