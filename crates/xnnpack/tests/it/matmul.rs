use std::sync::Arc;

use crate::fixture::{Fixture, any_f32, any_qint8, assert_close, f32, qint8, ramp};
use xnnpack::{
    BatchMatMul, Datatype, Flags, FullyConnected, FullyConnectedSparse, OutputRange, Quantization,
    RuntimeOptions, Status, TensorSpec, Unary, UnaryOp, ValueId, WeightsCache,
};

fn dense(
    input: ValueId,
    filter: ValueId,
    bias: Option<ValueId>,
    output: ValueId,
) -> FullyConnected {
    let (output_range, flags) = (OutputRange::default(), Flags::NONE);
    FullyConnected { output_range, input, filter, bias, output, flags }
}

#[test]
fn fully_connected() {
    let mut fixture = Fixture::new();
    let input = fixture.input(f32(&[2, 3]), &ramp(6));
    let filter = fixture.constant(f32(&[2, 3]), &[1.0f32, 1.0, 1.0, 1.0, 0.0, -1.0]);
    let bias = fixture.constant(f32(&[2]), &[0.5f32, -0.5]);
    let output = fixture.output(any_f32());
    let result = fixture.node(dense(input, filter, Some(bias), output)).run::<f32>();
    assert_close(&result, &[3.5, -2.5, 12.5, -2.5], 0.0);
}

#[test]
fn fully_connected_with_transposed_weights_and_flattened_input() {
    let mut fixture = Fixture::new();
    let input = fixture.input(f32(&[1, 2, 2]), &ramp(4));
    let filter = fixture.constant(f32(&[4, 1]), &[1.0f32, 10.0, 100.0, 1000.0]);
    let output = fixture.output(f32(&[1, 1]));
    let flags = Flags::TRANSPOSE_WEIGHTS | Flags::RESHAPE_2D;
    let node = FullyConnected { flags, ..dense(input, filter, None, output) };
    assert_close(&fixture.node(node).run::<f32>(), &[3210.0], 0.0);
}

#[test]
fn fully_connected_with_computed_weights() {
    let mut fixture = Fixture::new();
    let input = fixture.input(f32(&[1, 2]), &[1.0f32, 2.0]);
    let filter = fixture.input(f32(&[3, 2]), &ramp(6));
    let bias = fixture.input(f32(&[3]), &[0.0f32, 0.0, 1.0]);
    let output = fixture.output(any_f32());
    let result = fixture.node(dense(input, filter, Some(bias), output)).run::<f32>();
    assert_close(&result, &[2.0, 8.0, 15.0], 0.0);
}

#[test]
fn quantized_fully_connected() {
    let mut fixture = Fixture::new();
    let input = fixture.input(qint8(&[1, 2], 0, 0.5), &[2i8, 4]);
    let filter = fixture.constant(qint8(&[1, 2], 0, 1.0), &[3i8, -1]);
    let output = fixture.output(any_qint8(5, 0.5));
    assert_eq!(fixture.node(dense(input, filter, None, output)).run::<i8>(), [7]);
}

/// Two nodes with the same weights, which some processors multiply by different microkernels.
#[test]
fn many_rows_have_packed_weights_of_their_own() {
    let (rows, inputs, outputs) = (20, 256, 64);
    let bytes = |count: usize| -> Vec<i8> {
        (0..count).map(|index| i8::try_from(index * index % 251 % 128).unwrap() - 60).collect()
    };
    for shares in [false, true] {
        let mut fixture = Fixture::new();
        let input = fixture.input(qint8(&[rows, inputs], 3, 0.5), &bytes(rows * inputs));
        let filter = fixture.constant(qint8(&[outputs, inputs], 0, 0.25), &bytes(outputs * inputs));
        let results = [(); 2].map(|()| fixture.output(any_qint8(5, 300.0)));
        let few = dense(input, filter, None, results[0]);
        let many =
            FullyConnected { flags: Flags::MANY_ROWS, ..dense(input, filter, None, results[1]) };
        let weights_cache = shares.then(WeightsCache::in_process);
        let options = RuntimeOptions { weights_cache, ..RuntimeOptions::default() };
        let results = fixture.node(few).node(many).run_with::<i8>(&options).unwrap();
        assert_eq!(results[0], results[1]);
        assert!(results[0].iter().any(|&y| y != results[0][0]), "{:?}", results[0]);
    }
    let mut fixture = Fixture::new();
    let input = fixture.input(f32(&[1, 4]), &ramp(4));
    let filter = fixture.constant(f32(&[4, 4]), &ramp(16));
    let output = fixture.output(any_f32());
    let node = FullyConnected { flags: Flags::MANY_ROWS, ..dense(input, filter, None, output) };
    let refusal = fixture.refusal(node).to_string();
    assert!(refusal.contains("8-bit"), "{refusal}");
}

#[test]
fn sparse_weights_are_constant_floats() {
    let refusal = |input: TensorSpec, filter: TensorSpec, is_constant: bool, flags: Flags| {
        let mut fixture = Fixture::new();
        let is_float = input.datatype == Datatype::F32;
        let input = fixture.input::<f32>(input, &[]);
        let filter = match is_constant {
            true if is_float => fixture.constant(filter, &ramp(16)),
            true => fixture.constant(filter, &[1i8; 16]),
            false => fixture.input::<f32>(filter, &[]),
        };
        let output = fixture.output(if is_float { any_f32() } else { any_qint8(0, 1.0) });
        let flags = flags | Flags::SPARSE_WEIGHTS;
        let node = FullyConnected { flags, ..dense(input, filter, None, output) };
        fixture.refusal(node).to_string()
    };
    let floats = || f32(&[4, 4]);
    let integers = || qint8(&[4, 4], 0, 0.5);
    let of_integers = refusal(integers(), integers(), true, Flags::NONE);
    assert!(of_integers.contains("requires fp32 inputs"), "{of_integers}");
    let computed = refusal(floats(), floats(), false, Flags::NONE);
    assert!(computed.contains("filter"), "{computed}");
    let rows = refusal(floats(), floats(), true, Flags::MANY_ROWS);
    assert!(rows.contains("many rows"), "{rows}");
}

fn dynamic_input(fixture: &mut Fixture, rows: usize, data: &[f32]) -> ValueId {
    let input = fixture.input(f32(&[rows, data.len() / rows]), data);
    let rows = Quantization::Dynamic { nonbatch_dims: 1 };
    let output = fixture.internal(TensorSpec::inferred(Datatype::Qdint8).quantized(rows));
    fixture.graph.define(Unary { op: UnaryOp::Convert, input, output }).unwrap();
    output
}

#[test]
fn dynamically_quantized_fully_connected_with_8_and_4_bit_weights() {
    let data: Vec<f32> = (0..64u8).map(|index| f32::from(index % 2)).collect();
    for (datatype, bytes) in [(Datatype::Qcint8, vec![1u8; 64]), (Datatype::Qcint4, vec![0x99; 32])]
    {
        let mut fixture = Fixture::new();
        let input = dynamic_input(&mut fixture, 2, &data);
        let zero_point = if datatype == Datatype::Qcint4 { 8 } else { 0 };
        let scales = Quantization::PerChannel { zero_point, axis: 0, scales: Arc::new([0.5, 2.0]) };
        let filter =
            fixture.constant(TensorSpec::new(datatype, &[2, 32]).quantized(scales), &bytes);
        let output = fixture.output(any_f32());
        let result = fixture.node(dense(input, filter, None, output)).run::<f32>();
        assert_close(&result, &[8.0, 32.0, 8.0, 32.0], 0.1);
    }
}

#[test]
fn blockwise_weights() {
    let mut fixture = Fixture::new();
    let input = dynamic_input(&mut fixture, 1, &[1.0; 64]);
    let bf16 = |value: f32| u16::try_from(value.to_bits() >> 16).unwrap();
    let quantization = Quantization::Blockwise {
        zero_point: 8,
        axis: 0,
        block_size: 32,
        scales: Arc::new([bf16(1.0), bf16(0.5), bf16(2.0), bf16(0.25)]),
    };
    let filter = TensorSpec::new(Datatype::Qbint4, &[2, 64]).quantized(quantization);
    let filter = fixture.constant(filter, &[0x99u8; 64]);
    let output = fixture.output(any_f32());
    let result = fixture.node(dense(input, filter, None, output)).run::<f32>();
    assert_close(&result, &[48.0, 72.0], 0.5);
}

/// XNNPACK packs pairs of rows, only for inputs quantized at run time.
#[test]
fn transposed_4_bit_weights() {
    let four_bits = |fixture: &mut Fixture, inputs: usize, outputs: usize| {
        let scales = vec![1.0; outputs].into();
        let quantization = Quantization::PerChannel { zero_point: 8, axis: 1, scales };
        let filter = TensorSpec::new(Datatype::Qcint4, &[inputs, outputs]).quantized(quantization);
        fixture.constant(filter, &vec![0x99u8; inputs * outputs / 2])
    };
    let transposed = |input, filter, output| FullyConnected {
        flags: Flags::TRANSPOSE_WEIGHTS,
        ..dense(input, filter, None, output)
    };
    let mut fixture = Fixture::new();
    let input = dynamic_input(&mut fixture, 1, &[1.0; 12]);
    let filter = four_bits(&mut fixture, 12, 4);
    let output = fixture.output(any_f32());
    let result = fixture.node(transposed(input, filter, output)).run::<f32>();
    assert_close(&result, &[12.0; 4], 0.1);

    let mut fixture = Fixture::new();
    let odd = dynamic_input(&mut fixture, 1, &[1.0; 13]);
    let floats = fixture.input(f32(&[1, 12]), &[1.0f32; 12]);
    let filters = [13, 12].map(|inputs| four_bits(&mut fixture, inputs, 4));
    let output = fixture.internal(any_f32());
    fixture.refusal(transposed(odd, filters[0], output));
    fixture.refusal(transposed(floats, filters[1], output));
}

#[test]
fn sparse_fully_connected() {
    let mut fixture = Fixture::new();
    let input = fixture.input(f32(&[2, 3]), &ramp(6));
    let filter = fixture.constant(f32(&[2, 3]), &[0.0f32, 2.0, 0.0, 0.0, 0.0, 3.0]);
    let bias = fixture.constant(f32(&[2]), &[1.0f32, 0.0]);
    let output = fixture.output(any_f32());
    let output_range = OutputRange::default();
    let node = FullyConnectedSparse { output_range, input, filter, bias: Some(bias), output };
    // XNNPACK has no sparse kernels where dense ones are faster, as with AVX.
    match fixture.node(node).run_with::<f32>(&RuntimeOptions::default()) {
        Ok(outputs) => assert_close(&outputs[0], &[3.0, 6.0, 9.0, 15.0], 0.0),
        Err(error) => assert_eq!(error.status(), Status::UnsupportedHardware, "{error}"),
    }
}

#[test]
fn batched_products_broadcast() {
    let mut fixture = Fixture::new();
    let a = fixture.input(f32(&[2, 1, 2]), &[1.0f32, 2.0, 3.0, 4.0]);
    let b = fixture.input(f32(&[2, 2]), &[1.0f32, 0.0, 0.0, 10.0]);
    let output = fixture.output(any_f32());
    let node = BatchMatMul { a, b, output, flags: Flags::NONE };
    assert_close(&fixture.node(node).run::<f32>(), &[1.0, 20.0, 3.0, 40.0], 0.0);
}

#[test]
fn batched_product_with_transposed_constant() {
    let mut fixture = Fixture::new();
    let a = fixture.input(f32(&[1, 1, 2]), &[1.0f32, 2.0]);
    let b = fixture.constant(f32(&[1, 3, 2]), &ramp(6));
    let output = fixture.output(f32(&[1, 1, 3]));
    let node = BatchMatMul { a, b, output, flags: Flags::TRANSPOSE_B };
    assert_close(&fixture.node(node).run::<f32>(), &[2.0, 8.0, 14.0], 0.0);
}

#[test]
fn batched_product_with_scales() {
    let mut fixture = Fixture::new();
    let a = dynamic_input(&mut fixture, 2, &[1.0, 0.0, 0.0, 1.0]);
    let scales = |count: usize, axis| Quantization::PerChannel {
        zero_point: 0,
        axis,
        scales: vec![0.5; count].into(),
    };
    let b = TensorSpec::new(Datatype::Qcint8, &[2, 3]).quantized(scales(3, 1));
    let b = fixture.constant(b, &[2i8, 4, 6, 8, 10, 12]);
    let rows = TensorSpec::new(Datatype::Qcint8, &[2, 3]).quantized(scales(2, 0));
    let rows = fixture.constant(rows, &[0i8; 6]);
    let batch = TensorSpec::new(Datatype::Qcint8, &[2, 2, 3]).quantized(scales(3, 2));
    let batch = fixture.constant(batch, &[0i8; 12]);
    let output = fixture.output(any_f32());
    let node = BatchMatMul { a, b, output, flags: Flags::NONE };
    fixture.refusal(BatchMatMul { b: rows, ..node.clone() });
    fixture.refusal(BatchMatMul { b: batch, ..node.clone() });
    let result = fixture.node(node).run::<f32>();
    assert_close(&result, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 0.1);
}

#[test]
fn wrong_products_are_refused() {
    let mut fixture = Fixture::new();
    let input = fixture.input(f32(&[2, 3]), &ramp(6));
    let vector = fixture.input(f32(&[3]), &ramp(3));
    let filter = fixture.constant(f32(&[2, 3]), &[0.0f32; 6]);
    let narrow = fixture.constant(f32(&[2, 2]), &[0.0f32; 4]);
    let cube = fixture.constant(f32(&[2, 3, 1]), &[0.0f32; 6]);
    let bias = fixture.constant(f32(&[3]), &[0.0f32; 3]);
    let quantization = Quantization::PerTensor { zero_point: 3, scale: 1.0 };
    let shifted = TensorSpec::new(Datatype::Qint8, &[2, 3]).quantized(quantization);
    let shifted = fixture.constant(shifted, &[0i8; 6]);
    let bytes = fixture.input(qint8(&[2, 3], 0, 1.0), &[0i8; 6]);
    let output = fixture.internal(any_f32());
    let byte_output = fixture.internal(any_qint8(0, 1.0));
    let good = dense(input, filter, None, output);

    fixture.refusal(FullyConnected { filter: narrow, ..good.clone() });
    fixture.refusal(FullyConnected { filter: cube, ..good.clone() });
    fixture.refusal(FullyConnected { bias: Some(bias), ..good.clone() });
    fixture.refusal(FullyConnected { flags: Flags::TRANSPOSE_WEIGHTS, ..good.clone() });
    fixture.refusal(FullyConnected { flags: Flags::KEEP_DIMS, ..good.clone() });
    fixture.refusal(FullyConnected { filter: shifted, ..good.clone() });
    fixture.refusal(dense(bytes, shifted, None, byte_output));

    let output_range = OutputRange::default();
    let sparse = FullyConnectedSparse { output_range, input: vector, filter, bias: None, output };
    fixture.refusal(sparse);
    fixture.refusal(BatchMatMul { a: input, b: input, output, flags: Flags::NONE });
    fixture.refusal(BatchMatMul { a: vector, b: input, output, flags: Flags::NONE });
    fixture.refusal(BatchMatMul { a: bytes, b: bytes, output, flags: Flags::TRANSPOSE_B });
    fixture.graph.define(good).unwrap();
}

#[test]
fn rows_must_be_those_of_the_filter() {
    let mut fixture = Fixture::new();
    let input = fixture.input(f32(&[2, 2, 4]), &ramp(16));
    let rows = Quantization::Dynamic { nonbatch_dims: 2 };
    let quantized = fixture.internal(TensorSpec::inferred(Datatype::Qdint8).quantized(rows));
    fixture.graph.define(Unary { op: UnaryOp::Convert, input, output: quantized }).unwrap();
    let scales = Quantization::PerChannel { zero_point: 0, axis: 0, scales: Arc::new([1.0]) };
    let filter = TensorSpec::new(Datatype::Qcint8, &[1, 4]).quantized(scales);
    let filter = fixture.constant(filter, &[0i8; 4]);
    let output = fixture.internal(any_f32());
    fixture.refusal(dense(quantized, filter, None, output));
}
