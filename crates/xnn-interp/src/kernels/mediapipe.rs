//! MediaPipe's custom pooling operators with indices.
//!
//! Their options are C structures of 32-bit integers in TFLite's layout.

use xnn_model::infer::Window;
use xnn_model::op::{Activation, Padding};
use xnn_model::{DType, Op};

use super::pool::inside;
use crate::error::{Refusal, refuse};
use crate::operator::{OperatorContext, Run, run};
use crate::quant::{clamp, float_bounds};

/// The first integers of a structure.
pub(super) fn ints<const N: usize>(options: &[u8]) -> Result<[i32; N], Refusal> {
    let (words, _) = options.as_chunks::<4>();
    match words.first_chunk::<N>() {
        Some(words) => Ok(words.map(i32::from_le_bytes)),
        None => {
            refuse(format!("the options have {} bytes, expected at least {}", options.len(), 4 * N))
        }
    }
}

/// `TfLitePadding`.
pub(super) fn padding(code: i32) -> Result<Padding, Refusal> {
    match code {
        1 => Ok(Padding::Same),
        2 => Ok(Padding::Valid),
        other => refuse(format!("unknown padding {other}")),
    }
}

/// `TfLitePoolParams`.
struct Pool {
    padding: Padding,
    height: Window,
    width: Window,
    bounds: (f32, f32),
}

impl Pool {
    fn of(context: &OperatorContext<'_>) -> Result<Self, Refusal> {
        let Op::Custom(custom) = &context.operator.op else {
            return refuse(format!("{} is not a custom operator", context.operator.op));
        };
        let [code, stride_w, stride_h, filter_w, filter_h, activation] = ints(&custom.options)?;
        let activation = match activation {
            0 => Activation::None,
            1 => Activation::Relu,
            2 => Activation::ReluN1To1,
            3 => Activation::Relu6,
            other => return refuse(format!("fused activation {other}")),
        };
        Ok(Self {
            padding: padding(code)?,
            height: window(filter_h, stride_h)?,
            width: window(filter_w, stride_w)?,
            bounds: float_bounds(activation)?,
        })
    }
}

fn window(size: i32, stride: i32) -> Result<Window, Refusal> {
    match (usize::try_from(size), usize::try_from(stride)) {
        (Ok(size @ 1..), Ok(stride @ 1..)) => Ok(Window { size, stride, dilation: 1 }),
        _ => refuse(format!("a window of {size} with stride {stride} is invalid")),
    }
}

/// MaxPoolingWithArgmax2D: maxima and their positions in their windows.
pub(super) fn max_pool(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    let pool = Pool::of(context)?;
    context.expect_input(0, DType::F32)?;
    context.expect_output(0, DType::F32)?;
    context.expect_output(1, DType::F32)?;
    run(move |call| {
        let [batches, height, width, channels] = call.dims(0)?;
        let (out_h, out_w) =
            (pool.height.output(height, pool.padding), pool.width.output(width, pool.padding));
        let shape = [batches, out_h, out_w, channels];
        call.allocate(0, &shape)?;
        call.allocate(1, &shape)?;
        let top = pool.height.padding(height, out_h).0;
        let left = pool.width.padding(width, out_w).0;
        let input = call.input::<f32>(0)?;
        let mut best = Vec::with_capacity(shape.iter().product());
        for batch in 0..batches {
            for (oy, ox) in (0..out_h).flat_map(|y| (0..out_w).map(move |x| (y, x))) {
                let (first_y, first_x) = (oy * pool.height.stride, ox * pool.width.stride);
                for c in 0..channels {
                    let mut max = f32::MIN;
                    let mut at = 0;
                    for y in inside(first_y, top, pool.height.size, height) {
                        let ky = y + top - first_y;
                        for x in inside(first_x, left, pool.width.size, width) {
                            let value = input[((batch * height + y) * width + x) * channels + c];
                            if value > max {
                                (max, at) = (value, ky * pool.width.size + x + left - first_x);
                            }
                        }
                    }
                    best.push((max, at));
                }
            }
        }
        for (out, (max, _)) in call.output::<f32>(0)?.iter_mut().zip(&best) {
            *out = clamp(*max, pool.bounds);
        }
        // The offset compensates for truncation when the index is converted back.
        for (out, (_, at)) in call.output::<f32>(1)?.iter_mut().zip(&best) {
            *out = *at as f32 + 0.1;
        }
        Ok(())
    })
}

/// MaxUnpooling2D: moves values back to their positions in their windows.
pub(super) fn max_unpool(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    let pool = Pool::of(context)?;
    context.expect_input(0, DType::F32)?;
    context.expect_input(1, DType::F32)?;
    context.expect_output(0, DType::F32)?;
    run(move |call| {
        let [batches, height, width, channels] = call.dims(0)?;
        if call.shape(1)? != call.shape(0)? {
            return refuse("indices and values have different shapes");
        }
        let out_h = height.saturating_mul(pool.height.size);
        let out_w = width.saturating_mul(pool.width.size);
        call.allocate(0, &[batches, out_h, out_w, channels])?;
        let top = pool.height.padding(out_h, height).0;
        let left = pool.width.padding(out_w, width).0;
        let (input, indices) = (call.input::<f32>(0)?, call.input::<f32>(1)?);
        let output = call.output::<f32>(0)?;
        output.fill(0.0);
        for (at, (&value, &index)) in input.iter().zip(indices).enumerate() {
            let (pixel, c) = (at / channels, at % channels);
            let (row, x) = (pixel / width, pixel % width);
            let (batch, y) = (row / height, row % height);
            let tap = index as usize;
            // Positions far outside of the image are dropped, too.
            let from =
                |at: usize, stride: usize, tap| at.saturating_mul(stride).saturating_add(tap);
            let y = from(y, pool.height.stride, tap / pool.width.size).wrapping_sub(top);
            let x = from(x, pool.width.stride, tap % pool.width.size).wrapping_sub(left);
            if index >= 0.0 && y < out_h && x < out_w {
                output[((batch * out_h + y) * out_w + x) * channels + c] = value;
            }
        }
        Ok(())
    })
}
