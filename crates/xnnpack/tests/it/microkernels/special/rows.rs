//! Pooling, and sums, means and softmax of rows.

use super::super::windows::{Pooling, poolings, whole_images};
use super::{RANGES, WIDTHS, clamp, draw_row, is_near};
use crate::fixture::{Fixture, any_f32, f32};
use xnn_testing::Random;
use xnnpack::{
    Datatype, Flags, GlobalPool, MaxPool2d, OutputRange, Padding2d, PooledDims, ReduceOp,
    ResizeBilinear2d, RuntimeOptions, Softmax, StaticReduce, TensorSpec, Unary, UnaryOp,
};

/// Tolerance relative to the sum of absolute values.
const TOLERANCE: f64 = 1e-5;

/// Expected maximum, which is at least the lower bound.
fn largest(window: &[f32], range: OutputRange) -> f64 {
    let largest = window.iter().fold(range.min, |most, &x| if x > most { x } else { most });
    clamp(largest.into(), range)
}

/// Expected mean, and its tolerance.
fn mean(window: &[f32], range: OutputRange) -> (f64, f64) {
    let count = window.len() as f64;
    let sum: f64 = window.iter().copied().map(f64::from).sum();
    let size: f64 = window.iter().copied().map(|x| f64::from(x).abs()).sum();
    (clamp(sum / count, range), TOLERANCE * size / count)
}

fn check_windows(pooling: &Pooling, data: &[f32], range: OutputRange) {
    let mut fixture = Fixture::new();
    let input = fixture.input(f32(&pooling.dims()), data);
    let outputs = [(); 2].map(|()| fixture.output(any_f32()));
    let fixture = fixture.node(pooling.largest(range, input, outputs[0]));
    let fixture = fixture.node(pooling.mean(range, input, outputs[1]));
    let actual = fixture.run_with::<f32>(&RuntimeOptions::default()).unwrap();
    for (i, window) in pooling.windows(data).iter().enumerate() {
        let largest = largest(window, range);
        let most = actual[0][i];
        assert!(is_near(most, largest, 0.0), "{most} of {window:?}, {range:?} in {pooling:?}");
        let (expected, tolerance) = mean(window, range);
        let mean = actual[1][i];
        assert!(is_near(mean, expected, tolerance), "{mean} of {window:?}, {range:?}");
    }
}

#[test]
fn windows() {
    let random = &mut Random::new(51);
    let windows = poolings(&[1, 2, 3, 7, 16, 33], random);
    for pooling in windows.into_iter().chain(whole_images(random)) {
        for range in RANGES {
            let data = draw_row(pooling.elements(), random);
            check_windows(&pooling, &data, range);
        }
    }
}

/// XNNPACK has separate microkernels for maxima of rows.
#[test]
fn largest_of_rows() {
    let random = &mut Random::new(52);
    for length in (2..70).chain([257]) {
        for range in RANGES {
            let data = draw_row(length, random);
            let mut fixture = Fixture::new();
            let input = fixture.input(f32(&[1, length, 1, 1]), &data);
            let output = fixture.output(any_f32());
            let pooling = [length as u32, 1];
            let actual = fixture
                .node(MaxPool2d {
                    padding: Padding2d::default(),
                    pooling,
                    stride: pooling,
                    dilation: [1, 1],
                    output_range: range,
                    input,
                    output,
                    flags: Flags::NONE,
                })
                .run::<f32>();
            let expected = largest(&data, range);
            assert!(is_near(actual[0], expected, 0.0), "{} of {data:?}, {range:?}", actual[0]);
        }
    }
}

#[test]
fn sums_and_means() {
    let random = &mut Random::new(53);
    for channels in WIDTHS {
        for rows in [1, 2, 3, 7, 8, 20, 65] {
            let data = draw_row(rows * channels, random);
            for op in [ReduceOp::Sum, ReduceOp::Mean] {
                let scale = if op == ReduceOp::Sum { rows as f64 } else { 1.0 };
                let column = |i: usize| -> Vec<f32> {
                    data[i..].iter().step_by(channels).copied().collect()
                };
                for range in RANGES {
                    let mut fixture = Fixture::new();
                    let input = fixture.input(f32(&[1, rows, channels]), &data);
                    let outputs = [(); 3].map(|()| fixture.output(any_f32()));
                    let reduce = |axis, output| {
                        let (axes, flags) = (vec![axis], Flags::NONE);
                        StaticReduce { op, axes, input, output, flags }
                    };
                    let pool = GlobalPool {
                        op,
                        dims: PooledDims::One,
                        is_fixed: false,
                        output_range: range,
                        input,
                        output: outputs[0],
                        flags: Flags::NONE,
                    };
                    let fixture = fixture.node(pool);
                    let fixture = fixture.node(reduce(1, outputs[1])).node(reduce(2, outputs[2]));
                    let actual = fixture.run_with::<f32>(&RuntimeOptions::default()).unwrap();
                    for i in 0..channels {
                        for (actual, range) in [(actual[0][i], range), (actual[1][i], RANGES[0])] {
                            let (mean, tolerance) = mean(&column(i), RANGES[0]);
                            let expected = clamp(mean * scale, range);
                            assert!(
                                is_near(actual, expected, tolerance * scale),
                                "{actual}, not {expected}: {op:?} of {:?}, {range:?}",
                                column(i)
                            );
                        }
                    }
                    let scale = if op == ReduceOp::Sum { channels as f64 } else { 1.0 };
                    for (row, &actual) in data.chunks_exact(channels).zip(&actual[2]) {
                        let (mean, tolerance) = mean(row, RANGES[0]);
                        let near = is_near(actual, mean * scale, tolerance * scale);
                        assert!(near, "{actual}: {op:?} of {row:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn softmax() {
    let random = &mut Random::new(54);
    // Up to 256 floats have a microkernel of their own.
    for length in (1..=70).chain([100, 127, 128, 129, 161, 196, 239, 255, 256, 257, 300]) {
        for _ in 0..20 {
            let rows: Vec<f32> = (0..3).flat_map(|_| draw_row(length, random)).collect();
            let mut fixture = Fixture::new();
            let input = fixture.input(f32(&[3, length]), &rows);
            let output = fixture.output(any_f32());
            let actual = fixture.node(Softmax { input, output }).run::<f32>();
            let pairs = rows.chunks_exact(length).zip(actual.chunks_exact(length));
            for (row, actual) in pairs {
                let most = row.iter().fold(f32::MIN, |most, x| most.max(*x));
                let powers: Vec<f64> =
                    row.iter().map(|x| (f64::from(*x) - f64::from(most)).exp()).collect();
                let sum: f64 = powers.iter().sum();
                for (power, actual) in powers.iter().zip(actual) {
                    let expected = power / sum;
                    assert!(is_near(*actual, expected, 1e-6), "{actual}, not {expected}: {row:?}");
                }
            }
        }
    }
}

/// All pixels that NaN contributes to are NaN. Infinities are not tested, since XNNPACK subtracts
/// them.
#[test]
fn resized_images() {
    for channels in WIDTHS {
        for place in 0..9 {
            let mut data = vec![0.5f32; 9 * channels];
            data[place * channels + channels / 2] = f32::NAN;
            let mut fixture = Fixture::new();
            let input = fixture.input(f32(&[1, 3, 3, channels]), &data);
            let output = fixture.output(f32(&[1, 5, 5, channels]));
            let (size, flags) = ([5, 5], Flags::ALIGN_CORNERS);
            let actual = fixture.node(ResizeBilinear2d { size, input, output, flags }).run::<f32>();
            for (i, x) in actual.into_iter().enumerate() {
                let (pixel, channel) = (i / channels, i % channels);
                let reaches = |at: usize, of: usize| (at / 2..=at.div_ceil(2)).contains(&of);
                let is_reached = channel == channels / 2
                    && reaches(pixel / 5, place / 3)
                    && reaches(pixel % 5, place % 3);
                assert_eq!(x.is_nan(), is_reached, "{pixel} of {place}, {channels} channels");
            }
        }
    }
}

/// The integer that NaN is converted to may depend on the processor, but not on the position.
#[test]
fn integers_converted_from_nan() {
    for datatype in [Datatype::Qint8, Datatype::Quint8] {
        let bytes: Vec<u8> = (1..150)
            .flat_map(|length| {
                let mut fixture = Fixture::new();
                let input = fixture.input(f32(&[length]), &vec![f32::NAN; length]);
                let quantization = xnnpack::Quantization::PerTensor { zero_point: 3, scale: 0.5 };
                let output = fixture.output(TensorSpec::inferred(datatype).quantized(quantization));
                let node = fixture.node(Unary { op: UnaryOp::Convert, input, output });
                match datatype {
                    Datatype::Quint8 => node.run::<u8>(),
                    _ => node.run::<i8>().into_iter().map(i8::cast_unsigned).collect(),
                }
            })
            .collect();
        assert!(bytes.iter().all(|byte| *byte == bytes[0]), "{datatype:?}: {bytes:?}");
    }
}
