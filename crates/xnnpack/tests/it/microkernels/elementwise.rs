//! Operators on 8-bit integers, and on operands that are repeated.

use std::fmt::Debug;
use std::sync::Arc;

use super::arithmetic::multiply_by_fraction;
use crate::fixture::{Fixture, f32, qint8, quint8};
use xnn_testing::Random;
use xnnpack::{
    Binary, BinaryOp, Datatype, Element, OutputRange, Quantization, RuntimeOptions, TensorSpec,
    ThreadPool, Unary, UnaryOp, has_fast_uint8,
};

/// Additional bits of operands in TFLite's kernels.
const MORE_BITS: u32 = 20;

/// Like TFLite's `AddElementwise`: operands are converted to twice the larger of their scales.
fn expected(op: BinaryOp, operands: [(u8, i32, f32); 2], (zero, scale): (i32, f32)) -> u8 {
    let common = 2.0 * f64::from(operands[0].2.max(operands[1].2));
    let [a, b] = operands.map(|(byte, zero, scale)| {
        multiply_by_fraction((i32::from(byte) - zero) << MORE_BITS, f64::from(scale) / common)
    });
    let sum = if op == BinaryOp::Subtract { a - b } else { a + b };
    let more = f64::from(1 << MORE_BITS);
    let rounded = multiply_by_fraction(sum as i32, common / (more * f64::from(scale)));
    (rounded + i64::from(zero)).clamp(0, 255) as u8
}

/// Zero points, and scales of these powers of two, alone or with factors that leave few ties.
fn quantizations(exponents: [f32; 3], random: &mut Random) -> [(i32, f32); 3] {
    let exact = random.below(2) == 0;
    exponents.map(|exponent| {
        let factor = if exact { 1.0 } else { random.f32s(1, 0.6, 1.6)[0] };
        (random.below(256) as i32, exponent.exp2() * factor)
    })
}

fn check(op: BinaryOp, tensors: &[Vec<u8>; 2], quantizations: [(i32, f32); 3]) {
    let [.., to] = quantizations;
    let counts = [0, 1].map(|i| tensors[i].len());
    let mut fixture = Fixture::new();
    let [a, b] = [0, 1].map(|i| {
        let (zero, scale) = quantizations[i];
        fixture.input(quint8(&[counts[i]], zero, scale), &tensors[i])
    });
    let count = counts[0].max(counts[1]);
    let output = fixture.output(quint8(&[count], to.0, to.1));
    let node = Binary { op, output_range: OutputRange::default(), a, b, output };
    let tolerance = if has_fast_uint8() { 0 } else { 1 };
    for (index, actual) in fixture.node(node).run::<u8>().into_iter().enumerate() {
        let operands = [0, 1].map(|i| {
            let (zero, scale) = quantizations[i];
            (tensors[i][index % counts[i]], zero, scale)
        });
        let expected = expected(op, operands, to);
        let near = actual.abs_diff(expected) <= tolerance;
        assert!(near, "{op:?} of {operands:?} is {actual}, not {expected}, in {to:?}");
    }
}

#[test]
fn sums_of_uint8() {
    let random = &mut Random::new(11);
    for op in [BinaryOp::Add, BinaryOp::Subtract] {
        for count in (1..=40).chain([255, 1024]) {
            for counts in [[count, count], [count, 1], [1, count]] {
                let tensors =
                    counts.map(|count| (0..count).map(|_| random.below(256) as u8).collect());
                check(op, &tensors, quantizations([-5.0, -4.0, -5.0], random));
            }
        }
    }
}

/// Close to ties, sums of uint8 are rounded by other instructions than elsewhere.
#[test]
fn all_sums_of_two_bytes() {
    let random = &mut Random::new(13);
    let pairs = [8, 0].map(|shift| (0..=u16::MAX).map(|pair| (pair >> shift) as u8).collect());
    for op in [BinaryOp::Add, BinaryOp::Subtract] {
        // XNNPACK supports ratios to the output's scale from 2^-10 to 2^8.
        for exponents in [
            [0.0; 3],
            [0.0, 1.0, 0.0],
            [0.0, 0.0, 1.0],
            [-7.0, 0.0, 1.0],
            [-7.0, -8.0, 0.0],
            [6.0, 4.0, 0.0],
        ] {
            for one_scale in [false, true] {
                for _ in 0..4 {
                    let mut quantizations = quantizations(exponents, random);
                    if one_scale {
                        quantizations[1].1 = quantizations[0].1;
                    }
                    check(op, &pairs, quantizations);
                }
            }
        }
    }
}

/// Checks products, which are scaled in floats and rounded to even on every processor.
fn check_products<T: Element + Copy + Into<i32>>(
    spec: fn(&[usize], i32, f32) -> TensorSpec,
    (low, high): (i32, i32),
    operands: [&[T]; 2],
    quantizations: [(i32, f32); 3],
) {
    let mut fixture = Fixture::new();
    let [a, b] = [0, 1].map(|i| {
        let (zero, scale) = quantizations[i];
        fixture.input(spec(&[operands[i].len()], zero, scale), operands[i])
    });
    let [(_, scale_a), (_, scale_b), (zero, scale)] = quantizations;
    let count = operands[0].len().max(operands[1].len());
    let output = fixture.output(spec(&[count], zero, scale));
    let node =
        Binary { op: BinaryOp::Multiply, output_range: OutputRange::default(), a, b, output };
    for (index, actual) in fixture.node(node).run::<T>().into_iter().enumerate() {
        let [a, b] = [0, 1].map(|i| {
            let byte: i32 = operands[i][index % operands[i].len()].into();
            byte - quantizations[i].0
        });
        let rounded = ((a * b) as f32 * (scale_a * scale_b / scale)).round_ties_even();
        let expected = (rounded as i32 + zero).clamp(low, high);
        assert_eq!(actual.into(), expected, "{a} * {b} with {quantizations:?}");
    }
}

/// Lengths of two operands: all pairs of bytes, one byte and others, and a few less than vectors.
fn lengths() -> impl Iterator<Item = [usize; 2]> {
    let few = (1..=66).flat_map(|count| [[count; 2], [count, 1]]);
    [[1 << 16; 2], [1 << 16, 1], [1, 1001]].into_iter().chain(few)
}

#[test]
fn all_products_of_two_bytes() {
    let random = &mut Random::new(15);
    let pairs = [8, 0]
        .map(|shift| -> Vec<u8> { (0..=u16::MAX).map(|pair| (pair >> shift) as u8).collect() });
    let signed =
        pairs.each_ref().map(|bytes| -> Vec<i8> { bytes.iter().map(|&byte| byte as i8).collect() });
    // XNNPACK supports ratios from 2^-16 to 2^8.
    for exponent in -13..=5 {
        for [a, b] in lengths() {
            let of_uint8 = quantizations([exponent as f32, 0.0, 0.0], random);
            let of_int8 = of_uint8.map(|(zero, scale)| (zero - 128, scale));
            check_products(quint8, (0, 255), [&pairs[0][..a], &pairs[1][..b]], of_uint8);
            check_products(qint8, (-128, 127), [&signed[0][..a], &signed[1][..b]], of_int8);
        }
    }
}

/// A sum or difference of two int8 as XNNPACK's microkernels round it: scaled by integers of 21 bits, with ties away from negative
/// infinity.
fn int8_sum(op: BinaryOp, operands: [(i8, i32, f32); 2], (zero, scale): (i32, f32)) -> i32 {
    let [a, b] = operands.map(|(_, _, of_operand)| of_operand / scale);
    let shift = 20 - (a.max(b).to_bits() >> 23) as i32 + 127;
    let [a, b] = [a, b].map(|ratio| (ratio * (shift as f32).exp2()).round_ties_even() as i32);
    let factors = [a, if op == BinaryOp::Subtract { -b } else { b }];
    let terms = operands.iter().zip(factors);
    let terms = terms.map(|(&(byte, zero, _), factor)| (i32::from(byte) - zero) * factor);
    let sum = (1 << (shift - 1)) + terms.sum::<i32>();
    ((sum >> shift) + zero).clamp(-128, 127)
}

#[test]
fn all_sums_of_two_int8() {
    let random = &mut Random::new(17);
    let pairs = [8, 0]
        .map(|shift| -> Vec<i8> { (0..=u16::MAX).map(|pair| (pair >> shift) as i8).collect() });
    for op in [BinaryOp::Add, BinaryOp::Subtract] {
        // XNNPACK supports ratios to the output's scale from 2^-10 to 2^8.
        for exponents in
            [[0.0; 3], [0.0, 1.0, 0.0], [-7.0, 0.0, 1.0], [-7.0, -8.0, 0.0], [6.0, 4.0, 0.0]]
        {
            for counts in lengths() {
                let of_int8 =
                    quantizations(exponents, random).map(|(zero, scale)| (zero - 128, scale));
                let mut fixture = Fixture::new();
                let [a, b] = [0, 1].map(|i| {
                    let (zero, scale) = of_int8[i];
                    fixture.input(qint8(&[counts[i]], zero, scale), &pairs[i][..counts[i]])
                });
                let (zero, scale) = of_int8[2];
                let output = fixture.output(qint8(&[counts[0].max(counts[1])], zero, scale));
                let node = Binary { op, output_range: OutputRange::default(), a, b, output };
                for (index, actual) in fixture.node(node).run::<i8>().into_iter().enumerate() {
                    let operands = [0, 1].map(|i| {
                        let (zero, scale) = of_int8[i];
                        (pairs[i][index % counts[i]], zero, scale)
                    });
                    let expected = int8_sum(op, operands, of_int8[2]);
                    assert_eq!(
                        i32::from(actual),
                        expected,
                        "{op:?} of {operands:?} in {of_int8:?}"
                    );
                }
            }
        }
    }
}

/// Maxima or minima of integers with the scale 0.5, as integers with another scale.
fn chosen<T: Element + Into<i32>>(
    spec: fn(&[usize], i32, f32) -> TensorSpec,
    op: BinaryOp,
    operands: [&[T]; 2],
    output_scale: f32,
) -> Vec<i32> {
    let mut fixture = Fixture::new();
    let [a, b] = operands.map(|operand| fixture.input(spec(&[operand.len()], 7, 0.5), operand));
    let count = operands[0].len().max(operands[1].len());
    let output = fixture.output(spec(&[count], 7, output_scale));
    let node = Binary { op, output_range: OutputRange::default(), a, b, output };
    fixture.node(node).run::<T>().into_iter().map(Into::into).collect()
}

/// Integers of one scale are compared as integers, others as floats, by XNNPACK.
#[test]
fn maxima_and_minima_of_bytes() {
    let random = &mut Random::new(14);
    for count in [1, 15, 16, 17, 31, 33, 255, 1024] {
        for counts in [[count, count], [count, 1], [1, count]] {
            let bytes = counts
                .map(|count| -> Vec<u8> { (0..count).map(|_| random.below(256) as u8).collect() });
            let signed = [0, 1].map(|i| -> Vec<i8> { bytes[i].iter().map(|&b| b as i8).collect() });
            for (output_scale, factor) in [(0.5, 1), (0.25, 2)] {
                for (op, select) in [
                    (BinaryOp::Maximum, i32::max as fn(i32, i32) -> i32),
                    (BinaryOp::Minimum, i32::min),
                ] {
                    let expected = |operand: &dyn Fn(usize, usize) -> i32| -> Vec<i32> {
                        let of =
                            |i: usize| select(operand(0, i % counts[0]), operand(1, i % counts[1]));
                        (0..count).map(|i| 7 + factor * (of(i) - 7)).collect()
                    };
                    let clamped = |low, high, values: Vec<i32>| -> Vec<i32> {
                        values.into_iter().map(|value| value.clamp(low, high)).collect()
                    };
                    assert_eq!(
                        chosen(quint8, op, [&bytes[0], &bytes[1]], output_scale),
                        clamped(0, 255, expected(&|operand, i| bytes[operand][i].into())),
                    );
                    assert_eq!(
                        chosen(qint8, op, [&signed[0], &signed[1]], output_scale),
                        clamped(-128, 127, expected(&|operand, i| signed[operand][i].into())),
                    );
                }
            }
        }
    }
}

/// Like TFLite's `ConcatenationWithScaling`.
#[test]
fn conversions_of_uint8_to_another_scale() {
    let random = &mut Random::new(12);
    let tolerance = if has_fast_uint8() { 0 } else { 1 };
    // XNNPACK supports ratios from 2^-8 to 2^7.
    for exponent in -7..7 {
        for count in [1, 15, 16, 17, 256, 1000] {
            let exact = random.below(2) == 0;
            let factor = if exact { 1.0 } else { random.f32s(1, 0.6, 1.6)[0] };
            let scales = [(exponent as f32).exp2() * factor, 1.0];
            let zeros = [0, 1].map(|_| random.below(256) as i32);
            let bytes: Vec<u8> = (0..count).map(|_| random.below(256) as u8).collect();
            let mut fixture = Fixture::new();
            let input = fixture.input(quint8(&[count], zeros[0], scales[0]), &bytes);
            let output = fixture.output(quint8(&[count], zeros[1], scales[1]));
            let converted = fixture.node(Unary { op: UnaryOp::Convert, input, output }).run::<u8>();
            for (byte, actual) in bytes.into_iter().zip(converted) {
                let scaled = (f64::from(i32::from(byte) - zeros[0]) * f64::from(scales[0])).round();
                let expected = (scaled as i32 + zeros[1]).clamp(0, 255) as u8;
                let near = actual.abs_diff(expected) <= tolerance;
                assert!(near, "{byte} is {actual}, not {expected}: {zeros:?}, {scales:?}");
            }
        }
    }
}

/// Bits of all bytes through a function. Tensors that are shorter than a vector are looked up in a table.
fn of_all_bytes(op: UnaryOp, [from, to]: [(Datatype, i32, f32); 2]) -> Vec<u8> {
    let run = |some: &[u8]| {
        let spec = |(datatype, zero_point, scale)| {
            let quantization = Quantization::PerTensor { zero_point, scale };
            TensorSpec::new(datatype, &[some.len()]).quantized(quantization)
        };
        let mut fixture = Fixture::new();
        let input = fixture.input(spec(from), some);
        let output = fixture.output(spec(to));
        fixture.node(Unary { op, input, output }).run::<u8>()
    };
    let bytes: Vec<u8> = (0..=u8::MAX).collect();
    let all = run(&bytes);
    assert_eq!(all, bytes.chunks(15).flat_map(run).collect::<Vec<u8>>(), "{op:?} {from:?} {to:?}");
    all
}

/// Functions that are linear but for rounding need no table, unless ties are rounded in two directions.
#[test]
fn conversions_and_negations_of_all_bytes() {
    let (signed, unsigned) = (Datatype::Qint8, Datatype::Quint8);
    let number = |of: Datatype, byte: u8| match of == signed {
        true => i32::from(byte as i8),
        false => i32::from(byte),
    };
    let random = &mut Random::new(16);
    for exponent in -7..7 {
        for (op, sign, types) in [
            (UnaryOp::Convert, 1.0, [signed, unsigned]),
            (UnaryOp::Convert, 1.0, [unsigned, signed]),
            (UnaryOp::Negate, -1.0, [signed, signed]),
            (UnaryOp::Negate, -1.0, [unsigned, unsigned]),
        ] {
            let drawn = quantizations([exponent as f32, 0.0, 0.0], random);
            let [from, to] = [0, 1].map(|i| {
                let (zero, scale) = drawn[i];
                (types[i], if types[i] == signed { zero - 128 } else { zero }, scale)
            });
            let [least, most] = if to.0 == signed { [-128.0, 127.0] } else { [0.0, 255.0] };
            for (byte, actual) in (0..=u8::MAX).zip(of_all_bytes(op, [from, to])) {
                let scaled =
                    sign * f64::from(number(from.0, byte) - from.1) * f64::from(from.2 / to.2);
                let exact = (scaled + f64::from(to.1)).clamp(least, most);
                let error = (f64::from(number(to.0, actual)) - exact).abs();
                assert!(error <= 0.501, "{op:?} of {byte} from {from:?} to {to:?}");
            }
        }
    }
}

/// Differences of two matrices of `T`s, of which one may have a single row.
fn differences<T: Element>(
    spec: impl Fn(&[usize]) -> TensorSpec,
    columns: usize,
    operands: [&[T]; 2],
    options: &RuntimeOptions,
) -> Vec<T> {
    let mut fixture = Fixture::new();
    let rows = operands.map(|operand| operand.len() / columns);
    let [a, b] = [0, 1].map(|i| fixture.input(spec(&[rows[i], columns]), operands[i]));
    let output = fixture.output(spec(&[rows[0].max(rows[1]), columns]));
    let output_range = OutputRange::default();
    let node = Binary { op: BinaryOp::Subtract, output_range, a, b, output };
    fixture.node(node).run_with::<T>(options).unwrap().remove(0)
}

/// An operand with one row gives the same results as one with as many rows as the other.
fn check_rows<T: Element + PartialEq + Debug>(
    spec: impl Fn(&[usize]) -> TensorSpec,
    draw: impl Fn(&mut Random) -> T,
) {
    let random = &mut Random::new(14);
    let two = Arc::new(ThreadPool::new(2).unwrap());
    for threadpool in [None, Some(two)] {
        let options = RuntimeOptions { threadpool, ..RuntimeOptions::default() };
        for columns in [2, 3, 7, 12, 13, 16, 33, 64, 100, 256, 257] {
            let rows = 2 + random.below(4000 / columns);
            let all: Vec<T> = (0..rows * columns).map(|_| draw(random)).collect();
            let row: Vec<T> = (0..columns).map(|_| draw(random)).collect();
            let repeated = row.repeat(rows);
            for first in [false, true] {
                let in_order = |one| if first { [one, &all[..]] } else { [&all[..], one] };
                let [actual, expected] = [&row[..], &repeated[..]]
                    .map(|one| differences(&spec, columns, in_order(one), &options));
                assert_eq!(actual, expected, "{rows} x {columns}");
            }
        }
    }
}

#[test]
fn a_row_for_all_rows() {
    check_rows(f32, |random| random.f32s(1, -9.0, 9.0)[0]);
    check_rows(|dims| quint8(dims, 120, 0.1), |random| random.below(256) as u8);
    check_rows(|dims| qint8(dims, -3, 0.1), |random| random.i8s(1)[0]);
}
