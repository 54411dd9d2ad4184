//! Choice between several forms of an operator by its size, and the results of each form.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{kinds, lowered, run};
use xnn_format::{Datatype, Graph};
use xnn_model::DType;
use xnn_model::op::{
    Activation, BatchMatMulOptions, Conv2dOptions, FullyConnectedOptions, Op, Padding,
    Pool2dOptions, SoftmaxOptions, TransposeConvOptions,
};
use xnn_testing::{GraphBuilder, Random, assert_close, assert_within_steps, le_bytes};

fn run_floats(graph: Graph, input: &[f32]) -> Vec<f32> {
    let output = run(graph, &le_bytes(input, |v| v.to_le_bytes()));
    output.as_chunks().0.iter().map(|&b| f32::from_le_bytes(b)).collect()
}

/// Softmax of rows of logits.
fn softmax(logits: &[f32], classes: usize, beta: f32) -> Vec<f32> {
    let row = |row: &[f32]| {
        let most = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let powers: Vec<f64> =
            row.iter().map(|x| (f64::from(beta) * f64::from(x - most)).exp()).collect();
        let sum: f64 = powers.iter().sum();
        powers.into_iter().map(move |power| (power / sum) as f32)
    };
    logits.chunks(classes).flat_map(row).collect()
}

fn softmax_graph(shape: &[usize], beta: f32) -> Graph {
    let mut g = GraphBuilder::new("main");
    let (x, y) = (g.input("x", DType::F32, shape), g.tensor("y", DType::F32, shape));
    g.op(Op::Softmax(SoftmaxOptions { beta }), &[x], &[y]).output(y);
    lowered(g)
}

#[test]
fn two_classes_of_many_rows_are_a_logistic_function() {
    const LOGISTIC: &[&str] = &["FullyConnected", "Clamp", "FullyConnected", "Add", "Sigmoid"];
    const SCALED: &[&str] =
        &["FullyConnected", "Clamp", "FullyConnected", "Add", "Multiply", "Sigmoid"];
    const SOFTMAX: &[&str] = &["Softmax"];
    for (shape, beta, expected_kinds) in [
        (&[4, 2][..], 1.0, LOGISTIC),
        (&[1, 300, 2], 1.0, LOGISTIC),
        (&[2, 3, 5, 2], 0.25, SCALED),
        (&[3, 2], 1.0, SOFTMAX),
        (&[8, 3], 1.0, SOFTMAX),
        (&[2], 1.0, SOFTMAX),
        (&[300, 1], 1.0, SOFTMAX),
    ] {
        let graph = softmax_graph(shape, beta);
        assert_eq!(kinds(&graph), expected_kinds, "{shape:?}");
        let count = shape.iter().product();
        let mut logits = Random::new(3).f32s(count, -30.0, 30.0);
        // A masked class, and one with a much larger logit.
        if let [first, second, third, fourth, ..] = logits.as_mut_slice() {
            (*first, *second, *third, *fourth) = (1.0, f32::NEG_INFINITY, 3e4, -3e4);
        }
        let expected = softmax(&logits, *shape.last().unwrap(), beta);
        assert_close(&run_floats(graph, &logits), &expected, 1e-6);
    }
}

/// The largest logit of a row is subtracted before scaling. Rows with infinity become NaN.
#[test]
fn the_largest_logits_do_not_overflow() {
    const MOST: f32 = f32::MAX;
    const NAN: f32 = f32::NAN;
    const INFINITE: f32 = f32::INFINITY;
    let rows = [
        ([MOST, MOST], [0.5, 0.5]),
        ([MOST, -MOST], [1.0, 0.0]),
        ([3.0e38, 2.9e38], [1.0, 0.0]),
        ([-MOST, -MOST], [0.5, 0.5]),
        ([-INFINITE, 1.0], [0.0, 1.0]),
        ([-INFINITE, -INFINITE], [NAN, NAN]),
        ([1.0, INFINITE], [NAN, NAN]),
        ([NAN, 1.0], [NAN, NAN]),
        ([1e-40, -1e-40], [0.5, 0.5]),
    ];
    for beta in [0.25, 1.0, 4.0] {
        for (shape, padding) in [([9, 2], 0), ([9, 3], 1)] {
            let pad = |pair: [f32; 2], value: f32| [&pair[..], &vec![value; padding]].concat();
            let logits: Vec<f32> = rows.iter().flat_map(|(x, _)| pad(*x, -INFINITE)).collect();
            let expected =
                rows.iter().flat_map(|(_, y)| pad(*y, if y[0].is_nan() { NAN } else { 0.0 }));
            let found = run_floats(softmax_graph(&shape, beta), &logits);
            for (at, (found, expected)) in found.into_iter().zip(expected).enumerate() {
                let agrees = found == expected || found.is_nan() && expected.is_nan();
                assert!(agrees, "{beta}, {shape:?}, element {at}: {found}, not {expected}");
            }
        }
    }
}

#[test]
fn classes_of_integers_are_rounded_once() {
    const TWO: &[&str] = &["Convert", "FullyConnected", "Sigmoid", "Convert"];
    const FEW: &[&str] = &["Convert", "Exp", "FullyConnected", "Div", "Convert"];
    const MANY: &[&str] = &["Convert", "Softmax", "Convert"];
    for (classes, rows, scale, expected_kinds) in [
        (2, 128, 0.01, TWO),
        (2, 128, 0.1, TWO),
        (2, 128, 0.5, TWO),
        (4, 64, 0.01, FEW),
        (4, 64, 0.5, FEW),
        (32, 4, 0.6, FEW),
        // Exponentials would exceed the range of floats.
        (4, 64, 0.7, MANY),
        (33, 4, 0.1, MANY),
        (4, 3, 0.1, MANY),
    ] {
        let shape = [rows, classes];
        let mut g = GraphBuilder::new("main");
        let (x, y) = (g.input("x", DType::I8, &shape), g.tensor("y", DType::I8, &shape));
        g.quantize(x, scale, 5).quantize(y, 1.0 / 256.0, -128);
        g.op(Op::Softmax(SoftmaxOptions { beta: 1.0 }), &[x], &[y]).output(y);
        let graph = lowered(g);
        assert_eq!(kinds(&graph), expected_kinds, "{shape:?} {scale}");
        let mut input = Random::new(5).i8s(rows * classes);
        // All logits have the lowest or the highest value.
        input[..classes].fill(i8::MIN);
        input[classes..2 * classes].fill(i8::MAX);
        let logits: Vec<f32> = input.iter().map(|&q| f32::from(q) * scale).collect();
        let expected: Vec<i8> = softmax(&logits, classes, 1.0)
            .iter()
            .map(|p| (p * 256.0 - 128.0).round() as i8)
            .collect();
        let output = run(graph, &le_bytes(&input, |v| v.to_le_bytes()));
        let output: Vec<i8> = output.into_iter().map(u8::cast_signed).collect();
        assert_within_steps(&output, &expected, 1);
    }
}

/// Sums of integers that lie between two results, and are rounded away from zero, among others.
#[test]
fn averages_of_images_of_integers_are_means_if_they_round_alike() {
    const MEAN: &str = "GlobalAvgPooling2d";
    const FLOATS: &str = "AvgPooling2d";
    const CHANNELS: usize = 19;
    for (height, width, activation, expected_kind) in [
        (7, 7, Activation::None, MEAN),
        (5, 13, Activation::None, MEAN),
        (65, 63, Activation::None, MEAN),
        (65, 65, Activation::None, MEAN),
        (89, 91, Activation::None, MEAN),
        (4, 4, Activation::None, FLOATS),
        (10, 10, Activation::None, FLOATS),
        (11, 10, Activation::None, FLOATS),
        (30, 31, Activation::None, FLOATS),
        (64, 64, Activation::None, FLOATS),
        (56, 57, Activation::Relu, FLOATS),
        (2, 7, Activation::None, FLOATS),
        (7, 7, Activation::Relu, FLOATS),
    ] {
        let mut g = GraphBuilder::new("main");
        let x = g.input("x", DType::I8, &[2, height, width, CHANNELS]);
        let y = g.tensor("y", DType::I8, &[2, 1, 1, CHANNELS]);
        g.quantize(x, 0.1, 3).quantize(y, 0.1, 3);
        let (filter_height, filter_width) = (height as i32, width as i32);
        let (padding, stride_w, stride_h) = (Padding::Valid, 1, 1);
        g.op(
            Op::AveragePool2d(Pool2dOptions {
                padding,
                stride_w,
                stride_h,
                filter_width,
                filter_height,
                activation,
            }),
            &[x],
            &[y],
        );
        g.output(y);
        let graph = lowered(g);
        let case = format!("{height} x {width}, {activation:?}");
        assert!(kinds(&graph).contains(&expected_kind), "{case}: {:?}", kinds(&graph));
        let area = height * width;
        let mut input = Random::new(7).i8s(2 * area * CHANNELS);
        // Images of one value, and of two values as often as possible.
        for (at, element) in input.iter_mut().enumerate() {
            match at % CHANNELS {
                0 => *element = i8::MIN,
                1 => *element = i8::MAX,
                2 => *element = -8 - i8::from((at / CHANNELS).is_multiple_of(2)),
                3 => *element = 8 + i8::from((at / CHANNELS).is_multiple_of(2)),
                _ => {}
            }
        }
        let mean = |image: &[i8], channel: usize| {
            let elements = image[channel..].iter().step_by(CHANNELS);
            let mean = elements.map(|&x| f64::from(x)).sum::<f64>() / area as f64;
            mean.round().max(if activation == Activation::None { -128.0 } else { 3.0 }) as i8
        };
        let expected: Vec<i8> = input
            .chunks(area * CHANNELS)
            .flat_map(|image| (0..CHANNELS).map(move |channel| mean(image, channel)))
            .collect();
        let output = run(graph, &le_bytes(&input, |v| v.to_le_bytes()));
        let output: Vec<i8> = output.into_iter().map(u8::cast_signed).collect();
        assert_eq!(output, expected, "{case}");
    }
}

/// Products of floats `[images, inputs]`, in the shape that an operator needs, and int8 weights
/// `[outputs, inputs]`.
struct Layer {
    op: Op,
    input: &'static [usize],
    filter: &'static [usize],
    output: &'static [usize],
}

impl Layer {
    /// Returns whether rows are quantized. Compares results with those of real arithmetic.
    fn quantizes(&self) -> bool {
        let [inputs, outputs] =
            [self.input, self.output].map(|shape| shape[1..].iter().product::<usize>());
        let mut random = Random::new(outputs as u64);
        let weights = random.i8_weights(inputs * outputs);
        let scales = random.f32s(outputs, 0.001, 0.01);
        let mut g = GraphBuilder::new("main");
        let x = g.input("x", DType::F32, self.input);
        let w = g.constant_i8("w", self.filter, &weights);
        g.quantize_per_axis(w, &scales, 0);
        let y = g.tensor("y", DType::F32, self.output);
        if let Op::TransposeConv(_) = self.op {
            let shape: Vec<i32> = self.output.iter().map(|&dim| dim as i32).collect();
            let shape = g.constant_i32("shape", &[shape.len()], &shape);
            g.op(self.op.clone(), &[shape, w, x], &[y]).output(y);
        } else {
            g.op(self.op.clone(), &[x, w], &[y]).output(y);
        }
        let graph = lowered(g);
        let quantizes = graph.values.iter().any(|value| value.datatype == Datatype::QdInt8);

        let input = random.f32s(inputs * self.input[0], -2.0, 2.0);
        for (at, output) in run_floats(graph, &input).into_iter().enumerate() {
            let (row, channel) = (at / outputs, at % outputs);
            let x = &input[row * inputs..][..inputs];
            let w = weights[channel * inputs..][..inputs].iter();
            let w = w.map(|&w| f64::from(w) * f64::from(scales[channel]));
            let sum: f64 = x.iter().zip(w.clone()).map(|(&x, w)| f64::from(x) * w).sum();
            let size: f64 = w.map(f64::abs).sum();
            // Half a step of the quantized input, or roundings of fp32 sums.
            let bound = size * if quantizes { 4.0 / 255.0 / 2.0 } else { 1e-5 };
            assert!((f64::from(output) - sum).abs() <= bound, "{output} instead of {sum}");
        }
        quantizes
    }
}

#[test]
fn few_weights_are_multiplied_as_floats() {
    let dense = || Op::FullyConnected(FullyConnectedOptions::default());
    let conv = || {
        let (padding, stride_w, stride_h) = (Padding::Valid, 1, 1);
        Op::Conv2d(Conv2dOptions { padding, stride_w, stride_h, ..Default::default() })
    };
    let transposed = || {
        let (padding, stride_w, stride_h) = (Padding::Valid, 1, 1);
        Op::TransposeConv(TransposeConvOptions {
            padding,
            stride_w,
            stride_h,
            ..Default::default()
        })
    };
    let matrices = || Op::BatchMatMul(BatchMatMulOptions { adj_y: true, ..Default::default() });
    let quantizes = |op, input, filter, output| Layer { op, input, filter, output }.quantizes();
    // 4095 weights, and 4096 or slightly more.
    assert!(quantizes(dense(), &[3, 63], &[65, 63], &[3, 65]));
    assert!(quantizes(dense(), &[3, 64], &[64, 64], &[3, 64]));
    assert!(quantizes(matrices(), &[3, 9], &[5, 9], &[3, 5]));
    assert!(!quantizes(conv(), &[3, 1, 1, 63], &[65, 1, 1, 63], &[3, 1, 1, 65]));
    assert!(quantizes(conv(), &[3, 1, 1, 64], &[64, 1, 1, 64], &[3, 1, 1, 64]));
    assert!(!quantizes(conv(), &[3, 3, 3, 7], &[65, 3, 3, 7], &[3, 1, 1, 65]));
    assert!(quantizes(conv(), &[3, 3, 3, 8], &[57, 3, 3, 8], &[3, 1, 1, 57]));
    assert!(!quantizes(transposed(), &[3, 1, 1, 63], &[65, 1, 1, 63], &[3, 1, 1, 65]));
    assert!(quantizes(transposed(), &[3, 1, 1, 64], &[64, 1, 1, 64], &[3, 1, 1, 64]));
}

/// A product of int8 and a constant matrix with a scale for each output, in both orders of the matrix.
#[test]
fn constant_matrices_of_int8_are_layers() {
    const ROWS: usize = 6;
    const INPUTS: usize = 70;
    const OUTPUTS: usize = 37;
    let mut random = Random::new(5);
    let weights = random.i8_weights(INPUTS * OUTPUTS);
    let scales = random.f32s(OUTPUTS, 0.001, 0.01);
    let input = random.i8s(ROWS * INPUTS);
    for adj_y in [false, true] {
        let mut g = GraphBuilder::new("main");
        let x = g.input("x", DType::I8, &[2, ROWS / 2, INPUTS]);
        let dims = if adj_y { [1, OUTPUTS, INPUTS] } else { [1, INPUTS, OUTPUTS] };
        let w = g.constant_i8("w", &dims, &weights);
        let y = g.tensor("y", DType::I8, &[2, ROWS / 2, OUTPUTS]);
        g.quantize(x, 0.5, -3).quantize_per_axis(w, &scales, if adj_y { 1 } else { 2 });
        g.quantize(y, 0.75, 5);
        let options = BatchMatMulOptions { adj_y, ..Default::default() };
        g.op(Op::BatchMatMul(options), &[x, w], &[y]).output(y);
        let graph = lowered(g);
        assert_eq!(kinds(&graph), ["FullyConnected"]);
        let output = run(graph, &le_bytes(&input, |v| v.to_le_bytes()));
        let output: Vec<i8> = output.into_iter().map(u8::cast_signed).collect();
        let expected: Vec<i8> = (0..ROWS * OUTPUTS)
            .map(|at| {
                let (row, channel) = (at / OUTPUTS, at % OUTPUTS);
                let weight = |i: usize| {
                    weights[if adj_y { channel * INPUTS + i } else { i * OUTPUTS + channel }]
                };
                let product =
                    |i: usize| (i32::from(input[row * INPUTS + i]) + 3) * i32::from(weight(i));
                let sum: i32 = (0..INPUTS).map(product).sum();
                let scaled = f64::from(sum) * 0.5 * f64::from(scales[channel]) / 0.75;
                (scaled.round() + 5.0).clamp(-128.0, 127.0) as i8
            })
            .collect();
        assert_within_steps(&output, &expected, 1);
    }
}
