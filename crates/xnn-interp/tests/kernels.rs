//! Kernels against results computed by hand.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod common;

use common::{bools, expect, expect_close, floats, plain, quantized, run_op, run_op_with};
use xnn_model::op::*;
use xnn_model::{DType, Op};

const F32: (DType, Option<(f32, i64)>) = (DType::F32, None);

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
fn convolution_with_weights_that_are_computed() {
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
    // (3, 4, 125) * 2 / 4 = 1.5, 2, 62.5: halves away from zero.
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
fn fully_connected() {
    let fc = |keep_num_dims| {
        Op::FullyConnected(FullyConnectedOptions { keep_num_dims, ..Default::default() })
    };
    let input = || floats(&[1, 2, 2], &[1., 2., 3., 4.]);
    let weights = || [floats(&[3, 2], &[1., 0., 0., 1., 1., 1.]), floats(&[3], &[0., 0., 100.])];
    let expected = [1.0f32, 2., 103., 3., 4., 107.];
    let result = run_op_with(fc(false), &[input()], &weights(), F32);
    expect(result, &[2, 3], &expected);
    let result = run_op_with(fc(true), &[input()], &weights(), F32);
    expect(result, &[1, 2, 3], &expected);
    let input = quantized(&[1, 2], &[10i8, -10], 0.1, 0);
    let weights = [quantized(&[1, 2], &[100i8, 50], 0.01, 0)];
    // 1 * 1 - 1 * 0.5 = 0.5.
    let result = run_op_with(fc(false), &[input], &weights, (DType::I8, Some((0.05, 1))));
    expect(result, &[1, 1], &[11i8]);
}

#[test]
fn pools() {
    let options = || Pool2dOptions {
        padding: Padding::Same,
        stride_w: 2,
        stride_h: 2,
        filter_width: 2,
        filter_height: 2,
        ..Default::default()
    };
    let input = || floats(&[1, 3, 3, 1], &[1., 2., 3., 4., 5., 6., 7., 8., 9.]);
    let result = run_op(Op::AveragePool2d(options()), &[input()], F32);
    expect(result, &[1, 2, 2, 1], &[3.0f32, 4.5, 7.5, 9.]);
    let result = run_op(Op::MaxPool2d(options()), &[input()], F32);
    expect(result, &[1, 2, 2, 1], &[5.0f32, 6., 8., 9.]);
    let result = run_op(Op::L2Pool2d(options()), &[input()], F32);
    expect_close(result, &[1, 2, 2, 1], &[11.5f32.sqrt(), 22.5f32.sqrt(), 56.5f32.sqrt(), 9.]);
    // Halves away from zero for signed integers, up for unsigned ones.
    let signed = quantized(&[1, 2, 2, 1], &[-1i8, -2, -1, -2], 1.0, 0);
    let result = run_op(Op::AveragePool2d(options()), &[signed], (DType::I8, Some((1.0, 0))));
    expect(result, &[1, 1, 1, 1], &[-2i8]);
    let unsigned = quantized(&[1, 2, 2, 1], &[1u8, 2, 1, 2], 1.0, 0);
    let result = run_op(Op::AveragePool2d(options()), &[unsigned], (DType::U8, Some((1.0, 0))));
    expect(result, &[1, 1, 1, 1], &[2u8]);
}

#[test]
fn arithmetic() {
    let a = || floats(&[2, 2], &[1., -2., 3., 4.]);
    let b = || floats(&[2], &[10., 20.]);
    let add = || Op::Add(ArithmeticOptions::default());
    expect(run_op(add(), &[a(), b()], F32), &[2, 2], &[11.0f32, 18., 13., 24.]);
    let sub = Op::Sub(ArithmeticOptions { activation: Activation::Relu, ..Default::default() });
    expect(run_op(sub, &[a(), b()], F32), &[2, 2], &[0.0f32; 4]);
    let mul = || Op::Mul(ActivationOptions::default());
    expect(run_op(mul(), &[a(), b()], F32), &[2, 2], &[10.0f32, -40., 30., 80.]);
    let div = || Op::Div(ActivationOptions::default());
    expect(run_op(div(), &[b(), b()], F32), &[2], &[1.0f32, 1.]);
    let whole = |values: &[i32]| plain(&[values.len()], values);
    let i32s = (DType::I32, None);
    expect(run_op(div(), &[whole(&[7, -7]), whole(&[2])], i32s), &[2], &[3i32, -3]);
    assert!(run_op(div(), &[whole(&[7]), whole(&[0])], i32s).is_err());
    let floor_div = run_op(Op::FloorDiv, &[whole(&[7, -7]), whole(&[2])], i32s);
    expect(floor_div, &[2], &[3i32, -4]);
    let floor_mod = run_op(Op::FloorMod, &[whole(&[7, -7]), whole(&[3])], i32s);
    expect(floor_mod, &[2], &[1i32, 2]);
    expect(run_op(Op::Pow, &[whole(&[2, 3]), whole(&[5])], i32s), &[2], &[32i32, 243]);
    expect(run_op(add(), &[whole(&[i32::MAX]), whole(&[1])], i32s), &[1], &[i32::MIN]);
    // Real numbers 2 + 1 = 3, 4 * 0.5 = 2.
    let x = || quantized(&[1], &[24i8], 0.1, 4);
    let y = || quantized(&[1], &[5i8], 0.2, 0);
    expect(run_op(add(), &[x(), y()], (DType::I8, Some((0.1, -3)))), &[1], &[27i8]);
    let x = quantized(&[1], &[40u8], 0.1, 0);
    let y = quantized(&[1], &[130u8], 0.05, 120);
    expect(run_op(mul(), &[x, y], (DType::U8, Some((0.1, 10)))), &[1], &[30u8]);
}

#[test]
fn comparisons_and_logic() {
    let a = || plain(&[3], &[1i32, 2, 3]);
    let b = || plain(&[1], &[2i32]);
    let truth = (DType::Bool, None);
    expect(run_op(Op::Less, &[a(), b()], truth), &[3], &[1u8, 0, 0]);
    expect(run_op(Op::LessEqual, &[a(), b()], truth), &[3], &[1u8, 1, 0]);
    expect(run_op(Op::NotEqual, &[a(), b()], truth), &[3], &[1u8, 0, 1]);
    let nan = floats(&[1], &[f32::NAN]);
    expect(run_op(Op::GreaterEqual, &[floats(&[1], &[0.]), nan], truth), &[1], &[0u8]);
    // 10 * 0.1 against 5 * 0.2.
    let x = quantized(&[1], &[10i8], 0.1, 0);
    let y = quantized(&[1], &[5i8], 0.2, 0);
    expect(run_op(Op::Equal, &[x, y], truth), &[1], &[1u8]);
    let (p, q) = (bools(&[2], &[1, 0]), bools(&[2], &[1, 1]));
    expect(run_op(Op::LogicalAnd, &[p, q], truth), &[2], &[1u8, 0]);
    let shifted = run_op(
        Op::RightShift,
        &[plain(&[2], &[-8i32, 8]), plain(&[2], &[1i32, 40])],
        (DType::I32, None),
    );
    expect(shifted, &[2], &[-4i32, 0]);
}

#[test]
fn functions() {
    let x = || floats(&[3], &[-1., 0., 2.]);
    expect(run_op(Op::Relu, &[x()], F32), &[3], &[0.0f32, 0., 2.]);
    expect(run_op(Op::ReluN1To1, &[x()], F32), &[3], &[-1.0f32, 0., 1.]);
    expect(run_op(Op::Sign, &[x()], F32), &[3], &[-1.0f32, 0., 1.]);
    expect(run_op(Op::HardSwish, &[x()], F32), &[3], &[-2.0f32 / 6., 0., 10. / 6.]);
    let leaky = Op::LeakyRelu(LeakyReluOptions { alpha: 0.5 });
    expect(run_op(leaky, &[x()], F32), &[3], &[-0.5f32, 0., 2.]);
    expect_close(run_op(Op::Logistic, &[x()], F32), &[3], &[0.268_941_43, 0.5, 0.880_797_1]);
    let gelu = |approximate| Op::Gelu(GeluOptions { approximate });
    let exact = [-0.158_655_25, 0., 1.954_499_7];
    expect_close(run_op(gelu(false), &[x()], F32), &[3], &exact);
    let tanh = [-0.158_808_01, 0., 1.954_597_7];
    expect_close(run_op(gelu(true), &[x()], F32), &[3], &tanh);
    expect(run_op(Op::Round, &[floats(&[3], &[0.5, 1.5, -2.5])], F32), &[3], &[0.0f32, 2., -2.]);
    // Logistic of -2.0, 0.0, 2.0 in steps of 1/256 from -128.
    let q = quantized(&[3], &[-20i8, 0, 20], 0.1, 0);
    let result = run_op(Op::Logistic, &[q], (DType::I8, Some((1.0 / 256.0, -128))));
    expect(result, &[3], &[-97i8, 0, 97]);
}

#[test]
fn softmax() {
    let softmax = || Op::Softmax(SoftmaxOptions { beta: 1.0 });
    let result = run_op(softmax(), &[floats(&[1, 2], &[0., 3f32.ln()])], F32);
    expect_close(result, &[1, 2], &[0.25, 0.75]);
    let even = quantized(&[1, 4], &[7i8; 4], 0.1, 0);
    let result = run_op(softmax(), &[even], (DType::I8, Some((1.0 / 256.0, -128))));
    expect(result, &[1, 4], &[-64i8; 4]);
    let result = run_op(Op::LogSoftmax, &[floats(&[1, 2], &[0., 0.])], F32);
    expect_close(result, &[1, 2], &[-std::f32::consts::LN_2; 2]);
}

#[test]
fn reductions() {
    let x = || floats(&[2, 3], &[1., 2., 3., 4., 5., 6.]);
    let options = |keep_dims| ReducerOptions { keep_dims };
    let axes = |axes: &[i32]| [plain(&[axes.len()], axes)];
    let result = run_op_with(Op::Mean(options(false)), &[x()], &axes(&[1]), F32);
    expect(result, &[2], &[2.0f32, 5.]);
    let result = run_op_with(Op::Sum(options(true)), &[x()], &axes(&[0]), F32);
    expect(result, &[1, 3], &[5.0f32, 7., 9.]);
    let result = run_op_with(Op::ReduceMax(options(false)), &[x()], &axes(&[0, -1]), F32);
    expect(result, &[], &[6.0f32]);
    let result = run_op_with(Op::ReduceProd(options(false)), &[x()], &axes(&[1]), F32);
    expect(result, &[2], &[6.0f32, 120.]);
    assert!(run_op_with(Op::Sum(options(false)), &[x()], &axes(&[2]), F32).is_err());
    let q = quantized(&[1, 3], &[1i8, 2, 5], 1.0, 0);
    let result =
        run_op_with(Op::Mean(options(false)), &[q], &axes(&[1]), (DType::I8, Some((1.0, 0))));
    expect(result, &[1], &[3i8]);
    let arg = Op::ArgMax(ArgMinMaxOptions { output_type: DType::I32 });
    expect(run_op_with(arg, &[x()], &axes(&[1]), (DType::I32, None)), &[2], &[2i32, 2]);
    let cumsum = Op::Cumsum(CumsumOptions { exclusive: true, reverse: true });
    expect(run_op_with(cumsum, &[x()], &axes(&[1]), F32), &[2, 3], &[5.0f32, 3., 0., 11., 6., 0.]);
}

#[test]
fn arrangement() {
    let x = || plain(&[2, 3], &[1i32, 2, 3, 4, 5, 6]);
    let i32s = (DType::I32, None);
    let ints = |values: &[i32]| plain(&[values.len()], values);
    let result = run_op_with(Op::Transpose, &[x()], &[ints(&[1, 0])], i32s);
    expect(result, &[3, 2], &[1i32, 4, 2, 5, 3, 6]);
    let paddings = || plain(&[2, 2], &[0i32, 1, 1, 0]);
    let result = run_op_with(Op::Pad, &[x()], &[paddings()], i32s);
    expect(result, &[3, 4], &[0i32, 1, 2, 3, 0, 4, 5, 6, 0, 0, 0, 0]);
    let result = run_op_with(Op::PadV2, &[x()], &[paddings(), plain(&[], &[9i32])], i32s);
    expect(result, &[3, 4], &[9i32, 1, 2, 3, 9, 4, 5, 6, 9, 9, 9, 9]);
    let error = run_op_with(Op::PadV2, &[x()], &[paddings(), ints(&[9, 8])], i32s).unwrap_err();
    assert!(error.to_string().contains("not a scalar"), "{error}");
    let error = run_op_with(Op::Fill, &[], &[ints(&[2, 3]), ints(&[9, 8])], i32s).unwrap_err();
    assert!(error.to_string().contains("not a scalar"), "{error}");
    let mirror = |symmetric| Op::MirrorPad(MirrorPadOptions { symmetric });
    let around = || plain(&[1, 2], &[2i32, 1]);
    let row = || ints(&[1, 2, 3]);
    let result = run_op_with(mirror(false), &[row()], &[around()], i32s);
    expect(result, &[6], &[3i32, 2, 1, 2, 3, 2]);
    let result = run_op_with(mirror(true), &[row()], &[around()], i32s);
    expect(result, &[6], &[2i32, 1, 1, 2, 3, 3]);
    let join = Op::Concatenation(ConcatenationOptions { axis: 1, ..Default::default() });
    let result = run_op(join, &[x(), plain(&[2, 1], &[7i32, 8])], i32s);
    expect(result, &[2, 4], &[1i32, 2, 3, 7, 4, 5, 6, 8]);
    let result = run_op_with(Op::Tile, &[row()], &[ints(&[2])], i32s);
    expect(result, &[6], &[1i32, 2, 3, 1, 2, 3]);
    let result = run_op_with(Op::ReverseV2, &[x()], &[ints(&[1])], i32s);
    expect(result, &[2, 3], &[3i32, 2, 1, 6, 5, 4]);
    let pack = Op::Pack(PackOptions { values_count: 2, axis: 1 });
    expect(run_op(pack, &[row(), row()], i32s), &[3, 2], &[1i32, 1, 2, 2, 3, 3]);
    let depth = plain(&[1, 1, 1, 4], &[1i32, 2, 3, 4]);
    let result = run_op(Op::DepthToSpace(BlockOptions { block_size: 2 }), &[depth], i32s);
    expect(result, &[1, 2, 2, 1], &[1i32, 2, 3, 4]);
    let space = plain(&[1, 2, 2, 1], &[1i32, 2, 3, 4]);
    let result = run_op(Op::SpaceToDepth(BlockOptions { block_size: 2 }), &[space], i32s);
    expect(result, &[1, 1, 1, 4], &[1i32, 2, 3, 4]);
    let image = plain(&[1, 2, 2, 1], &[1i32, 2, 3, 4]);
    let tail = [ints(&[2, 2]), plain(&[2, 2], &[0i32; 4])];
    let result = run_op_with(Op::SpaceToBatchNd, &[image], &tail, i32s);
    expect(result, &[4, 1, 1, 1], &[1i32, 2, 3, 4]);
    let batches = plain(&[4, 1, 1, 1], &[1i32, 2, 3, 4]);
    let crops = [ints(&[2, 2]), plain(&[2, 2], &[0i32, 1, 0, 0])];
    let result = run_op_with(Op::BatchToSpaceNd, &[batches], &crops, i32s);
    expect(result, &[1, 1, 2, 1], &[1i32, 2]);
}

#[test]
fn selection() {
    let x = || plain(&[2, 3], &[1i32, 2, 3, 4, 5, 6]);
    let i32s = (DType::I32, None);
    let ints = |values: &[i32]| plain(&[values.len()], values);
    let result = run_op_with(Op::Slice, &[x()], &[ints(&[0, 1]), ints(&[2, -1])], i32s);
    expect(result, &[2, 2], &[2i32, 3, 5, 6]);
    let strided =
        Op::StridedSlice(StridedSliceOptions { shrink_axis_mask: 1, ..Default::default() });
    let bounds = [ints(&[-1, 2]), ints(&[0, 0]), ints(&[1, -1])];
    expect(run_op_with(strided, &[x()], &bounds, i32s), &[2], &[6i32, 5]);
    let gather = Op::Gather(GatherOptions { axis: 1, batch_dims: 0 });
    expect(run_op(gather.clone(), &[x(), ints(&[2, 0])], i32s), &[2, 2], &[3i32, 1, 6, 4]);
    assert!(run_op(gather, &[x(), ints(&[3])], i32s).is_err());
    let result = run_op(Op::GatherNd, &[x(), plain(&[2, 2], &[1i32, 0, 0, 2])], i32s);
    expect(result, &[2], &[4i32, 3]);
    let scatter = [plain(&[3, 1], &[1i32, 3, 1]), ints(&[5, 6, 7])];
    let result = run_op_with(Op::ScatterNd, &scatter, &[ints(&[4])], i32s);
    expect(result, &[4], &[0i32, 12, 0, 6]);
    let hot = Op::OneHot(OneHotOptions { axis: -1 });
    let tail = [plain(&[], &[3i32]), plain(&[], &[1i32]), plain(&[], &[0i32])];
    expect(run_op_with(hot, &[ints(&[2, -1])], &tail, i32s), &[2, 3], &[0i32, 0, 1, 0, 0, 0]);
    let choice = [bools(&[2, 1], &[1, 0]), x(), plain(&[1], &[0i32])];
    expect(run_op(Op::SelectV2, &choice, i32s), &[2, 3], &[1i32, 2, 3, 0, 0, 0]);
    let found = run_op(Op::Where, &[bools(&[2, 2], &[0, 1, 1, 0])], (DType::I64, None));
    expect(found, &[2, 2], &[0i64, 1, 1, 0]);
    let result = run_op(Op::EmbeddingLookup, &[ints(&[1, 0]), x()], i32s);
    expect(result, &[2, 3], &[4i32, 5, 6, 1, 2, 3]);
    let reverse = Op::ReverseSequence(ReverseSequenceOptions { seq_dim: 1, batch_dim: 0 });
    expect(run_op(reverse, &[x(), ints(&[2, 3])], i32s), &[2, 3], &[2i32, 1, 3, 6, 5, 4]);
}

#[test]
fn shapes_and_fills() {
    let i32s = (DType::I32, None);
    let ints = |values: &[i32]| plain(&[values.len()], values);
    let shape = Op::Shape(ShapeOptions { out_type: DType::I32 });
    expect(run_op(shape, &[floats(&[2, 3], &[0.; 6])], i32s), &[2], &[2i32, 3]);
    expect(run_op(Op::Rank, &[floats(&[2, 3], &[0.; 6])], i32s), &[], &[2i32]);
    let result = run_op(Op::Fill, &[ints(&[2, 2]), plain(&[], &[7i32])], i32s);
    expect(result, &[2, 2], &[7i32; 4]);
    let scalar = |value: i32| plain(&[], &[value]);
    let range = run_op(Op::Range, &[scalar(5), scalar(0), scalar(-2)], i32s);
    expect(range, &[3], &[5i32, 3, 1]);
    assert!(run_op(Op::Range, &[scalar(0), scalar(5), scalar(-1)], i32s).is_err());
    let result = run_op(Op::BroadcastTo, &[ints(&[1, 2]), ints(&[2, 2])], i32s);
    expect(result, &[2, 2], &[1i32, 2, 1, 2]);
}

#[test]
fn resizing() {
    let bilinear = |align_corners, half_pixel_centers| {
        Op::ResizeBilinear(ResizeOptions { align_corners, half_pixel_centers })
    };
    let x = || floats(&[1, 1, 2, 1], &[0., 4.]);
    let size = |w| [plain(&[2], &[1i32, w])];
    let result = run_op_with(bilinear(false, false), &[x()], &size(4), F32);
    expect(result, &[1, 1, 4, 1], &[0.0f32, 2., 4., 4.]);
    let result = run_op_with(bilinear(true, false), &[x()], &size(3), F32);
    expect(result, &[1, 1, 3, 1], &[0.0f32, 2., 4.]);
    let result = run_op_with(bilinear(false, true), &[x()], &size(4), F32);
    expect(result, &[1, 1, 4, 1], &[0.0f32, 1., 3., 4.]);
    let nearest = Op::ResizeNearestNeighbor(ResizeOptions::default());
    let result = run_op_with(nearest, &[x()], &size(4), F32);
    expect(result, &[1, 1, 4, 1], &[0.0f32, 0., 4., 4.]);
    let q = quantized(&[1, 1, 2, 1], &[0i8, 5], 1.0, 0);
    let result = run_op_with(bilinear(false, false), &[q], &size(4), (DType::I8, Some((1.0, 0))));
    expect(result, &[1, 1, 4, 1], &[0i8, 3, 5, 5]);
}

#[test]
fn conversions() {
    let to_i8 = (DType::I8, Some((0.5, 1)));
    let result = run_op(Op::Quantize, &[floats(&[4], &[0., 0.25, -0.25, 1000.])], to_i8);
    expect(result, &[4], &[1i8, 2, 0, 127]);
    let q = quantized(&[2], &[3i8, -1], 0.5, 1);
    expect(run_op(Op::Dequantize, &[q], F32), &[2], &[1.0f32, -1.]);
    let cast = |from, to| Op::Cast(CastOptions { from, to });
    let result = run_op(
        cast(DType::F32, DType::I32),
        &[floats(&[3], &[1.9, -1.9, 1e20])],
        (DType::I32, None),
    );
    expect(result, &[3], &[1i32, -1, i32::MAX]);
    let result =
        run_op(cast(DType::I32, DType::Bool), &[plain(&[2], &[0i32, 5])], (DType::Bool, None));
    expect(result, &[2], &[0u8, 1]);
}

#[test]
fn matrix_products() {
    let a = || floats(&[2, 2], &[1., 2., 3., 4.]);
    let b = || floats(&[2, 2], &[5., 6., 7., 8.]);
    let product =
        |adj_x, adj_y| Op::BatchMatMul(BatchMatMulOptions { adj_x, adj_y, ..Default::default() });
    let result = run_op(product(false, false), &[a(), b()], F32);
    expect(result, &[2, 2], &[19.0f32, 22., 43., 50.]);
    let result = run_op(product(false, true), &[a(), b()], F32);
    expect(result, &[2, 2], &[17.0f32, 23., 39., 53.]);
    let result = run_op(product(true, false), &[a(), b()], F32);
    expect(result, &[2, 2], &[26.0f32, 30., 38., 44.]);
    let wide = floats(&[2, 1, 2], &[1., 0., 0., 1.]);
    let result = run_op(product(false, false), &[wide, b()], F32);
    expect(result, &[2, 1, 2], &[5.0f32, 6., 7., 8.]);
}

#[test]
fn normalizations() {
    let l2 = Op::L2Normalization(ActivationOptions::default());
    expect(run_op(l2, &[floats(&[1, 2], &[3., 4.])], F32), &[1, 2], &[0.6f32, 0.8]);
    let local = Op::LocalResponseNormalization(LocalResponseNormalizationOptions {
        radius: 1,
        bias: 1.0,
        alpha: 1.0,
        beta: 1.0,
    });
    // Each element sees its left neighbour and itself.
    let result = run_op(local, &[floats(&[1, 2], &[1., 2.])], F32);
    expect_close(result, &[1, 2], &[0.5, 2.0 / 6.0]);
    let rms = Op::RmsNorm(RmsNormOptions { epsilon: 0.0 });
    let result = run_op(rms, &[floats(&[1, 2], &[3., 4.]), floats(&[2], &[1., 2.])], F32);
    let root = 12.5f32.sqrt();
    expect_close(result, &[1, 2], &[3. / root, 8. / root]);
}

#[test]
fn transforms() {
    let op = Op::Rfft2d;
    let input = floats(&[2, 2], &[1., 2., 3., 4.]);
    let result = run_op_with(op, &[input], &[plain(&[2], &[2i32, 2])], (DType::Complex64, None));
    let complex = |re| xnn_interp::Complex { re, im: 0.0 };
    expect(result, &[2, 2], &[complex(10.), complex(-2.), complex(-4.), complex(0.)]);
}

#[test]
fn unsupported_types_are_refused_at_load() {
    let error = run_op(Op::Floor, &[plain(&[1], &[1i32])], (DType::I32, None)).unwrap_err();
    let (subgraph, operator, name) = error.operator().unwrap();
    assert_eq!((subgraph, operator, name), (0, 0, "FLOOR"));
    assert!(error.to_string().contains("not supported"), "{error}");
    let custom = Op::Custom(CustomOptions { code: "Sinh".into(), ..Default::default() });
    let error = run_op(custom, &[floats(&[1], &[0.])], F32).unwrap_err().to_string();
    assert!(error.contains("Sinh"), "{error}");
}

#[test]
fn gated_recurrent_unit() {
    let op = Op::Gru(GruOptions::default());
    let input = floats(&[1, 1, 1], &[1.]);
    // Gates in the order update, reset, candidate.
    let constants = [
        floats(&[3, 1], &[0.5, -0.5, 2.]),
        floats(&[3], &[0., 0., 0.25]),
        floats(&[3, 1], &[1., 1., 1.]),
        floats(&[3], &[0., 0., 0.5]),
        floats(&[1, 1], &[0.5]),
    ];
    let logistic = |x: f32| 1. / (1. + (-x).exp());
    let (update, reset) = (logistic(1.0), logistic(0.0));
    let candidate = (2.25 + reset * 1.0f32).tanh();
    let expected = 0.5 * update + candidate * (1. - update);
    expect_close(run_op_with(op, &[input], &constants, F32), &[1, 1], &[expected]);
}

#[test]
fn detection_post_processing_keeps_the_best_boxes() {
    // {"h_scale": 1.0, "max_classes_per_detection": 1, "max_detections": 2,
    //  "nms_iou_threshold": 0.5, "nms_score_threshold": 0.5, "num_classes": 1,
    //  "w_scale": 1.0, "x_scale": 1.0, "y_scale": 1.0} as a FlexBuffer.
    let keys = [
        "h_scale",
        "max_classes_per_detection",
        "max_detections",
        "nms_iou_threshold",
        "nms_score_threshold",
        "num_classes",
        "w_scale",
        "x_scale",
        "y_scale",
    ];
    let values = [1.0f32, 1., 2., 0.5, 0.5, 1., 1., 1., 1.];
    let mut options = Vec::new();
    let mut starts = Vec::new();
    for key in keys {
        starts.push(options.len());
        options.extend(key.as_bytes());
        options.push(0);
    }
    options.resize(options.len().next_multiple_of(4), 0);
    options.extend(9u32.to_le_bytes());
    let keys_at = options.len();
    for start in starts {
        let back = (options.len() - start) as u32;
        options.extend(back.to_le_bytes());
    }
    let back = (options.len() - keys_at) as u32;
    options.extend(back.to_le_bytes());
    options.extend(4u32.to_le_bytes());
    options.extend(9u32.to_le_bytes());
    let map_at = options.len();
    values.iter().for_each(|value| options.extend(value.to_le_bytes()));
    options.extend([0b1110; 9]);
    let back = (options.len() - map_at) as u8;
    options.extend([back, 0b10_0100 | 2, 1]);
    let custom =
        CustomOptions { code: "TFLite_Detection_PostProcess".into(), options: options.into() };
    let mut b = common::Builder::new();
    let boxes = b.input(DType::F32, &[1, 3, 4]);
    let scores = b.input(DType::F32, &[1, 3, 2]);
    // The first two anchors overlap, the third is elsewhere.
    let anchors = b.constant(&[3, 4], &[0.5f32, 0.5, 1., 1., 0.5, 0.6, 1., 1., 10.5, 10.5, 1., 1.]);
    let outputs: Vec<usize> = (0..4).map(|_| b.tensor(DType::F32, &[])).collect();
    outputs.iter().for_each(|&id| b.graph.tensors[id].shape = None);
    b.graph.outputs = outputs.clone();
    b.op(Op::Custom(custom), &[boxes, scores, anchors], &outputs);
    let mut interpreter = common::load(&b.model()).unwrap();
    // Background first.
    let scores = [0.1f32, 0.8, 0.1, 0.9, 0.1, 0.6];
    let scores = xnn_interp::TensorBuf::from_slice(&[1, 3, 2], &scores).unwrap();
    interpreter.set_input(1, scores).unwrap();
    interpreter.run().unwrap();
    let output = |position| interpreter.output(position).unwrap().as_slice::<f32>().unwrap();
    assert_eq!(output(3), [2.0]);
    assert_eq!(output(2), [0.9, 0.6]);
    assert_eq!(output(1), [0.0, 0.0]);
    let expected = [0.0, 0.1, 1.0, 1.1, 10.0, 10.0, 11.0, 11.0];
    output(0).iter().zip(expected).for_each(|(a, b)| assert!((a - b).abs() < 1e-6, "{a} {b}"));
}
