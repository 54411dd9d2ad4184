//! CONV_3D and CONV_3D_TRANSPOSE of floats.

use xnn_model::infer::Window;
use xnn_model::op::Conv3dOptions;
use xnn_model::{DType, Op};

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

/// The index of the position under a filter element, if it is inside the volume.
fn under(
    at: [usize; 3],
    tap: [usize; 3],
    windows: &[Window; 3],
    padding: [usize; 3],
    volume: [usize; 3],
) -> Option<usize> {
    let mut number = 0;
    for i in 0..3 {
        let Window { stride, dilation, .. } = windows[i];
        let place = (at[i] * stride + tap[i] * dilation).checked_sub(padding[i])?;
        if place >= volume[i] {
            return None;
        }
        number = number * volume[i] + place;
    }
    Some(number)
}

pub(super) fn conv(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    let options = options_of(context, 0)?;
    let bounds = float_bounds(options.activation)?;
    run(move |call| {
        let [_, id, ih, iw, channels] = call.dims(0)?;
        let [kd, kh, kw, _, outputs] = call.dims(1)?;
        let [_, od, oh, ow, _] = call.output_dims(0)?;
        let (volume, filter, space) = ([id, ih, iw], [kd, kh, kw], [od, oh, ow]);
        let windows = windows(&options, filter)?;
        let padding = [0, 1, 2].map(|i: usize| windows[i].padding(volume[i], space[i]).0);
        let (input, weights) = (call.input::<f32>(0)?, call.input::<f32>(1)?);
        let bias = call.bias::<f32>(2, outputs)?;
        let output = call.output::<f32>(0)?;
        let cells = od * oh * ow;
        let image = id * ih * iw * channels;
        for (number, sums) in output.chunks_exact_mut(outputs.max(1)).enumerate() {
            let batch = number / cells.max(1);
            let at = position(number % cells.max(1), space);
            sums.fill(0.0);
            for tap in 0..kd * kh * kw {
                let Some(place) = under(at, position(tap, filter), &windows, padding, volume)
                else {
                    continue;
                };
                let pixel = &input[batch * image + place * channels..][..channels];
                let weights = &weights[tap * channels * outputs..][..channels * outputs];
                for (x, weights) in pixel.iter().zip(weights.chunks_exact(outputs.max(1))) {
                    sums.iter_mut().zip(weights).for_each(|(sum, w)| *sum += x * w);
                }
            }
            for (c, sum) in sums.iter_mut().enumerate() {
                *sum = clamp(*sum + bias.map_or(0.0, |bias| bias[c]), bounds);
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
        let padding = [0, 1, 2].map(|i: usize| {
            windows[i].padding(space[i], windows[i].output(space[i], options.padding)).0
        });
        let (input, weights) = (call.input::<f32>(2)?, call.input::<f32>(1)?);
        let bias = call.bias::<f32>(3, outputs)?;
        let output = call.output::<f32>(0)?;
        output.fill(0.0);
        let cells = (id * ih * iw).max(1);
        let image = od * oh * ow * outputs;
        for (number, pixel) in input.chunks_exact(channels.max(1)).enumerate() {
            let at = position(number % cells, volume);
            for tap in 0..kd * kh * kw {
                let Some(place) = under(at, position(tap, filter), &windows, padding, space) else {
                    continue;
                };
                let sums = &mut output[number / cells * image + place * outputs..][..outputs];
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
