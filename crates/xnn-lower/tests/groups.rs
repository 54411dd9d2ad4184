//! Convolutions whose groups have few channels, and channels with several filters.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{kinds, lowered, run};
use xnn_format::{Graph, NodeOp};
use xnn_model::DType;
use xnn_model::op::{Conv2dOptions, DepthwiseConv2dOptions, Op, Padding};
use xnn_testing::{GraphBuilder, Random};

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
    for (dtype, inputs, outputs, repeats) in [
        (DType::I8, 4, 8, true),
        (DType::I8, 2, 32, true),
        (DType::F32, 4, 8, true),
        (DType::F32, 2, 14, true),
        // Groups that fill XNNPACK's tile.
        (DType::F32, 2, 16, false),
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
        let kinds = kinds(&graph);
        assert_eq!(kinds.last(), Some(&"DepthwiseConv2d"), "{dtype} {inputs} {outputs}");
        assert_eq!(kinds.contains(&"Concatenate"), repeats, "{dtype} {inputs} {outputs}");
    }
}
