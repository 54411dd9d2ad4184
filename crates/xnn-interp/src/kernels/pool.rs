//! AVERAGE_POOL_2D, MAX_POOL_2D and L2_POOL_2D.

use xnn_model::infer::SpatialWindow;
use xnn_model::op::Pool2dOptions;
use xnn_model::{DType, Op};

use crate::call::Call;
use crate::error::{Refusal, refuse};
use crate::operator::{OperatorContext, Run, run};
use crate::quant::{Quantized, clamp, float_bounds, quantized_bounds};
use crate::tensor::Element;

fn options_of<'a>(context: &OperatorContext<'a>) -> Result<&'a Pool2dOptions, Refusal> {
    match &context.operator.op {
        Op::AveragePool2d(options) | Op::MaxPool2d(options) | Op::L2Pool2d(options) => Ok(options),
        other => refuse(format!("{other} is not a pooling operator")),
    }
}

/// Reduces each window per channel: `start`, then `add` for every element inside the input, then
/// `finish` with the number of elements.
fn pool<T: Element, A: Copy>(
    call: &mut Call<'_>,
    window: SpatialWindow,
    start: A,
    add: impl Fn(A, T) -> A,
    finish: impl Fn(A, usize) -> T,
) -> Result<(), Refusal> {
    let [_, height, width, channels] = call.dims(0)?;
    let [batches, out_height, out_width, _] = call.output_dims(0)?;
    let top = window.height.padding(height, out_height).0;
    let left = window.width.padding(width, out_width).0;
    let rows = |oy: usize| inside(oy * window.height.stride, top, window.height.size, height);
    let columns = |ox: usize| inside(ox * window.width.stride, left, window.width.size, width);
    let input = call.input::<T>(0)?;
    let mut pixels = call.output::<T>(0)?.chunks_exact_mut(channels.max(1));
    let mut sums = vec![start; channels];
    for image in input.chunks_exact((height * width * channels).max(1)).take(batches) {
        for oy in 0..out_height {
            for ox in 0..out_width {
                sums.fill(start);
                let mut count = 0;
                for y in rows(oy) {
                    for x in columns(ox) {
                        let pixel = &image[(y * width + x) * channels..][..channels];
                        for (sum, &value) in sums.iter_mut().zip(pixel) {
                            *sum = add(*sum, value);
                        }
                        count += 1;
                    }
                }
                if count == 0 {
                    return refuse("a window is outside of the input");
                }
                let output = pixels.next().into_iter().flatten();
                output.zip(&sums).for_each(|(out, &sum)| *out = finish(sum, count));
            }
        }
    }
    Ok(())
}

/// The part of a window that is inside the input.
pub(super) fn inside(
    start: usize,
    padding: usize,
    size: usize,
    limit: usize,
) -> std::ops::Range<usize> {
    start.saturating_sub(padding)..(start + size).saturating_sub(padding).min(limit)
}

pub(super) fn average(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    let options = options_of(context)?;
    let window = SpatialWindow::of_pool(options)?;
    match context.common_type()? {
        DType::F32 => {
            let bounds = float_bounds(options.activation)?;
            run(move |call| {
                pool(
                    call,
                    window,
                    0.0f32,
                    |sum, x: f32| sum + x,
                    |sum, count| clamp(sum / count as f32, bounds),
                )
            })
        }
        DType::U8 => average_quantized::<u8>(context, options, window),
        DType::I8 => average_quantized::<i8>(context, options, window),
        DType::I16 => average_quantized::<i16>(context, options, window),
        other => context.unsupported(other),
    }
}

fn average_quantized<T: Quantized>(
    context: &OperatorContext<'_>,
    options: &Pool2dOptions,
    window: SpatialWindow,
) -> Result<Run, Refusal> {
    let bounds = quantized_bounds(options.activation, context.output(0)?)?;
    run(move |call| {
        let add = |sum: i32, x: T| sum.wrapping_add(x.into());
        pool(call, window, 0i32, add, |sum, count| {
            let count = count as i32;
            let half = count / 2;
            let rounded = if sum > 0 { sum + half } else { sum - half };
            // Sums of unsigned elements are rounded up even at zero.
            let rounded = if T::MIN == 0 { sum + half } else { rounded };
            T::bounded(rounded / count, bounds)
        })
    })
}

pub(super) fn max(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    let options = options_of(context)?;
    let window = SpatialWindow::of_pool(options)?;
    match context.common_type()? {
        DType::F32 => {
            let bounds = float_bounds(options.activation)?;
            run(move |call| {
                let most = |most: f32, x: f32| if most < x { x } else { most };
                pool(call, window, f32::MIN, most, |most, _| clamp(most, bounds))
            })
        }
        DType::U8 => max_quantized::<u8>(context, options, window),
        DType::I8 => max_quantized::<i8>(context, options, window),
        DType::I16 => max_quantized::<i16>(context, options, window),
        other => context.unsupported(other),
    }
}

fn max_quantized<T: Quantized>(
    context: &OperatorContext<'_>,
    options: &Pool2dOptions,
    window: SpatialWindow,
) -> Result<Run, Refusal> {
    let bounds = quantized_bounds(options.activation, context.output(0)?)?;
    run(move |call| {
        let most = |most: i32, x: T| most.max(x.into());
        pool(call, window, T::MIN, most, |most, _| T::bounded(most, bounds))
    })
}

pub(super) fn l2(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    let options = options_of(context)?;
    let window = SpatialWindow::of_pool(options)?;
    let bounds = float_bounds(options.activation)?;
    match context.common_type()? {
        DType::F32 => run(move |call| {
            pool(
                call,
                window,
                0.0f32,
                |sum, x: f32| sum + x * x,
                |sum, count| clamp((sum / count as f32).sqrt(), bounds),
            )
        }),
        other => context.unsupported(other),
    }
}
