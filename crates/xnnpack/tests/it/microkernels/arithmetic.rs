//! Random operands of a layer, and expected results in each arithmetic.

use std::fmt::Debug;

use super::layer::{Form, Layer, Types};
use super::{MAX_LARGE_WEIGHTS, MAX_WEIGHTS, least_of};
use xnn_testing::Random;
use xnnpack::{
    Datatype, Element, OutputRange, Quantization, TensorSpec, has_fast_uint8, processor,
};

/// Tolerance for sums of GEMM microkernels, relative to their range: the order of additions
/// differs.
const FLOAT_TOLERANCE: f64 = 1e-5;

/// Tolerance for uint8. XNNPACK's own microkernels for Arm may round ties differently than documented.
fn quint8_tolerance() -> f64 {
    if cfg!(target_arch = "x86_64") || has_fast_uint8() { 0.0 } else { 1.0 }
}

/// Runs `layer` on random operands in the arithmetic of a filter datatype.
pub fn check(layer: &Layer, filter: Datatype, random: &mut Random) {
    match filter {
        Datatype::F32 => check_floats(layer, random),
        Datatype::Quint8 => check_integers::<u8>(layer, filter, quint8_tolerance(), random),
        _ => check_integers::<i8>(layer, filter, 0.0, random),
    }
}

fn check_floats(layer: &Layer, random: &mut Random) {
    let mut draw = |count| random.f32s(count, -1.0, 1.0);
    let input = draw(layer.input_elements());
    let filter = draw(layer.outputs() * layer.depth());
    let bias = draw(layer.outputs());
    // Expected range of sums.
    let spread = (layer.depth() as f32).sqrt();
    let bound = random.f32s(1, 0.1, 0.4)[0] * spread;
    let output_range = match random.below(3) {
        0 => OutputRange { min: -bound, max: bound },
        1 => OutputRange { min: 0.0, max: 6.0 },
        _ => OutputRange::default(),
    };
    let clip = |sum: f32| sum.clamp(output_range.min, output_range.max);

    let (sums, tolerance) = if adds_in_order(layer) {
        (layer.sums(&bias, |sum, x, weight| input[x].mul_add(filter[weight], sum)), 0.0)
    } else {
        let wide: Vec<f64> = bias.iter().copied().map(f64::from).collect();
        let product = |x: usize, weight: usize| f64::from(input[x]) * f64::from(filter[weight]);
        let sums = layer.sums(&wide, |sum, x, weight| sum + product(x, weight));
        let range = sums.iter().fold(spread.into(), |range: f64, sum| range.max(sum.abs()));
        (sums.into_iter().map(|sum| sum as f32).collect(), FLOAT_TOLERANCE * range)
    };
    let expected: Vec<f32> = sums.into_iter().map(clip).collect();
    let plain = || TensorSpec::inferred(Datatype::F32);
    let types =
        Types { input: plain(), filter: plain(), bias: plain(), output: plain(), output_range };
    for actual in layer.run(types, &input, &filter, &bias) {
        compare(layer, &actual, &expected, tolerance);
    }
}

/// Whether the layer runs on a depthwise microkernel with fused multiplication and addition.
fn adds_in_order(layer: &Layer) -> bool {
    let weights: usize = layer.kernel.iter().product();
    // Some microkernels for Arm add two sums at the end.
    let has = |feature| processor().split(' ').any(|word| word == feature);
    let fused =
        has("fma") && (weights <= MAX_WEIGHTS || weights <= MAX_LARGE_WEIGHTS && has("avx2"));
    fused && layer.group_inputs == 1 && layer.group_outputs == 1 && weights > 1
}

fn check_integers<T>(layer: &Layer, filter_type: Datatype, tolerance: f64, random: &mut Random)
where
    T: Element + Copy + Debug + TryFrom<i32, Error: Debug> + Into<i32> + Into<f64>,
{
    let limits = if filter_type == Datatype::Quint8 { [0, 255] } else { [-128, 127] };
    let [low, high] = limits;
    let (quantized_type, bias_type) = match filter_type {
        Datatype::Quint8 => (Datatype::Quint8, Datatype::Qint32),
        Datatype::Qcint8 => (Datatype::Qint8, Datatype::Qcint32),
        _ => (Datatype::Qint8, Datatype::Qint32),
    };
    let zero_points = [low, high, low + 3, 77, -1, 0, 128, 200];
    let mut zero_point = || {
        let any = zero_points[random.below(zero_points.len())];
        any.clamp(low, high)
    };
    let (input_zero, output_zero) = (zero_point(), zero_point());
    let filter_zero = if filter_type == Datatype::Quint8 { zero_point() } else { 0 };

    // Only the extreme values, which give the largest sums.
    let extreme = random.below(4) == 0;
    let mut draw = |count: usize| -> Vec<i32> {
        let step = if extreme { 255 } else { 1 };
        (0..count).map(|_| low + i32::try_from(random.below(256 / step) * step).unwrap()).collect()
    };
    let input = draw(layer.input_elements());
    let mut filter = draw(layer.outputs() * layer.depth());
    if filter_type != Datatype::Quint8 {
        let least = i32::from(least_of(layer.is_depthwise(), random));
        filter.iter_mut().for_each(|weight| *weight = least.max(*weight));
    } else if random.below(2) == 0 {
        keep_apart(&mut filter, layer.group_inputs);
    }
    if random.below(3) == 0 {
        pair(&mut filter, layer.depth(), layer.group_inputs, low + 128, random);
    }
    if layer.form == Form::Convolution && random.below(6) == 0 {
        disconnect_parts(layer, &mut filter, filter_zero, random);
    }
    // After this, sums are expected around 0, within about 64 steps of the output.
    let depth = layer.depth() as f32;
    let middle = |zero: i32| (low + high) as f32 / 2.0 - zero as f32;
    let centre = -depth * middle(input_zero) * middle(filter_zero);
    let spread =
        depth.sqrt() * 75.0 * (75.0 + middle(input_zero).abs().max(middle(filter_zero).abs()));
    let bias: Vec<i32> = random
        .f32s(layer.outputs(), centre - spread, centre + spread)
        .into_iter()
        .map(|value| value as i32)
        .collect();

    // Powers of two give sums that are ties between two outputs.
    let exact = random.below(2) == 0;
    let mut scale =
        |exponent: f32| exponent.exp2() * if exact { 1.0 } else { random.f32s(1, 0.75, 1.5)[0] };
    let (input_scale, output_scale) = (scale(-6.0), scale(-5.0));
    let exponent = 5.0 - (spread / 64.0).log2().round() - 4.0;
    let channels = if filter_type == Datatype::Qcint8 { layer.outputs() } else { 1 };
    let filter_scales: Vec<f32> =
        (0..channels).map(|channel| scale(exponent + (channel % 3) as f32)).collect();
    let (clips, bounds) = (random.below(2) == 0, [random.below(100), 156 + random.below(100)]);
    let bounds = bounds.map(|bound| low + i32::try_from(bound).unwrap());
    let range = if clips { bounds } else { limits };
    let [min, max] = bounds.map(|bound| (bound - output_zero) as f32 * output_scale);
    let output_range = if clips { OutputRange { min, max } } else { OutputRange::default() };

    let sums = layer.sums(&bias, |sum, x, weight| {
        sum + (input[x] - input_zero) * (filter[weight] - filter_zero)
    });
    let rounding = Rounding::of(layer, filter_type);
    let expected: Vec<T> = sums
        .into_iter()
        .enumerate()
        .map(|(index, sum)| {
            let filter_scale = filter_scales[index % layer.outputs() % filter_scales.len()];
            let rounded = rounding.apply(sum, [input_scale, filter_scale, output_scale]);
            let [low, high] = range.map(i64::from);
            let output = (rounded + i64::from(output_zero)).clamp(low, high);
            T::try_from(output as i32).unwrap()
        })
        .collect();

    let per_tensor = |zero_point, scale| Quantization::PerTensor { zero_point, scale };
    let weights = |zero_point, scales: Vec<f32>, axis| match scales[..] {
        [scale] if filter_type != Datatype::Qcint8 => per_tensor(zero_point, scale),
        _ => Quantization::PerChannel { zero_point, axis, scales: scales.into() },
    };
    let bias_scales = filter_scales.iter().map(|scale| scale * input_scale).collect();
    let spec = |datatype, quantization| TensorSpec::inferred(datatype).quantized(quantization);
    let types = Types {
        input: spec(quantized_type, per_tensor(input_zero, input_scale)),
        filter: spec(filter_type, weights(filter_zero, filter_scales, layer.filter_axis())),
        bias: spec(bias_type, weights(0, bias_scales, 0)),
        output: spec(quantized_type, per_tensor(output_zero, output_scale)),
        output_range,
    };
    let store = |values: Vec<i32>| -> Vec<T> {
        values.into_iter().map(|value| T::try_from(value).unwrap()).collect()
    };
    for actual in layer.run(types, &store(input), &store(filter), &bias) {
        compare(layer, &actual, &expected, tolerance);
    }
}

/// Makes weights zeros as in groups that were merged.
pub fn disconnect_parts<T: Copy>(layer: &Layer, filter: &mut [T], zero: T, random: &mut Random) {
    let parts = 2 + random.below(3);
    for (index, weight) in filter.iter_mut().enumerate() {
        if !layer.connects_part(index, parts) {
            *weight = zero;
        }
    }
}

/// Replaces weights of 0 in every second eight of a position's weights. Some processors have other microkernels for layers in which
/// two of them are eight apart.
fn keep_apart(filter: &mut [i32], inputs: usize) {
    for (index, weight) in filter.iter_mut().enumerate() {
        let is_second = index % inputs % 16 >= 8;
        *weight = (*weight).max(is_second.into());
    }
}

/// Replaces most weights so that of each four inputs at a position the first one has a partner: other sums of two products may exceed
/// 16 bits, in all outputs. `depth` is the number of weights of an output, and `middle` the weight around which signs change.
pub fn pair(filter: &mut [i32], depth: usize, inputs: usize, middle: i32, random: &mut Random) {
    // Zero if the four weights stay as they are.
    let partners: Vec<usize> = (0..depth).map(|_| random.below(4)).collect();
    for (index, weight) in filter.iter_mut().enumerate() {
        let (position, input) = (index % depth / inputs, index % depth % inputs);
        let partner = partners[position * inputs + input / 4 * 4];
        let [small, large] = [40, 90].map(|least| least + i32::try_from(random.below(30)).unwrap());
        *weight = middle
            + match (partner, input % 4) {
                (0, _) => *weight - middle,
                (_, 0) => large,
                (partner, place) if place == partner => -large,
                _ => small,
            };
    }
}

/// Rounding of sums to the output's scale.
enum Rounding {
    /// To the nearest step, as XNNPACK documents (`xnn_qs8_requantize_fp32`).
    Nearest,
    /// Like TFLite's convolutions: by a fraction of 31 bits, ties up, and by a power of two, ties
    /// away from zero.
    Twice,
    /// Like TFLite's fully connected layers: in double precision.
    Once,
}

impl Rounding {
    /// The rounding of a layer's microkernels on this processor.
    fn of(layer: &Layer, filter: Datatype) -> Self {
        match (filter, layer.form) {
            (Datatype::Quint8, Form::FullyConnected | Form::Transposed) if has_fast_uint8() => {
                Self::Once
            }
            (Datatype::Quint8, _) if has_fast_uint8() => Self::Twice,
            _ => Self::Nearest,
        }
    }

    /// `scales` are those of the input, the filter and the output.
    fn apply(&self, sum: i32, scales: [f32; 3]) -> i64 {
        let [input, filter, output] = scales;
        let wide = scales.map(f64::from);
        match self {
            Self::Nearest => (sum as f32 * (input * filter / output)).round_ties_even() as i64,
            Self::Twice => multiply_by_fraction(sum, f64::from(input * filter) / wide[2]),
            Self::Once => (f64::from(sum) * (wide[0] * wide[1] / wide[2])).round() as i64,
        }
    }
}

/// TFLite's `MultiplyByQuantizedMultiplier`, for scales below 1 that are not tiny.
pub fn multiply_by_fraction(sum: i32, scale: f64) -> i64 {
    let shift = (-scale.log2().floor() - 1.0).max(0.0);
    let fraction = (scale * (shift + 31.0).exp2()).round() as i64;
    let high = (i64::from(sum) * fraction + (1 << 30)) >> 31;
    (high as f64 / shift.exp2()).round() as i64
}

/// Asserts that the first batches are as expected.
#[track_caller]
pub fn compare<T: Copy + Debug + Into<f64>>(
    layer: &Layer,
    actual: &[T],
    expected: &[T],
    tolerance: f64,
) {
    for (index, (&a, &e)) in actual.iter().zip(expected).enumerate() {
        // Not "greater than", so that NaN fails as well.
        let near = (a.into() - e.into()).abs() <= tolerance;
        assert!(near, "element {index} is {a:?}, not {e:?}, in {layer:?}");
    }
}
