//! Copies of elements whose type does not matter.

use smallvec::SmallVec;

use super::strides::strides;
use crate::dims::{Dims, INLINE};
use crate::error::{Refusal, refuse};

/// The position of each element of a result in its source: `start`, plus `strides[d]` for every
/// step along dimension `d` of `shape`, all in elements.
#[derive(Clone, Debug)]
pub(super) struct View {
    pub(super) start: usize,
    pub(super) shape: Dims,
    pub(super) strides: SmallVec<[isize; INLINE]>,
}

impl View {
    /// The view of a whole tensor.
    pub(super) fn of(shape: &[usize]) -> Self {
        let strides = strides(shape).into_iter().map(usize::cast_signed).collect();
        Self { start: 0, shape: Dims::from_slice(shape), strides }
    }

    /// The view of `count` elements from `start` along a dimension.
    pub(super) fn slice(mut self, dim: usize, start: usize, count: usize) -> Self {
        if count > 0 {
            self.start = self.start.wrapping_add_signed(start.cast_signed() * self.strides[dim]);
        }
        self.shape[dim] = count;
        self
    }

    /// Copies the elements in row-major order of the view's shape.
    pub(super) fn copy(
        &self,
        width: usize,
        input: &[u8],
        output: &mut [u8],
    ) -> Result<(), Refusal> {
        match width {
            1 => self.copy_elements::<1>(input, output),
            2 => self.copy_elements::<2>(input, output),
            4 => self.copy_elements::<4>(input, output),
            8 => self.copy_elements::<8>(input, output),
            16 => self.copy_elements::<16>(input, output),
            other => refuse(format!("elements of {other} bytes")),
        }
    }

    fn copy_elements<const W: usize>(
        &self,
        input: &[u8],
        output: &mut [u8],
    ) -> Result<(), Refusal> {
        if self.shape.contains(&0) {
            return Ok(());
        }
        let (input, _) = input.as_chunks::<W>();
        let (mut output, _) = output.as_chunks_mut::<W>();
        let (row, step, outer) = match (self.shape.split_last(), self.strides.last()) {
            (Some((&row, outer)), Some(&step)) => (row, step, outer),
            _ => (1, 1, &[][..]),
        };
        let outside = || Refusal("a view exceeds its tensor".into());
        let mut index = Dims::from_elem(0, outer.len());
        let mut at = self.start.cast_signed();
        loop {
            let (target, rest) = output.split_at_mut_checked(row).ok_or_else(outside)?;
            output = rest;
            if step == 1 {
                let from = at.cast_unsigned();
                let source = input.get(from..).and_then(|i| i.get(..row)).ok_or_else(outside)?;
                target.copy_from_slice(source);
            } else {
                let mut from = at;
                for element in target {
                    *element = *input.get(from.cast_unsigned()).ok_or_else(outside)?;
                    from += step;
                }
            }
            let mut d = outer.len();
            loop {
                if d == 0 {
                    return Ok(());
                }
                d -= 1;
                index[d] += 1;
                at += self.strides[d];
                if index[d] < outer[d] {
                    break;
                }
                at -= self.strides[d] * outer[d].cast_signed();
                index[d] = 0;
            }
        }
    }
}

/// Numbers of elements before, along and after one dimension of a shape.
pub(super) fn around(shape: &[usize], axis: usize) -> (usize, usize, usize) {
    let before = shape[..axis].iter().product();
    let behind = shape[axis + 1..].iter().product();
    (before, shape[axis], behind)
}

/// Copies elements. Along each dimension, `sources` gives the index of each result element.
pub(super) fn gather_grid(
    strides: &[usize],
    sources: &[Vec<usize>],
    width: usize,
    input: &[u8],
    output: &mut [u8],
) {
    let mut offsets = vec![0];
    for (stride, sources) in strides.iter().zip(sources) {
        offsets = offsets
            .iter()
            .flat_map(|offset| sources.iter().map(move |source| offset + source * stride))
            .collect();
    }
    for (target, offset) in output.chunks_exact_mut(width).zip(offsets) {
        target.copy_from_slice(&input[offset * width..][..width]);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use smallvec::smallvec;

    use super::*;

    #[test]
    fn views() {
        let input: Vec<u8> = (0..24).collect();
        let copy = |view: &View| {
            let mut out = vec![0; view.shape.iter().product()];
            view.copy(1, &input, &mut out).unwrap();
            out
        };
        let mut transposed = View::of(&[2, 3]);
        transposed.shape.swap(0, 1);
        transposed.strides.swap(0, 1);
        assert_eq!(copy(&transposed), [0, 3, 1, 4, 2, 5]);
        assert_eq!(copy(&View::of(&[2, 3]).slice(1, 1, 2)), [1, 2, 4, 5]);
        let reversed = View { start: 5, shape: smallvec![6], strides: smallvec![-1] };
        assert_eq!(copy(&reversed), [5, 4, 3, 2, 1, 0]);
        assert_eq!(copy(&View { start: 7, shape: smallvec![], strides: smallvec![] }), [7]);
    }

    #[test]
    fn views_outside_are_refused() {
        let view = View { start: 1, shape: smallvec![4], strides: smallvec![-1] };
        assert!(view.copy(1, &[0; 4], &mut [0; 4]).is_err());
        let view = View { start: 1, shape: smallvec![4], strides: smallvec![1] };
        assert!(view.copy(1, &[0; 4], &mut [0; 4]).is_err());
    }
}
