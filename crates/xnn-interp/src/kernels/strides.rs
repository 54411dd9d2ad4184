//! Iteration over tensors of any rank.

use crate::dims::Dims;

/// Distance in elements between neighbors along each dimension of a row-major shape.
pub(crate) fn strides(shape: &[usize]) -> Dims {
    let mut strides = Dims::from_elem(1, shape.len());
    for i in (1..shape.len()).rev() {
        // Only a shape without elements has strides that overflow: nothing is read with them.
        strides[i - 1] = strides[i].saturating_mul(shape[i]);
    }
    strides
}

/// Strides of an operand that is broadcast to a shape: 0 along dimensions that are repeated.
pub(crate) fn broadcast_strides(shape: &[usize], to: &[usize]) -> Dims {
    let own = strides(shape);
    let missing = to.len().saturating_sub(shape.len());
    let stretch = shape.iter().zip(own).map(|(&d, s)| if d == 1 { 0 } else { s });
    std::iter::repeat_n(0, missing).chain(stretch).collect()
}

/// Whether operands broadcast to exactly this shape.
pub(crate) fn broadcasts_to<const N: usize>(operands: [&[usize]; N], shape: &[usize]) -> bool {
    let from_the_end = |dims: &[usize], at: usize| dims.iter().rev().nth(at).copied().unwrap_or(1);
    let fits = |at| {
        let to = from_the_end(shape, at);
        let dims = operands.map(|dims| from_the_end(dims, at));
        dims.iter().all(|&dim| dim == 1 || dim == to) && dims.contains(&to)
    };
    operands.iter().map(|dims| dims.len()).max() == Some(shape.len()) && (0..shape.len()).all(fits)
}

/// Calls `f` with the offsets of `N` operands for every row of the last dimension, in row-major
/// order: the offsets of the row's first elements.
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

/// Merges dimensions for the same iteration: drops dimensions of 1, and joins neighboring
/// dimensions if the strides of all operands allow it.
pub(super) fn merged<const N: usize>(shape: &[usize], strides: [&[usize]; N]) -> (Dims, [Dims; N]) {
    let mut sizes = Dims::new();
    let mut steps = std::array::from_fn(|_| Dims::new());
    for (d, &size) in shape.iter().enumerate().filter(|(_, size)| **size != 1) {
        let mut pairs = steps.iter().zip(strides);
        let goes_on = pairs.all(|(step, stride)| step.last() == Some(&(stride[d] * size)));
        match sizes.last_mut() {
            Some(last) if goes_on => *last *= size,
            _ => {
                sizes.push(size);
                steps.iter_mut().for_each(|step| step.push(0));
            }
        }
        for (step, stride) in steps.iter_mut().zip(strides) {
            step.last_mut().into_iter().for_each(|last| *last = stride[d]);
        }
    }
    (sizes, steps)
}

/// Number of copies of an operand's only element that a row shares.
const BLOCK: usize = 256;

/// Computes a row from rows of two operands. The row of results is the shortest.
pub(crate) type ZipRow<'a, A, B, O> = dyn Fn(&[A], &[B], &mut [O]) + 'a;

/// Returns the function that applies `f` to the elements of two rows.
///
/// Each function gets code of its own for this loop alone: there are more than eighty of them.
pub(crate) fn zip_row<A: Copy, B: Copy, O>(f: impl Fn(A, B) -> O) -> impl Fn(&[A], &[B], &mut [O]) {
    move |a, b, out| {
        out.iter_mut().zip(a.iter().zip(b)).for_each(|(out, (&a, &b))| *out = f(a, b));
    }
}

/// Calls `zip` for rows of operands that are broadcast to `shape`.
pub(crate) fn zip_rows<A: Copy, B: Copy, O>(
    (a, a_shape): (&[A], &[usize]),
    (b, b_shape): (&[B], &[usize]),
    (out, shape): (&mut [O], &[usize]),
    zip: &ZipRow<'_, A, B, O>,
) {
    // An operand with as many elements as the shape is not broadcast.
    if a.len() == out.len() && b.len() == out.len() {
        return zip(a, b, out);
    }
    let mut rest = out;
    for_each_broadcast_row([a_shape, b_shape], shape, &mut |row| {
        let (out, after) = std::mem::take(&mut rest).split_at_mut(row.length);
        rest = after;
        let (a, b) = (&a[row.offsets[0]..], &b[row.offsets[1]..]);
        match row.stays {
            [false, false] => zip(a, b, out),
            [stays_a, stays_b] => {
                let (same_a, same_b) = ([a[0]; BLOCK], [b[0]; BLOCK]);
                for (index, out) in out.chunks_mut(BLOCK).enumerate() {
                    let a = if stays_a { &same_a } else { &a[index * BLOCK..] };
                    let b = if stays_b { &same_b } else { &b[index * BLOCK..] };
                    zip(a, b, out);
                }
            }
        }
    });
}

/// A row of two operands that are broadcast.
struct Row {
    length: usize,
    /// Offsets of the first elements.
    offsets: [usize; 2],
    /// Whether the whole row is the first element.
    stays: [bool; 2],
}

/// Calls `f` for the longest rows along which each operand goes on or stays, in row-major order.
fn for_each_broadcast_row(operands: [&[usize]; 2], shape: &[usize], f: &mut dyn FnMut(Row)) {
    let [a, b] = operands.map(|operand| broadcast_strides(operand, shape));
    let (shape, [a, b]) = merged(shape, [&a, &b]);
    let length = shape.last().copied().unwrap_or(1);
    let stays = [&a, &b].map(|steps| steps.last() == Some(&0));
    for_each_row(&shape, [&a, &b], |offsets| f(Row { length, offsets, stays }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operands_stretch() {
        let mut out = [0; 6];
        let add = zip_row(|a, b| a + b);
        zip_rows((&[1, 2, 3], &[3]), (&[10, 20], &[2, 1]), (&mut out, &[2, 3]), &add);
        assert_eq!(out, [11, 12, 13, 21, 22, 23]);
        let mut out = [0; 3];
        let subtract = zip_row(|a, b| a - b);
        zip_rows((&[5], &[]), (&[1, 2, 3], &[3]), (&mut out, &[3]), &subtract);
        assert_eq!(out, [4, 3, 2]);
        let (a, b): (Vec<i32>, Vec<i32>) = ((0..6).collect(), (0..20).map(|i| i * 10).collect());
        let mut out = [0; 60];
        zip_rows((&a, &[3, 1, 2]), (&b, &[5, 1, 2, 2]), (&mut out, &[5, 3, 2, 2]), &add);
        for (at, out) in out.into_iter().enumerate() {
            let (i, j, k, l) = (at / 12, at / 4 % 3, at / 2 % 2, at % 2);
            assert_eq!(out, a[j * 2 + l] + b[i * 4 + k * 2 + l], "{at}");
        }
    }

    #[test]
    fn dimensions_merge() {
        let merge = |a: &[usize], b: &[usize], shape: &[usize]| {
            merged(shape, [&broadcast_strides(a, shape), &broadcast_strides(b, shape)])
        };
        let dims = Dims::from_slice;
        let same = merge(&[2, 1, 3], &[2, 1, 3], &[2, 1, 3]);
        assert_eq!(same, (dims(&[6]), [dims(&[1]), dims(&[1])]));
        let rows = merge(&[2, 3, 4], &[4], &[2, 3, 4]);
        assert_eq!(rows, (dims(&[6, 4]), [dims(&[4, 1]), dims(&[0, 1])]));
        let columns = merge(&[2, 3, 4], &[2, 1, 1], &[2, 3, 4]);
        assert_eq!(columns, (dims(&[2, 12]), [dims(&[12, 1]), dims(&[1, 0])]));
        assert_eq!(merge(&[1], &[], &[1]), (dims(&[]), [dims(&[]), dims(&[])]));
        assert_eq!(merge(&[0, 3], &[3], &[0, 3]).0.iter().product::<usize>(), 0);
    }

    #[test]
    fn shapes_that_operands_broadcasts_to() {
        let fit: [[&[usize]; 3]; 6] = [
            [&[2, 3], &[2, 3], &[2, 3]],
            [&[3], &[2, 1], &[2, 3]],
            [&[], &[4], &[4]],
            [&[], &[], &[]],
            [&[0], &[1], &[0]],
            [&[5, 1, 3], &[1, 2, 1], &[5, 2, 3]],
        ];
        assert!(fit.iter().all(|[a, b, shape]| broadcasts_to([a, b], shape)));
        let fail: [[&[usize]; 3]; 6] = [
            [&[2, 3], &[2, 3], &[3, 2]],
            [&[2], &[3], &[3]],
            [&[1], &[1], &[2]],
            [&[1], &[1], &[1, 1]],
            [&[0], &[2], &[0]],
            [&[4], &[4], &[]],
        ];
        assert!(!fail.iter().any(|[a, b, shape]| broadcasts_to([a, b], shape)));
    }

    #[test]
    fn shapes_that_three_operands_broadcasts_to() {
        let fit: [[&[usize]; 4]; 4] = [
            [&[], &[], &[], &[]],
            [&[2, 1], &[2, 3], &[], &[2, 3]],
            [&[2, 1], &[3], &[1], &[2, 3]],
            [&[1], &[0], &[1], &[0]],
        ];
        assert!(fit.iter().all(|[a, b, c, shape]| broadcasts_to([a, b, c], shape)));
        let fail: [[&[usize]; 4]; 5] = [
            [&[1], &[], &[], &[]],
            [&[2], &[2, 3], &[2, 3], &[2, 3]],
            [&[1, 2, 3], &[2, 3], &[2, 3], &[2, 3]],
            [&[3], &[3], &[3], &[1]],
            [&[1], &[1], &[3], &[2, 3]],
        ];
        assert!(!fail.iter().any(|[a, b, c, shape]| broadcasts_to([a, b, c], shape)));
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
