//! Walking through tensors of any rank.

use crate::Dims;

/// Elements from one index to the next, per dimension of a row-major shape.
pub(crate) fn strides(shape: &[usize]) -> Dims {
    let mut strides = Dims::from_elem(1, shape.len());
    for i in (1..shape.len()).rev() {
        strides[i - 1] = strides[i] * shape[i];
    }
    strides
}

/// Strides of an operand inside the shape that it stretches to: 0 where its
/// only element serves for all.
pub(crate) fn broadcast_strides(shape: &[usize], to: &[usize]) -> Dims {
    let own = strides(shape);
    let missing = to.len().saturating_sub(shape.len());
    let stretch = shape.iter().zip(own).map(|(&d, s)| if d == 1 { 0 } else { s });
    std::iter::repeat_n(0, missing).chain(stretch).collect()
}

/// Whether two operands stretch to this shape, and to no smaller one.
pub(crate) fn stretch_to(a: &[usize], b: &[usize], shape: &[usize]) -> bool {
    let from_the_end = |dims: &[usize], at: usize| dims.iter().rev().nth(at).copied().unwrap_or(1);
    let fits = |at| match (from_the_end(a, at), from_the_end(b, at)) {
        (1, dim) | (dim, 1) => from_the_end(shape, at) == dim,
        (a, b) => a == b && from_the_end(shape, at) == a,
    };
    shape.len() == a.len().max(b.len()) && (0..shape.len()).all(fits)
}

/// Calls `f` with the offsets of `N` operands for every element of a shape, in
/// row-major order, one row of the last dimension at a time: the offsets of
/// its first elements.
pub(crate) fn for_each_row<const N: usize>(
    shape: &[usize],
    strides: [&[usize]; N],
    mut f: impl FnMut([usize; N]),
) {
    if shape.contains(&0) {
        return;
    }
    let outer = shape.len().saturating_sub(1);
    let mut index = Dims::from_elem(0, outer);
    let mut offsets = [0; N];
    loop {
        f(offsets);
        let mut d = outer;
        loop {
            if d == 0 {
                return;
            }
            d -= 1;
            index[d] += 1;
            if index[d] < shape[d] {
                for (offset, stride) in offsets.iter_mut().zip(strides) {
                    *offset += stride[d];
                }
                break;
            }
            for (offset, stride) in offsets.iter_mut().zip(strides) {
                *offset -= stride[d] * (shape[d] - 1);
            }
            index[d] = 0;
        }
    }
}

/// Applies `f` element by element to operands that stretch to `shape`.
pub(crate) fn zip_broadcast<A: Copy, B: Copy, O>(
    (a, a_shape): (&[A], &[usize]),
    (b, b_shape): (&[B], &[usize]),
    (out, shape): (&mut [O], &[usize]),
    f: impl Fn(A, B) -> O,
) {
    if a_shape == b_shape {
        for (out, (&a, &b)) in out.iter_mut().zip(a.iter().zip(b)) {
            *out = f(a, b);
        }
        return;
    }
    let (sa, sb) = (broadcast_strides(a_shape, shape), broadcast_strides(b_shape, shape));
    let row = shape.last().copied().unwrap_or(1);
    let (step_a, step_b) = (*sa.last().unwrap_or(&0), *sb.last().unwrap_or(&0));
    let mut rows = out.chunks_exact_mut(row.max(1));
    for_each_row(shape, [&sa, &sb], |[at_a, at_b]| {
        for (i, out) in rows.next().into_iter().flatten().enumerate() {
            *out = f(a[at_a + i * step_a], b[at_b + i * step_b]);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operands_stretch() {
        let mut out = [0; 6];
        zip_broadcast((&[1, 2, 3], &[3]), (&[10, 20], &[2, 1]), (&mut out, &[2, 3]), |a, b| a + b);
        assert_eq!(out, [11, 12, 13, 21, 22, 23]);
        let mut out = [0; 3];
        zip_broadcast((&[5], &[]), (&[1, 2, 3], &[3]), (&mut out, &[3]), |a, b| a - b);
        assert_eq!(out, [4, 3, 2]);
    }

    #[test]
    fn shapes_that_operands_stretch_to() {
        let fit: [[&[usize]; 3]; 6] = [
            [&[2, 3], &[2, 3], &[2, 3]],
            [&[3], &[2, 1], &[2, 3]],
            [&[], &[4], &[4]],
            [&[], &[], &[]],
            [&[0], &[1], &[0]],
            [&[5, 1, 3], &[1, 2, 1], &[5, 2, 3]],
        ];
        assert!(fit.iter().all(|[a, b, shape]| stretch_to(a, b, shape)));
        let fail: [[&[usize]; 3]; 6] = [
            [&[2, 3], &[2, 3], &[3, 2]],
            [&[2], &[3], &[3]],
            [&[1], &[1], &[2]],
            [&[1], &[1], &[1, 1]],
            [&[0], &[2], &[0]],
            [&[4], &[4], &[]],
        ];
        assert!(!fail.iter().any(|[a, b, shape]| stretch_to(a, b, shape)));
    }

    #[test]
    fn rows_of_higher_ranks() {
        let shape = [2, 2, 2, 3];
        let s = strides(&shape);
        let mut seen = vec![];
        for_each_row(&shape, [&s], |[at]| seen.push(at));
        assert_eq!(seen, [0, 3, 6, 9, 12, 15, 18, 21]);
        for_each_row(&[0, 3], [&[3, 1]], |_: [usize; 1]| unreachable!());
        let mut scalars = 0;
        for_each_row(&[], [&[]], |_: [usize; 1]| scalars += 1);
        assert_eq!(scalars, 1);
    }
}
