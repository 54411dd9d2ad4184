//! The order of functions in which starts map the least code.

use std::collections::BTreeMap;

/// What a run needs: patterns of functions, and their bytes.
pub type Run = BTreeMap<String, u64>;

/// The system maps code in pieces of so many bytes around what is used.
const PIECE: u64 = 1 << 16;

/// Functions that the same runs need.
struct Group<'a> {
    runs: Vec<usize>,
    patterns: Vec<&'a str>,
    bytes: u64,
}

/// All patterns. Those that the same runs need are side by side; groups of them, those first that have the most bytes to be
/// mapped, go each to where it adds the least to what all runs map.
pub fn order(runs: &[Run]) -> Vec<&str> {
    let mut needed = BTreeMap::<&str, (Vec<usize>, u64)>::new();
    for (run, functions) in runs.iter().enumerate() {
        for (pattern, &bytes) in functions {
            let (runs, most) = needed.entry(pattern).or_default();
            runs.push(run);
            *most = bytes.max(*most);
        }
    }
    let mut groups = BTreeMap::<Vec<usize>, Group>::new();
    for (pattern, (runs, bytes)) in needed {
        let empty = || Group { runs: runs.clone(), patterns: Vec::new(), bytes: 0 };
        let group = groups.entry(runs.clone()).or_insert_with(empty);
        group.patterns.push(pattern);
        group.bytes += bytes;
    }
    let mut groups: Vec<Group> = groups.into_values().collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.bytes * group.runs.len() as u64));
    let mut ordered = Vec::<&Group>::new();
    for group in &groups {
        let with = |at: &usize| {
            let (before, behind) = ordered.split_at(*at);
            mapped(before.iter().chain([&group]).chain(behind).copied(), runs.len())
        };
        let best = (0..=ordered.len()).min_by_key(with).unwrap_or_default();
        ordered.insert(best, group);
    }
    ordered.iter().flat_map(|group| &group.patterns).copied().collect()
}

/// How many bytes all runs map together, in the mean over where pieces may begin: each maps what it needs, and of the piece
/// in front of that as much as it does not map already.
fn mapped<'a>(groups: impl Iterator<Item = &'a Group<'a>>, runs: usize) -> u64 {
    let (mut place, mut sum) = (PIECE, 0);
    let mut mapped = vec![0; runs];
    for group in groups {
        let end = place + group.bytes;
        for &run in &group.runs {
            sum += end - mapped[run].max(place - PIECE);
            mapped[run] = end;
        }
        place = end;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(patterns: &[&str]) -> Run {
        patterns.iter().map(|&pattern| (pattern.to_owned(), PIECE)).collect()
    }

    #[test]
    fn what_the_same_runs_need_is_side_by_side() {
        let runs = [run(&["a", "d", "e"]), run(&["b", "d"]), run(&["b", "c", "d"])];
        let ordered = order(&runs).concat();
        assert!(["aedbc", "cbdae"].contains(&&*ordered), "{ordered}");
    }

    #[test]
    fn a_piece_is_mapped_once_and_half_of_those_around() {
        let group =
            |runs: &[usize]| Group { runs: runs.into(), patterns: Vec::new(), bytes: PIECE };
        let [both, first, second] = [&[0, 1][..], &[0], &[1]].map(group);
        assert_eq!(mapped([&first, &both, &second].into_iter(), 2), 6 * PIECE);
        assert_eq!(mapped([&both, &first, &second].into_iter(), 2), 7 * PIECE);
    }
}
