//! Pooling of windows.

use std::fmt::Debug;

use crate::fixture::{Fixture, any_f32, assert_close, f32};
use xnn_testing::Random;
use xnnpack::{
    AveragePool2d, Datatype, Element, Flags, MaxPool2d, OutputRange, Padding2d, Quantization,
    Reshape, RuntimeOptions, TensorSpec, Unary, UnaryOp, ValueId,
};

/// Window sizes, including those of specialized microkernels.
const WINDOWS: [[usize; 2]; 9] =
    [[1, 2], [3, 1], [2, 2], [1, 4], [2, 3], [2, 4], [3, 3], [3, 4], [5, 5]];

/// Windows of an image, without padding.
#[derive(Debug)]
pub struct Pooling {
    /// Height, width and channels of the image.
    pub shape: [usize; 3],
    pub window: [usize; 2],
    pub step: usize,
}

impl Pooling {
    /// Elements of each window, for each channel.
    pub fn windows<T: Copy>(&self, data: &[T]) -> Vec<Vec<T>> {
        let [height, width, channels] = self.shape;
        let [rows, columns] = [(height, self.window[0]), (width, self.window[1])]
            .map(|(n, k)| (n - k) / self.step + 1);
        let window = |place: usize| {
            let (pixel, channel) = (place / channels, place % channels);
            let (top, left) = (pixel / columns * self.step, pixel % columns * self.step);
            (0..self.window[0] * self.window[1])
                .map(|i| (top + i / self.window[1]) * width + left + i % self.window[1])
                .map(|pixel| data[pixel * channels + channel])
                .collect()
        };
        (0..rows * columns * channels).map(window).collect()
    }

    pub fn dims(&self) -> [usize; 4] {
        let [height, width, channels] = self.shape;
        [1, height, width, channels]
    }

    pub fn elements(&self) -> usize {
        self.shape.iter().product()
    }

    pub fn largest(&self, output_range: OutputRange, input: ValueId, output: ValueId) -> MaxPool2d {
        MaxPool2d {
            padding: Padding2d::default(),
            pooling: self.window.map(|n| n as u32),
            stride: [self.step as u32; 2],
            dilation: [1, 1],
            output_range,
            input,
            output,
            flags: Flags::NONE,
        }
    }

    pub fn mean(
        &self,
        output_range: OutputRange,
        input: ValueId,
        output: ValueId,
    ) -> AveragePool2d {
        AveragePool2d {
            padding: Padding2d::default(),
            pooling: self.window.map(|n| n as u32),
            stride: [self.step as u32; 2],
            output_range,
            input,
            output,
            flags: Flags::NONE,
        }
    }
}

/// Small images with these numbers of channels and all windows. XNNPACK does not support gaps
/// between windows.
pub fn poolings(channels: &[usize], random: &mut Random) -> Vec<Pooling> {
    let mut poolings = Vec::new();
    for window in WINDOWS {
        for &channels in channels {
            for step in 1..=window[0].min(window[1]).min(3) {
                let shape = [5 + random.below(5), 5 + random.below(5), channels];
                poolings.push(Pooling { shape, window, step });
            }
        }
    }
    poolings
}

/// Images that are one row or column of one channel, and their only windows.
fn rows() -> impl Iterator<Item = Pooling> {
    let lengths = [2, 7, 15, 16, 17, 31, 33, 100, 257].into_iter();
    let windows = lengths.flat_map(|length| [[1, length], [length, 1]]);
    windows.map(|window| Pooling { shape: [window[0], window[1], 1], window, step: 1 })
}

/// Images whose windows are as wide as they are, and follow each other in memory.
pub fn whole_images(random: &mut Random) -> Vec<Pooling> {
    let mut images = Vec::new();
    for channels in [1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 127, 130, 258] {
        for [height, width] in [[1, 2], [2, 2], [1, 9], [3, 5], [7, 9]] {
            let count = 1 + random.below(3);
            let shape = [count * height, width, channels];
            images.push(Pooling { shape, window: [height, width], step: height });
        }
    }
    images
}

#[test]
fn windows_of_floats() {
    let random = &mut Random::new(25);
    let windows = poolings(&[1, 2, 3, 7, 15, 16, 17, 33, 40], random);
    for pooling in windows.into_iter().chain(rows()).chain(whole_images(random)) {
        let data = random.f32s(pooling.elements(), -20.0, 20.0);
        let mut fixture = Fixture::new();
        let input = fixture.input(f32(&pooling.dims()), &data);
        let [largest, mean] = [(); 2].map(|()| fixture.output(any_f32()));
        let range = OutputRange::default();
        let fixture = fixture.node(pooling.largest(range, input, largest));
        let fixture = fixture.node(pooling.mean(range, input, mean));
        let actual = fixture.run_with::<f32>(&RuntimeOptions::default()).unwrap();
        let windows = pooling.windows(&data);
        let largest = |window: &Vec<f32>| window.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        assert_eq!(actual[0], windows.iter().map(largest).collect::<Vec<_>>(), "{pooling:?}");
        let mean = |window: &Vec<f32>| {
            let sum: f64 = window.iter().copied().map(f64::from).sum();
            (sum / window.len() as f64) as f32
        };
        assert_close(&actual[1], &windows.iter().map(mean).collect::<Vec<_>>(), 1e-5);
    }
}

/// Means of windows that reach beyond the image: what is behind its edges does not count.
#[test]
fn padded_means_of_floats() {
    let random = &mut Random::new(28);
    for Pooling { shape, window, step } in poolings(&[1, 2, 3, 7, 8, 15, 16, 17, 33, 40], random) {
        let data = random.f32s(shape.iter().product(), -20.0, 20.0);
        let [height, width, channels] = shape;
        let [top, left] = window.map(|n| random.below(n));
        let [bottom, right] = window.map(|n| random.below(n));
        let mut fixture = Fixture::new();
        let input = fixture.input(f32(&[1, height, width, channels]), &data);
        let output = fixture.output(any_f32());
        let actual = fixture
            .node(AveragePool2d {
                padding: Padding2d {
                    top: top as u32,
                    right: right as u32,
                    bottom: bottom as u32,
                    left: left as u32,
                },
                pooling: window.map(|n| n as u32),
                stride: [step as u32; 2],
                output_range: OutputRange { min: -15.0, max: 15.0 },
                input,
                output,
                flags: Flags::NONE,
            })
            .run::<f32>();
        let rows = (top + height + bottom - window[0]) / step + 1;
        let columns = (left + width + right - window[1]) / step + 1;
        let inside = |start: usize, before: usize, count: usize, size: usize| {
            start.saturating_sub(before)..(start + count).saturating_sub(before).min(size)
        };
        let mut expected = Vec::new();
        for place in 0..rows * columns {
            let y = inside(place / columns * step, top, window[0], height);
            let x = inside(place % columns * step, left, window[1], width);
            let count = (y.len() * x.len()) as f64;
            for channel in 0..channels {
                let pixels = y.clone().flat_map(|y| x.clone().map(move |x| y * width + x));
                let sum: f64 =
                    pixels.map(|pixel| f64::from(data[pixel * channels + channel])).sum();
                expected.push(((sum / count) as f32).clamp(-15.0, 15.0));
            }
        }
        assert_close(&actual, &expected, 1e-5);
    }
}

/// Checks pooling of integers with this zero point.
fn check_integers<T: Element + Copy + Ord + Debug>(
    datatype: Datatype,
    zero_point: i32,
    all: impl Fn(&mut Random) -> T,
    bounds: [T; 2],
    range: OutputRange,
) {
    let random = &mut Random::new(26);
    let windows = poolings(&[1, 2, 15, 16, 31, 63, 64, 65, 130], random);
    for pooling in windows.into_iter().chain(rows()).chain(whole_images(random)) {
        for clips in [false, true] {
            let data: Vec<T> = (0..pooling.elements()).map(|_| all(random)).collect();
            let spec = Quantization::PerTensor { zero_point, scale: 1.0 };
            let mut fixture = Fixture::new();
            let input = TensorSpec::new(datatype, &pooling.dims()).quantized(spec.clone());
            let input = fixture.input(input, &data);
            let output = fixture.output(TensorSpec::inferred(datatype).quantized(spec));
            let range = if clips { range } else { OutputRange::default() };
            let actual = fixture.node(pooling.largest(range, input, output)).run::<T>();
            let [low, high] = bounds;
            let largest = |window: &Vec<T>| {
                let largest = window.iter().copied().max();
                if clips { largest.map(|most| most.clamp(low, high)) } else { largest }
            };
            let expected: Option<Vec<T>> = pooling.windows(&data).iter().map(largest).collect();
            assert_eq!(Some(actual), expected, "{pooling:?}");
        }
    }
}

#[test]
fn windows_of_int8() {
    let range = OutputRange { min: -50.0, max: 70.0 };
    check_integers(Datatype::Qint8, -3, |random| random.i8s(1)[0], [-53, 67], range);
}

#[test]
fn windows_of_uint8() {
    let range = OutputRange { min: -50.0, max: 70.0 };
    let all = |random: &mut Random| random.i8s(1)[0] as u8;
    check_integers(Datatype::Quint8, 125, all, [75, 195], range);
}

/// Minima, which are the negatives of the maxima of negative elements. Windows of whole images
/// negate the elements themselves, if a reshape fixes the size of the image, and the zero point of
/// the negatives allows that.
#[test]
fn minima_of_floats() {
    let random = &mut Random::new(32);
    let windows = poolings(&[1, 3, 17], random);
    for pooling in windows.into_iter().chain(rows()).chain(whole_images(random)) {
        let data = random.f32s(pooling.elements(), -20.0, 20.0);
        let actual = minima(&pooling, &f32(&pooling.dims()), &any_f32(), &data);
        let least = |window: Vec<f32>| window.into_iter().fold(f32::INFINITY, f32::min);
        let expected: Vec<f32> = pooling.windows(&data).into_iter().map(least).collect();
        assert_eq!(actual, expected, "{pooling:?}");
    }
}

fn minima<T: Element + PartialEq + Debug>(
    pooling: &Pooling,
    spec: &TensorSpec,
    negative: &TensorSpec,
    data: &[T],
) -> Vec<T> {
    let [moved, direct] = [true, false].map(|is_reshaped| {
        let mut fixture = Fixture::new();
        let input = fixture.input(spec.clone(), data);
        let negated = fixture.internal(negative.clone());
        let mut fixture = fixture.node(Unary { op: UnaryOp::Negate, input, output: negated });
        let mut image = negated;
        if is_reshaped {
            image = fixture.internal(negative.clone());
            let dims = pooling.dims().to_vec();
            let node = Reshape { dims, is_open: false, input: negated, output: image };
            fixture = fixture.node(node);
        }
        let largest = fixture.internal(negative.clone());
        let output = fixture.output(TensorSpec { dims: None, ..spec.clone() });
        fixture
            .node(pooling.largest(OutputRange::default(), image, largest))
            .node(Unary { op: UnaryOp::Negate, input: largest, output })
            .run()
    });
    assert_eq!(moved, direct, "{pooling:?}");
    moved
}

/// Checks minima of integers with zero points of theirs and of their negatives.
fn check_minima<T: Element + Copy + Ord + Debug>(
    datatype: Datatype,
    zero_points: [i32; 2],
    all: impl Fn(&mut Random) -> T,
) {
    let random = &mut Random::new(33);
    let windows = poolings(&[1, 3, 65], random);
    let [spec, negative] = zero_points
        .map(|zero_point| Quantization::PerTensor { zero_point, scale: 0.25 })
        .map(|quantization| move |spec: TensorSpec| spec.quantized(quantization.clone()));
    for pooling in windows.into_iter().chain(rows()).chain(whole_images(random)) {
        let data: Vec<T> = (0..pooling.elements()).map(|_| all(random)).collect();
        let spec = spec(TensorSpec::new(datatype, &pooling.dims()));
        let actual = minima(&pooling, &spec, &negative(TensorSpec::inferred(datatype)), &data);
        let least = |window: Vec<T>| window.into_iter().min();
        let expected: Option<Vec<T>> = pooling.windows(&data).into_iter().map(least).collect();
        assert_eq!(Some(actual), expected, "{pooling:?}");
    }
}

#[test]
fn minima_of_int8() {
    check_minima(Datatype::Qint8, [-3, 2], |random| random.i8s(1)[0]);
    // The negatives of half of the range with another zero point.
    check_minima(Datatype::Qint8, [0, 0], |random| random.i8s(1)[0].max(-127));
}

#[test]
fn minima_of_uint8() {
    let all = |random: &mut Random| random.i8s(1)[0] as u8;
    check_minima(Datatype::Quint8, [125, 130], all);
    check_minima(Datatype::Quint8, [128, 128], |random| all(random).max(1));
}
