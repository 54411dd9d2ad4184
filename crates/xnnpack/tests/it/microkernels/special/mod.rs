//! NaN, infinities, denormals, the largest floats and -0 through all operations on floats: NaN and infinities come out in the same
//! places as of plain loops.

mod elementwise;
mod layers;
mod rows;

use xnn_testing::Random;
use xnnpack::OutputRange;

/// Channels around whole tiles of microkernels.
const WIDTHS: [usize; 10] = [1, 2, 3, 7, 8, 16, 31, 32, 33, 64];

/// No bounds, and those of fused activations.
const RANGES: [OutputRange; 4] = [
    OutputRange { min: f32::NEG_INFINITY, max: f32::INFINITY },
    OutputRange { min: 0.0, max: f32::INFINITY },
    OutputRange { min: 0.0, max: 6.0 },
    OutputRange { min: -1.0, max: 1.0 },
];

/// Large, but so that a sum of a few hundred products with weights of up to 1 stays finite.
const LARGE: f32 = 1e35;
const DENORMAL: f32 = 1e-40;

/// Kinds of numbers that there may be among ordinary ones.
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

/// Numbers from -1 to 1 with some special ones of one kind.
fn draw(count: usize, random: &mut Random) -> Vec<f32> {
    let mut data = random.f32s(count, -1.0, 1.0);
    let special = SPECIAL[random.below(SPECIAL.len())];
    for x in special {
        data[random.below(count)] = *x;
    }
    data
}

/// Nothing but special numbers of one kind, now and then.
fn draw_row(count: usize, random: &mut Random) -> Vec<f32> {
    match SPECIAL[random.below(SPECIAL.len())] {
        [x, ..] if random.below(8) == 0 => vec![*x; count],
        _ => draw(count, random),
    }
}

fn clamp(x: f64, range: OutputRange) -> f64 {
    x.clamp(range.min.into(), range.max.into())
}

/// Whether `actual` is within `tolerance` of `expected` where both are finite, and else of the same kind.
fn is_near(actual: f32, expected: f64, tolerance: f64) -> bool {
    let rounded = expected as f32;
    if !rounded.is_finite() || !actual.is_finite() {
        return actual == rounded || actual.is_nan() && rounded.is_nan();
    }
    // Denormals may have become 0.
    (f64::from(actual) - expected).abs() <= tolerance + f64::from(f32::MIN_POSITIVE)
}
