//! Functions of floats, and maxima of rows.

use std::f32::consts::{FRAC_2_PI, FRAC_PI_2};

use super::{one_in, one_to};
use crate::fixture::{Fixture, any_f32, f32, qint8, quint8};
use xnn_testing::Random;
use xnnpack::{
    ArgMaxPool2d, BatchMatMul, Binary, BinaryOp, Datatype, Element, Flags, MaxPool2d, OutputRange,
    Padding2d, RuntimeOptions, TensorSpec, Unary, UnaryOp, ValueId, Workspace,
};

/// Lengths around whole vectors.
const LENGTHS: [usize; 14] = [1, 2, 9, 10, 15, 16, 17, 31, 32, 33, 47, 64, 100, 257];

fn run<T: Element>(op: UnaryOp, to: Datatype, data: &[f32]) -> Vec<T> {
    let mut fixture = Fixture::new();
    let input = fixture.input(f32(&[data.len()]), data);
    let output = fixture.output(TensorSpec::inferred(to));
    fixture.node(Unary { op, input, output }).run()
}

#[test]
fn exponentials() {
    let random = &mut Random::new(21);
    for length in LENGTHS {
        for range in [1.0, 20.0, 87.0] {
            let data = random.f32s(length, -range, range);
            for (x, y) in data.iter().zip(run::<f32>(UnaryOp::Exp, Datatype::F32, &data)) {
                let expected = f64::from(*x).exp();
                let error = (f64::from(y) - expected).abs() / expected;
                assert!(error <= 2.0 * f64::from(f32::EPSILON), "e^{x} is {y}, off by {error}");
            }
        }
    }
    let limits = [f32::NEG_INFINITY, -200.0, 0.0, -0.0, 88.7, 88.8, f32::INFINITY, f32::NAN];
    let found = run::<f32>(UnaryOp::Exp, Datatype::F32, &limits);
    assert_eq!(found[..4], [0.0, 0.0, 1.0, 1.0]);
    assert!(found[4].is_finite() && found[5] == f32::INFINITY, "{found:?}");
    assert!(found[6] == f32::INFINITY && found[7].is_nan(), "{found:?}");
}

#[test]
fn logarithms() {
    // XNNPACK's microkernels, for other processors, lose digits near 1. It has one for FMA without AVX2.
    let has = |name| {
        let both = [xnnpack::instruction_sets(), xnnpack::processor()];
        both.iter().all(|sets| sets.split(' ').any(|set| set == name))
    };
    let has_fma = xnnpack::processor().split(' ').any(|feature| feature == "fma");
    let has_own = has("avx2") || has("avx") && !has_fma;
    let least = if has_own { 0.0 } else { 2.0 };
    let random = &mut Random::new(26);
    let near_one = |x: f32| 1.0 + x * 1e-3;
    let powers = |x: f32| (x * 87.0).exp();
    for length in LENGTHS.into_iter().chain([5000]) {
        for of in [near_one, powers, f32::abs] {
            let data: Vec<f32> = random.f32s(length, -1.0, 1.0).into_iter().map(of).collect();
            for (x, y) in data.iter().zip(run::<f32>(UnaryOp::Log, Datatype::F32, &data)) {
                let expected = f64::from(*x).ln();
                let tolerance = (2.0 * expected.abs()).max(least) * f64::from(f32::EPSILON);
                let error = (f64::from(y) - expected).abs();
                assert!(error <= tolerance, "ln({x}) is {y}, off by {error}");
            }
        }
    }
}

#[test]
fn roots() {
    let random = &mut Random::new(27);
    for length in LENGTHS.into_iter().chain([5000]) {
        // Zeros take another path than positive numbers.
        let of = |x: f32| if one_in(2000, random) { 0.0 } else { x.exp() };
        let data: Vec<f32> =
            Random::new(length as u64).f32s(length, -88.0, 88.0).into_iter().map(of).collect();
        let roots = run::<f32>(UnaryOp::SquareRoot, Datatype::F32, &data);
        assert_eq!(roots, data.iter().copied().map(f32::sqrt).collect::<Vec<_>>());
        let reciprocals = run::<f32>(UnaryOp::ReciprocalSquareRoot, Datatype::F32, &data);
        for (x, y) in data.iter().zip(reciprocals) {
            let expected = 1.0 / f64::from(*x).sqrt();
            let error = (f64::from(y) - expected).abs() / expected;
            let near = error <= f64::from(f32::EPSILON) || f64::from(y) == expected;
            assert!(near, "1 / sqrt({x}) is {y}, off by {error}");
        }
    }
}

/// Sines and cosines of angles around multiples of a quarter of a circle, and of others.
#[test]
fn sines() {
    let random = &mut Random::new(28);
    let quarters = |x: f32| (x * FRAC_2_PI).round() * FRAC_PI_2;
    let any = |x: f32| x;
    for length in LENGTHS.into_iter().chain([5000]) {
        for range in [0.7, 3.2, 100.0, 8191.0, 1e6] {
            for of in [any, quarters] {
                let data: Vec<f32> =
                    random.f32s(length, -range, range).into_iter().map(of).collect();
                check_sines(UnaryOp::Sine, f64::sin, &data);
                check_sines(UnaryOp::Cosine, f64::cos, &data);
            }
        }
    }
    let zeros = run::<f32>(UnaryOp::Sine, Datatype::F32, &[-0.0, 0.0]);
    assert!(zeros[0].is_sign_negative() && zeros[1].is_sign_positive(), "{zeros:?}");
}

/// GELU with tanh as lowering writes it: a product with a logistic function.
fn define_gelu(mut fixture: Fixture, x: ValueId, output: ValueId, rank: usize) -> Fixture {
    let number =
        |fixture: &mut Fixture, number: f32| fixture.constant(f32(&vec![1; rank]), &[number]);
    let [cubic, one, scale] =
        [0.044_715, 1.0, 2.0 * FRAC_2_PI.sqrt()].map(|n| number(&mut fixture, n));
    let [square, scaled, shifted, inner, argument, gate] =
        [(); 6].map(|()| fixture.internal(any_f32()));
    let binary = |op, a, b, output| {
        let output_range = OutputRange::default();
        Binary { op, output_range, a, b, output }
    };
    fixture
        .node(Unary { op: UnaryOp::Square, input: x, output: square })
        .node(binary(BinaryOp::Multiply, square, cubic, scaled))
        .node(binary(BinaryOp::Add, scaled, one, shifted))
        .node(binary(BinaryOp::Multiply, shifted, x, inner))
        .node(binary(BinaryOp::Multiply, inner, scale, argument))
        .node(Unary { op: UnaryOp::Sigmoid, input: argument, output: gate })
        .node(binary(BinaryOp::Multiply, x, gate, output))
}

fn gelu(data: &[f32], rank: usize) -> Vec<f32> {
    let mut fixture = Fixture::new();
    let (x, output) = (fixture.input(f32(&[data.len()]), data), fixture.output(any_f32()));
    define_gelu(fixture, x, output, rank).run()
}

fn expected_gelu(x: f64) -> f64 {
    x / (1.0 + (-1.595_769_1 * (x + 0.044_715 * x.powi(3))).exp())
}

#[test]
fn gelu_with_tanh() {
    let random = &mut Random::new(29);
    let special = [
        0.0,
        -0.0,
        f32::NAN,
        f32::INFINITY,
        f32::MAX,
        f32::MIN,
        1e30,
        -1e30,
        -6.0,
        -20.0,
        1e-30,
        -1e-30,
    ];
    for length in LENGTHS.into_iter().chain([5000]) {
        for rank in [0, 1, 2] {
            let mut data = random.f32s(length, -8.0, 8.0);
            for (at, x) in special.into_iter().enumerate() {
                if length > 16 {
                    data[(at * 7) % length] = x;
                }
            }
            for (x, y) in data.iter().zip(gelu(&data, rank)) {
                let expected = expected_gelu(f64::from(*x));
                let error = (f64::from(y) - expected).abs();
                // The argument of the exponential function is rounded, and up to 80.
                let near = error <= 2e-5 * expected.abs() + 1e-35;
                let same = f64::from(y) == expected || (y.is_nan() && expected.is_nan());
                assert!(near || same, "GELU of {x} is {y}, not {expected}");
            }
        }
    }
}

/// Between conversions a GELU is a table, which is the same on all processors.
fn check_gelu_of_integers<T: Element + Copy + Into<f64>>(
    integers: &[T],
    [input, output]: [(f32, i32); 2],
    spec: impl Fn(&[usize], i32, f32) -> TensorSpec,
) {
    let quantized = |dims: &[usize], (scale, zero_point)| spec(dims, zero_point, scale);
    let mut fixture = Fixture::new();
    let from = fixture.input(quantized(&[integers.len()], input), integers);
    let [x, y] = [(); 2].map(|()| fixture.internal(any_f32()));
    let to = fixture.output(quantized(&[integers.len()], output));
    let fixture = fixture.node(Unary { op: UnaryOp::Convert, input: from, output: x });
    let fixture = define_gelu(fixture, x, y, 0);
    let actual = fixture.node(Unary { op: UnaryOp::Convert, input: y, output: to }).run::<T>();
    let bounds = [integers[0], integers[integers.len() - 1]].map(Into::into);
    for (integer, actual) in integers.iter().zip(actual) {
        let x = ((*integer).into() - f64::from(input.1)) * f64::from(input.0);
        let result = expected_gelu(x) / f64::from(output.0) + f64::from(output.1);
        let distance = (result.clamp(bounds[0], bounds[1]) - actual.into()).abs();
        assert!(distance <= 0.5001, "GELU of {x} is {} instead of {result}", actual.into());
    }
}

#[test]
fn gelu_with_tanh_of_integers() {
    let signed: Vec<i8> = (i8::MIN..=i8::MAX).collect();
    let unsigned: Vec<u8> = (u8::MIN..=u8::MAX).collect();
    for input in [(0.05, 0), (0.03, -20), (0.2, 100), (1.0, 127), (1e-4, 0)] {
        for output in [(0.04, -120), (0.02, 0), (0.5, 7)] {
            check_gelu_of_integers(&signed, [input, output], qint8);
            let [input, output] =
                [input, output].map(|(scale, zero_point)| (scale, zero_point + 128));
            check_gelu_of_integers(&unsigned, [input, output], quint8);
        }
    }
}

fn check_sines(op: UnaryOp, function: fn(f64) -> f64, data: &[f32]) {
    for (x, y) in data.iter().zip(run::<f32>(op, Datatype::F32, data)) {
        let expected = function(f64::from(*x));
        let error = (f64::from(y) - expected).abs();
        // One and a half to three units in the last place.
        let tolerance = 1.5 * expected.abs() * f64::from(f32::EPSILON);
        assert!(error <= tolerance, "{op:?} of {x} is {y}, off by {error}");
    }
}

#[test]
fn integers_of_floats() {
    let random = &mut Random::new(22);
    // XNNPACK rounds ties away from 0, saturates at the last float that fits 32 bits, and converts
    // NaN to 0.
    let expected = |x: f32| x.round().clamp(i32::MIN as f32, 2_147_483_520.0) as i32;
    for length in LENGTHS {
        for range in [3.0, 1e5, 1.7e7, 4e9] {
            let data = random.f32s(length, -range, range);
            let wanted: Vec<i32> = data.iter().copied().map(expected).collect();
            assert_eq!(run::<i32>(UnaryOp::Convert, Datatype::I32, &data), wanted);
        }
    }
    let below_half = 0.5f32.next_down();
    let edges = [
        0.5,
        -0.5,
        1.5,
        2.5,
        -2.5,
        below_half,
        -below_half,
        4_194_304.5,
        8_388_609.0,
        -8_388_609.0,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
        f32::MIN_POSITIVE,
    ];
    assert_eq!(run::<i32>(UnaryOp::Convert, Datatype::I32, &edges), edges.map(expected));
}

/// Elements with few distinct values, so that maxima occur several times.
fn elements(count: usize, random: &mut Random) -> Vec<f32> {
    (0..count).map(|_| random.below(40) as f32 - 20.0).collect()
}

/// Maxima of images of one channel.
fn largest(
    [count, height, width]: [usize; 3],
    data: &[f32],
    output_range: OutputRange,
) -> Vec<f32> {
    let mut fixture = Fixture::new();
    let input = fixture.input(f32(&[count, height, width, 1]), data);
    let output = fixture.output(any_f32());
    let pooling = [height as u32, width as u32];
    let (padding, stride, dilation) = (Padding2d::default(), pooling, [1, 1]);
    let flags = Flags::NONE;
    let node = MaxPool2d { padding, pooling, stride, dilation, output_range, input, output, flags };
    fixture.node(node).run()
}

/// Maxima of images, and their positions.
fn places([count, height, width]: [usize; 3], data: &[f32]) -> [Vec<f32>; 2] {
    let mut fixture = Fixture::new();
    let input = fixture.input(f32(&[count, height, width, 1]), data);
    let value_output = fixture.output(any_f32());
    let index_output = fixture.internal(TensorSpec::inferred(Datatype::I32));
    let output = fixture.output(any_f32());
    let pooling = [height as u32, width as u32];
    let (padding, flags) = (Padding2d::default(), Flags::NONE);
    let node = ArgMaxPool2d { padding, pooling, input, value_output, index_output, flags };
    let to_floats = Unary { op: UnaryOp::Convert, input: index_output, output };
    let outputs = fixture.node(node).node(to_floats).run_with(&RuntimeOptions::default());
    outputs.unwrap().try_into().unwrap()
}

/// Expected maxima and positions: positions count down the columns, and the first of equal elements
/// counts.
fn expected([_, height, width]: [usize; 3], data: &[f32]) -> [Vec<f32>; 2] {
    let of_image = |image: &[f32]| {
        let at = |i: usize| image[i % height * width + i / height];
        let places = 1..height * width;
        let place = places.fold(0, |best, i| if at(i) > at(best) { i } else { best });
        (at(place), place as f32)
    };
    let (values, places) = data.chunks(height * width).map(of_image).unzip();
    [values, places]
}

fn check_images(shape: [usize; 3], random: &mut Random) {
    let data = elements(shape.iter().product(), random);
    let expected = expected(shape, &data);
    assert_eq!(places(shape, &data), expected, "{shape:?}");
    for (min, max) in [(f32::NEG_INFINITY, f32::INFINITY), (-19.0, 15.0)] {
        let clamped: Vec<f32> = expected[0].iter().map(|x| x.clamp(min, max)).collect();
        assert_eq!(largest(shape, &data, OutputRange { min, max }), clamped, "{shape:?}");
    }
}

#[test]
fn largest_of_rows() {
    let random = &mut Random::new(23);
    for length in LENGTHS.into_iter().skip(1) {
        let count = 1 + random.below(9);
        check_images([count, length, 1], random);
        check_images([count, 1, length], random);
    }
}

#[test]
fn largest_of_images() {
    let random = &mut Random::new(24);
    for [height, width] in [[2, 2], [3, 3], [2, 5], [5, 2], [4, 4], [7, 3]] {
        check_images([3, height, width], random);
    }
}

#[test]
fn nan_is_a_maximum_if_it_is_the_first_element() {
    for place in [0, 1, 15, 16, 20, 39] {
        let mut row: Vec<f32> = (0..40u8).map(|i| f32::from(i % 7)).collect();
        row[place] = f32::NAN;
        let [values, places] = places([1, 40, 1], &row);
        let [_, expected] = expected([1, 40, 1], &row);
        assert_eq!((values[0].is_nan(), &places), (place == 0, &expected), "{place}");
    }
}

/// XNNPACK's own functions give NaN for some of these arguments on all processors.
#[test]
#[cfg(target_arch = "x86_64")]
fn functions_of_extreme_arguments() {
    if !std::arch::is_x86_feature_detected!("avx512f") {
        return;
    }
    let mut arguments = vec![0.0, f32::INFINITY, f32::MAX, 1e38, 1e30, 1e27, 105.0, 89.0, 2.0];
    // More elements than are computed at once.
    arguments.extend((0..3000).map(|i| i as f32 / 100.0));
    let negative: Vec<f32> = arguments.iter().map(|x| -x).collect();
    let check = |op: UnaryOp, arguments: &[f32], expected: fn(f64) -> f64| {
        let results = run::<f32>(op, Datatype::F32, arguments);
        for (x, result) in arguments.iter().zip(results) {
            let expected = expected(f64::from(*x)) as f32;
            let near = (result - expected).abs() <= expected.abs() * 1e-6 + 1e-37;
            assert!(result == expected || near, "{op:?} of {x} is {result}, not {expected}");
        }
    };
    for arguments in [&arguments, &negative] {
        check(UnaryOp::Sigmoid, arguments, |x| 1.0 / (1.0 + (-x).exp()));
    }
    check(UnaryOp::SquareRoot, &arguments, f64::sqrt);
    check(UnaryOp::ReciprocalSquareRoot, &arguments, |x| 1.0 / x.sqrt());
}

/// Products of two computed matrices, whose second is packed in each run: behind a row of an odd
/// number of elements the memory has what was there before.
#[test]
fn products_do_not_depend_on_used_memory() {
    let random = &mut Random::new(29);
    let workspace = Some(Workspace::new().unwrap());
    let options = RuntimeOptions { workspace, ..RuntimeOptions::default() };
    for case in 0..60 {
        let nan = vec![f32::NAN; 4096];
        let mut fixture = Fixture::new();
        let input = fixture.input(f32(&[nan.len()]), &nan);
        let [first, second] = [0, 1].map(|_| fixture.internal(f32(&[nan.len()])));
        let output = fixture.output(f32(&[nan.len()]));
        let chain = [(input, first), (first, second), (second, output)];
        let fixture = chain.into_iter().fold(fixture, |fixture, (input, output)| {
            fixture.node(Unary { op: UnaryOp::Sine, input, output })
        });
        fixture.run_with::<f32>(&options).unwrap();

        let [rows, depth, columns] = [9, 20, 40].map(|most| one_to(most, random));
        let transposed = case % 2 == 0;
        let of_b = if transposed { [columns, depth] } else { [depth, columns] };
        let [a, b] = [rows * depth, depth * columns].map(|count| random.f32s(count, -1.0, 1.0));
        let mut fixture = Fixture::new();
        let operands = [fixture.input(f32(&[rows, depth]), &a), fixture.input(f32(&of_b), &b)];
        let output = fixture.output(f32(&[rows, columns]));
        let flags = if transposed { Flags::TRANSPOSE_B } else { Flags::NONE };
        let product = BatchMatMul { a: operands[0], b: operands[1], output, flags };
        let found = fixture.node(product).run_with::<f32>(&options).unwrap().swap_remove(0);
        for (index, found) in found.into_iter().enumerate() {
            let (row, column) = (index / columns, index % columns);
            let of_b =
                |k: usize| if transposed { column * depth + k } else { k * columns + column };
            let expected: f32 = (0..depth).map(|k| a[row * depth + k] * b[of_b(k)]).sum();
            let dims = [rows, depth, columns];
            assert!(
                (found - expected).abs() <= 1e-5,
                "{dims:?}, {transposed}: {found}, {expected}"
            );
        }
    }
}
