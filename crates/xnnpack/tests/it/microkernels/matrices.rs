//! Products of two computed matrices of 8-bit integers, which are multiplied as floats.

use super::one_to;
use crate::fixture::{Fixture, f32, qint8, quint8};
use xnn_testing::Random;
use xnnpack::{BatchMatMul, Element, Flags, TensorSpec, Unary, UnaryOp};

/// Floats represent sums of so many products of the largest integers.
const EXACT_DEPTH: usize = 258;

struct Product<T> {
    spec: fn(&[usize], i32, f32) -> TensorSpec,
    limits: (i32, i32),
    /// Rows, depth and columns.
    dims: [usize; 3],
    operands: [Vec<T>; 2],
    /// For the operands and the result, like the scales.
    zero_points: [i32; 3],
    scales: [f32; 3],
}

impl<T: Element + Copy + Into<i32>> Product<T> {
    /// Compares the product with exact sums, which are scaled and rounded once.
    fn check(&self) {
        let Self { spec, limits: (low, high), dims: [rows, depth, columns], .. } = *self;
        let [zero_a, zero_b, zero] = self.zero_points;
        let [scale_a, scale_b, scale] = self.scales.map(f64::from);
        let mut fixture = Fixture::new();
        let [a, b] = [(0, [rows, depth]), (1, [depth, columns])].map(|(i, dims)| {
            let spec = spec(&dims, self.zero_points[i], self.scales[i]);
            let input = fixture.input(spec, &self.operands[i]);
            let output = fixture.internal(f32(&dims));
            fixture.graph.define(Unary { op: UnaryOp::Convert, input, output }).unwrap();
            output
        });
        let sums = fixture.internal(f32(&[rows, columns]));
        let output = fixture.output(spec(&[rows, columns], zero, self.scales[2]));
        let product = BatchMatMul { a, b, output: sums, flags: Flags::NONE };
        let conversion = Unary { op: UnaryOp::Convert, input: sums, output };
        let actual = fixture.node(product).node(conversion).run::<T>();

        let factor = 1.0 / (scale / (scale_a * scale_b)) as f32;
        let [a, b] = &self.operands;
        for (index, actual) in actual.into_iter().enumerate() {
            let (row, column) = (index / columns, index % columns);
            let product = |k: usize| {
                (a[row * depth + k].into() - zero_a) * (b[k * columns + column].into() - zero_b)
            };
            let sum: i32 = (0..depth).map(product).sum();
            let rounded = (sum as f32 * factor).round_ties_even() as i32;
            let expected = (rounded + zero).clamp(low, high);
            assert_eq!(actual.into(), expected, "{sum}: {:?}, {:?}", self.dims, self.scales);
        }
    }
}

/// Checks products of random bytes.
fn check<T: Element + Copy + Into<i32>>(
    spec: fn(&[usize], i32, f32) -> TensorSpec,
    low: i32,
    of_byte: fn(u8) -> T,
    random: &mut Random,
) {
    for _ in 0..60 {
        let dims = [one_to(20, random), one_to(EXACT_DEPTH, random), one_to(40, random)];
        let [rows, depth, columns] = dims;
        let operands = [rows * depth, depth * columns]
            .map(|count| (0..count).map(|_| of_byte(random.below(256) as u8)).collect());
        let zero_points = [0; 3].map(|_| low + random.below(256) as i32);
        let [scale_a, scale_b, spread] =
            [(0.01, 0.1), (0.001, 0.01), (20.0, 300.0)].map(|(a, b)| random.f32s(1, a, b)[0]);
        let scale = scale_a * scale_b * spread * (depth as f32).sqrt();
        let scales = [scale_a, scale_b, scale];
        Product { spec, limits: (low, low + 255), dims, operands, zero_points, scales }.check();
    }
}

#[test]
fn int8() {
    check(qint8, -128, |byte| byte as i8, &mut Random::new(23));
}

#[test]
fn uint8() {
    check(quint8, 0, |byte| byte, &mut Random::new(24));
}

/// All products are 255 x 255, and the result's step is nearly as large as one of them.
#[test]
fn largest_sums() {
    for depth in [EXACT_DEPTH - 1, EXACT_DEPTH] {
        let operands = [vec![255_u8; depth], vec![255; 17 * depth]];
        let scales = [0.01, 0.02, 0.01 * 0.02 * 65_000.0];
        let zero_points = [0, 0, 0];
        let dims = [1, depth, 17];
        Product { spec: quint8, limits: (0, 255), dims, operands, zero_points, scales }.check();
    }
}
