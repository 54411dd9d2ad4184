//! Walking through tensors of any rank.

/// Elements from one index to the next, per dimension of a row-major shape.
pub(crate) fn strides(shape: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; shape.len()];
    for i in (1..shape.len()).rev() {
        strides[i - 1] = strides[i] * shape[i];
    }
    strides
}

/// Strides of an operand inside the shape that it stretches to: 0 where its
/// only element serves for all.
pub(crate) fn broadcast_strides(shape: &[usize], to: &[usize]) -> Vec<usize> {
    let own = strides(shape);
    let missing = to.len().saturating_sub(shape.len());
    let stretch = shape.iter().zip(own).map(|(&d, s)| if d == 1 { 0 } else { s });
    std::iter::repeat_n(0, missing).chain(stretch).collect()
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
    let mut index = vec![0; outer];
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
