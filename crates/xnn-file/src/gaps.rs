//! Gaps between parts of a range of bytes.

use std::ops::Range;

/// The ranges of `all` that no part covers. Parts may come in any order, overlap, and reach beyond
/// `all`.
pub(crate) fn gaps(
    all: Range<usize>,
    parts: impl Iterator<Item = Range<usize>>,
) -> Vec<Range<usize>> {
    let mut parts: Vec<Range<usize>> = parts.collect();
    parts.sort_unstable_by_key(|part| part.start);
    parts.push(all.end..all.end);
    let mut end = all.start;
    let gaps = parts.into_iter().map(|part| {
        let gap = end..part.start.min(all.end);
        end = end.max(part.end);
        gap
    });
    gaps.filter(|gap| !gap.is_empty()).collect()
}

/// Position of `part` in `all`; `None` unless it is a slice of `all`.
pub(crate) fn place(all: &[u8], part: &[u8]) -> Option<Range<usize>> {
    let (part, whole) = (part.as_ptr_range(), all.as_ptr_range());
    let is_within = whole.start <= part.start && part.end <= whole.end;
    let offset = |of: *const u8| of.addr() - whole.start.addr();
    is_within.then(|| offset(part.start)..offset(part.end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_the_ranges_that_no_part_covers() {
        let between = |parts: &[[usize; 2]]| -> Vec<[usize; 2]> {
            let parts = parts.iter().map(|&[start, end]| start..end);
            gaps(10..100, parts).into_iter().map(|gap| [gap.start, gap.end]).collect()
        };
        assert_eq!(between(&[]), [[10, 100]]);
        assert!(between(&[[10, 40], [40, 100]]).is_empty());
        assert_eq!(between(&[[20, 30]]), [[10, 20], [30, 100]]);
        assert_eq!(between(&[[40, 50], [90, 100], [10, 15]]), [[15, 40], [50, 90]]);
        assert_eq!(between(&[[15, 60], [20, 30], [50, 70], [70, 80]]), [[10, 15], [80, 100]]);
        assert_eq!(between(&[[0, 20], [90, 110], [120, 130]]), [[20, 90]]);
        assert_eq!(between(&[[0, 5], [120, 130]]), [[10, 100]]);
    }

    #[test]
    fn slices_are_found() {
        let all = [0; 100];
        assert_eq!(place(&all, &all[20..30]), Some(20..30));
        assert_eq!(place(&all, &all), Some(0..100));
        assert_eq!(place(&all[10..90], &all[5..15]), None);
        assert_eq!(place(&all[10..90], &all[85..95]), None);
    }
}
