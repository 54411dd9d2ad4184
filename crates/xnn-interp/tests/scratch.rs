//! Kernels take at most four bytes for each byte of their tensors, which the interpreter checks for before large ones run.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod common;

use common::{Builder, load};
use xnn_interp::TensorBuf;
use xnn_model::op::*;
use xnn_model::{DType, Op, TensorId};
use xnn_testing::{CountingAllocator, peak_bytes};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Bytes per byte of an operator's tensors, as `SCRATCH` of the interpreter.
const SCRATCH: usize = 4;
/// Bytes that any operator may take.
const FREE: usize = 64 << 10;

/// A shape of about a megabyte of bytes.
const IMAGE: [usize; 4] = [1, 128, 128, 64];
const ROW: [usize; 1] = [1 << 20];

/// An operator's inputs, constants included, and its outputs.
type Case =
    (&'static str, Op, fn(&mut Builder) -> Vec<TensorId>, fn(&mut Builder) -> Vec<TensorId>);

fn unknown(b: &mut Builder, dtype: DType) -> TensorId {
    let id = b.tensor(dtype, &[]);
    b.graph.tensors[id].shape = None;
    id
}

fn quantized(b: &mut Builder, dtype: DType, shape: &[usize]) -> TensorId {
    b.quantized(dtype, shape, 0.5, 0)
}

fn quantized_input(b: &mut Builder, dtype: DType, shape: &[usize]) -> TensorId {
    let id = quantized(b, dtype, shape);
    b.graph.inputs.push(id);
    id
}

fn weights(b: &mut Builder, shape: &[usize]) -> TensorId {
    let id = b.constant(shape, &vec![3i8; shape.iter().product()]);
    b.quantize(id, 0.25, 0);
    id
}

fn cases() -> Vec<Case> {
    let window = || Conv2dOptions { stride_w: 1, stride_h: 1, ..Default::default() };
    let up = || TransposeConvOptions { stride_w: 1, stride_h: 1, ..Default::default() };
    vec![
        (
            "WHERE of booleans",
            Op::Where,
            |b| vec![b.input(DType::Bool, &ROW)],
            |b| vec![unknown(b, DType::I64)],
        ),
        (
            "WHERE of floats",
            Op::Where,
            |b| vec![b.input(DType::F32, &ROW)],
            |b| vec![unknown(b, DType::I64)],
        ),
        (
            "TOPK_V2",
            Op::TopkV2,
            |b| vec![b.input(DType::I8, &ROW), b.constant(&[], &[1000i32])],
            |b| vec![b.tensor(DType::I8, &[1000]), b.tensor(DType::I32, &[1000])],
        ),
        (
            "UNIQUE of bytes",
            Op::from_code(103).unwrap(),
            |b| vec![b.input(DType::I8, &ROW)],
            |b| vec![unknown(b, DType::I8), b.tensor(DType::I32, &ROW)],
        ),
        (
            "UNIQUE of floats",
            Op::from_code(103).unwrap(),
            |b| vec![b.input(DType::F32, &ROW)],
            |b| vec![unknown(b, DType::F32), b.tensor(DType::I32, &ROW)],
        ),
        (
            "CONV_2D",
            Op::Conv2d(window()),
            |b| vec![quantized_input(b, DType::I8, &IMAGE), weights(b, &[64, 3, 3, 64])],
            |b| vec![quantized(b, DType::I8, &IMAGE)],
        ),
        (
            "dynamic-range CONV_2D",
            Op::Conv2d(window()),
            |b| vec![b.input(DType::F32, &IMAGE), weights(b, &[64, 3, 3, 64])],
            |b| vec![b.tensor(DType::F32, &IMAGE)],
        ),
        (
            "16-bit FULLY_CONNECTED",
            Op::FullyConnected(Default::default()),
            |b| vec![quantized_input(b, DType::I16, &[16384, 64]), weights(b, &[64, 64])],
            |b| vec![quantized(b, DType::I16, &[16384, 64])],
        ),
        (
            "FULLY_CONNECTED",
            Op::FullyConnected(Default::default()),
            |b| vec![quantized_input(b, DType::I8, &[16384, 64]), weights(b, &[64, 64])],
            |b| vec![quantized(b, DType::I8, &[16384, 64])],
        ),
        (
            "TRANSPOSE_CONV",
            Op::TransposeConv(up()),
            |b| {
                let shape = b.constant(&[4], &IMAGE.map(|dim| dim as i32));
                vec![shape, weights(b, &[64, 1, 1, 64]), quantized_input(b, DType::I8, &IMAGE)]
            },
            |b| vec![quantized(b, DType::I8, &IMAGE)],
        ),
        (
            "16-bit TRANSPOSE_CONV",
            Op::TransposeConv(up()),
            |b| {
                let shape = b.constant(&[4], &IMAGE.map(|dim| dim as i32));
                vec![shape, weights(b, &[64, 1, 1, 64]), quantized_input(b, DType::I16, &IMAGE)]
            },
            |b| vec![quantized(b, DType::I16, &IMAGE)],
        ),
        (
            "BATCH_MATMUL",
            Op::BatchMatMul(Default::default()),
            |b| [[512, 64], [64, 512]].map(|shape| quantized_input(b, DType::I8, &shape)).into(),
            |b| vec![quantized(b, DType::I8, &[512, 512])],
        ),
        (
            "SUM",
            Op::Sum(Default::default()),
            |b| vec![quantized_input(b, DType::I8, &[1, 1 << 20]), b.constant(&[1], &[0i32])],
            |b| vec![quantized(b, DType::I8, &[1 << 20])],
        ),
        (
            "RFFT2D",
            Op::from_code(131).unwrap(),
            |b| vec![b.input(DType::F32, &[512, 512]), b.constant(&[2], &[512i32, 512])],
            |b| vec![b.tensor(DType::Complex64, &[512, 257])],
        ),
    ]
}

#[test]
fn kernels_take_four_bytes_for_a_byte() {
    let mut failures = Vec::new();
    for (name, op, inputs, outputs) in cases() {
        let mut b = Builder::new();
        let inputs = inputs(&mut b);
        let outputs = outputs(&mut b);
        b.graph.outputs.clone_from(&outputs);
        b.op(op, &inputs, &outputs);
        let given: Vec<_> = b.graph.inputs.iter().map(|&id| b.graph.tensors[id].clone()).collect();
        let constants: usize = b
            .graph
            .tensors
            .iter()
            .filter_map(|tensor| tensor.data.as_ref())
            .map(|data| data.len())
            .sum();
        let mut interpreter = load(&b.model()).unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut touched = constants;
        for (position, tensor) in given.iter().enumerate() {
            let mut value = TensorBuf::zeros(tensor.dtype, tensor.shape.as_ref().unwrap()).unwrap();
            value.view_mut().bytes.fill(1);
            touched += value.view().bytes.len();
            interpreter.set_input(position, value).unwrap();
        }
        interpreter.run().unwrap_or_else(|error| panic!("{name}: {error}"));
        for position in 0..outputs.len() {
            touched += interpreter.output(position).unwrap().bytes.len();
        }
        // Outputs have their memory now.
        let peak = peak_bytes(|| interpreter.run().unwrap());
        if peak > SCRATCH * touched + FREE {
            failures.push(format!("{name}: {peak} bytes for {touched}"));
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}
