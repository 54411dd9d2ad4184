//! Orders of elements, as integers: all types share two sorting functions, which compare faster than elements by position.

use std::cmp::Ordering;
use std::ops::Range;

use crate::error::{Refusal, refuse};
use crate::tensor::Element;

/// An element that has a place in an order.
pub(super) trait Ordered: Element + PartialOrd {
    type Key: Key;
    /// The largest rank.
    const LAST: u64;

    /// An integer that is larger for larger numbers. Zeros of both signs have the same.
    fn rank(self) -> u64;

    /// Orders ascending. NaN is last and equals itself.
    fn ascending(self, position: u32) -> Self::Key {
        Key::new(if is_nan(&self) { Self::LAST } else { self.rank() }, position)
    }

    /// Orders descending. NaN is last, too.
    fn descending(self, position: u32) -> Self::Key {
        Key::new(if is_nan(&self) { Self::LAST } else { Self::LAST - self.rank() }, position)
    }
}

/// A place in an order. Of equal elements, the one at the first position comes first.
pub(super) trait Key: Copy + Ord {
    fn new(rank: u64, position: u32) -> Self;

    fn position(self) -> usize;

    /// Whether the elements are equal.
    fn is_tied(self, other: Self) -> bool;
}

macro_rules! keys {
    ($($key:ty)*) => {$(
        impl Key for $key {
            fn new(rank: u64, position: u32) -> Self {
                Self::from(rank) << u32::BITS | Self::from(position)
            }

            fn position(self) -> usize {
                self as u32 as usize
            }

            fn is_tied(self, other: Self) -> bool {
                self >> u32::BITS == other >> u32::BITS
            }
        }
    )*};
}

keys!(u64 u128);

macro_rules! integers {
    ($($ty:ty: $key:ty, $as_signed:ty, $as_unsigned:ty;)*) => {$(
        impl Ordered for $ty {
            type Key = $key;
            const LAST: u64 = <$as_unsigned>::MAX as u64;

            fn rank(self) -> u64 {
                (<$as_signed>::from(self) ^ <$as_signed>::MIN).cast_unsigned().into()
            }
        }
    )*};
}

integers! {
    u8: u64, i32, u32;
    i8: u64, i32, u32;
    i16: u64, i32, u32;
    i32: u64, i32, u32;
    i64: u128, i64, u64;
}

impl Ordered for f32 {
    type Key = u64;
    const LAST: u64 = u32::MAX as u64;

    fn rank(self) -> u64 {
        const SIGN: u32 = 1 << 31;
        // The sum of zeros is positive.
        let bits = (self + 0.0).to_bits();
        u64::from(if bits & SIGN == 0 { bits | SIGN } else { !bits })
    }
}

/// The positions of `count` elements.
pub(super) fn positions(count: usize) -> Result<Range<u32>, Refusal> {
    match u32::try_from(count) {
        Ok(count) => Ok(0..count),
        Err(_) => refuse(format!("{count} elements; at most 2^32 can be ordered")),
    }
}

/// Descending order of scores. NaN is last.
pub(super) fn descending(a: f32, b: f32) -> Ordering {
    b.partial_cmp(&a).unwrap_or_else(|| is_nan(&a).cmp(&is_nan(&b)))
}

fn is_nan<T: PartialOrd>(x: &T) -> bool {
    x.partial_cmp(x).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted<T: Ordered>(elements: &[T], key: fn(T, u32) -> T::Key) -> Vec<usize> {
        let mut keys: Vec<_> = elements.iter().zip(0..).map(|(&x, at)| key(x, at)).collect();
        keys.sort_unstable();
        keys.into_iter().map(Key::position).collect()
    }

    #[test]
    fn floats() {
        let elements =
            [0.0, f32::NAN, -0.0, f32::INFINITY, -1.5, f32::MIN, 2.0, f32::NEG_INFINITY, -f32::NAN];
        assert_eq!(sorted(&elements, f32::ascending), [7, 5, 4, 0, 2, 6, 3, 1, 8]);
        assert_eq!(sorted(&elements, f32::descending), [3, 6, 0, 2, 4, 5, 7, 1, 8]);
        assert!((-0.0f32).ascending(3).is_tied(0.0f32.ascending(9)));
        assert!(!f32::INFINITY.ascending(0).is_tied(f32::NAN.ascending(0)));
        assert!(!f32::NEG_INFINITY.descending(0).is_tied(f32::NAN.descending(0)));
    }

    #[test]
    fn integers() {
        assert_eq!(sorted(&[3u8, 255, 0, 3], u8::descending), [1, 0, 3, 2]);
        assert_eq!(sorted(&[3i8, -128, 127, 3], i8::ascending), [1, 0, 3, 2]);
        assert_eq!(sorted(&[0, i16::MAX, i16::MIN], i16::ascending), [2, 0, 1]);
        assert_eq!(sorted(&[0, i32::MAX, i32::MIN], i32::descending), [1, 0, 2]);
        assert_eq!(sorted(&[0, i64::MAX, i64::MIN, -1], i64::descending), [1, 0, 3, 2]);
        assert_eq!(sorted(&[0, i64::MAX, i64::MIN, -1], i64::ascending), [2, 3, 0, 1]);
    }
}
