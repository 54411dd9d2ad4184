//! The order of functions in which starts map the least code.

use std::cmp::Reverse;
use std::collections::BTreeMap;

/// What a run needs: patterns of functions, and their bytes.
pub type Run = BTreeMap<String, u64>;

/// The system maps code in pieces of so many bytes around what is used.
const PIECE: u64 = 1 << 16;

/// Functions that the same runs need.
#[derive(Default)]
struct Group<'a> {
    /// A run's program, and which of its runs it is.
    runs: Vec<(usize, usize)>,
    patterns: Vec<&'a str>,
    /// In each program.
    bytes: Vec<u64>,
}

/// All patterns, in one order for several programs, whose runs are given. Those that the same runs need are side by side; groups
/// of them, those first that have the most bytes to be mapped, go each to where it adds the least to what all runs map.
pub fn order(programs: &[Vec<Run>]) -> Vec<&str> {
    let mut needed = BTreeMap::<&str, Group>::new();
    for (program, runs) in programs.iter().enumerate() {
        for (run, functions) in runs.iter().enumerate() {
            for (pattern, &bytes) in functions {
                let function = needed.entry(pattern).or_default();
                function.runs.push((program, run));
                function.bytes.resize(programs.len(), 0);
                // Several functions may have one pattern.
                function.bytes[program] = bytes.max(function.bytes[program]);
            }
        }
    }
    let mut groups = BTreeMap::<Vec<(usize, usize)>, Group>::new();
    for (pattern, Group { runs, bytes, .. }) in needed {
        let group = groups.entry(runs).or_default();
        group.patterns.push(pattern);
        group.bytes.resize(programs.len(), 0);
        group.bytes.iter_mut().zip(bytes).for_each(|(sum, bytes)| *sum += bytes);
    }
    let mut groups: Vec<Group> =
        groups.into_iter().map(|(runs, group)| Group { runs, ..group }).collect();
    let total = |group: &Group| group.runs.iter().map(|&(program, _)| group.bytes[program]).sum();
    groups.sort_by_cached_key(|group| Reverse::<u64>(total(group)));
    let mut ordered = Vec::<&Group>::new();
    for group in &groups {
        let with = |at: &usize| {
            let (before, behind) = ordered.split_at(*at);
            mapped(before.iter().chain([&group]).chain(behind).copied(), programs)
        };
        let best = (0..=ordered.len()).min_by_key(with).unwrap_or_default();
        ordered.insert(best, group);
    }
    ordered.iter().flat_map(|group| &group.patterns).copied().collect()
}

/// How many bytes all runs map together, in the mean over where pieces may begin: each maps what it needs, and of the piece
/// in front of that as much as it does not map already.
fn mapped<'a>(groups: impl Iterator<Item = &'a Group<'a>>, programs: &[Vec<Run>]) -> u64 {
    let mut sum = 0;
    let mut places = vec![PIECE; programs.len()];
    let mut mapped: Vec<Vec<u64>> = programs.iter().map(|runs| vec![0; runs.len()]).collect();
    for group in groups {
        for &(program, run) in &group.runs {
            let (start, mapped) = (places[program], &mut mapped[program][run]);
            let end = start + group.bytes[program];
            sum += end - (*mapped).max(start - PIECE);
            *mapped = end;
        }
        places.iter_mut().zip(&group.bytes).for_each(|(place, bytes)| *place += bytes);
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
        let programs = [runs.into()];
        let ordered = order(&programs).concat();
        assert!(["aedbc", "cbdae"].contains(&&*ordered), "{ordered}");
    }

    fn group(runs: &[(usize, usize)], bytes: &[u64]) -> Group<'static> {
        Group { runs: runs.into(), patterns: Vec::new(), bytes: bytes.into() }
    }

    #[test]
    fn a_piece_is_mapped_once_and_half_of_those_around() {
        let of =
            |runs: &[usize]| group(&runs.iter().map(|&run| (0, run)).collect::<Vec<_>>(), &[PIECE]);
        let [both, first, second] = [&[0, 1][..], &[0], &[1]].map(of);
        let programs = [vec![Run::new(); 2]];
        assert_eq!(mapped([&first, &both, &second].into_iter(), &programs), 6 * PIECE);
        assert_eq!(mapped([&both, &first, &second].into_iter(), &programs), 7 * PIECE);
    }

    #[test]
    fn what_another_program_has_between_is_not_there() {
        let needed = || group(&[(0, 0), (1, 0)], &[PIECE; 2]);
        let other = group(&[(1, 1)], &[0, 9 * PIECE]);
        let [first, second] = [needed(), needed()];
        let programs = [vec![Run::new()], vec![Run::new(); 2]];
        // 3 for the run of the first program, 4 and 10 for those of the second.
        assert_eq!(mapped([&first, &other, &second].into_iter(), &programs), 17 * PIECE);
    }
}
