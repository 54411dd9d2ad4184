//! Layers that are longer than what microkernels prepare at once: addresses of a row's inputs, channels of padding, and copies of
//! inputs.

use super::arithmetic::check;
use super::layer::{Form, Layer};
use super::{depthwise, images, one_to, place};
use xnn_testing::Random;
use xnnpack::Datatype;

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
