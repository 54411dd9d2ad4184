use std::sync::Arc;

use crate::fixture::{
    Fixture, any_f32, any_qint8, assert_close, conv, deconv, depthwise, f32, qint8, ramp,
};
use xnnpack::{
    Conv2d, Datatype, Deconv2d, DepthwiseConv2d, Flags, OutputRange, Padding2d, Quantization,
    RuntimeOptions, TensorSpec, Unary, UnaryOp, adds_in_16_bits, has_half_precision,
};

#[test]
fn convolution_with_bias() {
    let mut fixture = Fixture::new();
    let input = fixture.input(f32(&[1, 3, 3, 1]), &ramp(9));
    let filter = fixture.constant(f32(&[1, 2, 2, 1]), &[1.0f32, 0.0, 0.0, -1.0]);
    let bias = fixture.constant(f32(&[1]), &[0.5f32]);
    let output = fixture.output(f32(&[1, 2, 2, 1]));
    let result = fixture.node(conv(input, filter, Some(bias), output)).run::<f32>();
    assert_close(&result, &[-3.5; 4], 0.0);
}

#[test]
fn convolution_with_same_padding_stride_and_range() {
    let mut fixture = Fixture::new();
    let input = fixture.input(f32(&[1, 3, 3, 1]), &ramp(9));
    let filter = fixture.constant(f32(&[1, 3, 3, 1]), &[1.0f32; 9]);
    let output = fixture.output(any_f32());
    let node = Conv2d {
        kernel: [3, 3],
        stride: [2, 2],
        output_range: OutputRange { min: 10.0, max: 20.0 },
        flags: Flags::SAME_PADDING,
        ..conv(input, filter, None, output)
    };
    // Sums of the four corners: 8, 12, 20, 24.
    assert_close(&fixture.node(node).run::<f32>(), &[10.0, 12.0, 20.0, 20.0], 0.0);
}

#[test]
fn grouped_convolution() {
    let mut fixture = Fixture::new();
    let input = fixture.input(f32(&[1, 1, 1, 4]), &[1.0f32, 2.0, 3.0, 4.0]);
    let filter = fixture.constant(f32(&[2, 1, 1, 2]), &[1.0f32, 10.0, 100.0, 1000.0]);
    let output = fixture.output(any_f32());
    let node = Conv2d {
        kernel: [1, 1],
        groups: 2,
        group_input_channels: 2,
        ..conv(input, filter, None, output)
    };
    assert_close(&fixture.node(node).run::<f32>(), &[21.0, 4300.0], 0.0);
}

#[test]
fn quantized_convolution_per_channel() {
    let mut fixture = Fixture::new();
    let input = fixture.input(qint8(&[1, 1, 1, 2], 1, 0.5), &[3i8, 5]);
    let scales = |scales: [f32; 2]| Quantization::PerChannel {
        zero_point: 0,
        axis: 0,
        scales: Arc::new(scales),
    };
    let filter = TensorSpec::new(Datatype::Qcint8, &[2, 1, 1, 2]).quantized(scales([0.5, 0.25]));
    let filter = fixture.constant(filter, &[1i8, 2, 4, -4]);
    let bias = TensorSpec::new(Datatype::Qcint32, &[2]).quantized(scales([0.25, 0.125]));
    let bias = fixture.constant(bias, &[4i32, 8]);
    let output = fixture.output(any_qint8(0, 0.25));
    let node = Conv2d {
        kernel: [1, 1],
        group_input_channels: 2,
        group_output_channels: 2,
        ..conv(input, filter, Some(bias), output)
    };
    // Inputs 1 and 2; 0.5 * 1 + 1 * 2 + 1 = 3.5 and 1 * 1 - 1 * 2 + 1 = 0.
    assert_eq!(fixture.node(node).run::<i8>(), [14, 0]);
}

/// In microkernels that add two products in 16 bits, two products of -128 and -128 overflow.
#[test]
fn weights_of_minus_128_are_multiplied_correctly_or_refused() {
    for is_depthwise in [false, true] {
        for weights in [[-128i8, -127], [-127, -128], [-128, -128]] {
            let mut fixture = Fixture::new();
            // Two taps of one channel, or two input channels at one position.
            let dims = if is_depthwise { [1, 1, 2, 1] } else { [1, 1, 1, 2] };
            let input = fixture.input(qint8(&dims, 0, 1.0), &[-128i8; 2]);
            let filter = fixture.constant(qint8(&dims, 0, 1.0 / 1024.0), &weights);
            let output = fixture.output(any_qint8(0, 1.0));
            let defined = if is_depthwise {
                let node = depthwise(1, input, filter, None, output);
                fixture.graph.define(DepthwiseConv2d { kernel: [1, 2], ..node })
            } else {
                let node = conv(input, filter, None, output);
                fixture.graph.define(Conv2d { kernel: [1, 1], group_input_channels: 2, ..node })
            };
            if weights == [-128; 2] && adds_in_16_bits(is_depthwise) {
                let error = defined.expect_err("the sum would be another one").to_string();
                assert!(error.contains("two weights of -128 for channel 0"), "{error}");
            } else {
                defined.unwrap();
                assert_eq!(fixture.run::<i8>(), [32], "{weights:?}, {is_depthwise}");
            }
        }
    }
}

/// Weights of -128 are counted per output channel.
#[test]
fn weights_of_minus_128_in_different_channels_are_accepted() {
    let mut fixture = Fixture::new();
    let input = fixture.input(qint8(&[1, 1, 2, 2], 0, 1.0), &[-128i8; 4]);
    let filter = fixture.constant(qint8(&[1, 1, 2, 2], 0, 1.0 / 1024.0), &[-128i8, 0, 0, -128]);
    let output = fixture.output(any_qint8(0, 1.0));
    let node = depthwise(2, input, filter, None, output);
    assert_eq!(fixture.node(DepthwiseConv2d { kernel: [1, 2], ..node }).run::<i8>(), [16, 16]);
    let mut fixture = Fixture::new();
    let input = fixture.input(qint8(&[1, 1, 1, 2], 0, 1.0), &[-128i8; 2]);
    let filter = fixture.constant(qint8(&[2, 1, 1, 2], 0, 1.0 / 1024.0), &[-128i8, 0, 0, -128]);
    let output = fixture.output(any_qint8(0, 1.0));
    let node = conv(input, filter, None, output);
    let channels =
        Conv2d { kernel: [1, 1], group_input_channels: 2, group_output_channels: 2, ..node };
    assert_eq!(fixture.node(channels).run::<i8>(), [16, 16]);
}

#[test]
fn dynamically_quantized_convolution() {
    let mut fixture = Fixture::new();
    let input = fixture.input(f32(&[2, 1, 2, 1]), &[1.0f32, -1.0, 50.0, 100.0]);
    let rows = Quantization::Dynamic { nonbatch_dims: 3 };
    let quantized = fixture.internal(TensorSpec::inferred(Datatype::Qdint8).quantized(rows));
    let scales = Quantization::PerChannel { zero_point: 0, axis: 0, scales: Arc::new([0.5]) };
    let filter = TensorSpec::new(Datatype::Qcint8, &[1, 1, 2, 1]).quantized(scales);
    let filter = fixture.constant(filter, &[2i8, 4]);
    let output = fixture.output(any_f32());
    let result = fixture
        .node(Unary { op: UnaryOp::Convert, input, output: quantized })
        .node(Conv2d { kernel: [1, 2], ..conv(quantized, filter, None, output) })
        .run::<f32>();
    assert_close(&result, &[-1.0, 250.0], 1.0);
}

/// Weights are packed for the tiles of the half-precision microkernels.
#[test]
fn dynamically_quantized_convolution_to_half_precision() {
    const CHANNELS: usize = 40;
    let mut fixture = Fixture::new();
    // The range is that of 8 bits, so quantization is exact.
    let pixel = [0.0f32, 3.0, 255.0, 40.0, 7.0];
    let input = fixture.input(f32(&[1, 1, 1, 5]), &pixel);
    let rows = Quantization::Dynamic { nonbatch_dims: 3 };
    let quantized = fixture.internal(TensorSpec::inferred(Datatype::Qdint8).quantized(rows));
    let scales =
        Quantization::PerChannel { zero_point: 0, axis: 0, scales: Arc::new([0.25; CHANNELS]) };
    let weights: Vec<i8> = (0..100).chain(-100..0).collect();
    let filter = TensorSpec::new(Datatype::Qcint8, &[CHANNELS, 1, 1, 5]).quantized(scales);
    let filter = fixture.constant(filter, &weights);
    let half = fixture.internal(TensorSpec::inferred(Datatype::F16));
    let output = fixture.output(any_f32());
    let conv = Conv2d {
        kernel: [1, 1],
        group_input_channels: 5,
        group_output_channels: CHANNELS,
        ..conv(quantized, filter, None, half)
    };
    let result = fixture
        .node(Unary { op: UnaryOp::Convert, input, output: quantized })
        .node(conv)
        .node(Unary { op: UnaryOp::Convert, input: half, output })
        .run_with::<f32>(&RuntimeOptions::default());
    if !has_half_precision() {
        result.expect_err("the processor has no such arithmetic");
        return;
    }
    let sum = |weights: &[i8]| {
        weights.iter().zip(pixel).map(|(&weight, x)| f32::from(weight) * x).sum::<f32>() / 4.0
    };
    let expected: Vec<f32> = weights.chunks_exact(5).map(sum).collect();
    assert_close(&result.unwrap()[0], &expected, 8.0);
}

#[test]
fn depthwise_convolution() {
    let mut fixture = Fixture::new();
    let input = fixture.input(f32(&[1, 2, 2, 2]), &ramp(8));
    let filter = [1.0f32, 10.0, 1.0, 10.0, 1.0, 10.0, 1.0, 10.0];
    let filter = fixture.constant(f32(&[1, 2, 2, 2]), &filter);
    let output = fixture.output(any_f32());
    let node = DepthwiseConv2d { kernel: [2, 2], ..depthwise(2, input, filter, None, output) };
    let with_zero = DepthwiseConv2d { depth_multiplier: 0, ..node.clone() };
    fixture.refusal(with_zero);
    assert_close(&fixture.node(node).run::<f32>(), &[12.0, 160.0], 0.0);
}

#[test]
fn depth_multiplier() {
    let mut fixture = Fixture::new();
    let input = fixture.input(f32(&[1, 1, 1, 2]), &[3.0f32, 5.0]);
    let filter = fixture.constant(f32(&[1, 1, 1, 4]), &[1.0f32, 2.0, 3.0, 4.0]);
    let output = fixture.output(any_f32());
    let node = DepthwiseConv2d {
        kernel: [1, 1],
        depth_multiplier: 2,
        ..depthwise(2, input, filter, None, output)
    };
    assert_close(&fixture.node(node).run::<f32>(), &[3.0, 6.0, 15.0, 20.0], 0.0);
}

#[test]
fn deconvolution() {
    let mut fixture = Fixture::new();
    let input = fixture.input(f32(&[1, 1, 2, 1]), &[1.0f32, 2.0]);
    let filter = fixture.constant(f32(&[1, 2, 2, 1]), &[1.0f32, 2.0, 3.0, 4.0]);
    let output = fixture.output(f32(&[1, 2, 4, 1]));
    let result = fixture.node(deconv(input, filter, None, output)).run::<f32>();
    assert_close(&result, &[1.0, 2.0, 2.0, 4.0, 3.0, 4.0, 6.0, 8.0], 0.0);
}

/// With one pixel less, XNNPACK's counts of pixels would be negative.
#[test]
fn deconvolution_with_as_many_phases_as_pixels() {
    let mut fixture = Fixture::new();
    let input = fixture.input(f32(&[1, 1, 2, 1]), &[1.0f32, 2.0]);
    let filter = fixture.constant(f32(&[1, 2, 2, 1]), &[1.0f32, 2.0, 3.0, 4.0]);
    let output = fixture.output(any_f32());
    let node = Deconv2d { stride: [3, 2], ..deconv(input, filter, None, output) };
    let expected = [1.0, 2.0, 2.0, 4.0, 3.0, 4.0, 6.0, 8.0];
    assert_close(&fixture.node(node).run::<f32>(), &expected, 0.0);
}

#[test]
fn wrong_deconvolutions_are_refused() {
    let mut fixture = Fixture::new();
    let input = fixture.input(f32(&[1, 1, 2, 1]), &[1.0f32, 2.0]);
    let filter = fixture.constant(f32(&[1, 2, 2, 1]), &[0.0f32; 4]);
    let output = fixture.internal(any_f32());
    let good = deconv(input, filter, None, output);
    fixture.refusal(Deconv2d { adjustment: [2, 0], ..good.clone() });
    let padding = Padding2d { top: 1, bottom: 1, ..Padding2d::default() };
    fixture.refusal(Deconv2d { padding, ..good.clone() });
    fixture.refusal(Deconv2d { stride: [0, 1], ..good.clone() });
    fixture.refusal(Deconv2d { stride: [4, 2], ..good.clone() });
    fixture.refusal(Deconv2d { flags: Flags::SAME_PADDING, ..good.clone() });
    fixture.graph.define(good).unwrap();
}

#[test]
fn wrong_convolutions_are_refused() {
    let mut fixture = Fixture::new();
    let input = fixture.input(f32(&[1, 3, 3, 1]), &ramp(9));
    let filter = fixture.constant(f32(&[1, 2, 2, 1]), &[0.0f32; 4]);
    let dynamic_filter = fixture.input(f32(&[1, 2, 2, 1]), &[0.0f32; 4]);
    let fp16_filter = TensorSpec::new(Datatype::F16, &[1, 2, 2, 1]);
    let fp16_filter = fixture.constant(fp16_filter, &[0u16; 4]);
    let bias = fixture.constant(f32(&[2]), &[0.0f32; 2]);
    let flat = fixture.input(f32(&[3, 3]), &ramp(9));
    let output = fixture.internal(any_f32());
    let good = conv(input, filter, None, output);

    fixture.refusal(Conv2d { kernel: [2, 3], ..good.clone() });
    fixture.refusal(Conv2d { kernel: [0, 2], ..good.clone() });
    fixture.refusal(Conv2d { stride: [0, 1], ..good.clone() });
    fixture.refusal(Conv2d { dilation: [1, 0], ..good.clone() });
    fixture.refusal(Conv2d { dilation: [3, 1], ..good.clone() });
    fixture.refusal(Conv2d { groups: 0, ..good.clone() });
    fixture.refusal(Conv2d { groups: u32::MAX, ..good.clone() });
    fixture.refusal(Conv2d { group_input_channels: 2, ..good.clone() });
    fixture.refusal(Conv2d { group_output_channels: usize::MAX, ..good.clone() });
    fixture.refusal(Conv2d { bias: Some(bias), ..good.clone() });
    fixture.refusal(Conv2d { input: flat, ..good.clone() });
    fixture.refusal(Conv2d { filter: dynamic_filter, ..good.clone() });
    fixture.refusal(Conv2d { filter: fp16_filter, ..good.clone() });
    fixture.refusal(Conv2d { flags: Flags::KEEP_DIMS, ..good.clone() });
    let padding = Padding2d { left: 1, ..Padding2d::default() };
    fixture.refusal(Conv2d { padding, flags: Flags::SAME_PADDING, ..good.clone() });
    let padding = Padding2d { left: u32::MAX, ..Padding2d::default() };
    fixture.refusal(Conv2d { padding, ..good.clone() });
    let output_range = OutputRange { min: 1.0, max: f32::NAN };
    fixture.refusal(Conv2d { output_range, ..good.clone() });
    // XNNPACK would compute a negative padding here.
    let stride = [5, 5];
    fixture.refusal(Conv2d { stride, flags: Flags::SAME_PADDING, ..good.clone() });
    fixture.graph.define(good).unwrap();
}
