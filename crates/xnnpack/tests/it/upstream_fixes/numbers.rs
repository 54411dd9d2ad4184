//! Bugs that give wrong results.

use super::{add, any_f16, bytes, convert, dense, small};
use crate::fixture::{Fixture, any_f32, any_qint8, assert_close, conv, f32, qint8, ramp};
use xnn_testing::Random;
use xnnpack::{
    BatchMatMul, Conv2d, Datatype, Flags, Fp16, Quantization, RuntimeOptions, Softmax, TensorSpec,
    Transpose, Unary, UnaryOp, ValueId, has_half_precision,
};

/// Converts an fp32 input to half precision, computes a product, and converts it back to fp32.
fn in_half_precision(
    dims: &[usize],
    data: &[f32],
    define: impl FnOnce(&mut Fixture, ValueId, ValueId),
) -> Vec<f32> {
    let mut fixture = Fixture::new();
    let input = fixture.input(f32(dims), data);
    let [half, product] = [(); 2].map(|()| fixture.internal(any_f16()));
    let output = fixture.output(any_f32());
    let mut fixture = fixture.node(convert(input, half));
    define(&mut fixture, half, product);
    fixture.node(convert(product, output)).run::<f32>()
}

/// XNNPACK plans memory with positions of nodes that became wrong when it inserted conversions
/// (f9fffde59a).
#[test]
fn values_in_half_precision_live_as_long_as_they_are_read() {
    if !has_half_precision() {
        return;
    }
    const SIDE: usize = 8;
    let options = RuntimeOptions { fp16: Fp16::Force, ..RuntimeOptions::default() };
    let mut fixture = Fixture::new();
    let data = ramp(SIDE * SIDE);
    let [x, y] = [(); 2].map(|()| fixture.input(f32(&[SIDE, SIDE]), &data));
    let [negative, absolute, across, along] = [(); 4].map(|()| fixture.internal(any_f32()));
    let output = fixture.output(any_f32());
    let results = fixture
        .node(Unary { op: UnaryOp::Negate, input: x, output: negative })
        .node(Unary { op: UnaryOp::Abs, input: negative, output: absolute })
        .node(Transpose { perm: vec![1, 0], input: y, output: across })
        .node(Transpose { perm: vec![1, 0], input: across, output: along })
        .node(add(absolute, along, output))
        .run_with::<f32>(&options)
        .unwrap();
    let expected: Vec<f32> = data.iter().map(|value| 2.0 * value).collect();
    assert_close(&results[0], &expected, 0.0);
}

/// XNNPACK writes scales of matrices with several tiles to the wrong places (bd482a41ad).
#[test]
fn products_with_matrices_of_int8_in_several_tiles() {
    const DEPTH: usize = 9;
    let mut random = Random::new(1);
    for columns in [1, 8, 33, 130] {
        for flags in [Flags::NONE, Flags::TRANSPOSE_B] {
            let a = small(&mut random, 2 * DEPTH);
            let b = small(&mut random, DEPTH * columns);
            let scales: Vec<f32> = (0..columns).map(|column| 1.0 + column as f32 / 64.0).collect();
            let mut fixture = Fixture::new();
            let input = fixture.input(f32(&[2, DEPTH]), &a);
            let rows = Quantization::Dynamic { nonbatch_dims: 1 };
            let rows = TensorSpec::inferred(Datatype::Qdint8).quantized(rows);
            let rows = fixture.internal(rows);
            let transposed = flags == Flags::TRANSPOSE_B;
            let (dims, axis) =
                if transposed { ([columns, DEPTH], 0) } else { ([DEPTH, columns], 1) };
            let quantization =
                Quantization::PerChannel { zero_point: 0, axis, scales: scales.clone().into() };
            let spec = TensorSpec::new(Datatype::Qcint8, &dims).quantized(quantization);
            let matrix = fixture.constant(spec, &bytes(&b));
            let output = fixture.output(any_f32());
            let result = fixture
                .node(convert(input, rows))
                .node(BatchMatMul { a: rows, b: matrix, output, flags })
                .run::<f32>();
            let place = |depth: usize, column: usize| match transposed {
                true => column * DEPTH + depth,
                false => depth * columns + column,
            };
            let element = |at: usize| {
                let (row, column) = (at / columns, at % columns);
                let products = (0..DEPTH).map(|k| a[row * DEPTH + k] * b[place(k, column)]);
                products.sum::<f32>() * scales[column]
            };
            // Rows are quantized with steps of 6 / 255 at most.
            let expected: Vec<f32> = (0..2 * columns).map(element).collect();
            assert_close(&result, &expected, 3.0 * DEPTH as f32 * 3.0 * 3.0 / 255.0);
        }
    }
}

/// XNNPACK converts with the reciprocal of the scale in half precision, which can be 0 or infinite
/// (2948ee8013).
#[test]
fn scales_have_a_reciprocal_in_half_precision() {
    if !has_half_precision() {
        return;
    }
    for (scale, fits) in [(1e5, false), (16384.0, true), (1.0, true), (1.6e-5, true), (1e-5, false)]
    {
        let mut fixture = Fixture::new();
        let input = fixture.input(f32(&[3]), &[f32::INFINITY, 0.0, f32::NEG_INFINITY]);
        let half = fixture.internal(any_f16());
        let output = fixture.output(any_qint8(3, scale));
        let mut fixture = fixture.node(convert(input, half));
        if !fits {
            fixture.refusal(convert(half, output));
            continue;
        }
        assert_eq!(fixture.node(convert(half, output)).run::<i8>(), [127, 3, -128], "{scale}");
    }
}

/// XNNPACK adds exponentials in half precision (cdd3b238ff).
#[test]
fn softmax_in_half_precision_limits_the_number_of_terms() {
    if !has_half_precision() {
        return;
    }
    let softmax = |length: usize| {
        let mut fixture = Fixture::new();
        let input = fixture.input(f32(&[1, length]), &vec![1.0f32; length]);
        let [half, product] = [(); 2].map(|()| fixture.internal(any_f16()));
        let output = fixture.output(any_f32());
        let mut fixture = fixture.node(convert(input, half));
        fixture.graph.define(Softmax { input: half, output: product })?;
        fixture.node(convert(product, output)).run_with::<f32>(&RuntimeOptions::default())
    };
    let length = 1 << 14;
    let result = softmax(length).unwrap();
    assert_close(&result[0], &vec![1.0 / length as f32; length], 1e-6);
    softmax(1 << 17).unwrap_err();
}

/// Convolutions with kernels of 3 x 3, of an image of 3 rows and `columns` columns.
fn products(input: &[f32], filter: &[f32], [columns, inputs, outputs]: [usize; 3]) -> Vec<f32> {
    let element = |at: usize| {
        let (column, output) = (at / outputs, at % outputs);
        let product = |k: usize| {
            let (row, rest) = (k / (3 * inputs), k % (3 * inputs));
            input[(row * columns + column) * inputs + rest] * filter[output * 9 * inputs + k]
        };
        (0..9 * inputs).map(product).sum::<f32>()
    };
    (0..(columns - 2) * outputs).map(element).collect()
}

/// XNNPACK's AMX microkernels read the first 64 inputs repeatedly for a single row (7a161070f3).
#[test]
fn convolutions_of_many_inputs_whose_last_tile_is_one_pixel() {
    let mut random = Random::new(2);
    for (columns, inputs, outputs) in [(19, 128, 8), (3, 192, 8), (35, 160, 16), (19, 128, 40)] {
        let data = small(&mut random, 3 * columns * inputs);
        let weights = small(&mut random, outputs * 9 * inputs);
        let expected = products(&data, &weights, [columns, inputs, outputs]);
        let node = |input, filter, output| Conv2d {
            kernel: [3, 3],
            group_input_channels: inputs,
            group_output_channels: outputs,
            ..conv(input, filter, None, output)
        };
        let scales = vec![1.0; outputs].into();
        let scales = Quantization::PerChannel { zero_point: 0, axis: 0, scales };
        let weight_spec =
            TensorSpec::new(Datatype::Qcint8, &[outputs, 3, 3, inputs]).quantized(scales);

        let mut fixture = Fixture::new();
        let input = fixture.input(qint8(&[1, 3, columns, inputs], 0, 1.0), &bytes(&data));
        let filter = fixture.constant(weight_spec.clone(), &bytes(&weights));
        let output = fixture.output(any_qint8(0, 4.0));
        let result = fixture.node(node(input, filter, output)).run::<i8>();
        let rounded = expected.iter().map(|sum| (sum / 4.0).round_ties_even() as i8);
        assert_eq!(result, rounded.collect::<Vec<_>>(), "{columns} {inputs} {outputs}");

        for is_half in [false, true].into_iter().filter(|half| !half || has_half_precision()) {
            let mut fixture = Fixture::new();
            let input = fixture.input(f32(&[1, 3, columns, inputs]), &data);
            let image = Quantization::Dynamic { nonbatch_dims: 3 };
            let image = TensorSpec::inferred(Datatype::Qdint8).quantized(image);
            let image = fixture.internal(image);
            let filter = fixture.constant(weight_spec.clone(), &bytes(&weights));
            let output = fixture.output(any_f32());
            let sums = if is_half { fixture.internal(any_f16()) } else { output };
            let mut fixture = fixture.node(convert(input, image)).node(node(image, filter, sums));
            if is_half {
                fixture = fixture.node(convert(sums, output));
            }
            // A step of the quantization is 6 / 255.
            assert_close(&fixture.run::<f32>(), &expected, 4.0);
        }
    }
}

/// XNNPACK's AVX512FP16 microkernels write the second half of a tile to the wrong place
/// (7bdbcd67fb, 03034811cd).
#[test]
fn products_in_half_precision_in_wide_tiles() {
    if !has_half_precision() {
        return;
    }
    const DEPTH: usize = 5;
    let mut random = Random::new(3);
    for outputs in [31, 32, 64, 70, 130] {
        let data = small(&mut random, 9 * DEPTH);
        let weights = small(&mut random, outputs * DEPTH);
        let element = |at: usize| {
            let (row, output) = (at / outputs, at % outputs);
            let product = |k: usize| data[row * DEPTH + k] * weights[output * DEPTH + k];
            (0..DEPTH).map(product).sum::<f32>()
        };
        let expected: Vec<f32> = (0..9 * outputs).map(element).collect();
        let result = in_half_precision(&[9, DEPTH], &data, |fixture, input, output| {
            let filter = fixture.constant(f32(&[outputs, DEPTH]), &weights);
            fixture.graph.define(dense(input, filter, output)).unwrap();
        });
        assert_close(&result, &expected, 0.0);
        let result = in_half_precision(&[9, DEPTH], &data, |fixture, a, output| {
            let matrix = fixture.constant(f32(&[outputs, DEPTH]), &weights);
            let b = fixture.internal(any_f16());
            fixture.graph.define(convert(matrix, b)).unwrap();
            fixture.graph.define(BatchMatMul { a, b, output, flags: Flags::TRANSPOSE_B }).unwrap();
        });
        assert_close(&result, &expected, 0.0);

        let weights = small(&mut random, outputs * 9 * DEPTH);
        let data = small(&mut random, 3 * 10 * DEPTH);
        let expected = products(&data, &weights, [10, DEPTH, outputs]);
        let result = in_half_precision(&[1, 3, 10, DEPTH], &data, |fixture, input, output| {
            let filter = fixture.constant(f32(&[outputs, 3, 3, DEPTH]), &weights);
            let node = Conv2d {
                kernel: [3, 3],
                group_input_channels: DEPTH,
                group_output_channels: outputs,
                ..conv(input, filter, None, output)
            };
            fixture.graph.define(node).unwrap();
        });
        assert_close(&result, &expected, 0.0);
    }
}
