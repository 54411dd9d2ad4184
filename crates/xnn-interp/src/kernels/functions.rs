//! Exponential functions in single precision, written without branches, calls and tables so that
//! compilers vectorize loops over them.
//!
//! Relative errors are below 5e-7 over the whole range.

/// `e^x = scale * (1 + rest)`, for `x` from -87 to 88.
///
/// With `x = n * ln 2 + r` and `|r| <= ln 2 / 2`, the scale is `2^n`, and the rest is the Taylor
/// series of `e^r - 1`, whose eighth term is below 1e-8 of the sum.
#[inline(always)]
fn exponential(x: f32) -> (f32, f32) {
    /// Adding it rounds to an integer, which is then in the lowest bits.
    const ROUNDING: f32 = (3 << 22) as f32;
    /// `ln 2` in two parts. The first has few bits, so that its multiples are exact.
    const LN_2: [f32; 2] = [0.693_359_4, -2.121_944_4e-4];
    const EXPONENT_BITS: u32 = 23;
    let shifted = x * std::f32::consts::LOG2_E + ROUNDING;
    let n = shifted - ROUNDING;
    let r = x - n * LN_2[0] - n * LN_2[1];
    let mut series = 1.0 / 5040.0;
    for factorial in [720.0, 120.0, 24.0, 6.0, 2.0, 1.0f32] {
        series = series * r + 1.0 / factorial;
    }
    let scale = (shifted.to_bits() << EXPONENT_BITS).wrapping_add(1.0f32.to_bits());
    (f32::from_bits(scale), series * r)
}

/// The hyperbolic tangent.
#[inline(always)]
pub(super) fn tanh(x: f32) -> f32 {
    /// From here on, the result rounds to 1.
    const END: f32 = 9.02;
    let (scale, rest) = exponential(2.0 * x.clamp(-END, END).abs());
    // `e^2x - 1` is exact near zero, where the scale is 1.
    let e = (scale - 1.0) + scale * rest;
    (e / (e + 2.0)).copysign(x)
}

/// The logistic function. Results below the smallest normal number are 0 or close to it.
#[inline(always)]
pub(super) fn logistic(x: f32) -> f32 {
    let (scale, rest) = exponential(-x.clamp(-88.0, 87.0));
    1.0 / (1.0 + (scale + scale * rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The largest relative error, over all exponents and all signs.
    fn worst(f: fn(f32) -> f32, exact: fn(f64) -> f64) -> f64 {
        let positive = (0..f32::INFINITY.to_bits()).step_by(997).map(f32::from_bits);
        let error = |x: f32| {
            let exact = exact(x.into());
            let error = (f64::from(f(x)) - exact).abs();
            let least = f64::from(f32::MIN_POSITIVE);
            if exact.abs().max(error) < least { 0.0 } else { error / exact.abs() }
        };
        positive.flat_map(|x| [x, -x]).map(error).fold(0.0, f64::max)
    }

    #[test]
    fn errors_are_small_everywhere() {
        let of_tanh = worst(tanh, f64::tanh);
        assert!(of_tanh < 5e-7, "{of_tanh}");
        let of_logistic = worst(logistic, |x| 1.0 / (1.0 + (-x).exp()));
        assert!(of_logistic < 5e-7, "{of_logistic}");
    }

    #[test]
    fn ends() {
        assert_eq!([tanh(f32::INFINITY), tanh(f32::NEG_INFINITY)], [1.0, -1.0]);
        assert_eq!([logistic(f32::INFINITY), logistic(100.0), logistic(0.0)], [1.0, 1.0, 0.5]);
        assert!(logistic(f32::NEG_INFINITY) < f32::MIN_POSITIVE);
        assert!(tanh(f32::NAN).is_nan() && logistic(f32::NAN).is_nan());
        assert_eq!([0.0f32, -0.0].map(|x| tanh(x).to_bits()), [0.0f32, -0.0].map(f32::to_bits));
    }
}
