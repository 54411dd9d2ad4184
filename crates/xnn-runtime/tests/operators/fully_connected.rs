//! Fully connected layers with every kind of weights, compared with a naive product.

use bytes::Bytes;
use half::bf16;
use xnn_format::{Datatype, NodeOp, Quantization, UnaryOp, Value, ValueId, flags};
use xnn_runtime::Result;

use crate::support::{
    Builder, assert_close, f32s, i8_weights, in_half_precision, le_bytes, qint8, random, random_i8,
    range,
};

/// `input[rows][inputs] x filter[outputs][inputs]^T + bias`.
fn naive(input: &[f32], filter: &[f32], bias: &[f32], inputs: usize) -> Vec<f32> {
    let mut result = Vec::new();
    for row in input.chunks(inputs) {
        for (weights, bias) in filter.chunks(inputs).zip(bias) {
            result.push(bias + row.iter().zip(weights).map(|(x, w)| x * w).sum::<f32>());
        }
    }
    result
}

fn node(input: ValueId, filter: ValueId, bias: Option<ValueId>, output: ValueId) -> NodeOp {
    NodeOp::FullyConnected { input, filter, bias, output, sparse: false }
}

#[test]
fn rows_of_any_rank() {
    let (inputs, outputs) = (5, 3);
    for dims in [vec![4, inputs], vec![2, 3, inputs], vec![1, 2, 2, inputs], vec![inputs]] {
        let rows: usize = dims.iter().rev().skip(1).product();
        let (input, filter, bias) =
            (random(1, rows * inputs), random(2, outputs * inputs), random(3, outputs));
        let mut builder = Builder::new();
        let x = builder.input_f32(&dims);
        let w = builder.constant_f32(&[outputs, inputs], &filter);
        let b = builder.constant_f32(&[outputs], &bias);
        let y = builder.output_f32(&[]);
        builder.node(node(x, w, Some(b), y));
        let mut session = builder.session().unwrap();
        let mut output_dims = dims.clone();
        *output_dims.last_mut().unwrap() = outputs;
        assert_eq!(session.outputs()[0].dims, output_dims);
        session.input_as_mut::<f32>(0).unwrap().copy_from_slice(&input);
        session.run().unwrap();
        let got = session.output_as::<f32>(0).unwrap();
        assert_close(got, &naive(&input, &filter, &bias, inputs), 1e-6);
    }
}

#[test]
fn transposed_weights_without_bias_clamped() {
    let mut builder = Builder::new();
    let x = builder.input_f32(&[1, 2]);
    let w = builder.constant_f32(&[2, 3], &[1.0, 2.0, 3.0, 10.0, 20.0, 30.0]);
    let y = builder.output_f32(&[1, 3]);
    let node = builder.node(node(x, w, None, y));
    node.flags = flags::TRANSPOSE_WEIGHTS;
    node.output_range = range(f32::NEG_INFINITY, 30.0);
    assert_eq!(builder.run_f32(&[&[1.0, 1.0]]).unwrap(), [11.0, 22.0, 30.0]);
}

#[test]
fn flags_that_xnnpack_ignores_change_nothing() {
    let mut builder = Builder::new();
    let x = builder.input_f32(&[1, 2]);
    let w = builder.constant_f32(&[1, 2], &[1.0, 2.0]);
    let y = builder.output_f32(&[1, 1]);
    builder.node(node(x, w, None, y)).flags =
        !(flags::TRANSPOSE_WEIGHTS | flags::TENSORFLOW_RESHAPE_2D);
    assert_eq!(builder.run_f32(&[&[1.0, 10.0]]).unwrap(), [21.0]);
}

#[test]
fn sparse_weights() {
    let filter = [0.0, 0.0, 2.0, 0.0, 0.5, 0.0];
    let mut builder = Builder::new();
    let x = builder.input_f32(&[2, 3]);
    let w = builder.constant_f32(&[2, 3], &filter);
    let b = builder.constant_f32(&[2], &[1.0, -1.0]);
    let y = builder.output_f32(&[2, 2]);
    let op = NodeOp::FullyConnected { input: x, filter: w, bias: Some(b), output: y, sparse: true };
    builder.node(op);
    let got = builder.run_f32(&[&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]]).unwrap();
    assert_eq!(got, [7.0, 0.0, 13.0, 1.5]);
}

#[test]
fn int8_per_tensor_within_one_step() {
    let (rows, inputs, outputs) = (3, 19, 7);
    let (input, filter) = (random_i8(1, rows * inputs), i8_weights(2, outputs * inputs));
    let mut builder = Builder::new();
    let x = builder.input(qint8(&[rows, inputs], 0.03, -7));
    let weights = filter.iter().map(|&q| q as u8).collect::<Bytes>();
    let w = builder.value(qint8(&[outputs, inputs], 0.01, 0).with_data(weights));
    let y = builder.output(qint8(&[rows, outputs], 0.2, 4));
    builder.node(node(x, w, None, y));
    let got = builder.run::<i8, i8>(&[&input]).unwrap();

    let real_input: Vec<f32> = input.iter().map(|&q| (f32::from(q) + 7.0) * 0.03).collect();
    let real_filter: Vec<f32> = filter.iter().map(|&q| f32::from(q) * 0.01).collect();
    let expected = naive(&real_input, &real_filter, &[0.0; 7], inputs);
    for (got, real) in got.iter().zip(expected) {
        let expected = ((real / 0.2).round() as i32 + 4).clamp(-128, 127);
        assert!((i32::from(*got) - expected).abs() <= 1, "{got} instead of {expected}");
    }
}

/// Weights of a layer with inputs quantized at run time, and their real values.
struct Weights {
    value: Value,
    real: Vec<f32>,
}

/// Returns the result of a layer with `input` quantized at run time, and the expected one, which
/// includes the rounding of the input so that only the product is tested.
fn run_dynamic(
    rows: usize,
    inputs: usize,
    outputs: usize,
    weights: &Weights,
) -> Result<(Vec<f32>, Vec<f32>)> {
    let (input, bias) = (random(rows as u64, rows * inputs), random(9, outputs));
    let mut builder = Builder::new();
    let x = builder.input_f32(&[rows, inputs]);
    let dynamic = Quantization::Dynamic { num_nonbatch_dims: 1 };
    let q = builder.value(Value::new(Datatype::QdInt8, dynamic, &[rows, inputs]));
    let w = builder.value(weights.value.clone());
    let b = builder.value(f32s(&[outputs]).with_data(le_bytes(&bias)));
    let y = builder.output_f32(&[rows, outputs]);
    builder.node(NodeOp::Unary { op: UnaryOp::Convert, input: x, output: q });
    builder.node(node(q, w, Some(b), y));
    let got = builder.run_f32(&[&input])?;
    let rounded: Vec<f32> = input.chunks(inputs).flat_map(quantize_row).collect();
    Ok((got, naive(&rounded, &weights.real, &bias, inputs)))
}

/// Rounds a row like dynamic quantization: to 255 steps over its range, which includes 0.
fn quantize_row(row: &[f32]) -> Vec<f32> {
    let min = row.iter().copied().fold(0.0, f32::min);
    let max = row.iter().copied().fold(0.0, f32::max);
    let scale = (max - min) / 255.0;
    let zero_point = (-128.0 - min / scale).round().clamp(-128.0, 127.0);
    row.iter()
        .map(|x| ((x / scale).round() + zero_point).clamp(-128.0, 127.0))
        .map(|q| (q - zero_point) * scale)
        .collect()
}

fn int8_per_channel(inputs: usize, outputs: usize) -> Weights {
    let elements = i8_weights(5, outputs * inputs);
    let scales: Vec<f32> = (0..outputs).map(|o| 0.01 + 0.001 * o as f32).collect();
    let real =
        elements.iter().enumerate().map(|(at, &q)| f32::from(q) * scales[at / inputs]).collect();
    let quantization = Quantization::PerChannel { scales: scales.into(), channel_dim: 0 };
    let value = Value::new(Datatype::QcInt8, quantization, &[outputs, inputs])
        .with_data(elements.iter().map(|&q| q as u8).collect());
    Weights { value, real }
}

/// 4-bit weights of `inputs` columns, two per byte with the first in the low nibble, and their
/// values.
fn nibbles(inputs: usize, outputs: usize) -> (Bytes, Vec<f32>) {
    let bytes: Vec<u8> = random_i8(6, outputs * inputs / 2).iter().map(|&q| q as u8).collect();
    let integers =
        bytes.iter().flat_map(|byte| [byte & 15, byte >> 4]).map(|n| f32::from(n) - 8.0).collect();
    (bytes.into(), integers)
}

fn int4_per_channel(inputs: usize, outputs: usize) -> Weights {
    let (data, integers) = nibbles(inputs, outputs);
    let scales: Vec<f32> = (0..outputs).map(|o| 0.1 + 0.01 * o as f32).collect();
    let real = integers.iter().enumerate().map(|(at, q)| q * scales[at / inputs]).collect();
    let quantization = Quantization::PerChannel { scales: scales.into(), channel_dim: 0 };
    let value = Value::new(Datatype::QcInt4, quantization, &[outputs, inputs]).with_data(data);
    Weights { value, real }
}

fn int4_blockwise(inputs: usize, outputs: usize, block_size: usize) -> Weights {
    let (data, integers) = nibbles(inputs, outputs);
    let scales: Vec<f32> = (0..outputs * inputs / block_size)
        .map(|block| bf16::from_f32(0.1 + 0.01 * block as f32).to_f32())
        .collect();
    let real = integers.iter().enumerate().map(|(at, q)| q * scales[at / block_size]).collect();
    let quantization =
        Quantization::Blockwise { scales: scales.into(), channel_dim: 0, block_size };
    let value = Value::new(Datatype::QbInt4, quantization, &[outputs, inputs]).with_data(data);
    Weights { value, real }
}

#[test]
fn dynamic_int8_per_channel() {
    for rows in 1..=9 {
        let (got, expected) = run_dynamic(rows, 24, 11, &int8_per_channel(24, 11)).unwrap();
        assert_close(&got, &expected, 1e-4);
    }
}

#[test]
fn dynamic_int4_per_channel() {
    for rows in 1..=9 {
        let (got, expected) = run_dynamic(rows, 32, 11, &int4_per_channel(32, 11)).unwrap();
        assert_close(&got, &expected, 1e-4);
    }
}

/// XNNPACK's kernel of 14 rows for AVX512-VNNI with GFNI reads quantization parameters of rows that
/// do not exist: the last row is wrong if the number of rows leaves a remainder of 1 to 3.
#[test]
fn dynamic_int4_blockwise_for_every_remainder_of_rows() {
    for rows in (1..=9).chain(13..=18).chain(27..=32) {
        for (inputs, outputs, block_size) in [(64, 20, 32), (128, 16, 64)] {
            let weights = int4_blockwise(inputs, outputs, block_size);
            let (got, expected) = run_dynamic(rows, inputs, outputs, &weights).unwrap();
            assert_close(&got, &expected, 1e-4);
        }
    }
}

#[test]
fn blocks_must_be_multiples_of_32_and_divide_the_row() {
    assert!(run_dynamic(2, 64, 4, &int4_blockwise(64, 4, 32)).is_ok());
    assert!(run_dynamic(2, 64, 4, &int4_blockwise(64, 4, 16)).is_err());
    assert!(run_dynamic(2, 96, 4, &int4_blockwise(96, 4, 64)).is_err());
}

#[test]
fn fp16_throughout() {
    let bits = |values: &[f32]| -> Vec<u16> {
        values.iter().map(|&value| half::f16::from_f32(value).to_bits()).collect()
    };
    let rounded = |values: Vec<f32>| -> Vec<f32> {
        values.iter().map(|&value| half::f16::from_f32(value).to_f32()).collect()
    };
    let (input, filter, bias) =
        (rounded(random(1, 10)), rounded(random(2, 15)), rounded(random(3, 3)));
    let f16s = |dims: &[usize]| Value::new(Datatype::F16, Quantization::None, dims);
    let constant =
        |values: &[f32]| bits(values).iter().flat_map(|b| b.to_le_bytes()).collect::<Bytes>();
    let mut builder = Builder::new();
    let x = builder.input(f16s(&[2, 5]));
    let w = builder.value(f16s(&[3, 5]).with_data(constant(&filter)));
    let b = builder.value(f16s(&[3]).with_data(constant(&bias)));
    let y = builder.output(f16s(&[2, 3]));
    builder.node(node(x, w, Some(b), y));
    let result = builder.run::<u16, u16>(&[&bits(&input)]);
    let Some(got) = in_half_precision(result) else { return };
    let got: Vec<f32> = got.iter().map(|&b| half::f16::from_bits(b).to_f32()).collect();
    assert_close(&got, &naive(&input, &filter, &bias, 5), 5e-3);
}

#[test]
fn bf16_computes_in_fp32() {
    let bits = |values: &[f32]| -> Vec<u16> {
        values.iter().map(|&value| bf16::from_f32(value).to_bits()).collect()
    };
    let rounded = |values: Vec<f32>| -> Vec<f32> {
        values.iter().map(|&value| bf16::from_f32(value).to_f32()).collect()
    };
    let (input, filter, bias) = (rounded(random(1, 16)), rounded(random(2, 32)), random(3, 4));
    let bf16s = |dims: &[usize]| Value::new(Datatype::Bf16, Quantization::None, dims);
    let weights = bits(&filter).iter().flat_map(|b| b.to_le_bytes()).collect::<Bytes>();
    let mut builder = Builder::new();
    let x = builder.input(bf16s(&[2, 8]));
    let w = builder.value(bf16s(&[4, 8]).with_data(weights));
    let b = builder.constant_f32(&[4], &bias);
    let y = builder.output(bf16s(&[2, 4]));
    builder.node(node(x, w, Some(b), y));
    let got = builder.run::<u16, u16>(&[&bits(&input)]).unwrap();
    let expected = naive(&input, &filter, &bias, 8);
    for (got, expected) in got.iter().zip(expected) {
        let difference = i32::from(*got) - i32::from(bf16::from_f32(expected).to_bits());
        assert!(difference.abs() <= 1, "{} instead of {expected}", bf16::from_bits(*got));
    }
}
