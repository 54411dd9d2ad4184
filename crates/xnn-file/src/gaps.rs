//! What lies between parts of some bytes.

use std::ops::Range;

/// What of `all` lies between slices of it, in any order. Others count for nothing.
pub(crate) fn gaps<'all, 'part>(
    all: &'all [u8],
    parts: impl Iterator<Item = &'part [u8]>,
) -> Vec<&'all [u8]> {
    let mut places: Vec<Range<usize>> = parts.filter_map(|part| place(all, part)).collect();
    places.sort_unstable_by_key(|place| place.start);
    places.push(all.len()..all.len());
    let mut end = 0;
    let gaps = places.into_iter().filter_map(|place| {
        let gap = all.get(end..place.start);
        end = end.max(place.end);
        gap.filter(|gap| !gap.is_empty())
    });
    gaps.collect()
}

/// Where in `all` a slice of it is.
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
    fn gaps_are_what_no_part_covers() {
        let all: Vec<u8> = (0..100).collect();
        let between = |places: &[[usize; 2]]| -> Vec<[usize; 2]> {
            let elsewhere = [7u8];
            let parts = places.iter().map(|&[start, end]| &all[start..end]);
            let gaps = gaps(&all, parts.chain([&elsewhere[..]]));
            let places = gaps.into_iter().filter_map(|gap| place(&all, gap));
            places.map(|place| [place.start, place.end]).collect()
        };
        assert_eq!(between(&[]), [[0, 100]]);
        assert!(between(&[[0, 40], [40, 100]]).is_empty());
        assert_eq!(between(&[[20, 30]]), [[0, 20], [30, 100]]);
        assert_eq!(between(&[[40, 50], [90, 100], [0, 10]]), [[10, 40], [50, 90]]);
        assert_eq!(between(&[[10, 60], [20, 30], [50, 70], [70, 80]]), [[0, 10], [80, 100]]);
    }
}
