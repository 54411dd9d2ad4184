//! Short lists of sizes, stored without allocation.

use smallvec::SmallVec;

/// Number of inputs, outputs, dimensions, and integers of arguments up to which a step does not
/// allocate.
pub(crate) const INLINE: usize = 8;

/// One size per dimension or input.
pub(crate) type Dims = SmallVec<[usize; INLINE]>;

/// Whether two shapes are equal. Most have few dimensions, for which a call of `memcmp` is slower
/// than this loop.
pub(crate) fn are_equal(a: &[usize], b: &[usize]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a == b)
}
