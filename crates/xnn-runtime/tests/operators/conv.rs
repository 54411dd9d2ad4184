//! Convolutions, compared with seven nested loops.

use bytes::Bytes;
use xnn_format::{
    Conv2d, Datatype, NodeOp, Padding2d, Quantization, Size2d, UnaryOp, Value, flags,
};
use xnn_runtime::{Result, RuntimeErrorKind, Session};

use crate::support::{
    Builder, assert_close, f32s, i8_weights, in_half_precision, le_bytes, qint8, random, random_i8,
    range,
};

/// A convolution without groups of values.
#[derive(Clone)]
struct Case {
    image: [usize; 2],
    kernel: [usize; 2],
    stride: usize,
    dilation: usize,
    padding: usize,
    groups: usize,
    group_in: usize,
    group_out: usize,
}

impl Case {
    const PLAIN: Self = Self {
        image: [5, 6],
        kernel: [3, 2],
        stride: 1,
        dilation: 1,
        padding: 0,
        groups: 1,
        group_in: 3,
        group_out: 4,
    };

    fn channels(&self) -> [usize; 2] {
        [self.groups * self.group_in, self.groups * self.group_out]
    }

    fn output(&self) -> [usize; 2] {
        [0, 1].map(|axis| {
            let window = (self.kernel[axis] - 1) * self.dilation + 1;
            (self.image[axis] + 2 * self.padding - window) / self.stride + 1
        })
    }

    /// `filter[o][kh][kw][i]`.
    fn naive(&self, input: &[f32], filter: &[f32], bias: &[f32]) -> Vec<f32> {
        let ([height, width], [kernel_h, kernel_w]) = (self.image, self.kernel);
        let [inputs, outputs] = self.channels();
        let [out_h, out_w] = self.output();
        let mut result = Vec::new();
        for (y, x) in (0..out_h).flat_map(|y| (0..out_w).map(move |x| (y, x))) {
            for o in 0..outputs {
                let first = o / self.group_out * self.group_in;
                let mut sum = bias[o];
                for (ky, kx) in (0..kernel_h).flat_map(|y| (0..kernel_w).map(move |x| (y, x))) {
                    let at = |out: usize, k: usize, size: usize| {
                        (out * self.stride + k * self.dilation)
                            .checked_sub(self.padding)
                            .filter(|&position| position < size)
                    };
                    let (Some(iy), Some(ix)) = (at(y, ky, height), at(x, kx, width)) else {
                        continue;
                    };
                    for i in 0..self.group_in {
                        let pixel = input[(iy * width + ix) * inputs + first + i];
                        sum += pixel
                            * filter[((o * kernel_h + ky) * kernel_w + kx) * self.group_in + i];
                    }
                }
                result.push(sum);
            }
        }
        result
    }

    fn node(&self, input: u32, filter: u32, bias: Option<u32>, output: u32) -> Conv2d {
        let side = self.padding as u32;
        let square = |edge: usize| Size2d { height: edge as u32, width: edge as u32 };
        Conv2d {
            padding: Padding2d { top: side, right: side, bottom: side, left: side },
            kernel: Size2d { height: self.kernel[0] as u32, width: self.kernel[1] as u32 },
            stride: square(self.stride),
            dilation: square(self.dilation),
            adjustment: square(0),
            groups: self.groups as u32,
            group_input_channels: self.group_in as u32,
            group_output_channels: self.group_out as u32,
            input: xnn_format::ValueId(input),
            filter: xnn_format::ValueId(filter),
            bias: bias.map(xnn_format::ValueId),
            output: xnn_format::ValueId(output),
        }
    }

    /// Returns XNNPACK's result and the naive one.
    fn run(&self) -> Result<(Vec<f32>, Vec<f32>)> {
        let ([height, width], [kernel_h, kernel_w]) = (self.image, self.kernel);
        let ([inputs, outputs], [out_h, out_w]) = (self.channels(), self.output());
        let input = random(1, height * width * inputs);
        let filter = random(2, outputs * kernel_h * kernel_w * self.group_in);
        let bias = random(3, outputs);
        let mut builder = Builder::new();
        let x = builder.input_f32(&[1, height, width, inputs]);
        let w = builder.constant_f32(&[outputs, kernel_h, kernel_w, self.group_in], &filter);
        let b = builder.constant_f32(&[outputs], &bias);
        let y = builder.output_f32(&[1, out_h, out_w, outputs]);
        builder.node(NodeOp::Conv2d(self.node(x.0, w.0, Some(b.0), y.0)));
        Ok((builder.run_f32(&[&input])?, self.naive(&input, &filter, &bias)))
    }
}

#[test]
fn plain_strided_dilated_padded_grouped_and_pointwise() {
    let cases = [
        Case::PLAIN,
        Case { stride: 2, ..Case::PLAIN },
        Case { dilation: 2, ..Case::PLAIN },
        Case { padding: 1, ..Case::PLAIN },
        Case { groups: 2, ..Case::PLAIN },
        Case { kernel: [1, 1], ..Case::PLAIN },
        Case { kernel: [1, 1], group_in: 64, group_out: 33, ..Case::PLAIN },
    ];
    for case in cases {
        let (got, expected) = case.run().unwrap();
        assert_close(&got, &expected, 1e-5);
    }
}

/// Microkernels for few output channels (or few beyond a multiple of 32) and for many sum a channel
/// in the same order. With up to six channels, lanes of vectors may be inputs, and the order is
/// another one. Filters are generated output by output, so a narrow filter is the start of a wide
/// one.
#[test]
fn narrow_and_wide_layers_give_the_same_sums() {
    for kernel in [[1, 1], [3, 2]] {
        let outputs = |group_out| {
            let case = Case { kernel, group_in: 37, group_out, ..Case::PLAIN };
            let (got, expected) = case.run().unwrap();
            assert_close(&got, &expected, 1e-5);
            got
        };
        let wide = outputs(128);
        for channels in 1..7 {
            outputs(channels);
        }
        for channels in [7, 8, 9, 15, 16, 17, 31, 32, 33, 48, 49, 64, 80, 112, 113] {
            let narrow = outputs(channels);
            let same =
                narrow.chunks(channels).zip(wide.chunks(128)).all(|(n, w)| n == &w[..channels]);
            assert!(same, "{channels} channels");
        }
    }
}

#[test]
fn same_padding_puts_the_odd_pixel_at_the_end() {
    // 4 pixels, kernel 3, stride 2: one pixel of padding, at the end.
    let mut builder = Builder::new();
    let x = builder.input_f32(&[1, 1, 4, 1]);
    let w = builder.constant_f32(&[1, 1, 3, 1], &[1.0, 10.0, 100.0]);
    let y = builder.output_f32(&[1, 1, 2, 1]);
    let case = Case { kernel: [1, 3], stride: 2, group_in: 1, group_out: 1, ..Case::PLAIN };
    let node = NodeOp::Conv2d(case.node(x.0, w.0, None, y.0));
    builder.node(node).flags = flags::TENSORFLOW_SAME_PADDING;
    let got = builder.run_f32(&[&[1.0, 2.0, 3.0, 4.0]]).unwrap();
    assert_eq!(got, [321.0, 43.0]);
}

#[test]
fn results_are_clamped() {
    let mut builder = Builder::new();
    let x = builder.input_f32(&[1, 1, 3, 1]);
    let w = builder.constant_f32(&[1, 1, 1, 1], &[2.0]);
    let y = builder.output_f32(&[1, 1, 3, 1]);
    let case = Case { kernel: [1, 1], group_in: 1, group_out: 1, ..Case::PLAIN };
    builder.node(NodeOp::Conv2d(case.node(x.0, w.0, None, y.0))).output_range = range(0.0, 6.0);
    assert_eq!(builder.run_f32(&[&[-1.0, 2.0, 4.0]]).unwrap(), [0.0, 4.0, 6.0]);
}

#[test]
fn depthwise_with_multiplier() {
    let case = Case { groups: 3, group_in: 1, group_out: 2, padding: 1, ..Case::PLAIN };
    let ([height, width], [kernel_h, kernel_w]) = (case.image, case.kernel);
    let ([inputs, outputs], [out_h, out_w]) = (case.channels(), case.output());
    let input = random(4, height * width * inputs);
    let filter = random(5, kernel_h * kernel_w * outputs);
    let bias = random(6, outputs);
    let mut builder = Builder::new();
    let x = builder.input_f32(&[1, height, width, inputs]);
    let w = builder.constant_f32(&[1, kernel_h, kernel_w, outputs], &filter);
    let b = builder.constant_f32(&[outputs], &bias);
    let y = builder.output_f32(&[1, out_h, out_w, outputs]);
    builder.node(NodeOp::DepthwiseConv2d(case.node(x.0, w.0, Some(b.0), y.0)));
    let got = builder.run_f32(&[&input]).unwrap();

    // [1, KH, KW, O] to [O, KH, KW, 1].
    let taps = kernel_h * kernel_w;
    let by_output: Vec<f32> =
        (0..outputs * taps).map(|at| filter[at % taps * outputs + at / taps]).collect();
    assert_close(&got, &case.naive(&input, &by_output, &bias), 1e-5);
}

#[test]
fn depthwise_channels_that_do_not_divide_are_refused() {
    let mut builder = Builder::new();
    let x = builder.input_f32(&[1, 5, 6, 6]);
    let w = builder.constant_f32(&[1, 3, 2, 9], &random(1, 54));
    let y = builder.output_f32(&[1, 3, 5, 9]);
    let case = Case { groups: 3, group_in: 2, group_out: 3, ..Case::PLAIN };
    builder.node(NodeOp::DepthwiseConv2d(case.node(x.0, w.0, None, y.0)));
    assert_eq!(builder.session().unwrap_err().kind(), RuntimeErrorKind::InvalidGraph);
}

#[test]
fn transposed_convolution_spreads_pixels() {
    // With stride 2 and kernel 2, every pixel becomes a block.
    let mut builder = Builder::new();
    let x = builder.input_f32(&[1, 1, 2, 1]);
    let w = builder.constant_f32(&[1, 2, 2, 1], &[1.0, 2.0, 3.0, 4.0]);
    let b = builder.constant_f32(&[1], &[0.5]);
    let y = builder.output_f32(&[1, 2, 4, 1]);
    let case = Case { kernel: [2, 2], stride: 2, group_in: 1, group_out: 1, ..Case::PLAIN };
    builder.node(NodeOp::ConvTranspose2d(case.node(x.0, w.0, Some(b.0), y.0)));
    let got = builder.run_f32(&[&[1.0, 10.0]]).unwrap();
    assert_eq!(got, [1.5, 2.5, 10.5, 20.5, 3.5, 4.5, 30.5, 40.5]);
}

#[test]
fn transposed_adjustment_adds_a_row_and_a_column() {
    let with_adjustment = |height, width| {
        let mut builder = Builder::new();
        let x = builder.input_f32(&[1, 2, 2, 1]);
        let w = builder.constant_f32(&[1, 1, 1, 1], &[1.0]);
        let y = builder.output_f32(&[1, 3, 3, 1]);
        let case = Case { kernel: [1, 1], stride: 2, group_in: 1, group_out: 1, ..Case::PLAIN };
        let node = case.node(x.0, w.0, None, y.0);
        let adjustment = Size2d { height, width };
        builder.node(NodeOp::ConvTranspose2d(Conv2d { adjustment, ..node }));
        builder.session().map(|session| session.outputs()[0].dims.clone())
    };
    assert_eq!(with_adjustment(0, 0).unwrap(), [1, 3, 3, 1]);
    assert_eq!(with_adjustment(1, 1).unwrap(), [1, 4, 4, 1]);
    // An adjustment must be less than the stride.
    assert!(with_adjustment(2, 0).is_err());
}

#[test]
fn int8_per_channel_within_one_step() {
    let case = Case { padding: 1, ..Case::PLAIN };
    let ([height, width], [kernel_h, kernel_w]) = (case.image, case.kernel);
    let ([inputs, outputs], [out_h, out_w]) = (case.channels(), case.output());
    let (input_scale, input_zero, output_scale, output_zero) = (0.02, 3, 0.1, -5);
    let scales = [0.01f32, 0.02, 0.005, 0.03];
    let input = random_i8(1, height * width * inputs);
    let filter = i8_weights(2, outputs * kernel_h * kernel_w * case.group_in);
    let bias = [100i32, -50, 0, 7];

    let mut builder = Builder::new();
    let x = builder.input(qint8(&[1, height, width, inputs], input_scale, input_zero));
    let filter_dims = [outputs, kernel_h, kernel_w, case.group_in];
    let per_channel =
        |scales: Vec<f32>| Quantization::PerChannel { scales: scales.into(), channel_dim: 0 };
    let w = builder.value(
        Value::new(Datatype::QcInt8, per_channel(scales.to_vec()), &filter_dims)
            .with_data(filter.iter().map(|&q| q as u8).collect()),
    );
    let bias_scales = scales.iter().map(|scale| scale * input_scale).collect();
    let b = builder.value(
        Value::new(Datatype::QcInt32, per_channel(bias_scales), &[outputs])
            .with_data(bias.iter().flat_map(|q| q.to_le_bytes()).collect::<Bytes>()),
    );
    let y = builder.output(qint8(&[1, out_h, out_w, outputs], output_scale, output_zero));
    builder.node(NodeOp::Conv2d(case.node(x.0, w.0, Some(b.0), y.0)));
    let got = builder.run::<i8, i8>(&[&input]).unwrap();

    let real_input: Vec<f32> =
        input.iter().map(|&q| (i32::from(q) - input_zero) as f32 * input_scale).collect();
    let per_output = filter.len() / outputs;
    let real_filter: Vec<f32> =
        filter.iter().enumerate().map(|(at, &q)| f32::from(q) * scales[at / per_output]).collect();
    let real_bias: Vec<f32> =
        bias.iter().zip(scales).map(|(&q, scale)| q as f32 * scale * input_scale).collect();
    for (got, real) in got.iter().zip(case.naive(&real_input, &real_filter, &real_bias)) {
        let expected = (real / output_scale).round() as i32 + output_zero;
        let difference = i32::from(*got) - expected.clamp(-128, 127);
        assert!(difference.abs() <= 1, "{got} instead of {expected}");
    }
}

#[test]
fn fp16_activations_with_fp32_weights() {
    let half_bits = |values: &[f32]| -> Vec<u16> {
        values.iter().map(|&value| half::f16::from_f32(value).to_bits()).collect()
    };
    let case = Case::PLAIN;
    let input: Vec<f32> =
        random(1, 90).iter().map(|&value| half::f16::from_f32(value).to_f32()).collect();
    let (filter, bias) = (random(2, 72), random(3, 4));
    let mut builder = Builder::new();
    let f16s = |dims: &[usize]| Value::new(Datatype::F16, Quantization::None, dims);
    let x = builder.input(f16s(&[1, 5, 6, 3]));
    let w = builder.value(f32s(&[4, 3, 2, 3]).with_data(le_bytes(&filter)));
    let b = builder.value(f32s(&[4]).with_data(le_bytes(&bias)));
    let y = builder.output(f16s(&[1, 3, 5, 4]));
    builder.node(NodeOp::Conv2d(case.node(x.0, w.0, Some(b.0), y.0)));
    let result = builder.run::<u16, u16>(&[&half_bits(&input)]);
    let Some(got) = in_half_precision(result) else { return };
    let got: Vec<f32> = got.iter().map(|&bits| half::f16::from_bits(bits).to_f32()).collect();
    assert_close(&got, &case.naive(&input, &filter, &bias), 1e-2);
}

/// XNNPACK's padding of images quantized at run time does not follow the number of images.
#[test]
fn dynamic_quantization_follows_the_batch() {
    let case = Case { padding: 1, ..Case::PLAIN };
    let ([kernel_h, kernel_w], [inputs, outputs]) = (case.kernel, case.channels());
    let session = || {
        let mut builder = Builder::new();
        let x = builder.input_f32(&[1, 5, 6, inputs]);
        let dynamic = Quantization::Dynamic { num_nonbatch_dims: 3 };
        let q = builder.value(Value::new(Datatype::QdInt8, dynamic, &[1, 5, 6, inputs]));
        let filter_dims = [outputs, kernel_h, kernel_w, inputs];
        let elements = i8_weights(2, filter_dims.iter().product());
        let scales =
            Quantization::PerChannel { scales: vec![0.01; outputs].into(), channel_dim: 0 };
        let w = builder.value(
            Value::new(Datatype::QcInt8, scales, &filter_dims)
                .with_data(elements.iter().map(|&q| q as u8).collect()),
        );
        let y = builder.output_f32(&[1, 5, 7, outputs]);
        builder.node(NodeOp::Unary { op: UnaryOp::Convert, input: x, output: q });
        builder.node(NodeOp::Conv2d(case.node(q.0, w.0, None, y.0)));
        builder.session().unwrap()
    };
    let run = |session: &mut Session, dims: [usize; 4]| {
        session.resize(0, &dims).unwrap();
        session.reshape().unwrap();
        let input = random(7, dims.iter().product());
        session.input_as_mut(0).unwrap().copy_from_slice(&input);
        session.run().unwrap();
        session.output_as::<f32>(0).unwrap().to_vec()
    };
    let mut resized = session();
    for dims in [[1, 5, 6, 3], [4, 5, 6, 3], [2, 7, 6, 3], [9, 7, 8, 3], [1, 5, 6, 3]] {
        assert_eq!(run(&mut resized, dims), run(&mut session(), dims));
    }
}
