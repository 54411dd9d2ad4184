//! Layers that are longer than what microkernels prepare at once: addresses of a row's inputs, channels of padding, and copies of
//! inputs.

use std::ops::RangeInclusive;

use super::arithmetic::check;
use super::layer::{Form, Layer};
use super::{depthwise, images, one_to, place};
use crate::fixture::{Fixture, any_f32, any_qint8, f32, qint8, quint8};
use xnn_testing::Random;
use xnnpack::{Datatype, Flags, ReduceOp, StaticReduce};

const INTEGERS: [Datatype; 3] = [Datatype::Qint8, Datatype::Qcint8, Datatype::Quint8];

/// A row of up to `width` pixels more.
fn long_row(
    kernel: [usize; 2],
    channels: usize,
    width: usize,
    stride: usize,
    random: &mut Random,
) -> Layer {
    let mut layer = depthwise(kernel, stride, channels, 1, random);
    layer.size[1] += one_to(width, random);
    layer
}

#[test]
fn long_rows() {
    let random = &mut Random::new(22);
    for kernel in [[3, 3], [5, 5], [1, 3], [3, 2]] {
        for stride in [1, 2, 3, 1, 2] {
            let mut next = || long_row(kernel, one_to(40, random), 200, stride, random);
            let layers = [next(), next(), next(), next()];
            for (layer, filter) in layers.iter().zip(INTEGERS) {
                check(layer, filter, random);
            }
            images::check(&layers[3], random);
        }
    }
}

#[test]
fn many_channels() {
    let random = &mut Random::new(23);
    for kernel in [[3, 3], [5, 5]] {
        for stride in 1..=3 {
            for channels in [1008, 1024, 1025, 2100] {
                let layer = depthwise(kernel, stride, channels, 1, random);
                check(&layer, Datatype::Qcint8, random);
                images::check(&Layer { form: Form::Depthwise, ..layer }, random);
            }
        }
    }
}

#[test]
fn many_inputs() {
    let random = &mut Random::new(24);
    for filter in INTEGERS {
        for inputs in [2040, 2048, 2049, 2056, 5000] {
            let mut dense = Layer::dense(Form::FullyConnected, inputs, one_to(40, random));
            dense.batches = [0; 2].map(|_| one_to(13, random));
            check(&dense, filter, random);
        }
    }
    for inputs in [225, 256, 300, 2100] {
        let mut layer = Layer::dense(Form::Convolution, inputs, one_to(40, random));
        place(&mut layer, [3, 3], one_to(2, random), random);
        for filter in INTEGERS {
            check(&layer, filter, random);
        }
        images::check(&layer, random);
    }
}

/// Positions with fewer inputs than a vector, in filters that fit into a microkernel's buffer and in larger ones.
#[test]
fn short_positions() {
    let random = &mut Random::new(25);
    for inputs in 1..=17 {
        for kernel in [[3, 3], [2, 5], [13, 14], [17, 21], [32, 33]] {
            if inputs > 4 && kernel[0] > 17 {
                continue;
            }
            let outputs = if kernel[0] > 3 { one_to(3, random) } else { one_to(40, random) };
            let mut layer = Layer::dense(Form::Convolution, inputs, outputs);
            place(&mut layer, kernel, one_to(2, random), random);
            for filter in INTEGERS {
                check(&layer, filter, random);
            }
            images::check(&layer, random);
        }
    }
}

/// Sums that need 32 bits: elements near the ends of the range, of one value or mixed, of the
/// innermost and of the outermost dimension.
#[test]
fn means_of_many_bytes() {
    let random = &mut Random::new(29);
    for count in [100, 253, 4096, 4127, 4128, 4200, 8191, 8256, 9216, 16_384, 16_390, 49_152] {
        for range in [-128..=-128, 127..=127, -128..=-70, 60..=127, -128..=127] {
            for axis in [0, 1] {
                check_means([count, 3], axis, range.clone(), random);
            }
        }
    }
}

/// Rows of whole vectors of channels and of some more, and as many as fit sums of 16 bits, one
/// more, and several times as many.
#[test]
fn means_over_rows_of_bytes() {
    let random = &mut Random::new(31);
    let wide = [48, 63, 64, 65, 95, 96, 127, 128, 129, 191, 192, 193, 255, 256, 257, 300];
    for channels in (1..=40).chain(wide) {
        for rows in [1, 2, 7, 49, 255, 256, 257, 600] {
            for range in [-128..=-128, 127..=127, -128..=127] {
                check_means([rows, channels], 0, range, random);
            }
        }
    }
}

/// Means of int8, and of the same integers plus 128 as uint8.
fn check_means(
    [count, means]: [usize; 2],
    axis: usize,
    range: RangeInclusive<i32>,
    random: &mut Random,
) {
    let (least, choices) = (*range.start(), (range.end() - range.start() + 1) as usize);
    let mut next = || least + random.below(choices) as i32;
    let elements: Vec<i32> = (0..means * count).map(|_| next()).collect();
    let (dims, [step, skip]) =
        if axis == 0 { ([count, means], [means, 1]) } else { ([means, count], [1, count]) };
    let (op, axes, flags) = (ReduceOp::Mean, vec![axis as i64], Flags::NONE);

    let signed: Vec<i8> = elements.iter().map(|&x| x as i8).collect();
    let mut fixture = Fixture::new();
    let input = fixture.input(qint8(&dims, 0, 1.0), &signed);
    let output = fixture.output(any_qint8(0, 1.0));
    let node = StaticReduce { op, axes: axes.clone(), input, output, flags };
    let signed = fixture.node(node).run::<i8>();

    let unsigned: Vec<u8> = elements.iter().map(|&x| (x + 128) as u8).collect();
    let mut fixture = Fixture::new();
    let input = fixture.input(quint8(&dims, 128, 1.0), &unsigned);
    let output = fixture.output(quint8(&[means], 128, 1.0));
    let unsigned = fixture.node(StaticReduce { op, axes, input, output, flags }).run::<u8>();

    for (at, (signed, unsigned)) in signed.into_iter().zip(unsigned).enumerate() {
        let summed = elements[at * skip..].iter().step_by(step).take(count);
        let expected = f64::from(summed.sum::<i32>()) / count as f64;
        for mean in [f64::from(signed), f64::from(unsigned) - 128.0] {
            assert!(
                (mean - expected).abs() <= 0.5001,
                "{mean}, not {expected}: {count} of {range:?}, axis {axis}"
            );
        }
    }
}

/// Means and sums of floats over rows, of whole vectors of channels and of some more.
#[test]
fn means_over_rows_of_floats() {
    let random = &mut Random::new(30);
    for channels in (1..=40).chain([48, 63, 64, 65, 100, 127, 128, 200, 300]) {
        for rows in [1, 2, 6, 7, 8, 49, 200] {
            let [images, count] = [2, rows * channels];
            let elements = random.f32s(images * count, -1.0, 1.5);
            for op in [ReduceOp::Mean, ReduceOp::Sum] {
                let mut fixture = Fixture::new();
                let input = fixture.input(f32(&[images, rows, channels]), &elements);
                let output = fixture.output(any_f32());
                let flags = Flags::NONE;
                let node = StaticReduce { op, axes: vec![1], input, output, flags };
                for (at, actual) in fixture.node(node).run::<f32>().into_iter().enumerate() {
                    let image = &elements[at / channels * count..][..count];
                    let column = image.iter().skip(at % channels).step_by(channels);
                    let sum: f64 = column.map(|&x| f64::from(x)).sum();
                    let divisor = if op == ReduceOp::Mean { rows as f64 } else { 1.0 };
                    let bound = 1e-6 * rows as f64 / divisor;
                    assert!(
                        (f64::from(actual) - sum / divisor).abs() <= bound,
                        "{op:?} of {rows} x {channels}: {actual}, not {}",
                        sum / divisor
                    );
                }
            }
        }
    }
}
