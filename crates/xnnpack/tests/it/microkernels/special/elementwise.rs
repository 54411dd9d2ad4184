//! Unary and binary operators.

use std::f64::consts::FRAC_1_SQRT_2;
use std::sync::Arc;

use super::{RANGES, clamp, is_near};
use crate::fixture::{Fixture, any_f32, f32};
use xnnpack::{Binary, BinaryOp, OutputRange, RuntimeOptions, ThreadPool, Unary, UnaryOp, ValueId};

const ARGUMENTS: [f32; 26] = [
    f32::NAN,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::MAX,
    f32::MIN,
    1e-40,
    -1e-40,
    1e-45,
    -0.0,
    0.0,
    f32::MIN_POSITIVE,
    -f32::MIN_POSITIVE,
    1.0,
    -1.0,
    0.5,
    -0.5,
    2.5,
    -3.0,
    8.5,
    88.0,
    -95.0,
    105.0,
    1e30,
    -1e30,
    1e-30,
    -1e-30,
];

/// Tolerance relative to the expected result.
const TOLERANCE: f64 = 2e-5;
/// Absolute tolerance for [`UnaryOp::Gelu`], which subtracts values near 1.
const GELU_TOLERANCE: f64 = 1e-6;

type Function = fn(f64) -> f64;

fn sign(x: f64) -> f64 {
    if x == 0.0 { x } else { x.signum() }
}

/// Polynomial approximation with an error of at most 1.2e-7.
fn erf(x: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.5 * x.abs());
    let coefficients = [
        -1.26551223,
        1.00002368,
        0.37409196,
        0.09678418,
        -0.18628806,
        0.27886807,
        -1.13520398,
        1.48851587,
        -0.82215223,
        0.17087277,
    ];
    let sum = coefficients.iter().rev().fold(0.0, |sum, c| sum * t + c);
    let tail = t * (sum - x * x).exp();
    if x.is_nan() { x } else { (1.0 - tail) * x.signum() }
}

const UNARY: [(UnaryOp, Function); 22] = [
    (UnaryOp::Abs, f64::abs),
    (UnaryOp::BankersRounding, f64::round_ties_even),
    (UnaryOp::Ceiling, f64::ceil),
    (UnaryOp::Clamp { min: -1.0, max: 1.0 }, |x| x.clamp(-1.0, 1.0)),
    (UnaryOp::Clamp { min: 0.0, max: f32::INFINITY }, |x| x.clamp(0.0, f64::INFINITY)),
    (UnaryOp::CubeRoot, f64::cbrt),
    (UnaryOp::Elu { alpha: 1.0 }, |x| if x < 0.0 { x.exp_m1() } else { x }),
    (UnaryOp::Exp, f64::exp),
    (UnaryOp::Floor, f64::floor),
    (UnaryOp::Gelu, |x| x * 0.5 * (1.0 + erf(x * FRAC_1_SQRT_2))),
    (UnaryOp::HardSwish, |x| x * (x + 3.0).clamp(0.0, 6.0) / 6.0),
    (UnaryOp::LeakyRelu { negative_slope: 0.25 }, |x| if x < 0.0 { x * 0.25 } else { x }),
    (UnaryOp::Log, f64::ln),
    (UnaryOp::Negate, |x| -x),
    (UnaryOp::ReciprocalSquareRoot, |x| 1.0 / x.sqrt()),
    (UnaryOp::Sigmoid, |x| 1.0 / (1.0 + (-x).exp())),
    (UnaryOp::Sign, sign),
    (UnaryOp::Sine, f64::sin),
    (UnaryOp::Square, |x| x * x),
    (UnaryOp::SquareRoot, f64::sqrt),
    (UnaryOp::Tanh, f64::tanh),
    (UnaryOp::Cosine, f64::cos),
];

/// Options with one thread and with two.
fn options() -> [RuntimeOptions; 2] {
    [None, Some(Arc::new(ThreadPool::new(2).unwrap()))]
        .map(|threadpool| RuntimeOptions { threadpool, ..RuntimeOptions::default() })
}

fn run_unary(op: UnaryOp, data: &[f32], options: &RuntimeOptions) -> Vec<f32> {
    let mut fixture = Fixture::new();
    let input = fixture.input(f32(&[data.len()]), data);
    let output = fixture.output(any_f32());
    fixture.node(Unary { op, input, output }).run_with(options).unwrap().swap_remove(0)
}

#[test]
fn functions_of_one() {
    let options = options();
    // Each argument in each lane, and in incomplete vectors.
    for length in (1..70).chain([5000]) {
        let data: Vec<f32> = ARGUMENTS.iter().copied().cycle().skip(length).take(length).collect();
        for (op, function) in UNARY {
            let actual = run_unary(op, &data, &options[usize::from(length == 5000)]);
            for (&x, actual) in data.iter().zip(actual) {
                let expected = function(x.into());
                let least = if op == UnaryOp::Gelu { GELU_TOLERANCE } else { 0.0 };
                let near = is_near(actual, expected, least + TOLERANCE * expected.abs());
                assert!(near, "{op:?} of {x} is {actual}, not {expected}, of {length}");
            }
        }
    }
}

/// Maximum that is the second operand if one is NaN, as in TFLite's reference kernels.
fn larger(a: f64, b: f64) -> f64 {
    if a > b { a } else { b }
}

fn smaller(a: f64, b: f64) -> f64 {
    if a < b { a } else { b }
}

type Combination = fn(f64, f64) -> f64;

const BINARY: [(BinaryOp, Combination); 12] = [
    (BinaryOp::Add, |a, b| a + b),
    (BinaryOp::Subtract, |a, b| a - b),
    (BinaryOp::Multiply, |a, b| a * b),
    (BinaryOp::Divide, |a, b| a / b),
    (BinaryOp::Maximum, larger),
    (BinaryOp::Minimum, smaller),
    (BinaryOp::CopySign, f64::copysign),
    (BinaryOp::SquaredDifference, |a, b| (a - b) * (a - b)),
    (BinaryOp::Prelu, |a, b| if a < 0.0 { a * b } else { a }),
    (BinaryOp::Modulus, |a, b| a % b),
    (BinaryOp::Atan2, f64::atan2),
    (BinaryOp::Pow, f64::powf),
];

/// Operands that are not tested: XNNPACK treats -0 as negative.
fn is_left_out(op: BinaryOp, a: f32, b: f32) -> bool {
    op == BinaryOp::Prelu && a == 0.0 && !b.is_finite()
}

fn binary(
    op: BinaryOp,
    output_range: OutputRange,
    [left, right]: [&[f32]; 2],
    options: &RuntimeOptions,
) -> Vec<f32> {
    let mut fixture = Fixture::new();
    let a = fixture.input(f32(&[left.len()]), left);
    let b = fixture.input(f32(&[right.len()]), right);
    let output = fixture.output(any_f32());
    let node = Binary { op, output_range, a, b, output };
    fixture.node(node).run_with(options).unwrap().swap_remove(0)
}

#[track_caller]
fn compare(op: BinaryOp, of: Combination, range: OutputRange, operands: [f32; 2], actual: f32) {
    let [a, b] = operands;
    let expected = clamp(of(a.into(), b.into()), range);
    let near = is_near(actual, expected, TOLERANCE * expected.abs());
    assert!(near || is_left_out(op, a, b), "{op:?} of {a} and {b} is {actual}, not {expected}");
}

#[test]
fn functions_of_two() {
    let options = options();
    let many: Vec<f32> = ARGUMENTS.iter().copied().cycle().take(300).collect();
    for (op, of) in BINARY {
        for range in RANGES {
            for (shift, one) in ARGUMENTS.into_iter().enumerate() {
                let others: Vec<f32> = many.iter().copied().cycle().skip(shift).take(300).collect();
                for (a, b) in [(&many[..], &others[..]), (&many, &[one]), (&[one], &many)] {
                    let actual = binary(op, range, [a, b], &options[shift % 2]);
                    for (i, actual) in actual.into_iter().enumerate() {
                        compare(op, of, range, [a[i % a.len()], b[i % b.len()]], actual);
                    }
                }
            }
        }
    }
}

/// Result of `then` after `first`, whose input or output is denormal.
fn chain(
    data: &[f32],
    options: &RuntimeOptions,
    first: impl Fn(&mut Fixture, ValueId, ValueId),
    then: UnaryOp,
) -> Vec<f32> {
    let mut fixture = Fixture::new();
    let input = fixture.input(f32(&[1, data.len()]), data);
    let between = fixture.internal(any_f32());
    first(&mut fixture, input, between);
    let output = fixture.output(any_f32());
    let node = Unary { op: then, input: between, output };
    fixture.node(node).run_with(options).unwrap().swap_remove(0)
}

#[test]
fn denormals_reach_operators_that_distinguish_them_from_zero() {
    for options in options() {
        let data = [1e-20f32; 33];
        let product = chain(
            &data,
            &options,
            |fixture, input, output| {
                let (op, output_range) = (BinaryOp::Multiply, OutputRange::default());
                let node = Binary { op, output_range, a: input, b: input, output };
                fixture.graph.define(node).unwrap();
            },
            UnaryOp::Log,
        );
        assert!(product.iter().all(|&x| is_near(x, 1e-40f64.ln(), 1e-3)), "{product:?}");
        let sum = chain(
            &data,
            &options,
            |fixture, input, output| {
                let filter = fixture.constant(f32(&[5, 33]), &[1e-20f32; 5 * 33]);
                let (bias, flags, output_range) =
                    (None, xnnpack::Flags::NONE, OutputRange::default());
                let node =
                    xnnpack::FullyConnected { output_range, input, filter, bias, output, flags };
                fixture.graph.define(node).unwrap();
            },
            UnaryOp::Sign,
        );
        assert_eq!(sum, [1.0; 5]);
    }
}
