//! Elementwise operators, compared with functions of the standard library.

use std::f32::consts::PI;

use bytes::Bytes;
use xnn_format::{BinaryOp, Datatype, NodeOp, Quantization, UnaryOp, Value};

use crate::support::{Builder, assert_close, f32s, qint8, random, range, run_one};

fn unary(op: UnaryOp, input: &[f32]) -> Vec<f32> {
    let dims = [input.len()];
    run_one((&dims, input), &dims, |input, output| NodeOp::Unary { op, input, output }, 0).unwrap()
}

fn binary(op: BinaryOp, a: (&[usize], &[f32]), b: (&[usize], &[f32])) -> Vec<f32> {
    let mut builder = Builder::new();
    let inputs = [builder.input_f32(a.0), builder.input_f32(b.0)];
    let output = builder.output_f32(&[]);
    builder.node(NodeOp::Binary { op, inputs, output });
    builder.run_f32(&[a.1, b.1]).unwrap()
}

#[test]
fn unary_operators() {
    type Function = fn(f32) -> f32;
    let anywhere = random(1, 37).iter().map(|x| x * 4.0).collect::<Vec<_>>();
    let positive = anywhere.iter().map(|x| x.abs() + 0.1).collect::<Vec<_>>();
    let of_any: [(UnaryOp, Function); 16] = [
        (UnaryOp::Abs, f32::abs),
        (UnaryOp::BankersRounding, f32::round_ties_even),
        (UnaryOp::Ceiling, f32::ceil),
        (UnaryOp::Copy, |x| x),
        (UnaryOp::Cosine, f32::cos),
        (UnaryOp::CubeRoot, f32::cbrt),
        (UnaryOp::Elu { alpha: 0.5 }, |x| if x > 0.0 { x } else { 0.5 * x.exp_m1() }),
        (UnaryOp::Exp, f32::exp),
        (UnaryOp::Floor, f32::floor),
        (UnaryOp::HardSwish, |x| x * (x + 3.0).clamp(0.0, 6.0) / 6.0),
        (UnaryOp::LeakyRelu { negative_slope: 0.1 }, |x| if x < 0.0 { 0.1 * x } else { x }),
        (UnaryOp::Negate, |x| -x),
        (UnaryOp::Sigmoid, |x| 1.0 / (1.0 + (-x).exp())),
        (UnaryOp::Sine, f32::sin),
        (UnaryOp::Square, |x| x * x),
        (UnaryOp::Tanh, f32::tanh),
    ];
    let of_positive: [(UnaryOp, Function); 3] = [
        (UnaryOp::Log, f32::ln),
        (UnaryOp::ReciprocalSquareRoot, |x| x.sqrt().recip()),
        (UnaryOp::SquareRoot, f32::sqrt),
    ];
    let of_any = of_any.iter().map(|case| (case, &anywhere));
    let of_positive = of_positive.iter().map(|case| (case, &positive));
    for ((op, function), input) in of_any.chain(of_positive) {
        let expected: Vec<f32> = input.iter().copied().map(function).collect();
        assert_close(&unary(*op, input), &expected, 2e-6);
    }
}

#[test]
fn gelu_by_the_error_function() {
    // Values of x * Phi(x), from a table of the normal distribution.
    let got = unary(UnaryOp::Gelu, &[-1.0, 0.0, 1.0, 2.0]);
    assert_close(&got, &[-0.158_655_25, 0.0, 0.841_344_7, 1.954_499_7], 2e-6);
}

#[test]
fn sign_of_both_zeros_is_zero() {
    assert_eq!(unary(UnaryOp::Sign, &[-2.5, -0.0, 0.0, 7.0]), [-1.0, 0.0, 0.0, 1.0]);
}

#[test]
fn clamp_uses_the_bounds_of_the_node() {
    let run = |bounds| {
        let mut builder = Builder::new();
        let x = builder.input_f32(&[3]);
        let y = builder.output_f32(&[3]);
        let node = builder.node(NodeOp::Unary { op: UnaryOp::Clamp, input: x, output: y });
        node.output_range = bounds;
        builder.run_f32(&[&[-5.0, 0.5, 9.0]])
    };
    assert_eq!(run(range(-1.0, 1.0)).unwrap(), [-1.0, 0.5, 1.0]);
    assert_eq!(run(range(0.0, f32::INFINITY)).unwrap(), [0.0, 0.5, 9.0]);
    assert_eq!(run(None).unwrap(), [-5.0, 0.5, 9.0]);
    assert!(run(range(1.0, -1.0)).is_err());
}

#[test]
fn bounds_of_operators_without_bounds_are_refused() {
    let run = |bounds| {
        let mut builder = Builder::new();
        let x = builder.input_f32(&[1]);
        let y = builder.output_f32(&[1]);
        let node = builder.node(NodeOp::Unary { op: UnaryOp::Abs, input: x, output: y });
        node.output_range = bounds;
        builder.run_f32(&[&[-5.0]])
    };
    assert_eq!(run(range(f32::NEG_INFINITY, f32::INFINITY)).unwrap(), [5.0]);
    assert_eq!(run(range(0.0, 6.0)).unwrap_err().failing_node(), Some(0));
}

#[test]
fn conversions_round_to_the_nearest() {
    let mut builder = Builder::new();
    let x = builder.input_f32(&[4]);
    let q = builder.output(qint8(&[4], 0.5, 10));
    builder.node(NodeOp::Unary { op: UnaryOp::Convert, input: x, output: q });
    let got = builder.run::<f32, i8>(&[&[0.0, 0.7, -1.0, 1000.0]]).unwrap();
    assert_eq!(got, [10, 11, 8, 127]);

    let mut builder = Builder::new();
    let q = builder.input(qint8(&[3], 0.5, 10));
    let y = builder.output_f32(&[3]);
    builder.node(NodeOp::Unary { op: UnaryOp::Convert, input: q, output: y });
    assert_eq!(builder.run::<i8, f32>(&[&[10, 11, -128]]).unwrap(), [0.0, 0.5, -69.0]);
}

#[test]
fn int8_unary_operators_use_a_table() {
    let mut builder = Builder::new();
    let x = builder.input(qint8(&[256], 0.05, 0));
    let y = builder.output(qint8(&[256], 1.0 / 256.0, -128));
    builder.node(NodeOp::Unary { op: UnaryOp::Sigmoid, input: x, output: y });
    let input: Vec<i8> = (i8::MIN..=i8::MAX).collect();
    let got = builder.run::<i8, i8>(&[&input]).unwrap();
    for (input, got) in input.iter().zip(got) {
        let real = 1.0 / (1.0 + (-f32::from(*input) * 0.05).exp());
        let expected = ((real * 256.0).round() as i32 - 128).clamp(-128, 127);
        assert!((i32::from(got) - expected).abs() <= 1, "{got} instead of {expected}");
    }
}

#[test]
fn binary_operators() {
    type Function = fn(f32, f32) -> f32;
    let (a, b) = (random(1, 24), random(2, 24));
    let cases: [(BinaryOp, Function); 9] = [
        (BinaryOp::Add, |a, b| a + b),
        (BinaryOp::Subtract, |a, b| a - b),
        (BinaryOp::Multiply, |a, b| a * b),
        (BinaryOp::Divide, |a, b| a / b),
        (BinaryOp::Maximum, f32::max),
        (BinaryOp::Minimum, f32::min),
        (BinaryOp::SquaredDifference, |a, b| (a - b) * (a - b)),
        (BinaryOp::CopySign, f32::copysign),
        (BinaryOp::Atan2, f32::atan2),
    ];
    for (op, function) in cases {
        let expected: Vec<f32> = a.iter().zip(&b).map(|(&a, &b)| function(a, b)).collect();
        assert_close(&binary(op, (&[2, 12], &a), (&[2, 12], &b)), &expected, 1e-6);
    }
    let powers = binary(BinaryOp::Pow, (&[3], &[2.0, 9.0, 0.5]), (&[3], &[3.0, 0.5, -1.0]));
    assert_close(&powers, &[8.0, 3.0, 2.0], 1e-6);
    let rests = binary(BinaryOp::Modulus, (&[2], &[7.0, 5.5]), (&[2], &[4.0, 2.0]));
    assert_close(&rests, &[3.0, 1.5], 1e-6);
}

#[test]
fn operands_broadcast_both_ways() {
    let got = binary(BinaryOp::Add, (&[2, 1], &[10.0, 20.0]), (&[3], &[1.0, 2.0, 3.0]));
    assert_eq!(got, [11.0, 12.0, 13.0, 21.0, 22.0, 23.0]);
    let mut builder = Builder::new();
    let inputs = [builder.input_f32(&[2, 2]), builder.input_f32(&[3])];
    let output = builder.output_f32(&[]);
    builder.node(NodeOp::Binary { op: BinaryOp::Add, inputs, output });
    assert_eq!(builder.session().unwrap_err().failing_node(), Some(0));
}

#[test]
fn sums_are_clamped() {
    let mut builder = Builder::new();
    let inputs = [builder.input_f32(&[3]), builder.input_f32(&[3])];
    let output = builder.output_f32(&[3]);
    builder.node(NodeOp::Binary { op: BinaryOp::Add, inputs, output }).output_range =
        range(-1.0, 1.0);
    let got = builder.run_f32(&[&[1.0, 0.25, -3.0], &[1.0, 0.25, 1.0]]).unwrap();
    assert_eq!(got, [1.0, 0.5, -1.0]);
}

/// Constants of elementwise nodes are read in place; these are neither aligned nor padded.
#[test]
fn constant_operands_need_no_alignment() {
    let file: Vec<u8> =
        [0u8; 3].into_iter().chain(random(3, 5).iter().flat_map(|x| x.to_le_bytes())).collect();
    let data = Bytes::from(file).slice(3..);
    let mut builder = Builder::new();
    let x = builder.input_f32(&[5]);
    let constant = builder.value(f32s(&[5]).with_data(data));
    let y = builder.output_f32(&[5]);
    builder.node(NodeOp::Binary { op: BinaryOp::Multiply, inputs: [x, constant], output: y });
    let got = builder.run_f32(&[&[1.0, 2.0, 3.0, 4.0, 5.0]]).unwrap();
    let expected: Vec<f32> =
        random(3, 5).iter().zip(1u8..).map(|(c, x)| c * f32::from(x)).collect();
    assert_eq!(got, expected);
}

#[test]
fn prelu_slopes_are_per_channel() {
    let mut builder = Builder::new();
    let x = builder.input_f32(&[1, 1, 2, 2]);
    let slope = builder.constant_f32(&[2], &[0.5, 0.25]);
    let y = builder.output_f32(&[1, 1, 2, 2]);
    builder.node(NodeOp::Binary { op: BinaryOp::Prelu, inputs: [x, slope], output: y });
    assert_eq!(builder.run_f32(&[&[-4.0, -4.0, 3.0, -1.0]]).unwrap(), [-2.0, -1.0, 3.0, -0.25]);
}

#[test]
fn integers() {
    let run = |op, a: [i32; 2], b: [i32; 2]| {
        let int32 = || Value::new(Datatype::Int32, Quantization::None, &[2]);
        let mut builder = Builder::new();
        let inputs = [builder.input(int32()), builder.input(int32())];
        let output = builder.output(int32());
        builder.node(NodeOp::Binary { op, inputs, output });
        builder.run::<i32, i32>(&[&a, &b]).unwrap()
    };
    assert_eq!(run(BinaryOp::Add, [1, -2], [10, 20]), [11, 18]);
    assert_eq!(run(BinaryOp::BitwiseAnd, [12, -1], [10, 7]), [8, 7]);
    assert_eq!(run(BinaryOp::BitwiseOr, [12, 0], [10, 7]), [14, 7]);
    assert_eq!(run(BinaryOp::BitwiseXor, [12, 7], [10, 7]), [6, 0]);
    assert_eq!(run(BinaryOp::ShiftLeft, [1, 3], [4, 1]), [16, 6]);
    assert_eq!(run(BinaryOp::ShiftRightLogical, [-1, 16], [28, 2]), [15, 4]);
    assert_eq!(run(BinaryOp::ShiftRightArithmetic, [-16, 16], [2, 2]), [-4, 4]);
}

#[test]
fn bits_of_integers() {
    let run = |op, value: fn() -> Value| {
        let mut builder = Builder::new();
        let (input, output) = (builder.input(value()), builder.output(value()));
        builder.node(NodeOp::Unary { op, input, output });
        builder.run::<i32, i32>(&[&[0, 1, -1, 0x00f0_0f00]])
    };
    let int32 = || Value::new(Datatype::Int32, Quantization::None, &[4]);
    assert_eq!(run(UnaryOp::BitwiseNot, int32).unwrap(), [-1, -2, 0, !0x00f0_0f00]);
    assert_eq!(run(UnaryOp::CountLeadingZeros, int32).unwrap(), [32, 31, 0, 8]);
    assert_eq!(run(UnaryOp::Popcount, int32).unwrap(), [0, 1, 32, 8]);
    // XNNPACK has no bitwise kernels for floats.
    assert_eq!(run(UnaryOp::Popcount, || f32s(&[4])).unwrap_err().failing_node(), Some(0));
}

#[test]
fn fused_nodes_keep_their_effect() {
    // A clamp after an addition becomes the addition's bounds.
    let mut builder = Builder::new();
    let x = builder.input_f32(&[2]);
    let sum = builder.value(f32s(&[2]));
    let y = builder.output_f32(&[2]);
    builder.node(NodeOp::Binary { op: BinaryOp::Add, inputs: [x, x], output: sum });
    builder.node(NodeOp::Unary { op: UnaryOp::Clamp, input: sum, output: y }).output_range =
        range(0.0, PI);
    assert_eq!(builder.run_f32(&[&[-1.0, 2.0]]).unwrap(), [0.0, PI]);
}
