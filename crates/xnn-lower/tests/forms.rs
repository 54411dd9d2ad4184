//! Choice between several forms of an operator by its size, and the results of each form.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::sync::Arc;

use common::decide;
use xnn_format::{Datatype, Graph, NodeOp};
use xnn_model::DType;
use xnn_model::op::{
    Activation, BatchMatMulOptions, Conv2dOptions, DepthwiseConv2dOptions, FullyConnectedOptions,
    Op, Padding, Pool2dOptions, SoftmaxOptions, TransposeConvOptions,
};
use xnn_runtime::{Program, ProgramOptions, Session, SessionOptions};
use xnn_testing::{GraphBuilder, Random, assert_close, assert_within_steps, le_bytes};

/// The graph of a fully delegated model.
fn lowered(g: GraphBuilder) -> Graph {
    let mut partitions = decide(g).partitions;
    assert_eq!(partitions.len(), 1);
    Arc::unwrap_or_clone(partitions.remove(0).graph)
}

fn kinds(graph: &Graph) -> Vec<&'static str> {
    graph.nodes.iter().map(|node| node.op.kind()).collect()
}

fn run(graph: Graph, input: &[u8]) -> Vec<u8> {
    let program = Program::new(graph, &ProgramOptions::default()).unwrap();
    let mut session = Session::new(&program, &SessionOptions::default()).unwrap();
    session.input_mut(0).copy_from_slice(input);
    session.run().unwrap();
    session.output(0).to_vec()
}

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

/// A convolution of 8 pixels in groups.
struct Grouped {
    dtype: DType,
    inputs: usize,
    filter: [usize; 4],
}

impl Grouped {
    const PIXELS: usize = 8;
    const ZERO_POINTS: [i64; 2] = [3, 120];

    fn graph(&self, weights: &[u8]) -> Graph {
        let Self { dtype, inputs, filter } = *self;
        let mut g = GraphBuilder::new("main");
        let x = g.input("x", dtype, &[1, 2, 4, inputs]);
        let w = g.constant("w", dtype, &filter, weights.to_vec());
        let bias = if dtype == DType::F32 { DType::F32 } else { DType::I32 };
        let b = g.constant("b", bias, &[filter[0]], vec![0; 4 * filter[0]]);
        let y = g.tensor("y", dtype, &[1, 2, 4, filter[0]]);
        if dtype != DType::F32 {
            let [input, weight] = if dtype == DType::U8 { Self::ZERO_POINTS } else { [-3, 0] };
            g.quantize(x, 0.5, input).quantize(w, 0.01, weight).quantize(b, 0.005, 0);
            g.quantize(y, 0.5, input);
        }
        let options = Conv2dOptions {
            padding: Padding::Same,
            stride_w: 1,
            stride_h: 1,
            dilation_w: 1,
            dilation_h: 1,
            ..Default::default()
        };
        g.op(Op::Conv2d(options), &[x, w, b], &[y]).output(y);
        lowered(g)
    }

    /// Groups of the convolution in the graph.
    fn groups(&self) -> u32 {
        let bytes = self.dtype.byte_size(self.filter.iter().product()).unwrap();
        let graph = self.graph(&vec![0; bytes]);
        let conv = graph.nodes.iter().find_map(|node| match &node.op {
            NodeOp::Conv2d(conv) => Some(conv),
            _ => None,
        });
        let conv = conv.unwrap();
        assert_eq!(conv.groups * conv.group_input_channels, self.inputs as u32);
        assert_eq!(conv.groups * conv.group_output_channels, self.filter[0] as u32);
        conv.groups
    }
}

#[test]
fn groups_with_few_channels_are_merged() {
    for (dtype, inputs, filter, expected) in [
        (DType::I8, 32, [32, 3, 3, 4], 2),
        (DType::U8, 32, [32, 3, 3, 4], 2),
        // Infinity times a weight of another group would be NaN.
        (DType::F32, 32, [32, 3, 3, 4], 8),
        // One input and one output are a depthwise convolution, several outputs are not.
        (DType::I8, 32, [32, 3, 3, 1], 32),
        (DType::I8, 32, [64, 3, 3, 1], 4),
        (DType::I8, 32, [32, 3, 3, 16], 2),
        (DType::I8, 10, [30, 3, 3, 2], 5),
        (DType::I8, 10, [40, 3, 3, 2], 5),
        (DType::I8, 12, [48, 1, 1, 2], 3),
        // Groups that do not divide.
        (DType::I8, 21, [18, 1, 1, 7], 3),
        // Many weights.
        (DType::I8, 4, [4, 256, 256, 2], 1),
        (DType::I8, 4, [4, 257, 256, 2], 2),
    ] {
        assert_eq!(Grouped { dtype, inputs, filter }.groups(), expected, "{dtype} {filter:?}");
    }
}

#[test]
fn merged_groups_have_the_results_of_groups() {
    const OUTPUTS: usize = 24;
    const DEPTH: usize = 3;
    const INPUTS: usize = 18;
    let random = &mut Random::new(6);
    for (dtype, zero_points) in [(DType::I8, [-3, 0]), (DType::U8, Grouped::ZERO_POINTS)] {
        let layer = Grouped { dtype, inputs: INPUTS, filter: [OUTPUTS, 1, 1, DEPTH] };
        assert_eq!(layer.groups(), 2);
        let [input, weights] = [Grouped::PIXELS * INPUTS, OUTPUTS * DEPTH]
            .map(|count| random.i8s(count).into_iter().map(i8::cast_unsigned).collect::<Vec<u8>>());
        let value = |byte: u8, zero_point: i64| {
            let value =
                if dtype == DType::I8 { byte.cast_signed().into() } else { i64::from(byte) };
            value - zero_point
        };
        let found = run(layer.graph(&weights), &input);
        let found: Vec<i64> = found.into_iter().map(|byte| value(byte, 0)).collect();
        let [least, most] = if dtype == DType::I8 { [-128.0, 127.0] } else { [0.0, 255.0] };
        let expected = (0..Grouped::PIXELS * OUTPUTS).map(|at| {
            let (pixel, channel) = (at / OUTPUTS, at % OUTPUTS);
            let first = pixel * INPUTS + channel / (OUTPUTS / (INPUTS / DEPTH)) * DEPTH;
            let product = |i: usize| {
                value(input[first + i], zero_points[0])
                    * value(weights[channel * DEPTH + i], zero_points[1])
            };
            let sum: i64 = (0..DEPTH).map(product).sum();
            ((sum as f64 * 0.01).round() + zero_points[0] as f64).clamp(least, most) as i64
        });
        for (at, (found, expected)) in found.into_iter().zip(expected).enumerate() {
            assert!((found - expected).abs() <= 1, "{dtype} {at}: {found}, not {expected}");
        }
    }
}

#[test]
fn channels_with_several_filters_are_repeated() {
    const REPEATED: &[&str] = &["StaticReshape", "Concatenate", "StaticTranspose", "StaticReshape"];
    for (dtype, inputs, outputs, repeats) in [
        (DType::I8, 4, 8, true),
        (DType::F32, 4, 8, true),
        (DType::F32, 4, 4, false),
        (DType::F32, 1, 8, false),
    ] {
        let mut g = GraphBuilder::new("main");
        let x = g.input("x", dtype, &[1, 4, 4, inputs]);
        let w = g.constant("w", dtype, &[1, 3, 3, outputs], {
            vec![0; dtype.byte_size(9 * outputs).unwrap()]
        });
        let y = g.tensor("y", dtype, &[1, 4, 4, outputs]);
        if dtype == DType::I8 {
            g.quantize(x, 0.5, 0).quantize(w, 0.01, 0).quantize(y, 0.5, 0);
        }
        let options = DepthwiseConv2dOptions {
            padding: Padding::Same,
            stride_w: 1,
            stride_h: 1,
            dilation_w: 1,
            dilation_h: 1,
            ..Default::default()
        };
        g.op(Op::DepthwiseConv2d(options), &[x, w], &[y]).output(y);
        let graph = lowered(g);
        let expected = if repeats {
            [REPEATED, &["DepthwiseConv2d"]].concat()
        } else {
            vec!["DepthwiseConv2d"]
        };
        assert_eq!(kinds(&graph), expected, "{dtype} {inputs} {outputs}");
    }
}
