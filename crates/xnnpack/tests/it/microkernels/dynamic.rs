//! Fully connected layers of rows quantized at run time, with int8 and 4-bit weights per channel and
//! 4-bit weights per block. Convolutions of images quantized at run time are in `images`.

use std::sync::Arc;

use super::arithmetic::pair;
use super::layer::{run_guarded, transposed};
use super::{RARELY, least_weight, one_in, one_to};
use crate::fixture::{Fixture, any_f32, f32};
use xnn_testing::Random;
use xnnpack::{
    Datatype, Flags, FullyConnected, OutputRange, Quantization, Runtime, RuntimeOptions,
    TensorSpec, ThreadPool, Unary, UnaryOp, ValueId,
};

/// Tolerance for sums, relative to the sum of absolute products.
const TOLERANCE: f64 = 1e-6;

#[derive(Clone, Copy, Debug)]
struct Dynamic {
    /// `Qcint8`, `Qcint4` or `Qbint4`.
    filter: Datatype,
    rows: usize,
    inputs: usize,
    outputs: usize,
    /// Number of weights that share a scale; a channel is one block, except of `Qbint4`.
    block_size: usize,
    /// Whether filters are `[inputs, outputs]`, for `Qcint8`.
    transposed: bool,
    threads: usize,
}

/// A row that quantization does not change: `(values - zero_point) * scale`.
struct Row {
    values: Vec<i32>,
    zero_point: i32,
    scale: f32,
}

impl Row {
    fn draw(inputs: usize, random: &mut Random) -> Self {
        let mut values: Vec<i32> = random.i8s(inputs).into_iter().map(i32::from).collect();
        // These two determine range and scale.
        values[0] = -128;
        values[inputs - 1] = 127;
        let zero_point = i32::from(random.i8s(1)[0]);
        let scale = [0.25, 1.0, 8.0][random.below(3)];
        Self { values, zero_point, scale }
    }

    fn floats(&self) -> impl Iterator<Item = f32> + '_ {
        self.values.iter().map(|value| (value - self.zero_point) as f32 * self.scale)
    }
}

struct Operands {
    rows: Vec<Row>,
    /// `[outputs, inputs]`
    weights: Vec<i32>,
    /// Scales of blocks: powers of two, and 1.5 times these.
    scales: Vec<f32>,
    bias: Vec<f32>,
    range: OutputRange,
}

impl Dynamic {
    fn draw(&self, random: &mut Random) -> Operands {
        let limit = if self.filter == Datatype::Qcint8 { 128 } else { 8 };
        let byte = |random: &mut Random| random.i8s(1)[0].max(least_weight(false));
        let weight = |random: &mut Random| i32::from(byte(random)) / (128 / limit);
        let scale = |random: &mut Random| [0.5, 0.75, 1.0, 6.0][random.below(4)];
        let blocks = self.outputs * self.inputs / self.block_size;
        let bound = random.f32s(1, 100.0, 10000.0)[0];
        let clips = random.below(2) == 0;
        let mut weights: Vec<i32> =
            (0..self.outputs * self.inputs).map(|_| weight(random)).collect();
        if self.filter == Datatype::Qcint8 && one_in(3, random) {
            pair(&mut weights, self.inputs, self.inputs, 0, random);
        }
        Operands {
            rows: (0..self.rows).map(|_| Row::draw(self.inputs, random)).collect(),
            weights,
            scales: (0..blocks).map(|_| scale(random)).collect(),
            bias: random.f32s(self.outputs, -1000.0, 1000.0),
            range: if clips {
                OutputRange { min: -bound, max: bound }
            } else {
                OutputRange::default()
            },
        }
    }

    fn runtime(&self, operands: &Operands) -> Runtime {
        let mut fixture = Fixture::new();
        let input = fixture.input::<f32>(f32(&[self.rows, self.inputs]), &[]);
        let by_row = Quantization::Dynamic { nonbatch_dims: 1 };
        let quantized = fixture.internal(TensorSpec::inferred(Datatype::Qdint8).quantized(by_row));
        let convert = Unary { op: UnaryOp::Convert, input, output: quantized };
        fixture.graph.define(convert).unwrap();
        let filter = self.filter(&mut fixture, operands);
        let bias = Some(fixture.constant(f32(&[self.outputs]), &operands.bias));
        let output = fixture.output(any_f32());
        let fixture = fixture.node(FullyConnected {
            output_range: operands.range,
            input: quantized,
            filter,
            bias,
            output,
            flags: self.flags(),
        });
        let pool = (self.threads > 1).then(|| Arc::new(ThreadPool::new(self.threads).unwrap()));
        let options = RuntimeOptions { threadpool: pool, ..RuntimeOptions::default() };
        Runtime::new(fixture.graph, &options).unwrap()
    }

    fn flags(&self) -> Flags {
        let layout = if self.transposed { Flags::TRANSPOSE_WEIGHTS } else { Flags::NONE };
        let has_many_rows = self.filter != Datatype::Qbint4 && self.rows > 8;
        layout | if has_many_rows { Flags::MANY_ROWS } else { Flags::NONE }
    }

    fn filter(&self, fixture: &mut Fixture, operands: &Operands) -> ValueId {
        if self.filter == Datatype::Qcint8 {
            let scales = operands.scales.as_slice().into();
            let axis = usize::from(self.transposed);
            let channels = Quantization::PerChannel { zero_point: 0, axis, scales };
            let byte = |&weight: &i32| i8::try_from(weight).unwrap();
            let bytes: Vec<i8> = operands.weights.iter().map(byte).collect();
            let (dims, bytes) = if self.transposed {
                ([self.inputs, self.outputs], transposed(&bytes, self.inputs))
            } else {
                ([self.outputs, self.inputs], bytes)
            };
            return fixture
                .constant(TensorSpec::new(self.filter, &dims).quantized(channels), &bytes);
        }
        let spec = TensorSpec::new(self.filter, &[self.outputs, self.inputs]);
        let quantization = if self.filter == Datatype::Qcint4 {
            let scales = operands.scales.as_slice().into();
            Quantization::PerChannel { zero_point: 8, axis: 0, scales }
        } else {
            let upper_half = |scale: &f32| u16::try_from(scale.to_bits() >> 16).unwrap();
            let scales = operands.scales.iter().map(upper_half).collect();
            Quantization::Blockwise { zero_point: 8, axis: 0, block_size: self.block_size, scales }
        };
        let byte = |pair: &[i32]| u8::try_from((pair[0] + 8) | (pair[1] + 8) << 4).unwrap();
        let bytes: Vec<u8> = operands.weights.chunks_exact(2).map(byte).collect();
        fixture.constant(spec.quantized(quantization), &bytes)
    }

    fn check(&self, random: &mut Random) {
        let operands = self.draw(random);
        let mut runtime = self.runtime(&operands);
        runtime.reshape().unwrap();
        let input: Vec<f32> = operands.rows.iter().flat_map(Row::floats).collect();
        let actual = run_guarded::<f32, f32>(&mut runtime, &input, self);
        assert_eq!(actual.len(), self.rows * self.outputs);
        let range = operands.range;
        for (row, actual) in operands.rows.iter().zip(actual.chunks_exact(self.outputs)) {
            for (output, &actual) in actual.iter().enumerate() {
                let (sum, size) = self.sum(&operands, row, output);
                let sum = sum.clamp(range.min.into(), range.max.into());
                let near = (f64::from(actual) - sum).abs() <= TOLERANCE * size;
                assert!(near, "output {output} is {actual}, not {sum}, in {self:?}");
            }
        }
    }

    /// Returns an output before it is clipped, and the sum of absolute terms that microkernels add:
    /// they subtract zero points at the end, and some add 128 to inputs.
    fn sum(&self, operands: &Operands, row: &Row, output: usize) -> (f64, f64) {
        let weights = operands.weights.chunks_exact(self.inputs).nth(output).unwrap();
        let blocks = self.inputs / self.block_size;
        let scales = &operands.scales[output * blocks..][..blocks];
        let mut sum = f64::from(operands.bias[output]);
        let mut size = sum.abs();
        for (index, (weight, value)) in weights.iter().zip(&row.values).enumerate() {
            let scale = f64::from(scales[index / self.block_size]) * f64::from(row.scale);
            sum += scale * f64::from(weight * (value - row.zero_point));
            size += scale * f64::from((weight * 256).abs());
        }
        (sum, size)
    }
}

/// Sizes around whole tiles of rows and channels.
fn rows_and_outputs(round: usize, random: &mut Random) -> [usize; 2] {
    [if round < 40 { 1 + round / 2 } else { one_to(30, random) }, one_to(100, random)]
}

fn threads(random: &mut Random) -> usize {
    if one_in(RARELY, random) { 2 } else { 1 }
}

#[test]
fn products_of_dynamic_rows() {
    let (random, filter) = (&mut Random::new(10), Datatype::Qcint8);
    for round in 0..150 {
        let [rows, outputs] = rows_and_outputs(round, random);
        let inputs = 1 + one_to(200, random);
        let threads = threads(random);
        let transposed = one_in(4, random);
        Dynamic { filter, rows, inputs, outputs, block_size: inputs, transposed, threads }
            .check(random);
    }
}

/// More rows, inputs and channels than a tile has, and more inputs than microkernels copy at once.
#[test]
fn deep_products_of_dynamic_rows() {
    let (random, filter) = (&mut Random::new(18), Datatype::Qcint8);
    for round in 0..12 {
        let (rows, outputs) = (one_to(70, random), 150 + one_to(150, random));
        let inputs = if round < 10 { 1000 } else { 4096 } + one_to(1000, random);
        let (transposed, threads) = (one_in(4, random), threads(random));
        Dynamic { filter, rows, inputs, outputs, block_size: inputs, transposed, threads }
            .check(random);
    }
}

#[test]
fn products_of_dynamic_rows_and_nibbles() {
    let (random, filter) = (&mut Random::new(29), Datatype::Qcint4);
    for round in 0..150 {
        let [mut rows, mut outputs] = rows_and_outputs(round, random);
        let mut inputs = 2 * one_to(150, random);
        if round >= 140 {
            (rows, outputs, inputs) = (one_to(70, random), 3 * outputs, 10 * inputs);
        }
        let threads = threads(random);
        Dynamic { filter, rows, inputs, outputs, block_size: inputs, transposed: false, threads }
            .check(random);
    }
}

#[test]
fn products_of_dynamic_rows_and_blocks() {
    let (random, filter) = (&mut Random::new(11), Datatype::Qbint4);
    for round in 0..150 {
        let [rows, outputs] = rows_and_outputs(round, random);
        let block_size = 32 * one_to(4, random);
        let inputs = block_size * one_to(4, random);
        let threads = threads(random);
        Dynamic { filter, rows, inputs, outputs, block_size, transposed: false, threads }
            .check(random);
    }
}
