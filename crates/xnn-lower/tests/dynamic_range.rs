//! Forms of convolutions with float inputs and 8-bit weights.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod common;

use common::decide_for;
use xnn_format::{Datatype, NodeOp, Quantization};
use xnn_lower::{DynamicRange, PartitionOptions, TargetFeatures};
use xnn_model::DType;
use xnn_model::op::{Activation, Conv2dOptions, DepthwiseConv2dOptions, Op, Padding};
use xnn_testing::{GraphBuilder, Random};

/// Operands of the multiplications.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Integers with a scale for each image.
    Images,
    /// Integers with a scale for each pixel.
    Pixels,
    Floats,
}

/// Scales of a filter.
#[derive(Clone, Copy, Debug)]
enum Scales {
    /// One scale for all channels.
    PerTensor(f32),
    /// The scale of the first channel, and the scale of all others.
    PerChannel(f32, f32),
}

const DIFFERENT: Scales = Scales::PerChannel(0.5, 0.25);

/// A processor with kernels for depthwise convolutions of images quantized at run time.
const TARGET: TargetFeatures = TargetFeatures {
    has_fast_uint8: false,
    has_exact_dynamic_convolutions: false,
    max_dynamic_depthwise_taps: 25,
};

fn op(depthwise: bool, multiplier: usize) -> Op {
    let (padding, activation) = (Padding::Same, Activation::None);
    if depthwise {
        Op::DepthwiseConv2d(DepthwiseConv2dOptions {
            padding,
            stride_w: 1,
            stride_h: 1,
            depth_multiplier: i32::try_from(multiplier).unwrap_or(1),
            activation,
            dilation_w: 1,
            dilation_h: 1,
        })
    } else {
        Op::Conv2d(Conv2dOptions {
            padding,
            stride_w: 1,
            stride_h: 1,
            activation,
            dilation_w: 1,
            dilation_h: 1,
            quantized_bias_type: None,
        })
    }
}

/// Form of a layer of images with `inputs` channels.
fn form(inputs: usize, filter: [usize; 4], scales: Scales, mode: DynamicRange) -> Form {
    form_for(TARGET, inputs, filter, scales, mode)
}

fn form_for(
    target: TargetFeatures,
    inputs: usize,
    filter: [usize; 4],
    scales: Scales,
    mode: DynamicRange,
) -> Form {
    let depthwise = filter[0] == 1;
    let (axis, channels) = if depthwise { (3, filter[3]) } else { (0, filter[0]) };
    let mut g = GraphBuilder::new("main");
    let x = g.input("x", DType::F32, &[1, 8, 8, inputs]);
    let weights = Random::new(1).i8_weights(filter.iter().product());
    let w = g.constant_i8("w", &filter, &weights);
    match scales {
        Scales::PerTensor(scale) => g.quantize(w, scale, 0),
        Scales::PerChannel(first, others) => {
            let mut scales = vec![others; channels];
            scales[0] = first;
            g.quantize_per_axis(w, &scales, axis)
        }
    };
    let y = g.tensor("y", DType::F32, &[1, 8, 8, channels]);
    g.op(op(depthwise, channels / inputs), &[x, w], &[y]).output(y);
    let mut options = PartitionOptions::default();
    options.dynamic_range = mode;
    let partitions = decide_for(g, &options, target).partitions;
    assert_eq!(partitions.len(), 1, "{filter:?}");
    let graph = &partitions[0].graph;
    let dynamic = graph.values.iter().find(|value| value.datatype == Datatype::QdInt8);
    let is_dense = graph.nodes.iter().any(|node| matches!(node.op, NodeOp::FullyConnected { .. }));
    match dynamic.map(|value| &value.quantization) {
        Some(Quantization::Dynamic { num_nonbatch_dims: 3 }) => Form::Images,
        Some(Quantization::Dynamic { num_nonbatch_dims: 1 }) if is_dense => Form::Pixels,
        None => Form::Floats,
        other => panic!("{other:?}"),
    }
}

#[test]
fn convolutions() {
    use DynamicRange::{Auto, Reference, Rows};
    for (filter, scales, by_mode) in [
        ([64, 1, 1, 64], DIFFERENT, [Form::Images, Form::Pixels]),
        ([16, 3, 3, 64], DIFFERENT, [Form::Images, Form::Images]),
        // Few weights are multiplied as floats.
        ([63, 1, 1, 64], DIFFERENT, [Form::Images, Form::Floats]),
        // Interpreters quantize around zero if all channels have one scale.
        ([64, 1, 1, 64], Scales::PerTensor(0.5), [Form::Pixels, Form::Pixels]),
        ([64, 1, 1, 64], Scales::PerChannel(0.5, 0.5), [Form::Pixels, Form::Pixels]),
        ([63, 1, 1, 64], Scales::PerTensor(0.5), [Form::Floats, Form::Floats]),
    ] {
        for (mode, expected) in [Reference, Rows].into_iter().zip(by_mode) {
            assert_eq!(form(64, filter, scales, mode), expected, "{filter:?} {scales:?} {mode:?}");
        }
        assert_eq!(form(64, filter, scales, Auto), by_mode[1], "{filter:?} {scales:?}");
        let exact = TargetFeatures { has_exact_dynamic_convolutions: true, ..TARGET };
        let found = form_for(exact, 64, filter, scales, Auto);
        assert_eq!(found, by_mode[0], "{filter:?} {scales:?}");
    }
}

#[test]
fn depthwise_convolutions() {
    for (filter, scales, expected) in [
        ([1, 3, 3, 16], DIFFERENT, Form::Images),
        ([1, 5, 5, 16], DIFFERENT, Form::Images),
        ([1, 1, 25, 16], DIFFERENT, Form::Images),
        // The target has kernels for up to 25 weights.
        ([1, 2, 13, 16], DIFFERENT, Form::Floats),
        // Channels with several outputs are repeated.
        ([1, 3, 3, 32], DIFFERENT, Form::Images),
        ([1, 5, 5, 48], Scales::PerTensor(0.5), Form::Images),
        ([1, 2, 13, 32], DIFFERENT, Form::Floats),
        ([1, 3, 3, 16], Scales::PerTensor(0.5), Form::Images),
        ([1, 3, 3, 16], Scales::PerChannel(0.5, 0.5), Form::Images),
        // XNNPACK does not support larger scales.
        ([1, 3, 3, 16], Scales::PerChannel(255.5, 0.5), Form::Images),
        ([1, 3, 3, 16], Scales::PerChannel(256.0, 0.5), Form::Floats),
        ([1, 3, 3, 16], Scales::PerTensor(256.0), Form::Floats),
    ] {
        let found = form(16, filter, scales, DynamicRange::Reference);
        assert_eq!(found, expected, "{filter:?} {scales:?}");
        assert_eq!(form(16, filter, scales, DynamicRange::Rows), Form::Floats, "{filter:?}");
        let without_kernels = TargetFeatures::default();
        let found = form_for(without_kernels, 16, filter, scales, DynamicRange::Reference);
        assert_eq!(found, Form::Floats, "{filter:?}");
    }
}

#[test]
fn all_names_parse() {
    for (name, mode) in DynamicRange::NAMES {
        assert_eq!(name.parse(), Ok(mode));
    }
    assert!("images".parse::<DynamicRange>().is_err());
}
