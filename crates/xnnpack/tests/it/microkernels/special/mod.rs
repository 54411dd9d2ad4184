//! NaN, infinities, denormals, the largest floats and -0 as inputs of all float operations: results
//! have NaN and infinities in the same places as naive loops.

mod elementwise;
mod layers;
mod rows;

use xnn_testing::Random;
use xnnpack::OutputRange;

/// Numbers of channels around whole tiles of microkernels.
const WIDTHS: [usize; 10] = [1, 2, 3, 7, 8, 16, 31, 32, 33, 64];

/// Ranges of fused activations, and no bounds.
const RANGES: [OutputRange; 4] = [
    OutputRange { min: f32::NEG_INFINITY, max: f32::INFINITY },
    OutputRange { min: 0.0, max: f32::INFINITY },
    OutputRange { min: 0.0, max: 6.0 },
    OutputRange { min: -1.0, max: 1.0 },
];

/// A large value for which sums of a few hundred products with weights up to 1 are finite.
const LARGE: f32 = 1e35;
const DENORMAL: f32 = 1e-40;

/// Kinds of special values.
const SPECIAL: [&[f32]; 8] = [
    &[],
    &[f32::NAN],
    &[f32::INFINITY],
    &[f32::NEG_INFINITY],
    &[f32::NAN, f32::INFINITY, f32::NEG_INFINITY],
    &[LARGE, -LARGE],
    &[DENORMAL, -DENORMAL],
    &[-0.0, 0.0],
];

/// Values from -1 to 1, with some special values of one kind.
fn draw(count: usize, random: &mut Random) -> Vec<f32> {
    let mut data = random.f32s(count, -1.0, 1.0);
    let special = SPECIAL[random.below(SPECIAL.len())];
    for x in special {
        data[random.below(count)] = *x;
    }
    data
}

/// Like [`draw`], and sometimes only special values of one kind.
fn draw_row(count: usize, random: &mut Random) -> Vec<f32> {
    match SPECIAL[random.below(SPECIAL.len())] {
        [x, ..] if random.below(8) == 0 => vec![*x; count],
        _ => draw(count, random),
    }
}

fn clamp(x: f64, range: OutputRange) -> f64 {
    x.clamp(range.min.into(), range.max.into())
}

/// Whether finite values differ by at most `tolerance`, and other values are of the same kind.
fn is_near(actual: f32, expected: f64, tolerance: f64) -> bool {
    let rounded = expected as f32;
    if !rounded.is_finite() || !actual.is_finite() {
        return actual == rounded || actual.is_nan() && rounded.is_nan();
    }
    // Denormals may be flushed to 0.
    (f64::from(actual) - expected).abs() <= tolerance + f64::from(f32::MIN_POSITIVE)
}
