//! Fully connected layers and matrix products.

use xnn_interp::{Error, TensorBuf};
use xnn_model::op::*;
use xnn_model::{DType, Op, Quantization, ZeroPoints};

use super::F32;
use super::common::{
    Builder, Declared, Value, expect, expect_close, floats, load, quantized, run_op, run_op_with,
};

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

/// TFLite's kernels then write zeros, without bias and zero point.
#[test]
fn empty_rows_give_zeros() {
    let fc = || Op::FullyConnected(FullyConnectedOptions::default());
    let weights = [floats(&[3, 0], &[]), floats(&[3], &[1., 2., 3.])];
    expect(run_op_with(fc(), &[floats(&[2, 0], &[])], &weights, F32), &[2, 3], &[0.0f32; 6]);
    expect(run_op_with(fc(), &[floats(&[0, 0], &[])], &weights, F32), &[0, 3], &[0.0f32; 0]);
    let input = quantized::<i8>(&[2, 0], &[], 0.1, 3);
    let weights = [quantized::<i8>(&[1, 0], &[], 0.01, 0)];
    let result = run_op_with(fc(), &[input], &weights, (DType::I8, Some((0.05, 1))));
    expect(result, &[2, 1], &[0i8; 2]);
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

/// A product with 8-bit weights in two columns, whose scales are 0.5 and 2.
fn product_by_column(
    input: Value,
    (weights, adj_y, axis): ([i8; 4], bool, usize),
    (dtype, quantization): Declared,
) -> Result<TensorBuf, Error> {
    let mut b = Builder::new();
    let shape = input.buf.shape().to_vec();
    let x = b.input(input.buf.dtype(), &shape);
    let weights = b.constant(&[2, 2], &weights);
    let (scales, zero_points) = ([0.5f32, 2.0].into(), ZeroPoints::default());
    b.graph.tensors[weights].quantization =
        Some(Quantization::PerAxis { scales, zero_points, axis });
    let y = b.tensor(dtype, &shape);
    for (id, quantization) in [(x, input.quantization), (y, quantization)] {
        if let Some((scale, zero_point)) = quantization {
            b.quantize(id, scale, zero_point);
        }
    }
    b.graph.outputs.push(y);
    let options = BatchMatMulOptions { adj_y, ..Default::default() };
    b.op(Op::BatchMatMul(options), &[x, weights], &[y]);
    let mut interpreter = load(&b.model())?;
    interpreter.set_input(0, input.buf)?;
    interpreter.run()?;
    Ok(interpreter.output(0)?.to_buf())
}

#[test]
fn matrix_products_with_a_scale_per_column() {
    // [[5, 4], [20, -8]], stored by rows and by columns.
    for weights in [([10, 2, 40, -4], false, 1), ([10, 40, 2, -4], true, 0)] {
        let input = floats(&[2, 2], &[1., -1., 1., 0.]);
        expect_close(product_by_column(input, weights, F32), &[2, 2], &[-15., 12., 5., 4.]);
        let input = quantized(&[1, 2], &[1i8, -1], 1.0, 0);
        let result = product_by_column(input, weights, (DType::I8, Some((1.0, 3))));
        expect(result, &[1, 2], &[-12i8, 15]);
        let input = quantized(&[1, 2], &[100i16, -100], 0.01, 0);
        let result = product_by_column(input, weights, (DType::I16, Some((0.5, 0))));
        expect(result, &[1, 2], &[-30i16, 24]);
        // Scales per row cannot be factored out of the sums.
        let by_row = (weights.0, weights.1, 1 - weights.2);
        assert!(product_by_column(floats(&[1, 2], &[1., 2.]), by_row, F32).is_err());
    }
}
