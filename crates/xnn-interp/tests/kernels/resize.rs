//! RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use xnn_interp::Element;
use xnn_model::op::ResizeOptions;
use xnn_model::{DType, Op};

use super::F32;
use super::common::{expect, floats, plain, quantized, run_op, run_op_with};

#[test]
fn resizing() {
    let bilinear = |align_corners, half_pixel_centers| {
        Op::ResizeBilinear(ResizeOptions { align_corners, half_pixel_centers })
    };
    let x = || floats(&[1, 1, 2, 1], &[0., 4.]);
    let size = |w| [plain(&[2], &[1i32, w])];
    let result = run_op_with(bilinear(false, false), &[x()], &size(4), F32);
    expect(result, &[1, 1, 4, 1], &[0.0f32, 2., 4., 4.]);
    let result = run_op_with(bilinear(true, false), &[x()], &size(3), F32);
    expect(result, &[1, 1, 3, 1], &[0.0f32, 2., 4.]);
    let result = run_op_with(bilinear(false, true), &[x()], &size(4), F32);
    expect(result, &[1, 1, 4, 1], &[0.0f32, 1., 3., 4.]);
    let nearest = Op::ResizeNearestNeighbor(ResizeOptions::default());
    let result = run_op_with(nearest, &[x()], &size(4), F32);
    expect(result, &[1, 1, 4, 1], &[0.0f32, 0., 4., 4.]);
    let q = quantized(&[1, 1, 2, 1], &[0i8, 5], 1.0, 0);
    let result = run_op_with(bilinear(false, false), &[q], &size(4), (DType::I8, Some((1.0, 0))));
    expect(result, &[1, 1, 4, 1], &[0i8, 3, 5, 5]);
}

#[test]
fn nearest_pixels_with_aligned_corners_and_half_pixel_centers() {
    let both =
        Op::ResizeNearestNeighbor(ResizeOptions { align_corners: true, half_pixel_centers: true });
    let image = floats(&[1, 1, 3, 1], &[1., 2., 3.]);
    let result = run_op(both, &[image, plain(&[2], &[1i32, 5])], F32);
    expect(result, &[1, 1, 5, 1], &[1.0f32, 2., 2., 3., 3.]);
}

/// One element after another, as TFLite's reference kernel for integers.
fn bilinear_in_integers(
    options: &ResizeOptions,
    [batches, height, width, channels]: [usize; 4],
    [rows, columns]: [usize; 2],
    image: &[i64],
) -> Vec<i64> {
    // The neighbors of a result and the position between them in units of 1/1024.
    let neighbors = |result: usize, size: usize, results: usize| {
        let (result, size, results) = (result as i64, size as i64, results as i64);
        let mut scale = ((1 << 10) * size + results / 2) / results;
        if options.align_corners && results > 1 {
            scale = ((1 << 10) * (size - 1) + (results - 1) / 2) / (results - 1);
        }
        let mut at = result * scale;
        if options.half_pixel_centers {
            at += scale / 2 - (1 << 9);
        }
        let lower = (at / (1 << 10)).max(0);
        let upper = ((at + (1 << 10) - 1) / (1 << 10)).min(size - 1);
        ([lower.min(size - 1) as usize, upper as usize], at - (1 << 10) * lower)
    };
    let mut results = Vec::new();
    for batch in 0..batches {
        for row in 0..rows {
            let ([above, below], y) = neighbors(row, height, rows);
            for column in 0..columns {
                let ([left, right], x) = neighbors(column, width, columns);
                for channel in 0..channels {
                    let at = |y: usize, x: usize| {
                        image[((batch * height + y) * width + x) * channels + channel]
                    };
                    let sum = at(above, left) * (1024 - y) * (1024 - x)
                        + at(below, left) * y * (1024 - x)
                        + at(above, right) * (1024 - y) * x
                        + at(below, right) * y * x;
                    let half = if sum > 0 { 1 << 19 } else { -(1 << 19) };
                    results.push((sum + half) / (1 << 20));
                }
            }
        }
    }
    results
}

/// Random images of `T` of random sizes, with the smallest and the largest number among few others.
fn expect_bilinear_in_integers<T: Element + TryFrom<i64> + std::fmt::Debug>(
    dtype: DType,
    numbers: std::ops::RangeInclusive<i64>,
) {
    let mut rng = ChaCha8Rng::seed_from_u64(26);
    for case in 0..60 {
        let dims = [1, 9, 9, 5].map(|most| rng.random_range(1..=most + case / 30));
        let to = [0, 1].map(|_| rng.random_range(1..40_usize));
        let align_corners = rng.random_bool(0.3);
        let half_pixel_centers = !align_corners && rng.random_bool(0.5);
        let options = ResizeOptions { align_corners, half_pixel_centers };
        let (least, most) = (*numbers.start(), *numbers.end());
        let image: Vec<i64> = (0..dims.iter().product())
            .map(|_| match rng.random_range(0..4) {
                0 => least,
                1 => most,
                _ => rng.random_range(least..=most),
            })
            .collect();
        let of_type = |numbers: &[i64]| -> Vec<T> {
            let converted = numbers.iter().map(|&number| T::try_from(number).ok());
            converted.collect::<Option<_>>().expect("the type has these numbers")
        };
        let expected = bilinear_in_integers(&options, dims, to, &image);
        let result = run_op_with(
            Op::ResizeBilinear(options),
            &[quantized(&dims, &of_type(&image), 1.0, 0)],
            &[plain(&[2], &to.map(|size| size as i32))],
            (dtype, Some((1.0, 0))),
        );
        expect(result, &[dims[0], to[0], to[1], dims[3]], &of_type(&expected));
    }
}

#[test]
fn bilinear_integers_are_those_of_the_plain_formula() {
    expect_bilinear_in_integers::<i8>(DType::I8, -128..=127);
    expect_bilinear_in_integers::<i16>(DType::I16, -32768..=32767);
}

#[test]
fn images_without_pixels_become_results_without_pixels() {
    let bilinear = || Op::ResizeBilinear(ResizeOptions::default());
    for (dims, to) in [([1, 0, 0, 3], [5, 0]), ([1, 0, 2, 3], [0, 4]), ([1, 2, 2, 0], [3, 3])] {
        let size = [plain(&[2], &to)];
        let shape = [dims[0], to[0] as usize, to[1] as usize, dims[3]];
        let image = floats(&dims, &[]);
        expect::<f32>(run_op_with(bilinear(), &[image], &size, F32), &shape, &[]);
        let image = quantized::<i8>(&dims, &[], 1.0, 0);
        let result = run_op_with(bilinear(), &[image], &size, (DType::I8, Some((1.0, 0))));
        expect::<i8>(result, &shape, &[]);
    }
    let size = [plain(&[2], &[2, 2])];
    assert!(run_op_with(bilinear(), &[floats(&[1, 0, 2, 1], &[])], &size, F32).is_err());
}
