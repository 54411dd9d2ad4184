//! 4-bit weights with a scale for each block of a row. LiteRT multiplies them by activations that
//! are quantized at run time with a scale for each row.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod common;

use common::decide;
use xnn_format::{Datatype, Quantization, Value};
use xnn_lower::Partitioning;
use xnn_model::op::{FullyConnectedOptions, Op};
use xnn_model::{DType, Quantization as Stored};
use xnn_runtime::{Program, ProgramOptions, Session, SessionOptions};
use xnn_testing::{GraphBuilder, Random, le_bytes};

/// Largest relative error of rounding a scale to bf16.
const BF16: f64 = 1.0 / 256.0;
/// Rounding errors of fp32 sums, relative to the sum of absolute products.
const FP32: f64 = 1e-5;

/// A layer `[rows, inputs] x [outputs, inputs]`.
struct Layer {
    rows: usize,
    inputs: usize,
    outputs: usize,
    block_size: usize,
    /// In [-8, 7].
    weights: Vec<i8>,
    scales: Vec<f32>,
    bias: Vec<f32>,
}

impl Layer {
    /// Scales with more digits than bf16 has, a factor of 64 apart.
    fn random(rows: usize, inputs: usize, outputs: usize, block_size: usize) -> Self {
        let mut random = Random::new((rows * inputs + outputs) as u64);
        let exponents = random.f32s(outputs * inputs / block_size, -8.0, -2.0);
        Self {
            rows,
            inputs,
            outputs,
            block_size,
            weights: random.i8s(outputs * inputs).iter().map(|v| v >> 4).collect(),
            scales: exponents.into_iter().map(f32::exp2).collect(),
            bias: random.f32s(outputs, -1.0, 1.0),
        }
    }

    fn decide(&self) -> Partitioning {
        let mut g = GraphBuilder::new("main");
        let x = g.input("x", DType::F32, &[self.rows, self.inputs]);
        // The first of two elements is in the low half of a byte.
        let pairs = self.weights.as_chunks::<2>().0;
        let nibbles: Vec<u8> =
            pairs.iter().map(|&[a, b]| (a as u8 & 15) | ((b as u8 & 15) << 4)).collect();
        let w = g.constant("w", DType::I4, &[self.outputs, self.inputs], nibbles);
        let scales =
            g.constant_f32("scales", &[self.outputs, self.inputs / self.block_size], &self.scales);
        let block_size = self.block_size;
        g.quantization(w, Stored::Blockwise { scales, zero_points: None, block_size });
        let b = g.constant_f32("b", &[self.outputs], &self.bias);
        let y = g.tensor("y", DType::F32, &[self.rows, self.outputs]);
        g.op(Op::FullyConnected(FullyConnectedOptions::default()), &[x, w, b], &[y]).output(y);
        decide(g)
    }

    /// The lowered weights.
    fn lowered(&self) -> Value {
        let partitioning = self.decide();
        let graph = &partitioning.partitions[0].graph;
        let matrix = [self.outputs, self.inputs];
        graph.values.iter().find(|v| v.data.is_some() && v.dims == matrix).unwrap().clone()
    }

    /// The real value of a weight.
    fn real(&self, at: usize) -> f64 {
        f64::from(self.weights[at]) * f64::from(self.scales[at / self.block_size])
    }

    /// Compares results with those of real arithmetic. Quantizing a row changes each element by at
    /// most half a step, and rounding a block's scale changes the block's part of the sum by
    /// [`BF16`].
    fn check(&self, input: &[f32]) {
        let graph = self.decide().partitions.remove(0).graph;
        let program = Program::new(graph, &ProgramOptions::default()).unwrap();
        let mut session = Session::new(&program, &SessionOptions::default()).unwrap();
        session.input_mut(0).copy_from_slice(&le_bytes(input, |v| v.to_le_bytes()));
        session.run().unwrap();
        let outputs = session.output(0).as_chunks().0.iter().map(|&b| f32::from_le_bytes(b));
        for (at, output) in outputs.enumerate() {
            let (row, channel) = (at / self.outputs, at % self.outputs);
            let x = &input[row * self.inputs..][..self.inputs];
            let span =
                x.iter().copied().fold(0.0, f32::max) - x.iter().copied().fold(0.0, f32::min);
            let half_step = f64::from(span) / 255.0 / 2.0;
            let (mut sum, mut bound) = (f64::from(self.bias[channel]), 0.0);
            for block in (0..self.inputs).step_by(self.block_size) {
                let columns = block..block + self.block_size;
                let weight = |column: usize| self.real(channel * self.inputs + column);
                let product = |column: usize| f64::from(x[column]) * weight(column);
                let part: f64 = columns.clone().map(product).sum();
                let weights: f64 = columns.clone().map(|column| weight(column).abs()).sum();
                let products: f64 = columns.map(|column| product(column).abs()).sum();
                sum += part;
                bound += half_step * weights * (1.0 + BF16) + part.abs() * BF16 + products * FP32;
            }
            let apart = (f64::from(output) - sum).abs();
            assert!(
                apart <= bound,
                "{} rows, row {row}, channel {channel}: {output} instead of {sum}, {apart:e} away, \
                 {bound:e} is the most",
                self.rows
            );
        }
    }
}

#[test]
fn products_are_within_the_bound_for_every_kind_of_rows() {
    for rows in [1, 2, 7, 13, 14, 15, 29] {
        for (inputs, outputs, block_size) in [(32, 1, 32), (256, 19, 32), (192, 33, 64)] {
            let layer = Layer::random(rows, inputs, outputs, block_size);
            assert_eq!(layer.lowered().datatype, Datatype::QbInt4);
            let mut random = Random::new(rows as u64);
            let count = rows * inputs;
            layer.check(&random.f32s(count, -1.0, 1.0));
            // Zero points at both ends of the range.
            layer.check(&random.f32s(count, 3.0, 50.0));
            layer.check(&random.f32s(count, -50.0, -3.0));
        }
    }
}

/// With one nonzero element the product is a weight, which shows the order and the sign of nibbles.
#[test]
fn each_weight_has_its_position() {
    let layer = Layer::random(64, 64, 5, 32);
    let mut identity = vec![0.0; 64 * 64];
    identity.iter_mut().step_by(65).for_each(|one| *one = 1.0);
    layer.check(&identity);
}

#[test]
fn scales_are_rounded_to_the_nearest_bf16() {
    let layer = Layer::random(1, 256, 19, 32);
    let Quantization::Blockwise { scales, block_size: 32, .. } = layer.lowered().quantization
    else {
        panic!("not blockwise");
    };
    assert_eq!(scales.len(), layer.scales.len());
    for (rounded, scale) in scales.iter().zip(&layer.scales) {
        assert_eq!(rounded.to_bits() << 16, 0, "{rounded} is no bf16");
        assert!((rounded - scale).abs() <= scale * BF16 as f32, "{rounded} instead of {scale}");
    }
}

#[test]
fn unsupported_blocks_and_scales_are_unpacked() {
    let kind = |inputs, block_size, scale: f32| {
        let mut layer = Layer::random(3, inputs, 4, block_size);
        layer.scales[1] = scale;
        layer.lowered().datatype
    };
    assert_eq!(kind(64, 32, 0.5), Datatype::QbInt4);
    assert_eq!(kind(96, 96, 0.5), Datatype::QbInt4);
    assert_eq!(kind(64, 16, 0.5), Datatype::F32, "half of the smallest block");
    assert_eq!(kind(144, 48, 0.5), Datatype::F32, "one and a half times the smallest block");
    assert_eq!(kind(64, 32, 0.0), Datatype::F32);
    assert_eq!(kind(64, 32, -0.5), Datatype::F32);
    assert_eq!(kind(64, 32, f32::MAX), Datatype::F32, "infinite as bf16");
    assert_eq!(kind(64, 32, 16.0 * f32::MIN_POSITIVE), Datatype::QbInt4);
    assert_eq!(kind(64, 32, 8.0 * f32::MIN_POSITIVE), Datatype::F32, "subnormal for the kernels");
    let unpacked = Layer::random(3, 144, 4, 48);
    unpacked.check(&Random::new(1).f32s(3 * 144, -1.0, 1.0));
}
