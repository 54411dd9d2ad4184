//! RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR.

use xnn_model::op::ResizeOptions;
use xnn_model::{DType, Op};

use super::copy::gather_grid;
use super::strides::strides;
use crate::call::Call;
use crate::error::{Refusal, refuse};
use crate::operator::{OperatorContext, Run, run};
use crate::tensor::Element;
use crate::tensor::width;

fn options_of(context: &OperatorContext<'_>) -> Result<ResizeOptions, Refusal> {
    let (Op::ResizeBilinear(options) | Op::ResizeNearestNeighbor(options)) = &context.operator.op
    else {
        return refuse(format!("{} is not a resize operator", context.operator.op));
    };
    Ok(options.clone())
}

/// Both spatial dimensions of input and output. An empty input is an error.
fn sizes(call: &Call<'_>) -> Result<([usize; 4], [usize; 4]), Refusal> {
    let (from, to) = (call.dims(0)?, call.output_dims(0)?);
    let [_, height, width, _] = from;
    if (height == 0 || width == 0) && to[1] * to[2] != 0 {
        return refuse("the image has no pixels");
    }
    Ok((from, to))
}

pub(super) fn nearest(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    let options = options_of(context)?;
    let width = width(context.common_type()?)?;
    run(move |call| {
        let (from, to) = sizes(call)?;
        let input = call.tensor(0)?.bytes;
        let sources = [
            (0..from[0]).collect(),
            options.nearest(from[1], to[1]),
            options.nearest(from[2], to[2]),
            (0..from[3]).collect(),
        ];
        gather_grid(&strides(&from), &sources, width, input, call.output_bytes(0)?);
        Ok(())
    })
}

pub(super) fn bilinear(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    let options = options_of(context)?;
    if options.align_corners && options.half_pixel_centers {
        return refuse("align_corners and half_pixel_centers are both set");
    }
    match context.common_type()? {
        DType::F32 => by_floats(options, |x: f32| x, |sum| sum),
        // Rounds to nearest by truncation.
        DType::U8 => by_floats(options, |q: u8| f32::from(q), |sum| (sum + 0.5) as u8),
        DType::I8 => by_integers(options, |q: i8| q.into(), |value| value as i8),
        DType::I16 => by_integers(options, |q: i16| q.into(), |value| value as i16),
        other => context.unsupported(other),
    }
}

/// Two neighbors along an axis, and the position of a result between them.
struct Between<F> {
    lower: usize,
    upper: usize,
    /// 0 at the lower, 1 at the upper neighbor, if they differ.
    fraction: F,
}

fn by_floats<T: Element>(
    options: ResizeOptions,
    read: fn(T) -> f32,
    write: fn(f32) -> T,
) -> Result<Run, Refusal> {
    run(move |call| {
        let (from, to) = sizes(call)?;
        let rows = float_neighbours(from[1], to[1], &options);
        let columns = float_neighbours(from[2], to[2], &options);
        interpolate(call, from, &rows, &columns, |[a, b, c, d], y: &f32, x: &f32| {
            write(
                read(a) * (1.0 - y) * (1.0 - x)
                    + read(b) * y * (1.0 - x)
                    + read(c) * (1.0 - y) * x
                    + read(d) * y * x,
            )
        })
    })
}

fn float_neighbours(from: usize, to: usize, options: &ResizeOptions) -> Vec<Between<f32>> {
    let scale = if options.align_corners && to > 1 {
        (from - 1) as f32 / (to - 1) as f32
    } else {
        from as f32 / to as f32
    };
    let neighbours = |i: usize| {
        let at = if options.half_pixel_centers {
            (i as f32 + 0.5) * scale - 0.5
        } else {
            i as f32 * scale
        };
        let lower = (at.floor() as i64).max(0);
        let upper = (at.ceil() as i64).clamp(0, from as i64 - 1);
        Between { lower: lower as usize, upper: upper as usize, fraction: at - lower as f32 }
    };
    (0..to).map(neighbours).collect()
}

/// Fractional bits of positions.
const BITS: i64 = 10;
const ONE: i64 = 1 << BITS;

fn by_integers<T: Element>(
    options: ResizeOptions,
    read: fn(T) -> i64,
    write: fn(i64) -> T,
) -> Result<Run, Refusal> {
    run(move |call| {
        let (from, to) = sizes(call)?;
        let rows = integer_neighbours(from[1], to[1], &options);
        let columns = integer_neighbours(from[2], to[2], &options);
        interpolate(call, from, &rows, &columns, |[a, b, c, d], y: &i64, x: &i64| {
            let sum = read(a) * (ONE - y) * (ONE - x)
                + read(b) * y * (ONE - x)
                + read(c) * (ONE - y) * x
                + read(d) * y * x;
            let half = 1 << (2 * BITS - 1);
            write((if sum > 0 { sum + half } else { sum - half }) / (1 << (2 * BITS)))
        })
    })
}

fn integer_neighbours(from: usize, to: usize, options: &ResizeOptions) -> Vec<Between<i64>> {
    let (size, count) = (from as i64, to as i64);
    let scale = if options.align_corners && to > 1 {
        (ONE * (size - 1) + (count - 1) / 2) / (count - 1)
    } else {
        (ONE * size + count / 2) / count.max(1)
    };
    let neighbours = |i: i64| {
        let at =
            if options.half_pixel_centers { i * scale + scale / 2 - ONE / 2 } else { i * scale };
        let lower = (at / ONE).max(0);
        let upper = ((at + ONE - 1) / ONE).min(size - 1);
        Between { lower: lower as usize, upper: upper as usize, fraction: at - ONE * lower }
    };
    (0..count).map(neighbours).collect()
}

/// Calls `mix` for every element with its four neighbors: upper left, lower left, upper right,
/// lower right.
fn interpolate<T: Element, F>(
    call: &mut Call<'_>,
    [_, height, width, channels]: [usize; 4],
    rows: &[Between<F>],
    columns: &[Between<F>],
    mix: impl Fn([T; 4], &F, &F) -> T,
) -> Result<(), Refusal> {
    let input = call.input::<T>(0)?;
    let image = height * width * channels;
    let mut pixels = call.output::<T>(0)?.chunks_exact_mut(channels.max(1));
    for image in input.chunks_exact(image.max(1)) {
        for row in rows {
            for column in columns {
                let at = |y: usize, x: usize| {
                    let first = (y.min(height - 1) * width + x.min(width - 1)) * channels;
                    &image[first..][..channels]
                };
                let corners = [
                    at(row.lower, column.lower),
                    at(row.upper, column.lower),
                    at(row.lower, column.upper),
                    at(row.upper, column.upper),
                ];
                for (c, out) in pixels.next().into_iter().flatten().enumerate() {
                    *out = mix(corners.map(|pixel| pixel[c]), &row.fraction, &column.fraction);
                }
            }
        }
    }
    Ok(())
}
