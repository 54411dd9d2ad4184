//! Convolutions.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use xnn_model::infer::Window;
use xnn_model::op::*;
use xnn_model::{DType, Op};

use super::F32;
use super::common::{expect, floats, plain, quantized, run_op, run_op_with};

fn conv(padding: Padding, stride: i32, activation: Activation) -> Op {
    Op::Conv2d(Conv2dOptions {
        padding,
        stride_w: stride,
        stride_h: stride,
        activation,
        ..Default::default()
    })
}

#[test]
fn convolution_in_floats() {
    // A 2 × 2 filter of ones over 1..=9.
    let input = || floats(&[1, 3, 3, 1], &[1., 2., 3., 4., 5., 6., 7., 8., 9.]);
    let weights = [floats(&[1, 2, 2, 1], &[1.; 4]), floats(&[1], &[0.5])];
    let valid = conv(Padding::Valid, 1, Activation::None);
    let result = run_op_with(valid, &[input()], &weights, F32);
    expect(result, &[1, 2, 2, 1], &[12.5f32, 16.5, 24.5, 28.5]);
    // SAME pads below and on the right.
    let same = conv(Padding::Same, 2, Activation::None);
    let result = run_op_with(same, &[input()], &weights, F32);
    expect(result, &[1, 2, 2, 1], &[12.5f32, 9.5, 15.5, 9.5]);
    let clamped = conv(Padding::Valid, 1, Activation::Relu6);
    let result = run_op_with(clamped, &[input()], &weights, F32);
    expect(result, &[1, 2, 2, 1], &[6.0f32; 4]);
}

#[test]
fn convolution_with_computed_weights() {
    let input = floats(&[1, 1, 2, 1], &[2., 3.]);
    let filter = floats(&[2, 1, 1, 1], &[1., 10.]);
    let op = conv(Padding::Valid, 1, Activation::None);
    expect(run_op(op, &[input, filter], F32), &[1, 1, 2, 2], &[2.0f32, 20., 3., 30.]);
}

#[test]
fn grouped_convolution() {
    let input = floats(&[1, 1, 1, 4], &[1., 2., 3., 4.]);
    let filter = floats(&[2, 1, 1, 2], &[1., 1., 10., 10.]);
    let op = conv(Padding::Valid, 1, Activation::None);
    expect(run_op(op, &[input, filter], F32), &[1, 1, 1, 2], &[3.0f32, 70.]);
}

#[test]
fn convolution_in_integers_rounds_and_saturates() {
    // Scales: 0.5 * 0.5 / 1 = 1/4.
    let input = || quantized(&[1, 1, 3, 1], &[5i8, 6, 127], 0.5, 2);
    let weights = || [quantized(&[1, 1, 1, 1], &[2i8], 0.5, 0), quantized(&[1], &[0i32], 0.25, 0)];
    let op = || conv(Padding::Valid, 1, Activation::None);
    let to = |zero| (DType::I8, Some((1.0, zero)));
    // (3, 4, 125) * 2 / 4 = 1.5, 2, 62.5: ties are rounded away from zero.
    let result = run_op_with(op(), &[input()], &weights(), to(0));
    expect(result, &[1, 1, 3, 1], &[2i8, 2, 63]);
    let result = run_op_with(op(), &[input()], &weights(), to(100));
    expect(result, &[1, 1, 3, 1], &[102i8, 102, 127]);
    // ReLU clamps at the output's zero point.
    let relu = conv(Padding::Valid, 1, Activation::Relu);
    let negative = quantized(&[1, 1, 1, 1], &[-20i8], 0.5, 2);
    let result = run_op_with(relu, &[negative], &weights(), to(7));
    expect(result, &[1, 1, 1, 1], &[7i8]);
}

/// Adds more products than 32 bits hold the sum of, among them the largest ones.
#[test]
fn convolution_of_sixteen_bits_adds_exactly() {
    let (height, width, depth, outputs) = (4, 5, 64, 6);
    let mut rng = ChaCha8Rng::seed_from_u64(16);
    let mut input: Vec<i16> = (0..height * width * depth).map(|_| rng.random()).collect();
    input[..width * depth].fill(i16::MIN);
    let mut filter: Vec<i8> = (0..outputs * 9 * depth).map(|_| rng.random()).collect();
    filter[..9 * depth].fill(i8::MIN);
    let bias: Vec<i64> = (0..outputs).map(|_| rng.random_range(-(1 << 30)..1 << 30)).collect();
    // Scales: 2^-14 * 2^-2 / 1 = 2^-16; ties are rounded up.
    let sum = |y: usize, x: usize, output: usize| {
        let mut sum = bias[output];
        for (tap, weights) in filter.chunks(depth).skip(output * 9).take(9).enumerate() {
            let (y, x) = ((y + tap / 3).wrapping_sub(1), (x + tap % 3).wrapping_sub(1));
            if y < height && x < width {
                let pixel = &input[(y * width + x) * depth..][..depth];
                let products =
                    pixel.iter().zip(weights).map(|(&x, &w)| i64::from(x) * i64::from(w));
                sum += products.sum::<i64>();
            }
        }
        ((sum + (1 << 15)) >> 16).clamp(i16::MIN.into(), i16::MAX.into()) as i16
    };
    let pixels = (0..height).flat_map(|y| (0..width).map(move |x| (y, x)));
    let expected: Vec<i16> = pixels
        .flat_map(|(y, x)| (0..outputs).map(move |o| (y, x, o)))
        .map(|(y, x, o)| sum(y, x, o))
        .collect();
    let scale = 2f32.powi(-14);
    let weights = [
        quantized(&[outputs, 3, 3, depth], &filter, 0.25, 0),
        quantized(&[outputs], &bias, scale * 0.25, 0),
    ];
    let input = quantized(&[1, height, width, depth], &input, scale, 0);
    let op = conv(Padding::Same, 1, Activation::None);
    let result = run_op_with(op, &[input], &weights, (DType::I16, Some((1.0, 0))));
    expect(result, &[1, height, width, outputs], &expected);
}

#[test]
fn depthwise_convolution_multiplies_channels() {
    let input = floats(&[1, 1, 2, 2], &[1., 2., 3., 4.]);
    let filter = floats(&[1, 1, 2, 4], &[1., 2., 3., 4., 10., 20., 30., 40.]);
    let op = Op::DepthwiseConv2d(DepthwiseConv2dOptions {
        padding: Padding::Valid,
        stride_w: 1,
        stride_h: 1,
        depth_multiplier: 2,
        ..Default::default()
    });
    let result = run_op_with(op, &[input], &[filter], F32);
    expect(result, &[1, 1, 1, 4], &[31.0f32, 62., 126., 168.]);
}

#[test]
fn transposed_convolution() {
    let shape = plain(&[4], &[1i32, 3, 3, 1]);
    let filter = floats(&[1, 2, 2, 1], &[1., 2., 3., 4.]);
    let input = floats(&[1, 2, 2, 1], &[1., 10., 100., 1000.]);
    let op = Op::TransposeConv(TransposeConvOptions {
        padding: Padding::Valid,
        stride_w: 1,
        stride_h: 1,
        ..Default::default()
    });
    let result = run_op(op, &[shape, filter, input], F32);
    let expected = [1.0f32, 12., 20., 103., 1234., 2040., 300., 3400., 4000.];
    expect(result, &[1, 3, 3, 1], &expected);
}

#[test]
fn transposed_convolution_with_dynamic_range() {
    let shape = plain(&[4], &[2i32, 1, 2, 2]);
    let filter = quantized(&[2, 1, 1, 1], &[64i8, -127], 0.5, 0);
    let bias = floats(&[2], &[1., 0.]);
    // Each image has its own range, [0, 255] and [-51, 204], both in steps of 1.
    let input = floats(&[2, 1, 2, 1], &[0.4, 255., -51., 204.]);
    let op = Op::TransposeConv(TransposeConvOptions {
        padding: Padding::Valid,
        stride_w: 1,
        stride_h: 1,
        ..Default::default()
    });
    let result = run_op(op, &[shape, filter, input, bias], F32);
    let expected = [1.0f32, 0., 8161., -16192.5, -1631., 3238.5, 6529., -12954.];
    expect(result, &[2, 1, 2, 2], &expected);
}

/// All sizes, strides, dilations and paddings of small filters, against the definition.
#[test]
fn convolution_in_three_dimensions() {
    let (volume, channels, outputs) = ([3, 4, 5], 2, 3);
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let mut integers = |count: usize| -> Vec<f32> {
        (0..count).map(|_| rng.random_range(-9..10) as f32).collect()
    };
    let cells: usize = volume.iter().product();
    let input = integers(2 * cells * channels);
    for case in 0..216 {
        let filter = [case % 3 + 1, case / 3 % 3 + 1, (case + case / 9) % 3 + 1];
        let strides = [case / 9 % 2 + 1, case / 18 % 2 + 1, case / 36 % 3 + 1];
        let dilations = [case / 2 % 2 + 1, case / 4 % 2 + 1, case / 5 % 2 + 1];
        let padding = [Padding::Same, Padding::Valid][case / 108];
        let windows: [Window; 3] = std::array::from_fn(|i| Window {
            size: filter[i],
            stride: strides[i],
            dilation: dilations[i],
        });
        let space: [usize; 3] = std::array::from_fn(|i| windows[i].output(volume[i], padding));
        if space.contains(&0) {
            continue;
        }
        let taps: usize = filter.iter().product();
        let weights = integers(taps * channels * outputs);
        let bias = integers(outputs);
        // The place on the input under a filter element.
        let under = |at: [usize; 3], tap: [usize; 3]| {
            (0..3).try_fold(0, |place, i| {
                let before = windows[i].padding(volume[i], space[i]).0;
                let on = (at[i] * strides[i] + tap[i] * dilations[i]).checked_sub(before)?;
                (on < volume[i]).then_some(place * volume[i] + on)
            })
        };
        let split = |n: usize, [_, h, w]: [usize; 3]| [n / (h * w), n / w % h, n % w];
        let mut expected = Vec::new();
        for batch in 0..2 {
            for at in 0..space.iter().product() {
                for output in 0..outputs {
                    let products = (0..taps * channels).map(|i| {
                        let place = under(split(at, space), split(i / channels, filter));
                        let pixel = place.map(|place| (batch * cells + place) * channels);
                        pixel.map_or(0.0, |first| {
                            input[first + i % channels] * weights[i * outputs + output]
                        })
                    });
                    expected.push(products.sum::<f32>() + bias[output]);
                }
            }
        }
        let [stride_d, stride_h, stride_w] = strides.map(|x| x as i32);
        let [dilation_d, dilation_h, dilation_w] = dilations.map(|x| x as i32);
        let op = Op::Conv3d(Conv3dOptions {
            padding,
            stride_d,
            stride_h,
            stride_w,
            dilation_d,
            dilation_h,
            dilation_w,
            ..Default::default()
        });
        let [[id, ih, iw], [kd, kh, kw], [od, oh, ow]] = [volume, filter, space];
        let constants =
            [floats(&[kd, kh, kw, channels, outputs], &weights), floats(&[outputs], &bias)];
        let input = floats(&[2, id, ih, iw, channels], &input);
        let result = run_op_with(op, &[input], &constants, F32);
        expect(result, &[2, od, oh, ow, outputs], &expected);
    }
}
