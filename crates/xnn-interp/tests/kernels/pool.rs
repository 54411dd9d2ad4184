//! Pooling and resizing.

use xnn_model::op::*;
use xnn_model::{DType, Op};

use super::F32;
use super::common::{expect, expect_close, floats, plain, quantized, run_op, run_op_with};

#[test]
fn pools() {
    let options = || Pool2dOptions {
        padding: Padding::Same,
        stride_w: 2,
        stride_h: 2,
        filter_width: 2,
        filter_height: 2,
        ..Default::default()
    };
    let input = || floats(&[1, 3, 3, 1], &[1., 2., 3., 4., 5., 6., 7., 8., 9.]);
    let result = run_op(Op::AveragePool2d(options()), &[input()], F32);
    expect(result, &[1, 2, 2, 1], &[3.0f32, 4.5, 7.5, 9.]);
    let result = run_op(Op::MaxPool2d(options()), &[input()], F32);
    expect(result, &[1, 2, 2, 1], &[5.0f32, 6., 8., 9.]);
    let result = run_op(Op::L2Pool2d(options()), &[input()], F32);
    expect_close(result, &[1, 2, 2, 1], &[11.5f32.sqrt(), 22.5f32.sqrt(), 56.5f32.sqrt(), 9.]);
    // Ties are rounded away from zero for signed integers, up for unsigned ones.
    let signed = quantized(&[1, 2, 2, 1], &[-1i8, -2, -1, -2], 1.0, 0);
    let result = run_op(Op::AveragePool2d(options()), &[signed], (DType::I8, Some((1.0, 0))));
    expect(result, &[1, 1, 1, 1], &[-2i8]);
    let unsigned = quantized(&[1, 2, 2, 1], &[1u8, 2, 1, 2], 1.0, 0);
    let result = run_op(Op::AveragePool2d(options()), &[unsigned], (DType::U8, Some((1.0, 0))));
    expect(result, &[1, 1, 1, 1], &[2u8]);
}

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
