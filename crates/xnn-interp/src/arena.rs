//! The single allocation for the tensors of a frame.

mod plan;

use std::ops::Range;

use smallvec::SmallVec;
use xnn_model::OutOfMemory;

use crate::dims::INLINE;
use crate::error::Error;
use crate::storage::{LINE, Line};

pub(crate) use plan::{Block, Lifetime, place};

/// Memory for tensors, at places found by [`place`].
#[derive(Debug, Default)]
pub(crate) struct Arena {
    /// The lines begin at `start`, on a line's boundary. Pages that nothing touches take no memory.
    bytes: Vec<u8>,
    start: usize,
    lines: usize,
}

impl Arena {
    /// Grows the arena to at least this many lines. The contents are lost if it grows.
    pub(crate) fn reserve(&mut self, lines: usize) -> Result<(), Error> {
        if lines <= self.lines {
            return Ok(());
        }
        *self = Self::default();
        let bytes = lines.checked_add(1).and_then(|lines| lines.checked_mul(LINE));
        let memory = bytes.and_then(|bytes| bytemuck::allocation::try_zeroed_vec::<u8>(bytes).ok());
        let Some(bytes) = memory else {
            let bytes = bytes.unwrap_or(usize::MAX);
            return Err(OutOfMemory::new("intermediate tensors", bytes).into());
        };
        let start = bytes.as_ptr().align_offset(LINE);
        *self = Self { bytes, start, lines };
        Ok(())
    }

    /// Number of lines for tensors.
    pub(crate) fn lines(&self) -> usize {
        self.lines
    }

    fn span(&self) -> Range<usize> {
        self.start..self.start + self.lines * LINE
    }

    /// Lines at a place, to be read.
    pub(crate) fn get(&self, place: Range<usize>) -> Option<&[Line]> {
        let lines = self.bytes.get(self.span()).and_then(|b| bytemuck::try_cast_slice(b).ok());
        lines.unwrap_or(&[]).get(place)
    }

    /// All lines, to be written.
    pub(crate) fn lines_mut(&mut self) -> &mut [Line] {
        let span = self.span();
        // An arena without lines has no aligned address.
        let lines = self.bytes.get_mut(span).and_then(|b| bytemuck::try_cast_slice_mut(b).ok());
        lines.unwrap_or(&mut [])
    }
}

/// The parts of a slice that can be read, each with the position of its first element.
#[derive(Debug)]
pub(crate) struct Parts<'a, T>(SmallVec<[(usize, &'a [T]); INLINE]>);

impl<'a, T> Parts<'a, T> {
    /// No parts; [`Parts::cut`] adds them.
    pub(crate) fn new() -> Self {
        Self(SmallVec::new())
    }

    /// The elements at these positions, or `None` if some of them are being written.
    pub(crate) fn get(&self, positions: Range<usize>) -> Option<&'a [T]> {
        self.0.iter().find_map(|&(start, set)| {
            set.get(positions.start.checked_sub(start)?..positions.end.checked_sub(start)?)
        })
    }

    /// Hands out places of a slice to be written and keeps the rest to be read. Returns `None` if
    /// the places are not sorted and disjoint.
    ///
    /// It fills `self` in place because moving the parts took a tenth of the time of small
    /// operators.
    pub(crate) fn cut(
        &mut self,
        whole: &'a mut [T],
        places: impl Iterator<Item = Range<usize>>,
        mut write: impl FnMut(&'a mut [T]),
    ) -> Option<()> {
        let (mut rest, mut at) = (whole, 0);
        for place in places {
            let (before, from) = rest.split_at_mut_checked(place.start.checked_sub(at)?)?;
            let (written, behind) = from.split_at_mut_checked(place.len())?;
            self.0.push((at, &*before));
            write(written);
            (rest, at) = (behind, place.end);
        }
        self.0.push((at, rest));
        Some(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn places_are_written_while_the_rest_is_read() {
        let mut numbers: Vec<usize> = (0..10).collect();
        let (mut parts, mut written) = (Parts::new(), vec![]);
        parts.cut(&mut numbers, [2..4, 6..7].into_iter(), |part| written.push(part)).unwrap();
        assert_eq!(written, [&[2, 3][..], &[6]]);
        for read in [0..2, 4..6, 7..10, 8..9] {
            assert_eq!(parts.get(read.clone()).unwrap(), Vec::from_iter(read));
        }
        for taken in [0..3, 2..3, 3..5, 0..10, 6..7, 9..11] {
            assert!(parts.get(taken.clone()).is_none(), "{taken:?}");
        }
        drop(parts);
        for outside in [[1..3, 2..4], [5..6, 1..2], [8..9, 9..11]] {
            assert!(Parts::new().cut(&mut numbers, outside.into_iter(), |_| ()).is_none());
        }
    }

    #[test]
    fn lines_are_aligned_and_kept_while_they_suffice() {
        let mut arena = Arena::default();
        arena.reserve(4).unwrap();
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut arena.lines_mut()[1..2]);
        assert!(bytes.as_ptr().addr().is_multiple_of(LINE));
        bytes.fill(7);
        arena.reserve(3).unwrap();
        let kept: &[u8] = bytemuck::cast_slice(arena.get(1..2).unwrap());
        assert_eq!((kept, arena.lines()), (&[7; LINE][..], 4));
        arena.reserve(usize::MAX / LINE - 2).unwrap_err();
        arena.reserve(usize::MAX).unwrap_err();
    }
}
