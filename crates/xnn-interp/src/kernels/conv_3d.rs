//! CONV_3D and CONV_3D_TRANSPOSE of floats.

use xnn_model::infer::{SpatialWindow, Window};
use xnn_model::op::Conv3dOptions;
use xnn_model::{DType, Op};

use super::conv::geometry::{Axis, Geometry};
use super::gemm::{Packed, multiply};
use crate::error::{Refusal, refuse};
use crate::operator::{OperatorContext, Run, run};
use crate::quant::{clamp, float_bounds};

fn options_of(context: &OperatorContext<'_>, data: usize) -> Result<Conv3dOptions, Refusal> {
    let (Op::Conv3d(options) | Op::Conv3dTranspose(options)) = &context.operator.op else {
        return refuse(format!("{} is not a 3D convolution", context.operator.op));
    };
    context.expect_input(1, DType::F32)?;
    context.expect_input(data, DType::F32)?;
    context.expect_output(0, DType::F32)?;
    Ok(options.clone())
}

/// Windows along depth, height and width.
fn windows(options: &Conv3dOptions, filter: [usize; 3]) -> Result<[Window; 3], Refusal> {
    let strides = [options.stride_d, options.stride_h, options.stride_w];
    let dilations = [options.dilation_d, options.dilation_h, options.dilation_w];
    let mut windows = [Window { size: 1, stride: 1, dilation: 1 }; 3];
    for (i, window) in windows.iter_mut().enumerate() {
        *window = match (usize::try_from(strides[i]), usize::try_from(dilations[i])) {
            (Ok(stride @ 1..), Ok(dilation @ 1..)) => Window { size: filter[i], stride, dilation },
            _ => {
                return refuse(format!(
                    "strides {strides:?} and dilations {dilations:?} are not all positive"
                ));
            }
        };
    }
    Ok(windows)
}

/// A position in a volume, from its index.
fn position(at: usize, [_, height, width]: [usize; 3]) -> [usize; 3] {
    [at / (height * width), at / width % height, at % width]
}

/// Each slice of the output is a sum of two-dimensional convolutions, one for each slice of the filter that is on the
/// input. Their pixels and weights are joined, so that products are added in the order of the filter.
pub(super) fn conv(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    let options = options_of(context, 0)?;
    let bounds = float_bounds(options.activation)?;
    run(move |call| {
        let [batches, depth, height, width, channels] = call.dims(0)?;
        let [kd, kh, kw, _, outputs] = call.dims(1)?;
        let [_, od, oh, ow, _] = call.output_dims(0)?;
        let [along, rows, columns] = windows(&options, [kd, kh, kw])?;
        let slices = Axis::new(depth, along, od);
        let window = SpatialWindow { height: rows, width: columns };
        let geometry =
            Geometry::new([batches, height, width, channels], [batches, oh, ow, outputs], window);
        let (image, taps) = (geometry.image(), geometry.filter() * channels);
        let (input, weights) = (call.input::<f32>(0)?, call.input::<f32>(1)?);
        let bias = call.bias::<f32>(2, outputs)?.unwrap_or(&[]);
        let output = call.output::<f32>(0)?;
        let (mut patches, mut packed) = (Vec::new(), None);
        let planes = output.chunks_exact_mut((geometry.pixels() * outputs).max(1));
        for (number, plane) in planes.enumerate() {
            let (batch, position) = (number / od, number % od);
            let inside = slices.inside(position);
            let k = inside.len() * taps;
            let block = geometry.block(k);
            let packed = match &mut packed {
                Some((range, packed)) if *range == inside => packed,
                other => {
                    let weights = &weights[inside.start * taps * outputs..];
                    let matrix = Packed::from_rows(k, outputs, |o, i| weights[i * outputs + o]);
                    &mut other.insert((inside.clone(), matrix)).1
                }
            };
            patches.resize(block * k, 0.0);
            for (at, sums) in plane.chunks_mut((block * outputs).max(1)).enumerate() {
                let count = sums.len() / outputs;
                let pixels = at * block..at * block + count;
                let images = inside.clone().map(|element| {
                    let slice = batch * depth + slices.under(position, element);
                    &input[slice * image..][..image]
                });
                let patches = &mut patches[..count * k];
                geometry.gather(pixels, 0..channels, images, |x| x, patches);
                multiply(patches, packed, sums);
                for pixel in sums.chunks_exact_mut(outputs) {
                    for (c, sum) in pixel.iter_mut().enumerate() {
                        *sum = clamp(*sum + bias.get(c).copied().unwrap_or(0.0), bounds);
                    }
                }
            }
        }
        Ok(())
    })
}

/// The inputs are the output's shape, weights `[d, h, w, outputs, inputs]`, and data.
pub(super) fn transpose(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    let options = options_of(context, 2)?;
    let bounds = float_bounds(options.activation)?;
    run(move |call| {
        let [batches, id, ih, iw, channels] = call.dims(2)?;
        let [kd, kh, kw, outputs, inputs] = call.dims(1)?;
        let [out_batches, od, oh, ow, out_channels] = call.output_dims(0)?;
        if out_batches != batches {
            return refuse(format!("{batches} images in the input, {out_batches} in the output"));
        }
        if inputs != channels || outputs != out_channels {
            return refuse("the weights do not fit input and output");
        }
        let (volume, filter, space) = ([id, ih, iw], [kd, kh, kw], [od, oh, ow]);
        let windows = windows(&options, filter)?;
        // The convolution from the output to the input has the same windows.
        let [along, rows, columns] = [0, 1, 2].map(|i: usize| {
            Axis::new(space[i], windows[i], windows[i].output(space[i], options.padding))
        });
        let (input, weights) = (call.input::<f32>(2)?, call.input::<f32>(1)?);
        let bias = call.bias::<f32>(3, outputs)?;
        let output = call.output::<f32>(0)?;
        output.fill(0.0);
        let cells = (id * ih * iw).max(1);
        let image = od * oh * ow * outputs;
        for (number, pixel) in input.chunks_exact(channels.max(1)).enumerate() {
            let at = position(number % cells, volume);
            let taps = along.inside(at[0]).flat_map(|z| {
                let columns = columns.inside(at[2]);
                rows.inside(at[1]).flat_map(move |y| columns.clone().map(move |x| [z, y, x]))
            });
            for [z, y, x] in taps {
                let row = along.under(at[0], z) * oh + rows.under(at[1], y);
                let place = row * ow + columns.under(at[2], x);
                let sums = &mut output[number / cells * image + place * outputs..][..outputs];
                let tap = (z * kh + y) * kw + x;
                let weights = &weights[tap * outputs * channels..][..outputs * channels];
                for (sum, weights) in sums.iter_mut().zip(weights.chunks_exact(channels.max(1))) {
                    for (x, w) in pixel.iter().zip(weights) {
                        *sum += x * w;
                    }
                }
            }
        }
        for pixel in output.chunks_exact_mut(outputs.max(1)) {
            for (c, sum) in pixel.iter_mut().enumerate() {
                *sum = clamp(*sum + bias.map_or(0.0, |bias| bias[c]), bounds);
            }
        }
        Ok(())
    })
}
