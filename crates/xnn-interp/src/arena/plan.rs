//! Placement of tensors in an arena.

use std::ops::Range;

/// The steps from the one that writes a tensor to the last one that reads it, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lifetime {
    pub(crate) first: usize,
    pub(crate) last: usize,
}

impl Lifetime {
    fn meets(self, other: Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

/// A tensor that needs a place.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub(crate) lifetime: Lifetime,
    /// Number of lines, padding included.
    pub(crate) lines: usize,
    /// First line, if it is settled.
    pub(crate) start: Option<usize>,
}

impl Block {
    pub(crate) fn place(&self) -> Option<Range<usize>> {
        let start = self.start?;
        Some(start..start + self.lines)
    }
}

/// Finds a place for every block that has none, and returns the number of lines that all blocks
/// span.
///
/// Blocks whose lifetimes overlap get disjoint places. The largest block is placed first, each in
/// the smallest gap that holds it. For the tensors of networks this comes close to the optimum,
/// which is hard to compute.
pub(crate) fn place(blocks: &mut [Block]) -> usize {
    let (mut settled, mut open): (Vec<usize>, Vec<usize>) =
        (0..blocks.len()).partition(|&index| blocks[index].start.is_some());
    settled.sort_by_key(|&index| blocks[index].start);
    open.sort_by_key(|&index| (std::cmp::Reverse(blocks[index].lines), index));
    for index in open {
        let start = smallest_gap(blocks, &settled, index);
        blocks[index].start = Some(start);
        let position = settled.partition_point(|&other| blocks[other].start <= Some(start));
        settled.insert(position, index);
    }
    blocks.iter().filter_map(|block| Some(block.place()?.end)).max().unwrap_or(0)
}

/// The start of the smallest gap for a block between the settled blocks, which are sorted by place,
/// or their end if no gap holds it.
fn smallest_gap(blocks: &[Block], settled: &[usize], index: usize) -> usize {
    let Block { lifetime, lines, .. } = blocks[index];
    let beside = settled.iter().map(|&other| &blocks[other]);
    let beside = beside.filter(|other| other.lifetime.meets(lifetime));
    let mut end = 0;
    let mut best: Option<Range<usize>> = None;
    for place in beside.filter_map(Block::place) {
        let gap = end..place.start.max(end);
        if gap.len() >= lines && best.as_ref().is_none_or(|best| gap.len() < best.len()) {
            best = Some(gap);
        }
        end = end.max(place.end);
    }
    best.map_or(end, |gap| gap.start)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    fn block(first: usize, last: usize, lines: usize) -> Block {
        Block { lifetime: Lifetime { first, last }, lines, start: None }
    }

    fn random(rng: &mut ChaCha8Rng) -> Vec<Block> {
        let count = rng.random_range(0..40);
        let blocks = (0..count).map(|_| {
            let first = rng.random_range(0..30);
            let last = first + rng.random_range(0..8);
            block(first, last, rng.random_range(1..50))
        });
        blocks.collect()
    }

    /// The most lines that are alive at once, which is a lower bound of every plan.
    fn least(blocks: &[Block]) -> usize {
        let at = |step| {
            let alive = |b: &&Block| b.lifetime.first <= step && step <= b.lifetime.last;
            blocks.iter().filter(alive).map(|b| b.lines).sum()
        };
        (0..40).map(at).max().unwrap()
    }

    fn assert_sound(blocks: &[Block], total: usize) {
        for (index, a) in blocks.iter().enumerate() {
            let place = a.place().unwrap();
            assert!(place.end <= total && place.len() == a.lines);
            for b in &blocks[..index] {
                let other = b.place().unwrap();
                let apart = place.end <= other.start || other.end <= place.start;
                assert!(apart || !a.lifetime.meets(b.lifetime), "{a:?} and {b:?}");
            }
        }
    }

    #[test]
    fn tensors_that_live_at_once_do_not_overlap() {
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        for _ in 0..300 {
            let mut blocks = random(&mut rng);
            let total = place(&mut blocks);
            assert_sound(&blocks, total);
            assert!((least(&blocks)..=blocks.iter().map(|b| b.lines).sum()).contains(&total));
        }
    }

    #[test]
    fn blocks_keep_their_places() {
        let mut rng = ChaCha8Rng::seed_from_u64(6);
        for _ in 0..300 {
            let mut blocks = random(&mut rng);
            place(&mut blocks);
            let before = blocks.clone();
            let mut changed = vec![false; blocks.len()];
            for (block, changed) in blocks.iter_mut().zip(&mut changed) {
                if rng.random_bool(0.3) {
                    (block.lines, block.start) = (rng.random_range(1..90), None);
                    *changed = true;
                }
            }
            let total = place(&mut blocks);
            assert_sound(&blocks, total);
            for ((old, new), changed) in before.iter().zip(&blocks).zip(changed) {
                assert!(changed || old.start == new.start);
            }
        }
    }

    #[test]
    fn a_chain_takes_two_buffers() {
        let mut chain: Vec<Block> = (0..9).map(|step| block(step, step + 1, 10)).collect();
        assert_eq!(place(&mut chain), 20);
        // A small tensor fits beside a large one while the other large one is not alive.
        chain.push(block(0, 0, 3));
        chain.iter_mut().for_each(|block| block.start = None);
        assert_eq!(place(&mut chain), 20);
        assert_eq!(place(&mut []), 0);
    }
}
