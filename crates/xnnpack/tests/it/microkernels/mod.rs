//! Microkernels of this processor, including those of `xnnpack-sys`, compared with naive loops on
//! layers of random shapes.

mod arithmetic;
mod dynamic;
mod elementwise;
mod floats;
mod images;
mod layer;
mod long;
mod matrices;
mod moves;
mod rescaling;
mod resize;
mod special;
mod transposed;
mod windows;

use arithmetic::check;
use layer::{Form, Layer};
use xnn_testing::Random;
use xnnpack::{Datatype, adds_in_16_bits};

/// Kernels with at most as many weights as a microkernel supports.
const KERNELS: [[usize; 2]; 12] = [
    [3, 3],
    [5, 5],
    [1, 9],
    [9, 1],
    [3, 2],
    [2, 3],
    [4, 2],
    [5, 1],
    [2, 2],
    [5, 4],
    [4, 5],
    [2, 5],
];
const MAX_WEIGHTS: usize = 25;

/// Kernels with more weights, up to and beyond what the microkernels for large kernels support.
const LARGE_KERNELS: [[usize; 2]; 17] = [
    [7, 7],
    [6, 5],
    [5, 6],
    [1, 31],
    [31, 1],
    [7, 6],
    [14, 3],
    [2, 14],
    [8, 4],
    [5, 10],
    [9, 9],
    [11, 11],
    [10, 11],
    [13, 13],
    [15, 15],
    [15, 14],
    [15, 16],
];
const MAX_LARGE_WEIGHTS: usize = 225;

/// Channels around whole vectors.
const CHANNELS: [usize; 10] = [15, 16, 17, 31, 32, 33, 48, 64, 144, 256];

/// One in this many layers runs on two threads, whose synchronization is slow on a busy processor.
const RARELY: usize = 64;

/// Least int8 weight that this processor supports in any number.
fn least_weight(depthwise: bool) -> i8 {
    if adds_in_16_bits(depthwise) { -127 } else { -128 }
}

/// Least int8 weight of a layer. Some processors have other microkernels for layers with weights of -128.
fn least_of(depthwise: bool, random: &mut Random) -> i8 {
    if one_in(2, random) { -127 } else { least_weight(depthwise) }
}

fn one_to(most: usize, random: &mut Random) -> usize {
    1 + random.below(most)
}

fn one_in(times: usize, random: &mut Random) -> bool {
    random.below(times) == 0
}

/// Chooses strides, dilations, padding, image size, batches and threads for a kernel.
fn place(layer: &mut Layer, kernel: [usize; 2], stride_width: usize, random: &mut Random) {
    layer.kernel = kernel;
    layer.stride = [one_to(3, random), stride_width];
    for (axis, most_outputs) in [(0, 3), (1, 9)] {
        layer.dilation[axis] = if one_in(4, random) { 2 } else { 1 };
        let reach = layer.reach(axis);
        // Includes outputs that only have padding.
        layer.padding[axis] =
            [0; 2].map(|_| if one_in(2, random) { random.below(reach + 1) } else { 0 });
        let stride = layer.stride[axis];
        let wanted = (one_to(most_outputs, random) - 1) * stride + reach + random.below(stride);
        let padding: usize = layer.padding[axis].iter().sum();
        layer.size[axis] = wanted.saturating_sub(padding).max(1);
    }
    layer.batches = [0; 2].map(|_| one_to(2, random));
    layer.threads = if one_in(RARELY, random) { 2 } else { 1 };
}

fn depthwise(
    kernel: [usize; 2],
    stride_width: usize,
    channels: usize,
    multiplier: usize,
    random: &mut Random,
) -> Layer {
    // Ordinary convolutions with one group per channel use the same microkernels.
    let grouped = multiplier == 1 && one_in(8, random);
    let form = if grouped { Form::Convolution } else { Form::Depthwise };
    let mut layer = Layer { groups: channels, ..Layer::dense(form, 1, multiplier) };
    place(&mut layer, kernel, stride_width, random);
    layer
}

fn check_depthwise(filter: Datatype, seed: u64) {
    let random = &mut Random::new(seed);
    for kernel in KERNELS {
        for stride_width in 1..=3 {
            for channels in CHANNELS {
                check(&depthwise(kernel, stride_width, channels, 1, random), filter, random);
            }
        }
    }
    for height in 1..=MAX_WEIGHTS {
        for width in 1..=MAX_WEIGHTS / height {
            for stride_width in 1..=3 {
                let (channels, multiplier) = (one_to(70, random), 1 + random.below(4) / 3);
                let kernel = [height, width];
                check(
                    &depthwise(kernel, stride_width, channels, multiplier, random),
                    filter,
                    random,
                );
            }
        }
    }
}

#[test]
fn depthwise_of_f32() {
    check_depthwise(Datatype::F32, 1);
}

/// Rows of images that fill the first-level cache, and rows next to those in size.
#[test]
fn depthwise_of_f32_with_wide_images() {
    let random = &mut Random::new(13);
    for (width, channels) in [(15, 256), (17, 256), (18, 288), (71, 48), (72, 64), (130, 32)] {
        for kernel in [[3, 3], [2, 3]] {
            for stride_width in 1..=3 {
                let mut layer = depthwise(kernel, stride_width, channels, 1, random);
                layer.dilation[1] = 1;
                layer.size[1] = width;
                check(&layer, Datatype::F32, random);
            }
        }
    }
}

fn check_large_depthwise(filter: Datatype, seed: u64) {
    let random = &mut Random::new(seed);
    for kernel in LARGE_KERNELS {
        for stride_width in 1..=3 {
            for channels in [one_to(70, random), CHANNELS[random.below(8)]] {
                check(&depthwise(kernel, stride_width, channels, 1, random), filter, random);
            }
        }
    }
    // Rows of more outputs than share their addresses.
    for kernel in [[7, 7], [14, 3], [15, 15]] {
        let mut layer = depthwise(kernel, 1, one_to(20, random), 1, random);
        layer.size[1] = 140 + random.below(200);
        check(&layer, filter, random);
    }
}

#[test]
fn depthwise_of_f32_with_large_kernels() {
    check_large_depthwise(Datatype::F32, 12);
}

#[test]
fn depthwise_of_int8_with_large_kernels() {
    check_large_depthwise(Datatype::Qint8, 31);
    check_large_depthwise(Datatype::Qcint8, 32);
}

#[test]
fn depthwise_of_uint8_with_large_kernels() {
    check_large_depthwise(Datatype::Quint8, 33);
}

#[test]
fn depthwise_of_int8_per_tensor() {
    check_depthwise(Datatype::Qint8, 2);
}

#[test]
fn depthwise_of_int8_per_channel() {
    check_depthwise(Datatype::Qcint8, 3);
}

#[test]
fn depthwise_of_uint8() {
    check_depthwise(Datatype::Quint8, 4);
}

fn check_products(filter: Datatype, seed: u64) {
    let random = &mut Random::new(seed);
    let rows = |random: &mut Random| [0; 2].map(|_| one_to(30, random));
    for round in 0..150 {
        let (inputs, outputs) = (one_to(70, random), one_to(70, random));
        let mut dense = Layer::dense(Form::FullyConnected, inputs, outputs);
        dense.batches = rows(random);
        if round < 6 {
            dense.batches[0] = 13 + round;
        }
        dense.threads = if one_in(RARELY, random) { 2 } else { 1 };
        check(&dense, filter, random);
        if one_in(4, random) {
            check(&Layer { form: Form::Transposed, ..dense.clone() }, filter, random);
        }

        // All pixels are rows of one product.
        let mut pointwise = Layer { form: Form::Convolution, ..dense };
        pointwise.size = rows(random);
        pointwise.batches = [0; 2].map(|_| one_to(2, random));
        pointwise.groups = one_to(2, random);
        check(&pointwise, filter, random);

        let kernel = [0; 2].map(|_| one_to(3, random));
        let mut convolution = pointwise;
        convolution.group_inputs = one_to(40, random);
        place(&mut convolution, kernel, one_to(3, random), random);
        check(&convolution, filter, random);
    }
}

#[test]
fn products_of_f32() {
    check_products(Datatype::F32, 5);
}

#[test]
fn products_of_int8_per_tensor() {
    check_products(Datatype::Qint8, 6);
}

#[test]
fn products_of_int8_per_channel() {
    check_products(Datatype::Qcint8, 7);
}

#[test]
fn products_of_uint8() {
    check_products(Datatype::Quint8, 8);
}

/// Groups with fewer channels than tiles have.
#[test]
fn products_of_few_channels() {
    let random = &mut Random::new(34);
    for round in 0..200 {
        let multiple = [1, 4, 8][round % 3];
        let [inputs, outputs] = [0; 2].map(|_| one_to(20 / multiple, random) * multiple);
        let mut layer = Layer::dense(Form::Convolution, inputs, outputs);
        place(&mut layer, [0; 2].map(|_| one_to(3, random)), one_to(3, random), random);
        layer.groups = one_to(4, random);
        for filter in [Datatype::F32, Datatype::Qint8, Datatype::Qcint8, Datatype::Quint8] {
            check(&layer, filter, random);
        }
        images::check(&layer, random);
    }
}

/// Layers with more rows, inputs and channels than a tile, and parts of rows, for matrix
/// extensions.
fn deep(random: &mut Random) -> Layer {
    let (inputs, outputs) = (one_to(300, random), one_to(150, random));
    let mut layer = Layer::dense(Form::Convolution, inputs, outputs);
    place(&mut layer, [0; 2].map(|_| one_to(3, random)), one_to(3, random), random);
    if one_in(3, random) {
        layer.size = [0; 2].map(|_| one_to(12, random));
        (layer.kernel, layer.padding) = ([1, 1], [[0; 2]; 2]);
    }
    layer.threads = if one_in(4, random) { 2 } else { 1 };
    layer
}

#[test]
fn deep_products() {
    let random = &mut Random::new(17);
    for _ in 0..50 {
        images::check(&deep(random), random);
        for filter in [Datatype::F32, Datatype::Qint8, Datatype::Qcint8, Datatype::Quint8] {
            check(&deep(random), filter, random);
            let mut dense =
                Layer::dense(Form::FullyConnected, one_to(600, random), one_to(150, random));
            dense.batches = [0; 2].map(|_| one_to(70, random));
            check(&dense, filter, random);
        }
    }
}

/// One pixel, with more channels than some tiles: several tiles are computed together.
#[test]
fn single_rows() {
    let random = &mut Random::new(20);
    for filter in [Datatype::F32, Datatype::Qint8, Datatype::Qcint8, Datatype::Quint8] {
        for _ in 0..60 {
            let (inputs, outputs) = (one_to(100, random), one_to(300, random));
            check(&Layer::dense(Form::FullyConnected, inputs, outputs), filter, random);
            let mut layer = Layer::dense(Form::Convolution, inputs, outputs);
            check(&layer, filter, random);
            (layer.kernel, layer.padding) = ([3, 3], [[1; 2]; 2]);
            check(&layer, filter, random);
        }
    }
}

/// Products that are too small for matrix extensions, whose start is slow.
#[test]
fn small_products() {
    let random = &mut Random::new(19);
    for filter in [Datatype::Qint8, Datatype::Qcint8, Datatype::Quint8] {
        for pixels in 1..=60 {
            let (inputs, outputs) = (16 + random.below(60), one_to(70, random));
            let mut layer = Layer::dense(Form::Convolution, inputs, outputs);
            layer.threads = if one_in(4, random) { 2 } else { 1 };
            layer.size = [1, pixels];
            check(&layer, filter, random);
            (layer.kernel, layer.padding) = ([1, 3], [[0; 2], [1; 2]]);
            check(&layer, filter, random);
        }
    }
}

/// Layers of images with enough rows to share pointers into the input.
fn tall(random: &mut Random) -> Layer {
    let kernel = [0; 2].map(|_| one_to(5, random));
    let mut layer = if one_in(2, random) {
        let mut layer = depthwise(kernel, one_to(3, random), one_to(20, random), 1, random);
        layer.size[0] += one_to(40, random);
        layer
    } else {
        let (inputs, outputs) = (one_to(4, random), one_to(12, random));
        let mut layer = Layer::dense(Form::Convolution, inputs, outputs);
        place(&mut layer, kernel, one_to(3, random), random);
        layer.size = [0; 2].map(|_| 13 + random.below(87));
        layer
    };
    layer.threads = if one_in(8, random) { 2 } else { 1 };
    layer
}

#[test]
fn tall_images() {
    let random = &mut Random::new(16);
    for filter in [Datatype::F32, Datatype::Qint8, Datatype::Qcint8, Datatype::Quint8] {
        for _ in 0..100 {
            check(&tall(random), filter, random);
        }
    }
    for _ in 0..100 {
        images::check(&tall(random), random);
    }
}

/// Rows so long that few of them, or none, are far enough apart to share pointers.
#[test]
fn wide_images() {
    let random = &mut Random::new(21);
    for filter in [Datatype::F32, Datatype::Qcint8] {
        for _ in 0..20 {
            let mut layer = Layer::dense(Form::Convolution, 1, one_to(2, random));
            place(&mut layer, [3, 1], 1, random);
            layer.size = [12 + random.below(12), 8000 + random.below(3000)];
            check(&layer, filter, random);
        }
    }
}

/// Weights that exceed the second-level cache, so tiles are computed in another order.
#[test]
fn products_of_large_weights() {
    let random = &mut Random::new(9);
    for (filter, depth) in [(Datatype::F32, 1), (Datatype::Qcint8, 2), (Datatype::Quint8, 2)] {
        let mut dense = Layer::dense(Form::FullyConnected, 550 * depth, 1100);
        dense.batches = [50 / depth, 3];
        let mut convolution = Layer::dense(Form::Convolution, 120 * depth, 530);
        convolution.kernel = [3, 3];
        convolution.size = [7, 6];
        convolution.padding[1] = [1, 0];
        for threads in [1, 2] {
            for layer in [&dense, &convolution] {
                check(&Layer { threads, ..layer.clone() }, filter, random);
            }
        }
    }
}
