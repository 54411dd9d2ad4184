//! RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR.

use std::ops::{Add, AddAssign, Mul};

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
        // Sums of int8 fit in 32 bits. Ties are rounded away from 0: a shift rounds down, and one
        // less is added to negative sums.
        DType::I8 => by_integers(options, |sum: i32| {
            ((sum + HALF + (sum >> (i32::BITS - 1))) >> (2 * BITS)) as i8
        }),
        DType::I16 => by_integers(options, |sum: i64| {
            ((sum + i64::from(HALF) + (sum >> (i64::BITS - 1))) >> (2 * BITS)) as i16
        }),
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
    read: impl Fn(T) -> f32 + Copy + Send + Sync + 'static,
    write: impl Fn(f32) -> T + Copy + Send + Sync + 'static,
) -> Result<Run, Refusal> {
    run(move |call| {
        let (from, to) = sizes(call)?;
        let rows = float_neighbours(from[1], to[1], &options);
        let columns = float_neighbours(from[2], to[2], &options);
        let channels = from[3];
        interpolate(call, &rows, |[above, below], _, y, results| {
            for (results, column) in results.chunks_exact_mut(channels).zip(&columns) {
                let x = column.fraction;
                let [left, right] = [column.lower, column.upper].map(|at| at * channels);
                let left = above[left..].iter().zip(&below[left..]);
                let right = above[right..].iter().zip(&below[right..]);
                for (result, ((&a, &b), (&c, &d))) in results.iter_mut().zip(left.zip(right)) {
                    *result = write(
                        read(a) * (1.0 - y) * (1.0 - x)
                            + read(b) * y * (1.0 - x)
                            + read(c) * (1.0 - y) * x
                            + read(d) * y * x,
                    );
                }
            }
        })
    })
}

fn float_neighbours(from: usize, to: usize, options: &ResizeOptions) -> Vec<Between<f32>> {
    let last = from.saturating_sub(1);
    let scale = if options.align_corners && to > 1 {
        last as f32 / (to - 1) as f32
    } else {
        from as f32 / to as f32
    };
    let neighbours = |i: usize| {
        let at = if options.half_pixel_centers {
            (i as f32 + 0.5) * scale - 0.5
        } else {
            i as f32 * scale
        };
        // Negative numbers become 0.
        let lower = at.floor() as usize;
        let upper = at.ceil() as usize;
        Between { lower: lower.min(last), upper: upper.min(last), fraction: at - lower as f32 }
    };
    (0..to).map(neighbours).collect()
}

/// Fractional bits of positions.
const BITS: u32 = 10;
const ONE: i32 = 1 << BITS;

/// Half of a result, which has as many bits for each of both axes.
const HALF: i32 = 1 << (2 * BITS - 1);

/// Interpolates in fixed point: first between neighbors in the two rows of the image, whose sums all
/// results between these rows share, and then between the sums. From one row of results to the next
/// a total changes by the same amount, which takes no multiplication. Integers have the same sum in
/// any order.
fn by_integers<T: Element + Into<i32>, S: Sum>(
    options: ResizeOptions,
    round: impl Fn(S) -> T + Copy + Send + Sync + 'static,
) -> Result<Run, Refusal> {
    run(move |call| {
        let (from, to) = sizes(call)?;
        let rows = integer_neighbours(from[1], to[1], &options);
        let columns = integer_neighbours(from[2], to[2], &options);
        let channels = from[3];
        let between = |row: &[T], sums: &mut [i32]| match channels {
            1 => between_columns::<T, 1>(row, &columns, sums),
            2 => between_columns::<T, 2>(row, &columns, sums),
            3 => between_columns::<T, 3>(row, &columns, sums),
            4 => between_columns::<T, 4>(row, &columns, sums),
            _ => {
                for (sums, column) in sums.chunks_exact_mut(channels).zip(&columns) {
                    let [left, right] =
                        [column.lower, column.upper].map(|at| &row[at * channels..][..channels]);
                    column.sum(left, right, sums);
                }
            }
        };
        let count = to[2] * channels;
        let [mut sums_above, mut sums_below] = [0, 1].map(|_| vec![0; count]);
        let [mut totals, mut steps] = [0, 1].map(|_| vec![S::default(); count]);
        // The position of the last row, and how far apart the last two were, if `steps` are theirs.
        let (mut last, mut distance) = (0, None);
        interpolate(call, &rows, |[above, below], change, y, results: &mut [T]| {
            match change {
                Change::None => {}
                Change::Next => std::mem::swap(&mut sums_above, &mut sums_below),
                Change::Both => between(above, &mut sums_above),
            }
            if change != Change::None {
                between(below, &mut sums_below);
            }
            let advance = y - std::mem::replace(&mut last, y);
            let results = results.iter_mut().zip(&mut totals);
            let sums = sums_above.iter().zip(&sums_below);
            if change != Change::None {
                distance = None;
                for ((result, total), (&above, &below)) in results.zip(sums) {
                    *total = S::from(above) * S::from(ONE) + S::from(below - above) * S::from(y);
                    *result = round(*total);
                }
            } else if distance != Some(advance) {
                distance = Some(advance);
                for ((result, total), ((&above, &below), step)) in results.zip(sums.zip(&mut steps))
                {
                    *step = S::from(below - above) * S::from(advance);
                    *total += *step;
                    *result = round(*total);
                }
            } else {
                for ((result, total), &step) in results.zip(&steps) {
                    *total += step;
                    *result = round(*total);
                }
            }
        })
    })
}

/// Interpolates between neighbors in a row of pixels of few channels.
fn between_columns<T: Element + Into<i32>, const CHANNELS: usize>(
    row: &[T],
    columns: &[Between<i32>],
    sums: &mut [i32],
) {
    let (pixels, _) = row.as_chunks::<CHANNELS>();
    let (sums, _) = sums.as_chunks_mut::<CHANNELS>();
    for (sums, column) in sums.iter_mut().zip(columns) {
        column.sum(&pixels[column.lower], &pixels[column.upper], sums);
    }
}

impl Between<i32> {
    #[inline(always)]
    fn sum<T: Element + Into<i32>>(&self, left: &[T], right: &[T], sums: &mut [i32]) {
        // Compilers multiply words of 16 bits with fewer instructions.
        let fraction = i32::from(self.fraction as i16);
        for (sum, (&left, &right)) in sums.iter_mut().zip(left.iter().zip(right)) {
            let (left, right): (i32, i32) = (left.into(), right.into());
            *sum = left * ONE + (right - left) * fraction;
        }
    }
}

/// Integers that hold products of an element with both weights.
trait Sum: Copy + Default + From<i32> + Add<Output = Self> + Mul<Output = Self> + AddAssign {}
impl Sum for i32 {}
impl Sum for i64 {}

fn integer_neighbours(from: usize, to: usize, options: &ResizeOptions) -> Vec<Between<i32>> {
    let (size, count, one) = (from as i64, to as i64, i64::from(ONE));
    let scale = if options.align_corners && to > 1 {
        (one * (size - 1) + (count - 1) / 2) / (count - 1)
    } else {
        (one * size + count / 2) / count.max(1)
    };
    let last = (size - 1).max(0);
    let neighbours = |i: i64| {
        let at =
            if options.half_pixel_centers { i * scale + scale / 2 - one / 2 } else { i * scale };
        let lower = (at / one).max(0);
        let upper = ((at + one - 1) / one).min(last);
        Between {
            lower: lower.min(last) as usize,
            upper: upper as usize,
            // Less than one, and not less than minus a half.
            fraction: (at - one * lower) as i32,
        }
    };
    (0..count).map(neighbours).collect()
}

/// Which rows of the image differ from those of the result before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    None,
    /// The row above was below.
    Next,
    Both,
}

impl Change {
    fn between(last: Option<[usize; 2]>, [above, below]: [usize; 2]) -> Self {
        match last {
            Some(last) if last == [above, below] => Self::None,
            Some([_, last]) if last == above => Self::Next,
            _ => Self::Both,
        }
    }
}

/// Calls `mix` for every row of results with the rows of the image above and below it, how these
/// differ from those of the last call, and the position between them.
fn interpolate<T: Element, F: Copy>(
    call: &mut Call<'_>,
    rows: &[Between<F>],
    mut mix: impl FnMut([&[T]; 2], Change, F, &mut [T]),
) -> Result<(), Refusal> {
    let ([_, height, width, channels], to) = sizes(call)?;
    let input = call.input::<T>(0)?;
    let output = call.output::<T>(0)?;
    if output.is_empty() {
        return Ok(());
    }
    let row = width * channels;
    let mut results = output.chunks_exact_mut(to[2] * channels);
    for image in input.chunks_exact(height * row) {
        let mut last = None;
        for (between, results) in rows.iter().zip(&mut results) {
            let places = [between.lower, between.upper];
            let change = Change::between(last.replace(places), places);
            let pixels = places.map(|y| &image[y * row..][..row]);
            mix(pixels, change, between.fraction, results);
        }
    }
    Ok(())
}
