//! The arithmetic of 16-bit fixed point, in the style of the 32-bit functions:
//! LSTM gates compute with it.
//!
//! All functions are inlined and without branches, so that compilers vectorize the loops over
//! slices.

use super::{
    EXP_FACTORS, EXP_OF_MINUS_EIGHTH, ONE_THIRD, doubling_high_mul_16 as mul, rounding_shift_right,
};

#[inline(always)]
fn shift_right(x: i16, exponent: u32) -> i16 {
    rounding_shift_right(i32::from(x), exponent) as i16
}

#[inline(always)]
fn scale(x: i16, exponent: i32) -> i16 {
    if exponent >= 0 {
        (i32::from(x) << exponent).clamp(i32::from(i16::MIN), i32::from(i16::MAX)) as i16
    } else {
        shift_right(x, (-exponent) as u32)
    }
}

/// gemmlowp computes half of a 16-bit sum in 32 bits.
#[inline(always)]
fn half_sum(a: i16, b: i16) -> i16 {
    let sum = i32::from(a) + i32::from(b);
    let sign = if sum >= 0 { 1 } else { -1 };
    ((sum + sign) / 2) as i16
}

/// A Q0.31 constant rounded to Q0.15.
#[inline(always)]
fn constant(q31: i32) -> i16 {
    rounding_shift_right(q31, 16) as i16
}

#[inline(always)]
fn exp_on_quarter(x: i16) -> i16 {
    let exp_of_minus_eighth = constant(EXP_OF_MINUS_EIGHTH);
    let one_third = constant(ONE_THIRD);
    let x = x.wrapping_add(1 << 12);
    let x2 = mul(x, x);
    let x3 = mul(x2, x);
    let x4 = mul(x2, x2);
    let x4_over_4 = scale(x4, -2);
    let tail = scale(mul(x4_over_4.wrapping_add(x3), one_third).wrapping_add(x2), -1);
    exp_of_minus_eighth.saturating_add(mul(exp_of_minus_eighth, x.wrapping_add(tail)))
}

#[inline(always)]
fn exp_on_negative(x: i16, integer_bits: u32) -> i16 {
    let fraction_bits = 15 - integer_bits as i32;
    let quarter = 1i16 << (fraction_bits - 2);
    let in_quarter = (x & (quarter - 1)) - quarter;
    let mut result = exp_on_quarter(scale(in_quarter, integer_bits as i32));
    let remainder = in_quarter.wrapping_sub(x);
    for (exponent, factor) in EXP_FACTORS {
        if integer_bits as i32 > exponent {
            let bit = 1 << (fraction_bits + exponent);
            let smaller = mul(result, constant(factor));
            result = if remainder & bit != 0 { smaller } else { result };
        }
    }
    if integer_bits > 5 && i32::from(x) < -(1 << (fraction_bits + 5)) {
        result = 0;
    }
    if x == 0 { i16::MAX } else { result }
}

#[inline(always)]
fn twice_reciprocal(a: i16) -> i16 {
    let forty_eight_over_17 = constant(1_515_870_810);
    let minus_thirty_two_over_17 = constant(-1_010_580_540);
    let half_denominator = half_sum(a, i16::MAX);
    let mut x = forty_eight_over_17.wrapping_add(mul(half_denominator, minus_thirty_two_over_17));
    for _ in 0..3 {
        let error = (1i16 << 13).wrapping_sub(mul(half_denominator, x));
        x = x.wrapping_add(scale(mul(x, error), 2));
    }
    x
}

/// Replaces each value with 1 / (1 + exp(-x)) in Q0.15, for x with `integer_bits` bits before the
/// point.
pub(crate) fn logistic(values: &mut [i16], integer_bits: u32) {
    for value in values {
        let x = *value;
        let negative = if x > 0 { x.wrapping_neg() } else { x };
        let positive = scale(twice_reciprocal(exp_on_negative(negative, integer_bits)), 1);
        let result = if x > 0 { positive } else { i16::MAX.wrapping_sub(positive) };
        // One half, rounded up as gemmlowp's constant is.
        *value = if x == 0 { 1 << 14 } else { result };
    }
}

/// Replaces each value with tanh(x) in Q0.15, for x with `integer_bits` bits before the point.
pub(crate) fn tanh(values: &mut [i16], integer_bits: u32) {
    for value in values {
        let x = *value;
        let negative = if x > 0 { x.wrapping_neg() } else { x };
        // exp(-2|x|) is exp of the same bits with one more before the point.
        let exp = exp_on_negative(negative, integer_bits + 1);
        let t = scale(twice_reciprocal(exp).wrapping_sub(1 << 13), 2);
        let result = if x > 0 { t } else { t.wrapping_neg() };
        *value = if x == 0 { 0 } else { result };
    }
}
