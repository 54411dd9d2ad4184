//! Rescaling of sums of uint8: every power of two, ties of both signs, and parts of tiles.

use super::layer::{Form, Layer, Types};
use super::one_in;
use xnn_testing::Random;
use xnnpack::{Datatype, OutputRange, Quantization, TensorSpec, has_fast_uint8};

/// Exponents of scales, up to the least and the largest that XNNPACK supports for all layers.
const EXPONENTS: std::ops::Range<i32> = -30..8;

/// Products of these sums and scales fit in 32 bits, as TFLite's kernels require.
const LARGEST: f64 = 2_147_483_000.0;

/// A fraction of 31 bits, and the exponent of its power of two.
fn fixed_point(scale: f64) -> (i64, i32) {
    let exponent = scale.log2().floor() as i32 + 1;
    match (scale * f64::from(31 - exponent).exp2()).round() as i64 {
        0x8000_0000 => (0x4000_0000, exponent + 1),
        fraction => (fraction, exponent),
    }
}

/// TFLite's `MultiplyByQuantizedMultiplier` in integers: a fraction of 31 bits, ties up, and a power
/// of two, ties away from zero.
fn rounded_twice(sum: i32, scale: f64) -> i64 {
    let (fraction, exponent) = fixed_point(scale);
    let shifted = i64::from(sum) << exponent.max(0);
    let high = (shifted * fraction + (1 << 30)) >> 31;
    let right = (-exponent).max(0);
    high.signum() * ((high.abs() + ((1 << right) >> 1)) >> right)
}

/// The product of a fraction without ties, rounded once.
fn rounded_once(sum: i32, scale: f64) -> i64 {
    let (fraction, exponent) = fixed_point(scale);
    let product = i128::from(sum) * i128::from(fraction | 1);
    ((product + (1 << (30 - exponent))) >> (31 - exponent)) as i64
}

/// Sums around multiples of half an output's step, and any others.
fn draw_sums(count: usize, scale: f64, random: &mut Random) -> Vec<i32> {
    let bound = (LARGEST / scale.max(1.0)).min(f64::from(i32::MAX / 2));
    let near = |random: &mut Random| {
        let halves = random.below(601) as f64 - 300.0;
        (halves / 2.0 / scale).round() + random.below(3) as f64 - 1.0
    };
    let any = |random: &mut Random| {
        let magnitude = (random.below(31) as f64).exp2() * f64::from(random.f32s(1, -1.0, 1.0)[0]);
        magnitude.round()
    };
    let draw = |_| if one_in(4, random) { any(random) } else { near(random) };
    (0..count).map(draw).map(|sum| sum.clamp(-bound, bound) as i32).collect()
}

/// Runs a layer whose inputs are their zero point, so that sums are biases, and compares its outputs.
fn check(layer: &Layer, scales: [f32; 3], random: &mut Random) {
    let [input, filter, output] = scales;
    let is_dense = layer.form == Form::FullyConnected;
    let [wide_input, wide_filter, wide_output] = scales.map(f64::from);
    let scale = match is_dense {
        true => wide_input * wide_filter / wide_output,
        false => f64::from(input * filter) / wide_output,
    };
    let sums = draw_sums(layer.outputs(), scale, random);
    let zero_point = random.below(256) as i32;
    let expected: Vec<u8> = sums
        .iter()
        .map(|&sum| match is_dense {
            true => rounded_once(sum, scale),
            false => rounded_twice(sum, scale),
        })
        .map(|rescaled| (rescaled + i64::from(zero_point)).clamp(0, 255) as u8)
        .collect();
    let spec = |datatype, zero_point, scale| {
        TensorSpec::inferred(datatype).quantized(Quantization::PerTensor { zero_point, scale })
    };
    let types = Types {
        input: spec(Datatype::Quint8, 7, input),
        filter: spec(Datatype::Quint8, 128, filter),
        bias: spec(Datatype::Qint32, 0, input * filter),
        output: spec(Datatype::Quint8, zero_point, output),
        output_range: OutputRange::default(),
    };
    let weights: Vec<u8> =
        (0..layer.outputs() * layer.depth()).map(|_| random.below(256) as u8).collect();
    for actual in layer.run(types, &vec![7_u8; layer.input_elements()], &weights, &sums) {
        for (row, outputs) in actual.chunks(expected.len()).enumerate() {
            for (channel, (actual, expected)) in outputs.iter().zip(&expected).enumerate() {
                let sum = sums[channel];
                assert_eq!(actual, expected, "{sum} times {scale} in row {row}: {layer:?}");
            }
        }
    }
}

#[test]
fn rescaling_of_uint8() {
    if !has_fast_uint8() {
        return;
    }
    let random = &mut Random::new(31);
    for exponent in EXPONENTS {
        for outputs in [1, 8, 15, 16, 17, 33, 64] {
            let exact = one_in(2, random);
            let mut factor = || if exact { 1.0 } else { random.f32s(1, 0.5, 1.0)[0] };
            let scales = [factor(), (exponent as f32).exp2() * factor(), 1.0 / factor()];
            let rows = 1 + random.below(9);
            let mut dense = Layer::dense(Form::FullyConnected, 1 + random.below(40), outputs);
            dense.batches = [rows, 1];
            check(&dense, scales, random);
            let mut pointwise = Layer { form: Form::Convolution, batches: [1; 2], ..dense };
            pointwise.size = [1, rows];
            check(&pointwise, scales, random);
            let mut depthwise = Layer::dense(Form::Depthwise, 1, 1);
            (depthwise.groups, depthwise.kernel, depthwise.size) = (outputs, [3, 3], [3, 2 + rows]);
            check(&depthwise, scales, random);
        }
    }
}
