//! Memory for the packed weights of a runtime: large allocations, divided into pieces.

use std::ops::Range;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};

use super::weights::PackedWeights;
use crate::buffer::{ALIGNMENT, EXTRA_BYTES};
use crate::memory::{HUGE_PAGE, return_huge_pages, take_huge_pages, zeros};
use crate::static_data::StaticData;
use crate::threadpool::ThreadPool;

/// Memory for packed weights. An allocation is freed when no piece of it is in use.
#[derive(Default)]
pub(super) struct Slab {
    rest: BytesMut,
    /// Expected number of bytes that will still be taken.
    expected: usize,
    /// Threads that take huge pages before they are written to.
    pool: Option<Arc<ThreadPool>>,
    /// Number of bytes of `rest` whose pages have been taken.
    ready: usize,
}

/// Zeroed memory for the weights of one node, with padding.
pub(super) struct Piece {
    memory: BytesMut,
    weights: Range<usize>,
}

impl Slab {
    /// Prepares for about `bytes` bytes, which the threads of the pool will fill. Those that are not
    /// taken only use addresses.
    pub(super) fn expect(&mut self, bytes: usize, pool: Option<&Arc<ThreadPool>>) {
        let pool = pool.filter(|pool| pool.threads() > 1).cloned();
        *self = Self { rest: BytesMut::new(), expected: bytes, pool, ready: 0 };
    }

    /// The threads that fill the memory, if there are several.
    pub(super) fn pool(&self) -> Option<&Arc<ThreadPool>> {
        self.pool.as_ref()
    }

    /// Returns memory for `size` bytes; `None` if memory is exhausted.
    pub(super) fn take(&mut self, size: usize) -> Option<Piece> {
        let padded = size.checked_add(EXTRA_BYTES)?;
        if self.rest.len().saturating_sub(ALIGNMENT) < padded {
            let rest = allocate(self.expected.max(padded.checked_add(ALIGNMENT)?))?;
            self.return_pages();
            self.rest = rest;
        }
        self.expected = self.expected.saturating_sub(padded);
        let address = self.rest.as_ptr().addr();
        let start = address.next_multiple_of(ALIGNMENT) - address;
        self.take_pages(start + padded);
        self.ready -= start + padded;
        let memory = self.rest.split_to(start + padded);
        Some(Piece { memory, weights: start..start + size })
    }

    /// Takes the pages of the next `end` bytes and, if as much is expected, at least one for each
    /// thread.
    fn take_pages(&mut self, end: usize) {
        if self.ready >= end {
            return;
        }
        let from = self.ready;
        self.ready = end;
        if let Some(pool) = &self.pool {
            let expected = end.saturating_add(self.expected).min(self.rest.len());
            self.ready = end.max(expected.min(from + pool.threads() * HUGE_PAGE));
            take_huge_pages(&mut self.rest[from..self.ready], pool);
        }
    }

    /// Returns the pages that were taken and are not needed.
    fn return_pages(&mut self) {
        return_huge_pages(&mut self.rest[..self.ready]);
        self.ready = 0;
    }
}

impl Drop for Slab {
    fn drop(&mut self) {
        self.return_pages();
    }
}

/// Allocates zeroed memory of at least `size` bytes.
fn allocate(size: usize) -> Option<BytesMut> {
    // Incomplete tiles take slightly more than expected. A second allocation for the rest would
    // leave a part of the first one's last huge page unused.
    let (memory, skipped) = zeros(size, size / 8, ALIGNMENT)?;
    // The bytes have no other owner, so they are not copied.
    let mut memory = BytesMut::from(Bytes::from(memory));
    drop(memory.split_to(skipped));
    Some(memory)
}

impl Piece {
    /// The weights.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.memory[self.weights.clone()]
    }

    /// The weights, mutable.
    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.weights.clone()]
    }
}

impl From<Piece> for PackedWeights {
    fn from(Piece { memory, weights }: Piece) -> Self {
        Self(StaticData::from_piece(memory.freeze(), weights))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;
    #[cfg(target_os = "linux")]
    use crate::memory::tests::resident;

    /// Takes a piece for each size, and fills it with a mark.
    fn take(slab: &mut Slab, sizes: &[usize]) -> Option<Vec<Piece>> {
        let mut marked = |(mark, &size): (usize, &usize)| {
            let mut piece = slab.take(size)?;
            assert!(piece.bytes().iter().all(|&byte| byte == 0));
            piece.bytes_mut().fill(mark as u8 + 1);
            Some(piece)
        };
        sizes.iter().enumerate().map(&mut marked).collect()
    }

    #[test]
    fn pieces_are_aligned_padded_and_apart() {
        for expected in [0, 1000, HUGE_PAGE / 2, 3 * HUGE_PAGE] {
            // Includes more than expected.
            let sizes = [0, 1, 63, 64, 65, 1000, HUGE_PAGE - 1, HUGE_PAGE, 1];
            let mut slab = Slab::default();
            slab.expect(expected, None);
            let pieces = take(&mut slab, &sizes).unwrap_or_default();
            assert_eq!(pieces.len(), sizes.len());
            drop(slab);
            for ((mark, &size), piece) in sizes.iter().enumerate().zip(pieces) {
                let weights = PackedWeights::from(piece).0;
                assert!(weights.start().addr().is_multiple_of(ALIGNMENT));
                assert!(weights.readable_after() >= EXTRA_BYTES);
                assert_eq!(weights.bytes().len(), size);
                assert!(weights.bytes().iter().all(|&byte| byte == mark as u8 + 1));
            }
        }
    }

    #[test]
    fn expected_pieces_are_in_one_allocation() {
        let mut slab = Slab::default();
        slab.expect(HUGE_PAGE, None);
        let pieces = take(&mut slab, &[HUGE_PAGE / 4; 3]).unwrap_or_default();
        let starts: Vec<usize> = pieces.iter().map(|piece| piece.bytes().as_ptr().addr()).collect();
        assert!(starts[0].is_multiple_of(HUGE_PAGE));
        assert!(starts.windows(2).all(|pair| pair[1] - pair[0] < HUGE_PAGE / 2));
    }

    /// Sizes that differ by pages, since the result depends on where the system places memory.
    #[test]
    fn slightly_more_than_expected_is_in_one_allocation() {
        for expected in (16_384..HUGE_PAGE / 2).step_by(4096).chain([3 * HUGE_PAGE]) {
            let mut slab = Slab::default();
            slab.expect(expected, None);
            let pieces = take(&mut slab, &[expected / 2, expected / 2, expected / 16]);
            let pieces = pieces.unwrap_or_default();
            let starts: Vec<usize> =
                pieces.iter().map(|piece| piece.bytes().as_ptr().addr()).collect();
            assert!(
                starts.windows(2).all(|pair| pair[1].abs_diff(pair[0]) <= expected),
                "{expected}"
            );
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn threads_take_pages_before_they_are_needed() {
        // Larger than any freed memory that could be reused.
        const PAGES: usize = 64;
        let pool = Arc::new(ThreadPool::new(3).unwrap());
        let taken = |start: *const u8| {
            let pages = (0..PAGES + 4).map(|page| start.wrapping_add(page * HUGE_PAGE));
            let taken: Vec<bool> = pages.map(|page| resident(page, 1)[0]).collect();
            let count = taken.iter().filter(|&&taken| taken).count();
            assert!(taken[..count].iter().all(|&taken| taken), "{taken:?}");
            count
        };
        let mut slab = Slab::default();
        slab.expect(PAGES * HUGE_PAGE, Some(&pool));
        let first = slab.take(1000).unwrap();
        let start = first.bytes().as_ptr();
        assert!(start.addr().is_multiple_of(HUGE_PAGE));
        assert_eq!(taken(start), 3);
        let second = slab.take(HUGE_PAGE * 5 / 2).unwrap();
        assert_eq!(taken(start), 3);
        let third = slab.take(HUGE_PAGE).unwrap();
        assert_eq!(taken(start), 6);
        let rest = slab.take((PAGES - 4) * HUGE_PAGE).unwrap();
        assert_eq!(taken(start), PAGES);
        drop((slab, second, third, rest));

        // Pages that turn out not to be needed are returned.
        let mut slab = Slab::default();
        slab.expect(PAGES * HUGE_PAGE, Some(&pool));
        let piece = slab.take(HUGE_PAGE).unwrap();
        let start = piece.bytes().as_ptr();
        assert_eq!(taken(start), 3);
        drop(slab);
        assert_eq!(taken(start), 2);
        drop((first, piece));
    }

    #[test]
    fn sizes_beyond_memory_are_none() {
        assert!(Slab::default().take(usize::MAX).is_none());
        assert!(Slab::default().take(isize::MAX as usize).is_none());
    }
}
