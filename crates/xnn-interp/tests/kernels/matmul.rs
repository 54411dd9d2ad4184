//! Fully connected layers and products of matrices.

use xnn_model::op::*;
use xnn_model::{DType, Op};

use super::F32;
use super::common::{expect, floats, quantized, run_op, run_op_with};

#[test]
fn fully_connected() {
    let fc = |keep_num_dims| {
        Op::FullyConnected(FullyConnectedOptions { keep_num_dims, ..Default::default() })
    };
    let input = || floats(&[1, 2, 2], &[1., 2., 3., 4.]);
    let weights = || [floats(&[3, 2], &[1., 0., 0., 1., 1., 1.]), floats(&[3], &[0., 0., 100.])];
    let expected = [1.0f32, 2., 103., 3., 4., 107.];
    let result = run_op_with(fc(false), &[input()], &weights(), F32);
    expect(result, &[2, 3], &expected);
    let result = run_op_with(fc(true), &[input()], &weights(), F32);
    expect(result, &[1, 2, 3], &expected);
    let input = quantized(&[1, 2], &[10i8, -10], 0.1, 0);
    let weights = [quantized(&[1, 2], &[100i8, 50], 0.01, 0)];
    // 1 * 1 - 1 * 0.5 = 0.5.
    let result = run_op_with(fc(false), &[input], &weights, (DType::I8, Some((0.05, 1))));
    expect(result, &[1, 1], &[11i8]);
}

#[test]
fn matrix_products() {
    let a = || floats(&[2, 2], &[1., 2., 3., 4.]);
    let b = || floats(&[2, 2], &[5., 6., 7., 8.]);
    let product =
        |adj_x, adj_y| Op::BatchMatMul(BatchMatMulOptions { adj_x, adj_y, ..Default::default() });
    let result = run_op(product(false, false), &[a(), b()], F32);
    expect(result, &[2, 2], &[19.0f32, 22., 43., 50.]);
    let result = run_op(product(false, true), &[a(), b()], F32);
    expect(result, &[2, 2], &[17.0f32, 23., 39., 53.]);
    let result = run_op(product(true, false), &[a(), b()], F32);
    expect(result, &[2, 2], &[26.0f32, 30., 38., 44.]);
    let wide = floats(&[2, 1, 2], &[1., 0., 0., 1.]);
    let result = run_op(product(false, false), &[wide, b()], F32);
    expect(result, &[2, 1, 2], &[5.0f32, 6., 7., 8.]);
}
