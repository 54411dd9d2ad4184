//! Memory for the packed weights of a runtime: large pieces, handed out in small ones.

use std::ops::Range;

use bytes::{Bytes, BytesMut};

use super::PackedWeights;
use crate::buffer::{ALIGNMENT, EXTRA_BYTES, StaticData};
use crate::memory::{HUGE_PAGE, prefer_huge_pages, whole_pages, zeros};

/// Memory that weights can be packed into. It is freed when nothing uses any part of it.
#[derive(Default)]
pub(super) struct Slab {
    rest: BytesMut,
    /// Bytes that are likely to be wanted in all.
    expected: usize,
}

/// Zeroed memory for one node's weights, with its padding.
pub(super) struct Piece {
    memory: BytesMut,
    weights: Range<usize>,
}

impl Slab {
    /// Prepares for about `bytes`: what is not taken of them costs addresses only.
    pub(super) fn expect(&mut self, bytes: usize) {
        *self = Self { rest: BytesMut::new(), expected: bytes };
    }

    /// Memory for `size` bytes; `None` if memory is exhausted.
    pub(super) fn take(&mut self, size: usize) -> Option<Piece> {
        let padded = size.checked_add(EXTRA_BYTES)?;
        if self.rest.len().saturating_sub(ALIGNMENT) < padded {
            self.rest = allocate(self.expected.max(padded.checked_add(ALIGNMENT)?))?;
        }
        self.expected = self.expected.saturating_sub(padded);
        let address = self.rest.as_ptr().addr();
        let start = address.next_multiple_of(ALIGNMENT) - address;
        let memory = self.rest.split_to(start + padded);
        Some(Piece { memory, weights: start..start + size })
    }
}

/// Zeroed memory of at least `size` bytes, aligned to huge pages where it has any.
fn allocate(size: usize) -> Option<BytesMut> {
    let whole = whole_pages(size);
    let margin = if whole < HUGE_PAGE { 0 } else { HUGE_PAGE };
    let mut memory = zeros(whole.checked_add(margin)?)?;
    prefer_huge_pages(&mut memory);
    // No copy: the bytes have no other owner.
    let mut memory = BytesMut::from(Bytes::from(memory));
    if margin > 0 {
        let address = memory.as_ptr().addr();
        drop(memory.split_to(address.next_multiple_of(HUGE_PAGE) - address));
    }
    Some(memory)
}

impl Piece {
    /// The weights.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.memory[self.weights.clone()]
    }

    /// The weights, to be written.
    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.weights.clone()]
    }
}

impl From<Piece> for PackedWeights {
    fn from(Piece { memory, weights }: Piece) -> Self {
        Self(StaticData::from_piece(memory.freeze(), weights))
    }
}
