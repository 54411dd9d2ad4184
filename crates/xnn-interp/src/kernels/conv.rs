//! CONV_2D and DEPTHWISE_CONV_2D.

mod geometry;

use std::borrow::Cow;

use xnn_model::infer::SpatialWindow;
use xnn_model::op::{Activation, Conv2dOptions, DepthwiseConv2dOptions};
use xnn_model::{DType, Op};

use self::geometry::Geometry;
use super::gemm::{Accumulator, Packed, Weight, multiply};
use super::hybrid;
use super::weights::{Reader, float_reader, integer_reader};
use crate::call::{Call, Ints};
use crate::error::{Refusal, refuse};
use crate::fixed::Multiplier;
use crate::node::{Node, Run, is_fixed, run};
use crate::quant::{
    Quantized, Requantize, affine, clamp, float_bounds, quantized_bounds, weight_scales,
};
use crate::tensor::TensorView;

/// Output pixels that are gathered before they are multiplied.
const PIXELS: usize = 64;

/// Convolves; `store` gets the sums of one pixel and group: batch, pixel, first
/// output channel, sums.
fn convolve<T: Copy, A: Copy + Default, W: Copy, C: Accumulator<A, W>>(
    geometry: &Geometry,
    input: &[T],
    lift: impl Fn(usize, T) -> A,
    weights: &[Packed<W>],
    width: usize,
    mut store: impl FnMut(usize, usize, usize, &[C]),
) {
    let taps = geometry.filter[0] * geometry.filter[1];
    let depth = geometry.channels / weights.len().max(1);
    let image = geometry.input[0] * geometry.input[1] * geometry.channels;
    let patch = taps * depth;
    let pixels = PIXELS.min(geometry.pixels());
    let mut patches = vec![A::default(); pixels * patch];
    let mut sums = vec![C::default(); pixels * width];
    for (batch, image) in input.chunks_exact(image.max(1)).take(geometry.batches).enumerate() {
        for (group, weights) in weights.iter().enumerate() {
            for first in (0..geometry.pixels()).step_by(PIXELS) {
                let count = PIXELS.min(geometry.pixels() - first);
                for (pixel, patch) in patches.chunks_exact_mut(patch.max(1)).take(count).enumerate()
                {
                    let channels = (group * depth, depth);
                    geometry.gather(first + pixel, channels, image, |x| lift(batch, x), patch);
                }
                multiply(&patches[..count * patch], weights, &mut sums[..count * width]);
                for (pixel, sums) in sums.chunks_exact(width.max(1)).take(count).enumerate() {
                    store(batch, first + pixel, group * width, sums);
                }
            }
        }
    }
}

/// Convolves each channel with its own filters; `store` gets batch, pixel, sums.
fn convolve_depthwise<T: Copy, A: Copy, W: Copy, C: Accumulator<A, W>>(
    geometry: &Geometry,
    input: &[T],
    lift: impl Fn(usize, T) -> A,
    weights: &[W],
    mut store: impl FnMut(usize, usize, &[C]),
) {
    let taps = geometry.filter[0] * geometry.filter[1];
    let channels = geometry.channels;
    let image = geometry.input[0] * geometry.input[1] * channels;
    let outputs = weights.len().checked_div(taps).unwrap_or(0);
    let multiplier = outputs.checked_div(channels).unwrap_or(0);
    let mut sums = vec![C::default(); outputs];
    for (batch, image) in input.chunks_exact(image.max(1)).take(geometry.batches).enumerate() {
        for pixel in 0..geometry.pixels() {
            sums.fill(C::default());
            for (tap, at) in geometry.taps(pixel) {
                let weights = &weights[tap * outputs..][..outputs];
                let input = &image[at * channels..][..channels];
                if multiplier == 1 {
                    for ((sum, &x), &w) in sums.iter_mut().zip(input).zip(weights) {
                        *sum = sum.add_product(lift(batch, x), w);
                    }
                } else {
                    let sums = sums.chunks_exact_mut(multiplier);
                    for ((sums, &x), weights) in
                        sums.zip(input).zip(weights.chunks_exact(multiplier))
                    {
                        let x = lift(batch, x);
                        for (sum, &w) in sums.iter_mut().zip(weights) {
                            *sum = sum.add_product(x, w);
                        }
                    }
                }
            }
            store(batch, pixel, &sums);
        }
    }
}

/// The two operators, which differ in how weights are laid out.
#[derive(Clone, Copy)]
enum Kind {
    /// Filters `[outputs, height, width, channels / groups]`.
    Dense,
    /// Filters `[1, height, width, outputs]`.
    Depthwise,
}

/// What both operators share of their options.
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

    /// The dimension of the weights that counts output channels.
    fn output_axis(&self) -> usize {
        match self.kind {
            Kind::Dense => 0,
            Kind::Depthwise => 3,
        }
    }

    fn geometry(&self, call: &Call<'_>) -> Result<Geometry, Refusal> {
        let [_, height, width, _] = call.dims(1)?;
        let window = SpatialWindow::of_filter((height, width), self.strides, self.dilations)?;
        Ok(Geometry::new(call.dims(0)?, [height, width], call.output_dims(0)?, window))
    }
}

/// Weights in the layout of their operator.
#[derive(Clone)]
enum Weights<W> {
    /// One matrix per group, and the output channels of a group.
    Dense { groups: Vec<Packed<W>>, width: usize },
    /// As in the file.
    Depthwise(Vec<W>),
}

impl<W: Weight> Weights<W> {
    fn new(kind: Kind, shape: [usize; 4], channels: usize, elements: Vec<W>) -> Self {
        let [outputs, height, width, depth] = shape;
        match kind {
            Kind::Depthwise => Self::Depthwise(elements),
            Kind::Dense => {
                let groups = channels.checked_div(depth).unwrap_or(0).max(1);
                let columns = outputs / groups;
                let k = height * width * depth;
                let pack = |group| {
                    Packed::from_rows(k, columns, |column, i| {
                        elements[(group * columns + column) * k + i]
                    })
                };
                Self::Dense { groups: (0..groups).map(pack).collect(), width: columns }
            }
        }
    }

    /// `store` gets batch, pixel, first output channel and sums.
    fn convolve<T: Copy, A: Copy + Default, C: Accumulator<A, W>>(
        &self,
        geometry: &Geometry,
        input: &[T],
        lift: impl Fn(usize, T) -> A,
        mut store: impl FnMut(usize, usize, usize, &[C]),
    ) {
        match self {
            Self::Dense { groups, width } => {
                convolve(geometry, input, lift, groups, *width, store);
            }
            Self::Depthwise(weights) => {
                convolve_depthwise(geometry, input, lift, weights, |batch, pixel, sums| {
                    store(batch, pixel, 0, sums);
                });
            }
        }
    }
}

/// Weights that are packed when the model is loaded, or at each call where
/// another operator computes them.
struct Source<W> {
    kind: Kind,
    read: Reader<W>,
    fixed: Option<Weights<W>>,
}

impl<W: Weight> Source<W> {
    fn new(node: &Node<'_>, kind: Kind, read: Reader<W>) -> Result<Self, Refusal> {
        let weights = node.input(1)?;
        let known = is_fixed(weights).then_some(()).and(weights.shape.as_deref());
        let fixed = match (known, node.input(0)?.shape.as_deref(), weights.data.as_deref()) {
            (Some(shape), Some(&[_, _, _, channels]), Some(bytes)) => {
                let dims = shape.try_into().map_err(|_| {
                    Refusal(format!("weights have shape {shape:?}, expected four dimensions"))
                })?;
                let view = TensorView { dtype: weights.dtype, shape, bytes };
                Some(Weights::new(kind, dims, channels, read(view)?))
            }
            _ => None,
        };
        Ok(Self { kind, read, fixed })
    }

    fn get(&self, call: &Call<'_>) -> Result<Cow<'_, Weights<W>>, Refusal> {
        if let Some(weights) = &self.fixed {
            return Ok(Cow::Borrowed(weights));
        }
        let [_, _, _, channels] = call.dims(0)?;
        let elements = (self.read)(call.tensor(1)?)?;
        Ok(Cow::Owned(Weights::new(self.kind, call.dims(1)?, channels, elements)))
    }
}

/// Where the sums of a pixel go.
fn slot<T>(output: &mut [T], at: usize, width: usize) -> &mut [T] {
    output.get_mut(at..).and_then(|rest| rest.get_mut(..width)).unwrap_or(&mut [])
}

pub(super) fn prepare(node: &Node<'_>) -> Result<Run, Refusal> {
    let options = Options::of(&node.operator.op)?;
    let (input, weights) = (node.input(0)?.dtype, node.input(1)?.dtype);
    node.expect_output(0, input)?;
    match (input, weights) {
        (DType::F32, DType::F32) => float(node, options),
        (DType::F32, DType::I8 | DType::I4) => dynamic_range(node, options),
        (DType::U8, DType::U8) => eight_bit::<u8>(node, options),
        (DType::I8, DType::I8 | DType::I4) => eight_bit::<i8>(node, options),
        (DType::I16, DType::I8 | DType::I4) => sixteen_bit(node, options),
        _ => refuse(format!("{input} input with {weights} weights")),
    }
}

fn float(node: &Node<'_>, options: Options) -> Result<Run, Refusal> {
    let source = Source::new(node, options.kind, float_reader())?;
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

/// 8-bit inputs and outputs: one scale for `u8` weights, one or one per output
/// channel for `i8` ones.
fn eight_bit<T: Quantized>(node: &Node<'_>, options: Options) -> Result<Run, Refusal> {
    let (input, weights, output) = (node.input(0)?, node.input(1)?, node.output(0)?);
    let (from, to) = (affine(input)?, affine(output)?);
    let scales = weight_scales(weights, options.output_axis())?;
    let (requantize, weights_zero) = if weights.dtype == DType::U8 {
        // The product of the scales is rounded to a single.
        let weights = affine(weights)?;
        let product = f64::from(from.scale * weights.scale);
        let multiplier = Multiplier::new(product / f64::from(to.scale));
        (Requantize::new(vec![multiplier]), weights.zero_point)
    } else {
        (Requantize::of_scales(from.scale, &scales, to.scale), 0)
    };
    let source = Source::new(node, options.kind, integer_reader(weights_zero))?;
    let bounds = quantized_bounds(options.activation, output)?;
    run(move |call| {
        let geometry = options.geometry(call)?;
        let [_, _, _, channels] = call.output_dims(0)?;
        if !requantize.fits(channels) {
            return refuse(format!("{channels} output channels have another number of scales"));
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

/// 16-bit inputs and outputs with 8-bit weights; the bias decides how wide
/// sums are.
fn sixteen_bit(node: &Node<'_>, options: Options) -> Result<Run, Refusal> {
    let (input, weights, output) = (node.input(0)?, node.input(1)?, node.output(0)?);
    let (from, to) = (affine(input)?, affine(output)?);
    if from.zero_point != 0 || to.zero_point != 0 {
        return refuse("16-bit tensors with a zero point");
    }
    let scales = weight_scales(weights, options.output_axis())?;
    let requantize = Requantize::of_scales(from.scale, &scales, to.scale);
    let source = Source::new(node, options.kind, integer_reader(0))?;
    let bounds = quantized_bounds(options.activation, output)?;
    let narrow_sums = node.optional(2).is_some_and(|bias| bias.dtype == DType::I32);
    run(move |call| {
        let geometry = options.geometry(call)?;
        let [_, _, _, channels] = call.output_dims(0)?;
        if !requantize.fits(channels) {
            return refuse(format!("{channels} output channels have another number of scales"));
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

/// Float inputs and outputs with 8-bit weights: inputs are quantized per batch
/// when they arrive.
fn dynamic_range(node: &Node<'_>, options: Options) -> Result<Run, Refusal> {
    let scales = weight_scales(node.input(1)?, options.output_axis())?;
    // Equal scales count as one; only then inputs are quantized around zero.
    let depthwise = matches!(options.kind, Kind::Depthwise);
    let per_channel = depthwise || scales.iter().any(|scale| Some(scale) != scales.first());
    // The order in which reference kernels multiply, which decides about last bits.
    let rescales_twice = per_channel && !depthwise;
    let source = Source::new(node, options.kind, integer_reader(0))?;
    let bounds = float_bounds(options.activation)?;
    run(move |call| {
        let geometry = options.geometry(call)?;
        let [_, _, _, channels] = call.output_dims(0)?;
        if scales.len() != 1 && scales.len() != channels {
            return refuse(format!("{channels} output channels have {} scales", scales.len()));
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
