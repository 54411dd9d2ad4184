//! Sums of products.

use std::fmt::Debug;
use std::sync::Arc;

use super::super::layer::{Form, Layer, Types};
use super::super::transposed;
use super::{RANGES, WIDTHS, clamp, draw, is_near};
use crate::fixture::{Fixture, any_f32, f32};
use xnn_testing::Random;
use xnnpack::{
    BatchMatMul, Datatype, Flags, FullyConnected, OutputRange, Quantization, SPARSE_INPUTS,
    TensorSpec, Unary, UnaryOp,
};

/// Tolerance relative to the sum of absolute products.
const TOLERANCE: f64 = 1e-5;

/// Weights that include 0: NaN times 0 is NaN.
fn draw_weights(count: usize, random: &mut Random) -> Vec<f32> {
    draw_sparse_weights(count, 2, random)
}

/// Weights of which this many eighths are 0.
fn draw_sparse_weights(count: usize, zeros: usize, random: &mut Random) -> Vec<f32> {
    let mut weights = random.f32s(count, -1.0, 1.0);
    weights.iter_mut().for_each(|x| *x = if random.below(8) < zeros { 0.0 } else { *x });
    weights
}

#[track_caller]
fn compare(actual: &[f32], sums: &[f64], sizes: &[f64], range: OutputRange, layer: &impl Debug) {
    for (index, (&actual, (&sum, size))) in actual.iter().zip(sums.iter().zip(sizes)).enumerate() {
        let expected = clamp(sum, range);
        let near = is_near(actual, expected, TOLERANCE * size);
        assert!(near, "element {index} is {actual}, not {expected}, in {range:?} of {layer:?}");
    }
}

fn check(layer: &Layer, random: &mut Random) {
    let filter = draw_weights(layer.outputs() * layer.depth(), random);
    check_with(&filter, layer, random);
}

fn check_with(filter: &[f32], layer: &Layer, random: &mut Random) {
    let input = draw(layer.input_elements(), random);
    let bias = random.f32s(layer.outputs(), -1.0, 1.0);
    let product = |x: usize, weight: usize| f64::from(input[x]) * f64::from(filter[weight]);
    let wide: Vec<f64> = bias.iter().copied().map(f64::from).collect();
    let sums = layer.sums(&wide, |sum, x, weight| sum + product(x, weight));
    let sizes = layer.sums(&wide, |size, x, weight| size.abs() + product(x, weight).abs());
    for output_range in RANGES {
        let plain = || TensorSpec::inferred(Datatype::F32);
        let types =
            Types { input: plain(), filter: plain(), bias: plain(), output: plain(), output_range };
        for actual in layer.run(types, &input, filter, &bias) {
            compare(&actual, &sums, &sizes, output_range, layer);
        }
    }
}

/// Rows around whole vectors and tiles, any share of zeros, and as many inputs as may be skipped.
#[test]
fn products_with_sparse_weights() {
    let random = &mut Random::new(46);
    for outputs in WIDTHS {
        for inputs in [1, 2, 3, 4, 5, 8, 19, 40, SPARSE_INPUTS, SPARSE_INPUTS + 1] {
            let mut layer = Layer::dense(Form::FullyConnected, inputs, outputs);
            layer.flags = Flags::SPARSE_WEIGHTS;
            layer.batches = [1 + random.below(20), 1 + random.below(80)];
            layer.threads = 1 + random.below(2);
            if inputs >= SPARSE_INPUTS && outputs > 8 {
                continue;
            }
            for form in [Form::FullyConnected, Form::Transposed] {
                let zeros = random.below(9);
                let filter = draw_sparse_weights(outputs * inputs, zeros, random);
                check_with(&filter, &Layer { form, ..layer.clone() }, random);
            }
        }
    }
}

/// The sum of such inputs is infinite, although each one is finite.
#[test]
fn the_largest_inputs_of_sparse_weights() {
    let (rows, inputs) = (40, 24);
    let mut layer = Layer::dense(Form::FullyConnected, inputs, 2);
    (layer.flags, layer.batches) = (Flags::SPARSE_WEIGHTS, [rows; 2]);
    let plain = || TensorSpec::inferred(Datatype::F32);
    let output_range = OutputRange::default();
    let types =
        Types { input: plain(), filter: plain(), bias: plain(), output: plain(), output_range };
    let filter: Vec<f32> = (0..2 * inputs).map(|i| if i == 5 { 0.5 } else { 0.0 }).collect();
    let input = vec![f32::MAX; rows * inputs];
    for actual in layer.run(types, &input, &filter, &[0.0f32, 1.0]) {
        assert_eq!(actual, [f32::MAX / 2.0, 1.0].repeat(rows));
    }
}

#[test]
fn products() {
    let random = &mut Random::new(41);
    for outputs in WIDTHS {
        for inputs in [1, 2, 3, 4, 5, 8, 19, 40] {
            let mut dense = Layer::dense(Form::FullyConnected, inputs, outputs);
            dense.batches = [1, 1 + random.below(9)];
            check(&dense, random);
            check(&Layer { form: Form::Transposed, ..dense.clone() }, random);
            let mut convolution =
                Layer { form: Form::Convolution, batches: [1; 2], size: [3, 5], ..dense };
            check(&convolution, random);
            (convolution.kernel, convolution.padding) = ([3, 3], [[1, 1]; 2]);
            check(&convolution, random);
        }
    }
}

#[test]
fn depthwise_convolutions() {
    let random = &mut Random::new(42);
    for channels in WIDTHS {
        for kernel in [[1, 1], [2, 2], [3, 3], [1, 5], [5, 5], [7, 7], [9, 9], [15, 15], [17, 17]] {
            for (multiplier, stride) in [(1, 1), (1, 2), (2, 1)] {
                let mut layer = Layer::dense(Form::Depthwise, 1, multiplier);
                (layer.groups, layer.kernel, layer.stride) = (channels, kernel, [stride; 2]);
                layer.size = kernel.map(|extent| extent + 4);
                layer.padding = kernel.map(|extent| [extent / 2; 2]);
                check(&layer, random);
            }
        }
    }
}

#[test]
fn transposed_convolutions() {
    let random = &mut Random::new(43);
    for outputs in WIDTHS {
        for (inputs, kernel, stride) in [(1, 3, 1), (4, 2, 2), (5, 3, 2), (17, 3, 1)] {
            let layer = transposed::Layer { size: [3, 4], inputs, outputs, kernel, stride, cut: 0 };
            let input = draw(12 * inputs, random);
            let filter = draw_weights(outputs * kernel * kernel * inputs, random);
            let bias = random.f32s(outputs, -1.0, 1.0);
            let sums = layer.expected(&input, &filter, &bias);
            let sizes = layer.expected(&absolute(&input), &absolute(&filter), &absolute(&bias));
            let wide = |x: Vec<f32>| -> Vec<f64> { x.into_iter().map(f64::from).collect() };
            let (sums, sizes) = (wide(sums), wide(sizes));
            for range in RANGES {
                let actual = layer.run(range, &input, &filter, &bias);
                compare(&actual, &sums, &sizes, range, &(outputs, inputs, kernel, stride));
            }
        }
    }
}

fn absolute(data: &[f32]) -> Vec<f32> {
    data.iter().map(|x| x.abs()).collect()
}

#[test]
fn products_of_matrices() {
    let random = &mut Random::new(44);
    for columns in WIDTHS {
        for depth in [1, 3, 4, 9] {
            let (rows, flags) = (1 + random.below(9), [Flags::NONE, Flags::TRANSPOSE_B]);
            let a = draw(2 * rows * depth, random);
            let b = draw_weights(2 * depth * columns, random);
            for flags in flags {
                let is_transposed = flags == Flags::TRANSPOSE_B;
                let sum = |at: usize, add: fn(f64) -> f64| -> f64 {
                    let (column, row) = (at % columns, at / columns);
                    let b = &b[row / rows * depth * columns..];
                    let product = |k: usize| {
                        let place =
                            if is_transposed { column * depth + k } else { k * columns + column };
                        add(f64::from(a[row * depth + k]) * f64::from(b[place]))
                    };
                    (0..depth).map(product).sum()
                };
                let all = 0..2 * rows * columns;
                let sums: Vec<f64> = all.clone().map(|at| sum(at, |x| x)).collect();
                let sizes: Vec<f64> = all.map(|at| sum(at, f64::abs)).collect();
                let mut fixture = Fixture::new();
                let left = fixture.input(f32(&[2, rows, depth]), &a);
                let dims = if is_transposed { [2, columns, depth] } else { [2, depth, columns] };
                let right = fixture.input(f32(&dims), &b);
                let output = fixture.output(any_f32());
                let node = BatchMatMul { a: left, b: right, output, flags };
                let actual = fixture.node(node).run::<f32>();
                compare(&actual, &sums, &sizes, RANGES[0], &(rows, depth, columns, flags));
            }
        }
    }
}

/// Whether a row or an image is finite. Otherwise it cannot be quantized, and everything computed
/// from it is NaN.
fn is_finite(row: &[f32]) -> bool {
    row.iter().all(|x| x.is_finite())
}

/// Asserts that rows that are not finite give NaN, and do not affect other rows.
fn check_dynamic(input: &[f32], rows: usize, layer: &impl Debug, run: impl Fn(&[f32]) -> Vec<f32>) {
    let inputs = input.len() / rows;
    let ordinary: Vec<f32> = input.iter().map(|x| if x.is_finite() { *x } else { 0.5 }).collect();
    let (actual, expected) = (run(input), run(&ordinary));
    assert!(is_finite(&expected), "{layer:?}");
    let outputs = actual.len() / rows;
    for (row, input) in input.chunks_exact(inputs).enumerate() {
        let [actual, expected] = [&actual, &expected].map(|of| &of[row * outputs..][..outputs]);
        if is_finite(input) {
            assert_eq!(actual, expected, "row {row} of {layer:?}");
        } else {
            assert!(actual.iter().all(|x| x.is_nan()), "row {row} of {layer:?}: {actual:?}");
        }
    }
}

#[test]
fn products_of_dynamic_rows() {
    let random = &mut Random::new(45);
    let types = [(Datatype::Qcint8, 1), (Datatype::Qcint4, 2), (Datatype::Qbint4, 2)];
    for outputs in WIDTHS {
        for (datatype, weights_of_byte) in types {
            for rows in [1, 2, 5, 9] {
                let inputs = 32 * (1 + random.below(3));
                let input = draw(rows * inputs, random);
                let bytes = random.u8s(outputs * inputs / weights_of_byte);
                let zero_point = if datatype == Datatype::Qcint8 { 0 } else { 8 };
                let quantization = if datatype == Datatype::Qbint4 {
                    let scales = vec![0x3F80u16; outputs * inputs / 32].into();
                    Quantization::Blockwise { zero_point, axis: 0, block_size: 32, scales }
                } else {
                    let scales = vec![0.5; outputs].into();
                    Quantization::PerChannel { zero_point, axis: 0, scales }
                };
                let filter_type =
                    TensorSpec::new(datatype, &[outputs, inputs]).quantized(quantization);
                for output_range in RANGES {
                    check_dynamic(&input, rows, &(datatype, outputs, inputs), |input| {
                        let mut fixture = Fixture::new();
                        let x = fixture.input(f32(&[rows, inputs]), input);
                        let by_row = Quantization::Dynamic { nonbatch_dims: 1 };
                        let row = TensorSpec::inferred(Datatype::Qdint8).quantized(by_row);
                        let row = fixture.internal(row);
                        let convert = Unary { op: UnaryOp::Convert, input: x, output: row };
                        fixture.graph.define(convert).unwrap();
                        let filter = fixture.constant(filter_type.clone(), &bytes);
                        let output = fixture.output(any_f32());
                        let (bias, flags) = (None, Flags::NONE);
                        let input = row;
                        let node =
                            FullyConnected { output_range, input, filter, bias, output, flags };
                        fixture.node(node).run()
                    });
                }
            }
        }
    }
}

#[test]
fn convolutions_of_dynamic_images() {
    let random = &mut Random::new(46);
    for outputs in WIDTHS {
        for form in [Form::Convolution, Form::Depthwise] {
            for kernel in [[1, 1], [3, 3]] {
                let mut layer = Layer::dense(form, 5, outputs);
                if form == Form::Depthwise {
                    (layer.groups, layer.group_inputs, layer.group_outputs) = (outputs, 1, 1);
                }
                (layer.kernel, layer.size, layer.batches) = (kernel, [4, 5], [2; 2]);
                layer.padding = kernel.map(|extent| [extent / 2; 2]);
                let input = draw(layer.input_elements(), random);
                let weights = random.i8_weights(layer.outputs() * layer.depth());
                let bias = random.f32s(layer.outputs(), -1.0, 1.0);
                let scales: Arc<[f32]> = vec![0.5; layer.outputs()].into();
                for output_range in RANGES {
                    check_dynamic(&input, 2, &layer, |input| {
                        let spec = TensorSpec::inferred;
                        let (zero_point, axis) = (0, layer.filter_axis());
                        let scales = Arc::clone(&scales);
                        let by_channel = Quantization::PerChannel { zero_point, axis, scales };
                        let by_image = Quantization::Dynamic { nonbatch_dims: 3 };
                        let types = Types {
                            input: spec(Datatype::Qdint8).quantized(by_image),
                            filter: spec(Datatype::Qcint8).quantized(by_channel),
                            bias: spec(Datatype::F32),
                            output: spec(Datatype::F32),
                            output_range,
                        };
                        layer.run(types, input, &weights, &bias).swap_remove(0)
                    });
                }
            }
        }
    }
}
