//! Convolutions of images quantized at run time with int8 weights, which give the same bits as
//! TFLite's reference kernels.

use super::arithmetic::{compare, disconnect_parts, pair};
use super::layer::{Form, Layer, Types};
use super::{CHANNELS, KERNELS, depthwise, least_of, least_weight, one_in, one_to, place};
use crate::fixture::{self, Fixture, any_f32, conv, f32};
use xnn_testing::Random;
use xnnpack::{
    Conv2d, Datatype, OutputRange, Padding2d, Quantization, RuntimeOptions, TensorSpec, Unary,
    UnaryOp, has_exact_dynamic_convolutions,
};

/// Tolerance for XNNPACK's own microkernels, relative to the range of sums: they round sums and
/// ties of inputs differently.
const OTHERS_TOLERANCE: f64 = 2e-2;

/// Scale of an image, and its values minus the zero point.
struct Image {
    scale: f32,
    values: Vec<i32>,
}

impl Image {
    fn quantize(floats: &[f32]) -> Self {
        let low = floats.iter().fold(0f32, |low, &x| low.min(x));
        let high = floats.iter().fold(0f32, |high, &x| high.max(x));
        if low == high {
            return Self { scale: 1.0, values: vec![0; floats.len()] };
        }
        let scale = (high - low) / 255.0;
        let [below, above] = [low, high].map(|end| f64::from(end) / f64::from(scale));
        let from_below = 128.0 + below.abs() < 127.0 + above.abs();
        let exact = if from_below { -128.0 - below } else { 127.0 - above };
        let zero_point = exact.round().clamp(-128.0, 127.0) as f32;
        let inverse = 1.0 / scale;
        let nearest = |x: f32| (x + 0.5f32.copysign(x)).trunc();
        let (least, most) = (-128.0 - zero_point, 127.0 - zero_point);
        let quantize = |x: &f32| nearest(x * inverse).clamp(least, most) as i32;
        Self { scale, values: floats.iter().map(quantize).collect() }
    }
}

fn draw_weights(count: usize, least: i8, random: &mut Random) -> Vec<i8> {
    random.i8s(count).into_iter().map(|weight| weight.max(least)).collect()
}

fn pair_weights(layer: &Layer, weights: &[i8], random: &mut Random) -> Vec<i8> {
    let mut paired: Vec<i32> = weights.iter().copied().map(i32::from).collect();
    pair(&mut paired, layer.depth(), layer.group_inputs, 0, random);
    paired.into_iter().map(|weight| weight.try_into().unwrap()).collect()
}

pub fn check(layer: &Layer, random: &mut Random) {
    let count = layer.input_elements();
    let bounds = [[-1.0, 1.0], [0.0, 6.0], [-4.0, -0.5]][random.below(3)];
    let mut input = random.f32s(count, bounds[0], bounds[1]);
    if one_in(8, random) {
        // Multiples of one half, and an image of zeros.
        input.iter_mut().for_each(|x| *x = (*x * 8.0).round() / 2.0);
        input[..count / layer.images()].fill(0.0);
    }
    let least = least_of(false, random);
    let mut weights = draw_weights(layer.outputs() * layer.depth(), least, random);
    if one_in(8, random) {
        // Only the extreme values, whose products are the largest.
        let middle = (bounds[0] + bounds[1]) / 2.0;
        input.iter_mut().for_each(|x| *x = bounds[usize::from(*x > middle)]);
        weights.iter_mut().for_each(|weight| *weight = if *weight < 0 { least } else { i8::MAX });
    }
    if one_in(3, random) {
        weights = pair_weights(layer, &weights, random);
    }
    if layer.form == Form::Convolution && one_in(6, random) {
        disconnect_parts(layer, &mut weights, 0, random);
    }
    let scales = random.f32s(layer.outputs(), 1e-3, 1e-2);
    let bias = random.f32s(layer.outputs(), -1.0, 1.0);
    let output_range = match random.below(3) {
        0 => OutputRange { min: -0.5, max: 1.5 },
        1 => OutputRange { min: 0.0, max: 6.0 },
        _ => OutputRange::default(),
    };

    let images: Vec<Image> =
        input.chunks_exact(count / layer.images()).map(Image::quantize).collect();
    let values: Vec<i32> = images.iter().flat_map(|image| image.values.iter().copied()).collect();
    let sums = layer.sums(&vec![0; layer.outputs()], |sum, x, weight| {
        sum + values[x] * i32::from(weights[weight])
    });
    let of_image = sums.len() / layer.images();
    let rescale = |(at, &sum): (usize, &i32)| {
        let (channel, scale) = (at % layer.outputs(), images[at / of_image].scale);
        let product = if layer.form == Form::Depthwise {
            sum as f32 * (scales[channel] * scale)
        } else {
            sum as f32 * scales[channel] * scale
        };
        (product + bias[channel]).clamp(output_range.min, output_range.max)
    };
    let expected: Vec<f32> = sums.iter().enumerate().map(rescale).collect();

    let axis = layer.filter_axis();
    let by_channel = Quantization::PerChannel { zero_point: 0, axis, scales: scales.into() };
    let types = Types {
        input: TensorSpec::inferred(Datatype::Qdint8)
            .quantized(Quantization::Dynamic { nonbatch_dims: 3 }),
        filter: TensorSpec::inferred(Datatype::Qcint8).quantized(by_channel),
        bias: TensorSpec::inferred(Datatype::F32),
        output: TensorSpec::inferred(Datatype::F32),
        output_range,
    };
    let tolerance = if layer.form == Form::Depthwise || has_exact_dynamic_convolutions() {
        0.0
    } else {
        let range = expected.iter().fold(1f32, |range, sum| range.max(sum.abs()));
        OTHERS_TOLERANCE * f64::from(range)
    };
    for actual in layer.run(types, &input, &weights, &bias) {
        compare(layer, &actual, &expected, tolerance);
    }
}

#[test]
fn depthwise_of_images() {
    let random = &mut Random::new(13);
    for kernel in KERNELS {
        for stride_width in 1..=3 {
            for channels in CHANNELS {
                let layer = depthwise(kernel, stride_width, channels, 1, random);
                check(&Layer { form: Form::Depthwise, ..layer }, random);
            }
        }
    }
}

#[test]
fn convolutions_of_images() {
    let random = &mut Random::new(14);
    for _ in 0..150 {
        let (inputs, outputs) = (one_to(70, random), one_to(70, random));
        let mut pointwise = Layer::dense(Form::Convolution, inputs, outputs);
        pointwise.size = [0; 2].map(|_| one_to(30, random));
        pointwise.batches = [0; 2].map(|_| one_to(2, random));
        pointwise.groups = one_to(2, random);
        check(&pointwise, random);

        let mut convolution = Layer { group_inputs: inputs.div_ceil(4), ..pointwise };
        place(&mut convolution, [0; 2].map(|_| one_to(3, random)), one_to(3, random), random);
        check(&convolution, random);
    }
}

/// Images of this size are divided among threads.
#[test]
fn large_images() {
    let random = &mut Random::new(15);
    for threads in [1, 2] {
        for size in [[64, 64], [37, 91]] {
            let mut layer = Layer::dense(Form::Depthwise, 1, 1);
            (layer.groups, layer.size, layer.threads) = (17, size, threads);
            (layer.kernel, layer.padding) = ([3, 3], [[1, 1]; 2]);
            check(&layer, random);
            check(&Layer { batches: [1, 2], ..layer }, random);
        }
    }
}

/// An image that only convolutions read, and one that a depthwise convolution also reads: they are
/// quantized to different bytes.
#[test]
fn images_with_other_readers() {
    let random = &mut Random::new(16);
    let input = random.f32s(2 * 7 * 6 * 5, -1.0, 3.0);
    let weights = draw_weights(4 * 3 * 3 * 5, least_weight(false), random);
    let scales = |count| vec![0.01f32; count].as_slice().into();
    let run = |depthwise: bool| -> Vec<Vec<f32>> {
        let mut fixture = Fixture::new();
        let x = fixture.input(f32(&[2, 7, 6, 5]), &input);
        let image = TensorSpec::inferred(Datatype::Qdint8)
            .quantized(Quantization::Dynamic { nonbatch_dims: 3 });
        let image = fixture.internal(image);
        fixture.graph.define(Unary { op: UnaryOp::Convert, input: x, output: image }).unwrap();
        let by_output = Quantization::PerChannel { zero_point: 0, axis: 0, scales: scales(4) };
        let filter = TensorSpec::new(Datatype::Qcint8, &[4, 3, 3, 5]).quantized(by_output);
        let filter = fixture.constant(filter, &weights);
        let y = fixture.output(any_f32());
        let convolution = Conv2d {
            kernel: [3, 3],
            padding: Padding2d { top: 1, right: 1, bottom: 1, left: 1 },
            group_input_channels: 5,
            group_output_channels: 4,
            ..conv(image, filter, None, y)
        };
        fixture.graph.define(convolution).unwrap();
        if depthwise {
            let by_channel = Quantization::PerChannel { zero_point: 0, axis: 3, scales: scales(5) };
            let filter = TensorSpec::new(Datatype::Qcint8, &[1, 3, 3, 5]).quantized(by_channel);
            let filter = fixture.constant(filter, &weights[..45]);
            let output = fixture.output(any_f32());
            fixture.graph.define(fixture::depthwise(5, image, filter, None, output)).unwrap();
        }
        fixture.run_with(&RuntimeOptions::default()).unwrap()
    };
    let (alone, beside) = (run(false), run(true));
    assert_eq!(alone[0], beside[0]);
    assert!(beside[1].iter().any(|&y| y != 0.0));
}
