//! One allocation for the tensors of a frame.

mod plan;

use std::ops::Range;

use smallvec::SmallVec;

use crate::INLINE;
use crate::error::{Error, ErrorKind};
use crate::storage::{LINE, Line};

pub(crate) use plan::{Block, Lifetime, place};

/// Memory for tensors that lie at places which a plan has found.
#[derive(Debug, Default)]
pub(crate) struct Arena {
    /// From `start` on, on a line's boundary; pages that nothing touches take no
    /// memory.
    bytes: Vec<u8>,
    start: usize,
    lines: usize,
}

impl Arena {
    /// Makes room; contents are lost if there is not enough.
    pub(crate) fn reserve(&mut self, lines: usize) -> Result<(), Error> {
        if lines <= self.lines {
            return Ok(());
        }
        *self = Self::default();
        let bytes = lines.checked_add(1).and_then(|lines| lines.checked_mul(LINE));
        let memory = bytes.and_then(|bytes| bytemuck::allocation::try_zeroed_vec::<u8>(bytes).ok());
        let Some(bytes) = memory else {
            let message = format!("there is no memory for {lines} times {LINE} bytes of tensors");
            return Err(ErrorKind::Execution(message).into());
        };
        let start = bytes.as_ptr().align_offset(LINE);
        *self = Self { bytes, start, lines };
        Ok(())
    }

    /// What tensors have.
    pub(crate) fn lines(&self) -> usize {
        self.lines
    }

    fn span(&self) -> Range<usize> {
        self.start..self.start + self.lines * LINE
    }

    /// All of it, to be read.
    pub(crate) fn regions(&self) -> Regions<'_> {
        let lines = self.bytes.get(self.span()).and_then(|b| bytemuck::try_cast_slice(b).ok());
        Regions(SmallVec::from_elem((0, lines.unwrap_or(&[])), 1))
    }

    /// Cuts out places to be written, which must be disjoint and sorted; the rest
    /// can be read.
    pub(crate) fn split<'a>(
        &'a mut self,
        places: impl Iterator<Item = Range<usize>>,
    ) -> Option<(Regions<'a>, SmallVec<[&'a mut [Line]; INLINE]>)> {
        let span = self.span();
        // An arena without lines has no aligned address.
        let lines = self.bytes.get_mut(span).and_then(|b| bytemuck::try_cast_slice_mut(b).ok());
        let mut rest: &mut [Line] = lines.unwrap_or(&mut []);
        let mut at = 0;
        let mut regions = Regions(SmallVec::new());
        let mut cut = SmallVec::new();
        for place in places {
            let (before, from) = rest.split_at_mut_checked(place.start.checked_sub(at)?)?;
            let (lines, behind) = from.split_at_mut_checked(place.len())?;
            regions.0.push((at, &*before));
            cut.push(lines);
            (rest, at) = (behind, place.end);
        }
        regions.0.push((at, rest));
        Some((regions, cut))
    }
}

/// The parts of an arena that can be read, with their first line.
#[derive(Debug)]
pub(crate) struct Regions<'a>(SmallVec<[(usize, &'a [Line]); INLINE]>);

impl<'a> Regions<'a> {
    /// The lines at a place; `None` if some of them are being written.
    pub(crate) fn get(&self, place: &Range<usize>) -> Option<&'a [Line]> {
        self.0.iter().find_map(|(start, lines)| {
            let place = place.start.checked_sub(*start)?..place.end.checked_sub(*start)?;
            lines.get(place)
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn places_are_written_while_the_rest_is_read() {
        let mut arena = Arena::default();
        arena.reserve(10).unwrap();
        assert!(arena.regions().get(&(0..10)).is_some() && arena.regions().get(&(9..11)).is_none());
        let (regions, written) = arena.split([2..4, 6..7].into_iter()).unwrap();
        assert_eq!(written.iter().map(|lines| lines.len()).collect::<Vec<_>>(), [2, 1]);
        for read in [0..2, 4..6, 7..10, 8..9] {
            assert_eq!(regions.get(&read).unwrap().len(), read.len());
        }
        for taken in [0..3, 2..3, 3..5, 0..10, 6..7, 9..11] {
            assert!(regions.get(&taken).is_none(), "{taken:?}");
        }
        drop((regions, written));
        for outside in [[1..3, 2..4], [5..6, 1..2], [8..9, 9..11]] {
            assert!(arena.split(outside.into_iter()).is_none());
        }
    }

    #[test]
    fn lines_are_aligned_and_kept_while_they_suffice() {
        let mut arena = Arena::default();
        arena.reserve(4).unwrap();
        {
            let (_, mut written) = arena.split(std::iter::once(1..2)).unwrap();
            let bytes: &mut [u8] = bytemuck::cast_slice_mut(written[0]);
            assert!(bytes.as_ptr().addr().is_multiple_of(LINE));
            bytes.fill(7);
        }
        arena.reserve(3).unwrap();
        let kept: &[u8] = bytemuck::cast_slice(arena.regions().get(&(1..2)).unwrap());
        assert_eq!((kept, arena.lines()), (&[7; LINE][..], 4));
        arena.reserve(usize::MAX / LINE - 2).unwrap_err();
        arena.reserve(usize::MAX).unwrap_err();
    }
}
