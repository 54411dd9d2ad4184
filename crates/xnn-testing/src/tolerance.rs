//! Comparing results with what is expected, within a stated tolerance.

use std::fmt::Debug;

/// Part of an output's range that an fp32 result of XNNPACK may be away from that of a reference
/// kernel.
pub const FP32_PART: f64 = 1e-5;

/// Quantization steps that an 8-bit result of XNNPACK may be away from that of a reference kernel.
pub const Q8_STEPS: f64 = 1.0;

/// Asserts that every element is within `tolerance` of what is expected; equal
/// infinities and two NaNs agree.
///
/// # Panics
///
/// If lengths differ or an element is further away: the message gives the
/// worst element, and how many are out.
#[track_caller]
pub fn assert_close(actual: &[f32], expected: &[f32], tolerance: f32) {
    compare(actual, expected, f64::from(tolerance), |a, e| {
        let same = a == e || (a.is_nan() && e.is_nan());
        if same { 0.0 } else { nan_is_far((f64::from(*a) - f64::from(*e)).abs()) }
    });
}

/// Asserts that every element is within `tolerance` of what is expected, or within that part of
/// it for expected values above 1.
///
/// # Panics
///
/// Panics like [`assert_close`].
#[track_caller]
pub fn assert_close_relative(actual: &[f32], expected: &[f32], tolerance: f32) {
    compare(actual, expected, f64::from(tolerance), |a, e| {
        if a == e {
            return 0.0;
        }
        let (a, e) = (f64::from(*a), f64::from(*e));
        nan_is_far((a - e).abs() / e.abs().max(1.0))
    });
}

/// Asserts that every element is within `fraction` of the expected values'
/// range (largest minus smallest finite value).
///
/// # Panics
///
/// Panics like [`assert_close`].
#[track_caller]
pub fn assert_within_range(actual: &[f32], expected: &[f32], fraction: f32) {
    let finite = || expected.iter().copied().filter(|v| v.is_finite());
    let range = finite().fold(f32::MIN, f32::max) - finite().fold(f32::MAX, f32::min);
    assert_close(actual, expected, fraction * range.max(0.0));
}

/// Asserts that quantized elements are within `steps` quantization steps of
/// what is expected.
///
/// # Panics
///
/// Panics like [`assert_close`].
#[track_caller]
pub fn assert_within_steps<T: Copy + Debug + Into<i64>>(actual: &[T], expected: &[T], steps: u32) {
    compare(actual, expected, f64::from(steps), |a, e| {
        let (a, e): (i64, i64) = ((*a).into(), (*e).into());
        a.abs_diff(e) as f64
    });
}

#[track_caller]
fn compare<T: Debug>(
    actual: &[T],
    expected: &[T],
    tolerance: f64,
    distance: impl Fn(&T, &T) -> f64,
) {
    assert_eq!(actual.len(), expected.len(), "number of elements");
    let far = || {
        actual
            .iter()
            .zip(expected)
            .map(|(a, e)| distance(a, e))
            .enumerate()
            .filter(|(_, d)| *d > tolerance)
    };
    if let Some((worst, by)) = far().max_by(|(_, a), (_, b)| a.total_cmp(b)) {
        panic!(
            "{} of {} elements differ by more than {tolerance}; the worst is [{worst}]: \
             {:?} instead of {:?}, {by} away",
            far().count(),
            actual.len(),
            actual[worst],
            expected[worst],
        );
    }
}

/// A NaN on one side only is no small difference.
fn nan_is_far(distance: f64) -> f64 {
    if distance.is_nan() { f64::INFINITY } else { distance }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tolerances_are_inclusive() {
        assert_close(&[1.5, f32::NAN, f32::INFINITY], &[1.0, f32::NAN, f32::INFINITY], 0.5);
        assert_close_relative(&[0.5, 125.0], &[0.75, 100.0], 0.25);
        assert_within_range(&[1.0, 21.0], &[0.0, 20.0], 0.05);
        assert_within_steps(&[-128i8, 3], &[-127, 3], 1);
    }

    #[test]
    #[should_panic(expected = "1 of 2 elements differ by more than 0.5; the worst is [1]")]
    fn a_distant_element_is_reported() {
        assert_close(&[1.0, 2.0], &[1.0, 1.25], 0.5);
    }

    #[test]
    #[should_panic(expected = "1 of 2 elements differ by more than 0.25; the worst is [1]")]
    fn relative_tolerances_are_those_of_the_expected_value() {
        assert_close_relative(&[1.0, 75.0], &[1.25, 101.0], 0.25);
    }

    #[test]
    #[should_panic(expected = "inf away")]
    fn nan_is_not_close_to_a_number() {
        assert_close(&[f32::NAN], &[0.0], 1e9);
    }

    #[test]
    #[should_panic(expected = "128 instead of 126, 2 away")]
    fn steps_are_counted() {
        assert_within_steps(&[128u8], &[126], 1);
    }

    #[test]
    #[should_panic(expected = "number of elements")]
    fn a_prefix_is_not_enough() {
        assert_close(&[1.0], &[1.0, 2.0], 1.0);
    }
}
