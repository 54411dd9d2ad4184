//! Pooling.

use xnn_model::op::*;
use xnn_model::{DType, Op};

use super::F32;
use super::common::{expect, expect_close, floats, quantized, run_op};

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
