//! Fixed-point arithmetic, as gemmlowp and TFLite define it.
//!
//! A `Qm.n` number is an integer that represents itself divided by 2^n. Results depend on where
//! values are rounded, so kernels that must agree bit for bit round at the same places.

pub(crate) mod q16;

/// `a * b / 2^31`, rounded to nearest, ties up. Saturates if both are the minimum.
pub(crate) fn doubling_high_mul(a: i32, b: i32) -> i32 {
    let product = i64::from(a) * i64::from(b);
    ((product + (1 << 30)) >> 31).min(i32::MAX.into()) as i32
}

/// `a * b / 2^15` of 16-bit integers, rounded in the same way.
#[inline(always)]
pub(crate) fn doubling_high_mul_16(a: i16, b: i16) -> i16 {
    let product = i32::from(a) * i32::from(b);
    ((product + (1 << 14)) >> 15).min(i16::MAX.into()) as i16
}

/// `x / 2^exponent`, rounded to nearest, ties away from zero. `exponent` is 0..=31.
#[inline(always)]
pub(crate) fn rounding_shift_right(x: i32, exponent: u32) -> i32 {
    let mask = ((1i64 << exponent) - 1) as i32;
    let remainder = x & mask;
    let threshold = (mask >> 1) + i32::from(x < 0);
    (x >> exponent.min(31)) + i32::from(remainder > threshold)
}

/// `x * 2^exponent`, saturating. `exponent` is 0..=31.
pub(crate) fn saturating_shift_left(x: i32, exponent: u32) -> i32 {
    (i64::from(x) << exponent).clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32
}

/// A positive real number as a 31-bit fraction and a power of two:
/// `value / 2^31 * 2^shift`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Multiplier {
    pub(crate) value: i32,
    pub(crate) shift: i32,
}

impl Multiplier {
    /// The multiplier nearest to a real number. Below 2^-31 it is zero.
    pub(crate) fn new(real: f64) -> Self {
        if real == 0.0 || !real.is_finite() {
            return Self { value: 0, shift: 0 };
        }
        let (fraction, mut shift) = libm::frexp(real);
        let mut value = (fraction * f64::from(1u32 << 31)).round() as i64;
        if value.abs() == 1 << 31 {
            value /= 2;
            shift += 1;
        }
        if shift < -31 {
            return Self { value: 0, shift: 0 };
        }
        Self { value: value as i32, shift }
    }

    /// `x * self`, rounded twice as TFLite's builds do: after the product and
    /// after the shift.
    ///
    /// Computes `rounding_shift_right(doubling_high_mul(x << left, value), right)` with one shift,
    /// in unsigned integers, for which processors have vector products.
    pub(crate) fn apply(self, x: i32) -> i32 {
        /// Larger than the magnitude of any negative product.
        const LIFT: u64 = 1 << 63;
        let left = self.shift.clamp(0, 31) as u32;
        let right = (-self.shift).clamp(0, 31) as u32;
        let magnitude = u64::from(self.value.unsigned_abs());
        let negative = u64::from(self.value < 0);
        // Zero is stored as this value; smaller values represent negative products.
        let zero = (1 << 31) - negative;
        let x = u64::from(x.wrapping_shl(left).cast_unsigned() ^ zero as u32);
        // In the second rounding, ties are rounded away from zero: below it, one less is added.
        let one = u64::from(right > 0) << 31;
        let half = (1u64 << right >> 1) << 31;
        // Not `zero * magnitude`, since compilers would then multiply differences, which are
        // signed.
        let product_of_zero = (magnitude << 31) - (negative.wrapping_neg() & magnitude);
        let nudge = LIFT + (1 << 30) + half - one - product_of_zero;
        let lifted = (x * magnitude + nudge + (x & one)) >> (31 + right);
        (lifted as i32).wrapping_sub((LIFT >> (31 + right)) as i32)
    }

    /// `x * self` for wide accumulators, with the multiplier reduced to 16 bits.
    pub(crate) fn apply_wide(self, x: i64) -> i32 {
        let reduced =
            if self.value < 0x7FFF_0000 { (self.value + (1 << 15)) >> 16 } else { 0x7FFF };
        let total = (15 - self.shift).clamp(1, 62);
        ((x.wrapping_mul(i64::from(reduced)).wrapping_add(1 << (total - 1))) >> total) as i32
    }
}

/// Rounds a 31-bit multiplier to 15 bits.
pub(crate) fn downscale_multiplier(value: i32) -> i16 {
    const OFFSET: i32 = 1 << 15;
    if value >= i32::MAX - OFFSET { i16::MAX } else { ((value + OFFSET) >> 16) as i16 }
}

/// Multiplies by a power of two with an exponent of either sign, saturating.
fn scale_by_power_of_two(x: i32, exponent: i32) -> i32 {
    if exponent >= 0 {
        saturating_shift_left(x, exponent.min(31) as u32)
    } else {
        rounding_shift_right(x, (-exponent).min(31) as u32)
    }
}

/// `(a + b) / 2`, rounded to nearest, ties away from zero.
fn rounding_half_sum(a: i32, b: i32) -> i32 {
    let sum = i64::from(a) + i64::from(b);
    let sign = if sum >= 0 { 1 } else { -1 };
    ((sum + sign) / 2) as i32
}

/// exp(-1/8) in Q0.31.
const EXP_OF_MINUS_EIGHTH: i32 = 1_895_147_668;
/// 1/3 in Q0.31.
const ONE_THIRD: i32 = 715_827_883;
/// Pairs of an exponent e and exp(-2^e) in Q0.31.
const EXP_FACTORS: [(i32, i32); 7] = [
    (-2, 1_672_461_947),
    (-1, 1_302_514_674),
    (0, 790_015_084),
    (1, 290_630_308),
    (2, 39_332_535),
    (3, 720_401),
    (4, 242),
];

/// exp(x) in Q0.31 for x in `[-1/4, 0)` in Q0.31: a polynomial around -1/8.
fn exp_on_quarter(x: i32) -> i32 {
    let x = x.wrapping_add(1 << 28);
    let x2 = doubling_high_mul(x, x);
    let x3 = doubling_high_mul(x2, x);
    let x4 = doubling_high_mul(x2, x2);
    let x4_over_4 = scale_by_power_of_two(x4, -2);
    let tail = scale_by_power_of_two(
        doubling_high_mul(x4_over_4.wrapping_add(x3), ONE_THIRD).wrapping_add(x2),
        -1,
    );
    EXP_OF_MINUS_EIGHTH.wrapping_add(doubling_high_mul(EXP_OF_MINUS_EIGHTH, x.wrapping_add(tail)))
}

/// exp(x) in Q0.31 for x ≤ 0 with `integer_bits` bits before the point.
pub(crate) fn exp_on_negative(x: i32, integer_bits: u32) -> i32 {
    let fraction_bits = 31 - integer_bits as i32;
    let quarter = 1i32 << (fraction_bits - 2);
    let mask = quarter - 1;
    let in_quarter = (x & mask) - quarter;
    let mut result = exp_on_quarter(scale_by_power_of_two(in_quarter, integer_bits as i32));
    let remainder = in_quarter.wrapping_sub(x);
    for (exponent, factor) in EXP_FACTORS {
        let bit = fraction_bits + exponent;
        if (integer_bits as i32) > exponent && remainder >> bit & 1 != 0 {
            result = doubling_high_mul(result, factor);
        }
    }
    if integer_bits > 5 && x < -(1 << (fraction_bits + 5)) {
        result = 0;
    }
    if x == 0 { i32::MAX } else { result }
}

/// Newton's iterations for `2 / (1 + a)`, in Q2.29, for a in `[0, 1]` in Q0.31.
fn twice_reciprocal(a: i32) -> i32 {
    const FORTY_EIGHT_OVER_17: i32 = 1_515_870_810;
    const MINUS_THIRTY_TWO_OVER_17: i32 = -1_010_580_540;
    const ONE_Q2: i32 = 1 << 29;
    let half_denominator = rounding_half_sum(a, i32::MAX);
    let mut x = FORTY_EIGHT_OVER_17
        .wrapping_add(doubling_high_mul(half_denominator, MINUS_THIRTY_TWO_OVER_17));
    for _ in 0..3 {
        let product = doubling_high_mul(half_denominator, x);
        let error = ONE_Q2.wrapping_sub(product);
        // Q2 times Q2 is Q4; two bits bring it back to Q2.
        x = x.wrapping_add(scale_by_power_of_two(doubling_high_mul(x, error), 2));
    }
    x
}

/// 1 / (1 + a) in Q0.31, for a in `[0, 1]` in Q0.31.
pub(crate) fn one_over_one_plus(a: i32) -> i32 {
    scale_by_power_of_two(twice_reciprocal(a), 1)
}

/// 1 / x for a positive number with `integer_bits` bits before the point: a Q0.31 fraction, and the
/// power of two by which it remains to be divided.
pub(crate) fn reciprocal(x: i32, integer_bits: i32) -> (i32, i32) {
    let headroom = x.leading_zeros();
    let above_one = x.cast_unsigned().wrapping_shl(headroom).wrapping_sub(1 << 31);
    (one_over_one_plus(above_one.cast_signed()), integer_bits - headroom as i32)
}

/// 1 / sqrt(x) of a positive integer.
pub(crate) fn inverse_sqrt(x: i32) -> Multiplier {
    const HALF_THREE_Q3: i32 = (1 << 28) + (1 << 27);
    const HALF_SQRT_TWO: i32 = 1_518_500_250;
    if x <= 1 {
        return Multiplier { value: i32::MAX, shift: 0 };
    }
    let mut input = x;
    let mut right = 11;
    while input >= 1 << 29 {
        input /= 4;
        right += 1;
    }
    let pairs = (input.leading_zeros() as i32 - 1) / 2 - 1;
    right -= pairs;
    input <<= 2 * pairs;
    let half_input = rounding_shift_right(input >> 1, 1);
    // Newton's iteration in Q3.28 from 1.
    let mut y = 1i32 << 28;
    for _ in 0..5 {
        let cube = scale_by_power_of_two(doubling_high_mul(doubling_high_mul(y, y), y), 6);
        let next =
            doubling_high_mul(HALF_THREE_Q3, y).wrapping_sub(doubling_high_mul(half_input, cube));
        y = scale_by_power_of_two(next, 3);
    }
    y = doubling_high_mul(y, HALF_SQRT_TWO);
    if right < 0 {
        y <<= -right;
        right = 0;
    }
    Multiplier { value: y, shift: -right }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn shifts_round_ties_away_from_zero() {
        assert_eq!(rounding_shift_right(5, 1), 3);
        assert_eq!(rounding_shift_right(-5, 1), -3);
        assert_eq!(rounding_shift_right(-4, 1), -2);
        assert_eq!(rounding_shift_right(7, 0), 7);
        assert_eq!(rounding_shift_right(i32::MIN, 31), -1);
    }

    #[test]
    fn high_multiplication_saturates_once() {
        assert_eq!(doubling_high_mul(i32::MIN, i32::MIN), i32::MAX);
        assert_eq!(doubling_high_mul(1 << 30, 1 << 30), 1 << 29);
        assert_eq!(doubling_high_mul(-3, 1 << 30), -1);
        assert_eq!(doubling_high_mul(3, 1 << 30), 2);
    }

    /// Compares with both roundings one after the other.
    #[test]
    fn multipliers_round_twice() {
        let ends = [i32::MIN, i32::MIN + 1, -3, -2, -1, 0, 1, 2, 3, i32::MAX - 1, i32::MAX];
        let numbers = || {
            ends.into_iter().chain((0..32).map(|i| 1 << i)).chain((0..32).map(|i| {
                // Digits that do not repeat, in all magnitudes.
                0x9E37_79B9_u32.cast_signed().wrapping_mul(2 * i + 1) >> i
            }))
        };
        for (x, value) in numbers().flat_map(|x| numbers().map(move |value| (x, value))) {
            if value == i32::MIN {
                continue; // No multiplier has this value.
            }
            for shift in -31i32..=31 {
                let left = x.wrapping_shl(shift.max(0).cast_unsigned());
                let right = (-shift).max(0).cast_unsigned();
                let expected = rounding_shift_right(doubling_high_mul(left, value), right);
                assert_eq!(Multiplier { value, shift }.apply(x), expected, "{x} {value} {shift}");
            }
        }
    }

    #[test]
    fn multipliers() {
        assert_eq!(Multiplier::new(0.5), Multiplier { value: 1 << 30, shift: 0 });
        assert_eq!(Multiplier::new(1.0), Multiplier { value: 1 << 30, shift: 1 });
        assert_eq!(Multiplier::new(2f64.powi(-33)), Multiplier { value: 0, shift: 0 });
        let almost = f64::from_bits(1f64.to_bits() - 1);
        assert_eq!(Multiplier::new(almost), Multiplier { value: 1 << 30, shift: 1 });
        assert_eq!(Multiplier::new(-almost), Multiplier { value: -(1 << 30), shift: 1 });
        assert_eq!(Multiplier::new(0.25).apply(10), 3);
        assert_eq!(Multiplier::new(0.25).apply(-10), -3);
        assert_eq!(Multiplier::new(3.0).apply(7), 21);
        assert_eq!(Multiplier::new(0.75).apply_wide(1000), 750);
    }

    #[test]
    fn exponentials_are_close() {
        for i in 0..200 {
            let x = -f64::from(i) * 0.05;
            let q = (x * f64::from(1 << 26)) as i32;
            let exp = f64::from(exp_on_negative(q, 5)) / 2f64.powi(31);
            assert!((exp - x.exp()).abs() < 1e-6, "exp({x}) = {exp}");
        }
    }

    #[test]
    fn reciprocals_are_close() {
        for x in [1.0, 1.3, 2.0, 3.7, 100.0] {
            let q = (x * f64::from(1 << 19)) as i32;
            let (fraction, shift) = reciprocal(q, 12);
            let value = f64::from(fraction) / 2f64.powi(31 + shift);
            assert!((value - 1.0 / x).abs() < 1e-5, "1/{x} = {value}");
        }
    }

    fn of_one(function: fn(&mut [i16], u32), x: i16) -> f64 {
        let mut values = [x];
        function(&mut values, 3);
        f64::from(values[0]) / 32768.0
    }

    #[test]
    fn sixteen_bit_gates_are_close() {
        for i in -70..=70 {
            let x = f64::from(i) * 0.1;
            let q = (x * f64::from(1 << 12)) as i16;
            let (sigmoid, tanh) = (of_one(q16::logistic, q), of_one(q16::tanh, q));
            assert!((sigmoid - 1.0 / (1.0 + (-x).exp())).abs() < 1e-3, "logistic({x})");
            assert!((tanh - x.tanh()).abs() < 1.5e-3, "tanh({x}) = {tanh}");
        }
    }

    /// Compares with the results of the scalar code, with which LSTMs agree with LiteRT bit for
    /// bit.
    #[test]
    fn sixteen_bit_gates_have_gemmlowps_bits() {
        let digest = |function: fn(&mut [i16], u32), integer_bits| {
            let mut values: Vec<i16> = (i16::MIN..=i16::MAX).collect();
            function(&mut values, integer_bits);
            values.into_iter().fold(0u64, |digest, value| {
                digest.wrapping_mul(0x100_0000_01B3).wrapping_add(value.cast_unsigned().into())
            })
        };
        for (integer_bits, logistic, tanh) in [
            (0, 0x2CA4_9A89_9140_0360, 0xEFCF_F172_D896_3354),
            (3, 0x0C12_8E08_6C2B_76A4, 0x974A_62A0_C37F_5413),
            (6, 0xC8E5_8C57_EEC4_E263, 0x3C04_9BC8_0E08_DE83),
        ] {
            assert_eq!(digest(q16::logistic, integer_bits), logistic, "{integer_bits}");
            assert_eq!(digest(q16::tanh, integer_bits), tanh, "{integer_bits}");
        }
    }
}
