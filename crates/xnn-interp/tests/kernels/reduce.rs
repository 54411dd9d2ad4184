//! Operators along axes.

use std::f64::consts::TAU;

use xnn_model::op::*;
use xnn_model::{DType, Op};

use super::F32;
use super::common::{bools, expect, expect_close, floats, plain, quantized, run_op, run_op_with};

#[test]
fn softmax() {
    let softmax = || Op::Softmax(SoftmaxOptions { beta: 1.0 });
    let result = run_op(softmax(), &[floats(&[1, 2], &[0., 3f32.ln()])], F32);
    expect_close(result, &[1, 2], &[0.25, 0.75]);
    let even = quantized(&[1, 4], &[7i8; 4], 0.1, 0);
    let result = run_op(softmax(), &[even], (DType::I8, Some((1.0 / 256.0, -128))));
    expect(result, &[1, 4], &[-64i8; 4]);
    let result = run_op(Op::LogSoftmax, &[floats(&[1, 2], &[0., 0.])], F32);
    expect_close(result, &[1, 2], &[-std::f32::consts::LN_2; 2]);
}

#[test]
fn reductions() {
    let x = || floats(&[2, 3], &[1., 2., 3., 4., 5., 6.]);
    let options = |keep_dims| ReducerOptions { keep_dims };
    let axes = |axes: &[i32]| [plain(&[axes.len()], axes)];
    let result = run_op_with(Op::Mean(options(false)), &[x()], &axes(&[1]), F32);
    expect(result, &[2], &[2.0f32, 5.]);
    let result = run_op_with(Op::Sum(options(true)), &[x()], &axes(&[0]), F32);
    expect(result, &[1, 3], &[5.0f32, 7., 9.]);
    let result = run_op_with(Op::ReduceMax(options(false)), &[x()], &axes(&[0, -1]), F32);
    expect(result, &[], &[6.0f32]);
    let result = run_op_with(Op::ReduceProd(options(false)), &[x()], &axes(&[1]), F32);
    expect(result, &[2], &[6.0f32, 120.]);
    let result = run_op_with(
        Op::Sum(options(false)),
        &[floats(&[2, 2, 2], &[1., 2., 3., 4., 5., 6., 7., 8.])],
        &axes(&[0, 2]),
        F32,
    );
    expect(result, &[2], &[14.0f32, 22.]);
    let all = || bools(&[2, 2], &[1, 1, 1, 0]);
    let result =
        run_op_with(Op::ReduceAll(options(false)), &[all()], &axes(&[1]), (DType::Bool, None));
    expect(result, &[2], &[1u8, 0]);
    assert!(run_op_with(Op::Sum(options(false)), &[x()], &axes(&[2]), F32).is_err());
    let q = quantized(&[1, 3], &[1i8, 2, 5], 1.0, 0);
    let result =
        run_op_with(Op::Mean(options(false)), &[q], &axes(&[1]), (DType::I8, Some((1.0, 0))));
    expect(result, &[1], &[3i8]);
    let arg = Op::ArgMax(ArgMinMaxOptions { output_type: DType::I32 });
    expect(run_op_with(arg, &[x()], &axes(&[1]), (DType::I32, None)), &[2], &[2i32, 2]);
    let cumsum = Op::Cumsum(CumsumOptions { exclusive: true, reverse: true });
    expect(run_op_with(cumsum, &[x()], &axes(&[1]), F32), &[2, 3], &[5.0f32, 3., 0., 11., 6., 0.]);
}

/// TFLite's kernels return the integer 0 for empty sums, not the zero point.
#[test]
fn empty_reductions() {
    let options = || ReducerOptions { keep_dims: false };
    let axis = || [plain(&[1], &[0i32])];
    let nothing = || quantized::<i8>(&[0, 2], &[], 0.5, 3);
    let to = (DType::I8, Some((0.5, 3)));
    for op in [Op::Mean(options()), Op::Sum(options())] {
        expect(run_op_with(op, &[nothing()], &axis(), to), &[2], &[0i8; 2]);
    }
    let max = Op::ReduceMax(options());
    expect(run_op_with(max, &[nothing()], &axis(), to), &[2], &[i8::MIN; 2]);
    let sum = run_op_with(Op::Sum(options()), &[floats(&[0, 2], &[])], &axis(), F32);
    expect(sum, &[2], &[0.0f32; 2]);
}

#[test]
fn normalizations() {
    let l2 = Op::L2Normalization(ActivationOptions::default());
    expect(run_op(l2, &[floats(&[1, 2], &[3., 4.])], F32), &[1, 2], &[0.6f32, 0.8]);
    let local = |radius| {
        Op::LocalResponseNormalization(LocalResponseNormalizationOptions {
            radius,
            bias: 1.0,
            alpha: 1.0,
            beta: 1.0,
        })
    };
    // Each element has as many neighbors on both sides.
    let result = run_op(local(1), &[floats(&[1, 3], &[1., 2., 3.])], F32);
    expect_close(result, &[1, 3], &[1.0 / 6.0, 2.0 / 15.0, 3.0 / 14.0]);
    let result = run_op(local(0), &[floats(&[1, 2], &[1., 2.])], F32);
    expect_close(result, &[1, 2], &[1.0 / 2.0, 2.0 / 5.0]);
    let rms = Op::RmsNorm(RmsNormOptions { epsilon: 0.0 });
    let result = run_op(rms, &[floats(&[1, 2], &[3., 4.]), floats(&[2], &[1., 2.])], F32);
    let root = 12.5f32.sqrt();
    expect_close(result, &[1, 2], &[3. / root, 8. / root]);
}

#[test]
fn transforms() {
    let op = Op::Rfft2d;
    let input = floats(&[2, 2], &[1., 2., 3., 4.]);
    let result = run_op_with(op, &[input], &[plain(&[2], &[2i32, 2])], (DType::Complex64, None));
    let complex = |re| xnn_interp::Complex { re, im: 0.0 };
    expect(result, &[2, 2], &[complex(10.), complex(-2.), complex(-4.), complex(0.)]);
}

/// Compares with sums of cosines and sines over rows that are cropped or padded to the lengths.
#[test]
fn transforms_match_their_definition() {
    for [rows, columns] in [[1usize, 1], [1, 2], [2, 1], [1, 64], [4, 16], [16, 8]] {
        for [height, width] in [[rows, columns], [rows.div_ceil(2), columns.div_ceil(2)], [3, 5]] {
            let image: Vec<f32> =
                (0..2 * height * width).map(|i| ((i * 7) % 11) as f32 - 4.5).collect();
            let expected = image.chunks_exact(height * width).flat_map(|image| {
                let at = |row: usize, column: usize| match row < height && column < width {
                    true => f64::from(image[row * width + column]),
                    false => 0.0,
                };
                let sum = move |v: usize, u: usize| {
                    let (mut re, mut im) = (0.0, 0.0);
                    for (row, column) in (0..rows * columns).map(|i| (i / columns, i % columns)) {
                        let turns =
                            (v * row) as f64 / rows as f64 + (u * column) as f64 / columns as f64;
                        let (sin, cos) = (-TAU * turns).sin_cos();
                        re += at(row, column) * cos;
                        im += at(row, column) * sin;
                    }
                    [re, im]
                };
                let kept = columns / 2 + 1;
                (0..rows * kept).map(|i| sum(i / kept, i % kept)).collect::<Vec<_>>()
            });
            let input = floats(&[2, height, width], &image);
            let lengths = plain(&[2], &[rows as i32, columns as i32]);
            let complex = (DType::Complex64, None);
            let result = run_op_with(Op::Rfft2d, &[input], &[lengths], complex).unwrap();
            assert_eq!(result.shape(), [2, rows, columns / 2 + 1]);
            let found = result.view().as_slice::<xnn_interp::Complex>().unwrap();
            for (found, [re, im]) in found.iter().zip(expected) {
                let error = (f64::from(found.re) - re).abs().max((f64::from(found.im) - im).abs());
                assert!(error < 1e-4, "{rows}x{columns} of {height}x{width}: {error}");
            }
        }
    }
}
