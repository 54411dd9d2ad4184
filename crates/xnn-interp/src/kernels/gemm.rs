//! Products of rows with a matrix, for convolutions and similar operators.
//!
//! Products of floats are added in the order of `k`, like in TFLite's reference kernels, so that
//! they round alike; several outputs are computed in parallel. Sums of integers do not depend on
//! the order, so several products of one output are computed at once.

/// Number of columns of floats that are computed in parallel.
const COLUMNS: usize = 8;
/// Number of rows of floats that share one pass over the matrix.
const ROWS: usize = 4;
/// Number of panels that are multiplied by a single row of floats in parallel.
const PANELS: usize = 4;
/// Number of products that processors compute in parallel, approximately.
const AT_ONCE: usize = 16;

/// Elements of matrices.
pub(crate) trait Weight: Copy + Default {
    /// Number of columns that are stored interleaved.
    const PANEL: usize;

    /// Number of products with 16-bit integers whose sum 32 bits always hold.
    fn products_in_32_bits(weights: &[Self]) -> usize;
}

impl Weight for f32 {
    const PANEL: usize = COLUMNS;

    fn products_in_32_bits(_: &[f32]) -> usize {
        0
    }
}

impl Weight for i16 {
    const PANEL: usize = 1;

    fn products_in_32_bits(weights: &[i16]) -> usize {
        let largest = weights.iter().map(|w| w.unsigned_abs()).max().unwrap_or(0);
        (i32::MAX >> 15) as usize / usize::from(largest.max(1))
    }
}

/// A matrix `[k, n]`, stored by columns or by panels of columns.
#[derive(Clone, Debug)]
pub(crate) struct Packed<W> {
    elements: Vec<W>,
    k: usize,
    n: usize,
    in_32_bits: usize,
}

impl<W: Weight> Packed<W> {
    /// Packs a matrix from `n` rows of `k` elements.
    pub(crate) fn from_rows(k: usize, n: usize, row: impl Fn(usize, usize) -> W) -> Self {
        let mut elements = vec![W::default(); n.next_multiple_of(W::PANEL) * k];
        for column in 0..n {
            let (panel, at) = (column / W::PANEL, column % W::PANEL);
            let panel = &mut elements[panel * W::PANEL * k..][..W::PANEL * k];
            for (i, group) in panel.chunks_exact_mut(W::PANEL).enumerate() {
                group[at] = row(column, i);
            }
        }
        let in_32_bits = W::products_in_32_bits(&elements);
        Self { elements, k, n, in_32_bits }
    }
}

/// An accumulator that adds products.
pub(crate) trait Accumulator<A, W>: Copy + Default {
    /// `self + a * w`.
    fn add_product(self, a: A, w: W) -> Self;

    /// `self + other`.
    fn plus(self, other: Self) -> Self;

    /// [`multiply_row`].
    fn multiply_row(row: &[A], weights: &Packed<W>, emit: impl FnMut(usize, Self));

    /// [`multiply`], where neither `k` nor `n` is zero.
    fn multiply(rows: &[A], weights: &Packed<W>, out: &mut [Self]) {
        for (row, results) in rows.chunks_exact(weights.k).zip(out.chunks_exact_mut(weights.n)) {
            Self::multiply_row(row, weights, |column, sum| results[column] = sum);
        }
    }
}

/// Computes `out[m, n] = rows[m, k] * weights[k, n]`.
pub(crate) fn multiply<A, W, C: Accumulator<A, W>>(rows: &[A], weights: &Packed<W>, out: &mut [C]) {
    match (weights.k, weights.n) {
        (_, 0) => {}
        (0, _) => out.fill(C::default()),
        _ => C::multiply(rows, weights, out),
    }
}

/// Calls `emit(n, row[k] * weights[k, n])` for every column. `row` has `k` elements.
pub(crate) fn multiply_row<A, W, C: Accumulator<A, W>>(
    row: &[A],
    weights: &Packed<W>,
    emit: impl FnMut(usize, C),
) {
    C::multiply_row(row, weights, emit);
}

impl Accumulator<f32, f32> for f32 {
    fn add_product(self, a: f32, w: f32) -> f32 {
        self + a * w
    }

    fn plus(self, other: f32) -> f32 {
        self + other
    }

    /// Each addition depends on the previous one, so several panels are computed in parallel.
    fn multiply_row(row: &[f32], weights: &Packed<f32>, mut emit: impl FnMut(usize, f32)) {
        let (panels, _) = weights.elements.as_chunks::<COLUMNS>();
        let (k, n) = (weights.k, weights.n);
        let mut first = 0;
        let mut groups = panels.chunks_exact((PANELS * k).max(1));
        for group in &mut groups {
            let panels: [_; PANELS] = std::array::from_fn(|p| &group[p * k..][..k]);
            let mut sums = [[0.0; COLUMNS]; PANELS];
            for (i, &a) in row.iter().enumerate().take(k) {
                for (sums, panel) in sums.iter_mut().zip(panels) {
                    for (sum, &w) in sums.iter_mut().zip(&panel[i]) {
                        *sum = sum.add_product(a, w);
                    }
                }
            }
            sums.as_flattened().iter().zip(first..n).for_each(|(&sum, column)| emit(column, sum));
            first += PANELS * COLUMNS;
        }
        for panel in groups.remainder().chunks_exact(k.max(1)) {
            let mut sums = [0.0; COLUMNS];
            for (&a, weights) in row.iter().zip(panel) {
                for (sum, &w) in sums.iter_mut().zip(weights) {
                    *sum = sum.add_product(a, w);
                }
            }
            sums.iter().zip(first..n).for_each(|(&sum, column)| emit(column, sum));
            first += COLUMNS;
        }
    }

    fn multiply(rows: &[f32], weights: &Packed<f32>, out: &mut [f32]) {
        let (k, n) = (weights.k, weights.n);
        let (panels, _) = weights.elements.as_chunks::<COLUMNS>();
        let mut blocks = rows.chunks_exact(ROWS * k);
        let mut outs = out.chunks_exact_mut(ROWS * n);
        for (block, out) in blocks.by_ref().zip(outs.by_ref()) {
            multiply_block(block, panels, k, n, out);
        }
        let rest = blocks.remainder().chunks_exact(k);
        for (row, results) in rest.zip(outs.into_remainder().chunks_exact_mut(n)) {
            multiply_row(row, weights, |column, sum| results[column] = sum);
        }
    }
}

fn multiply_block(rows: &[f32], panels: &[[f32; COLUMNS]], k: usize, n: usize, out: &mut [f32]) {
    let rows: [&[f32]; ROWS] = std::array::from_fn(|r| &rows[r * k..][..k]);
    for (index, panel) in panels.chunks_exact(k).enumerate() {
        let mut sums = [[0.0; COLUMNS]; ROWS];
        for (i, weights) in panel.iter().enumerate() {
            for (sums, row) in sums.iter_mut().zip(&rows) {
                let a = row[i];
                for (sum, &w) in sums.iter_mut().zip(weights) {
                    *sum = sum.add_product(a, w);
                }
            }
        }
        let first = index * COLUMNS;
        let width = COLUMNS.min(n - first);
        for (r, sums) in sums.iter().enumerate() {
            out[r * n + first..][..width].copy_from_slice(&sums[..width]);
        }
    }
}

impl Accumulator<i16, i16> for i32 {
    fn add_product(self, a: i16, w: i16) -> i32 {
        self.wrapping_add(i32::from(a) * i32::from(w))
    }

    fn plus(self, other: i32) -> i32 {
        self.wrapping_add(other)
    }

    fn multiply_row(row: &[i16], weights: &Packed<i16>, emit: impl FnMut(usize, i32)) {
        by_columns(row, weights, emit);
    }
}

impl Accumulator<i16, i16> for i64 {
    fn add_product(self, a: i16, w: i16) -> i64 {
        self + i64::from(i32::from(a) * i32::from(w))
    }

    fn plus(self, other: i64) -> i64 {
        self + other
    }

    fn multiply_row(row: &[i16], weights: &Packed<i16>, emit: impl FnMut(usize, i64)) {
        by_columns(row, weights, emit);
    }
}

/// Sums of products of integers.
trait Sum: Accumulator<i16, i16> {
    /// The sum of the products of a row with a column of the same length.
    fn of_column(row: &[i16], column: &[i16], in_32_bits: usize) -> Self;
}

impl Sum for i32 {
    fn of_column(row: &[i16], column: &[i16], _: usize) -> i32 {
        sum_of_products(row, column)
    }
}

impl Sum for i64 {
    fn of_column(row: &[i16], column: &[i16], in_32_bits: usize) -> i64 {
        let block = in_32_bits - in_32_bits % AT_ONCE;
        if block == 0 {
            return sum_of_products(row, column);
        }
        let blocks = row.chunks(block).zip(column.chunks(block));
        blocks.map(|(row, column)| i64::from(sum_of_products::<i32>(row, column))).sum()
    }
}

/// The sum of the products of two rows of equal length. Loops of a constant length become
/// instructions that multiply and add pairs. A loop of any length becomes short, and its time
/// depends on its alignment in the program.
#[inline(never)]
fn sum_of_products<C: Accumulator<i16, i16>>(row: &[i16], column: &[i16]) -> C {
    const PART: usize = 32;
    let add = |sum, a: &[i16], w: &[i16]| {
        a.iter().zip(w).fold(sum, |sum: C, (&a, &w)| sum.add_product(a, w))
    };
    let (row_parts, row_rest) = row.as_chunks::<PART>();
    let (column_parts, column_rest) = column.as_chunks::<PART>();
    let parts = row_parts.iter().zip(column_parts);
    add(parts.fold(C::default(), |sum, (a, w)| add(sum, a, w)), row_rest, column_rest)
}

/// [`multiply_row`] of integers.
fn by_columns<C: Sum>(row: &[i16], weights: &Packed<i16>, mut emit: impl FnMut(usize, C)) {
    for (at, column) in weights.elements.chunks_exact(weights.k.max(1)).enumerate() {
        emit(at, C::of_column(row, column, weights.in_32_bits));
    }
}

/// The sum of the products of two rows of equal length, in [`COLUMNS`] parallel sums. Floats round
/// differently than in a single sum.
pub(crate) fn dot<A: Copy, W: Copy, C: Accumulator<A, W>>(a: &[A], w: &[W]) -> C {
    let (groups_a, rest_a) = a.as_chunks::<COLUMNS>();
    let (groups_w, rest_w) = w.as_chunks::<COLUMNS>();
    let mut sums = [C::default(); COLUMNS];
    for (a, w) in groups_a.iter().zip(groups_w) {
        for ((sum, &a), &w) in sums.iter_mut().zip(a).zip(w) {
            *sum = sum.add_product(a, w);
        }
    }
    let rest = rest_a.iter().zip(rest_w).fold(C::default(), |sum, (&a, &w)| sum.add_product(a, w));
    sums.into_iter().fold(rest, C::plus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_of_rows() {
        for length in [0, 1, 7, 8, 9, 31] {
            let a: Vec<i16> = (0..length).map(|i| i * 3 - 20).collect();
            let w: Vec<i16> = (0..length).map(|i| 11 - i).collect();
            let expected: i32 = a.iter().zip(&w).map(|(&a, &w)| i32::from(a) * i32::from(w)).sum();
            assert_eq!(dot::<_, _, i32>(&a, &w), expected, "{length}");
            let floats = |row: &[i16]| row.iter().map(|&x| f32::from(x)).collect::<Vec<_>>();
            assert_eq!(dot::<_, _, f32>(&floats(&a), &floats(&w)), expected as f32, "{length}");
        }
    }

    #[test]
    fn products_of_all_block_sizes() {
        let sizes =
            [(1, 1, 1), (3, 5, 7), (4, 3, 8), (9, 4, 17), (2, 0, 3), (1, 6, 32), (5, 2, 75)];
        for (m, k, n) in sizes.into_iter().chain([(2, 31, 3), (2, 32, 3), (3, 77, 5)]) {
            let rows: Vec<i16> = (0..m * k).map(|i| (i % 13) as i16 - 6).collect();
            let matrix: Vec<i16> = (0..n * k).map(|i| (i % 11) as i16 - 5).collect();
            let packed = Packed::from_rows(k, n, |column, i| matrix[column * k + i]);
            let mut out = vec![1i32; m * n];
            multiply(&rows, &packed, &mut out);
            let mut wide = vec![1i64; m * n];
            multiply(&rows, &packed, &mut wide);
            let floats = |values: &[i16]| values.iter().map(|&x| f32::from(x)).collect::<Vec<_>>();
            let float_matrix = floats(&matrix);
            let float_packed = Packed::from_rows(k, n, |column, i| float_matrix[column * k + i]);
            let mut float_out = vec![1f32; m * n];
            multiply(&floats(&rows), &float_packed, &mut float_out);
            for row in 0..m {
                for column in 0..n {
                    let expected: i32 = (0..k)
                        .map(|i| i32::from(rows[row * k + i]) * i32::from(matrix[column * k + i]))
                        .sum();
                    let at = row * n + column;
                    assert_eq!(out[at], expected, "{m} {k} {n}");
                    assert_eq!(wide[at], i64::from(expected), "{m} {k} {n}");
                    assert_eq!(float_out[at], expected as f32, "{m} {k} {n}");
                }
            }
        }
    }

    /// The largest products, more than 32 bits hold the sum of.
    #[test]
    fn wide_sums_are_exact() {
        for (weight, in_32_bits) in [(i16::MIN, 1), (-128, 511), (127, 516), (0, 65535)] {
            let k = 1300;
            for x in [i16::MIN, i16::MAX] {
                let packed = Packed::from_rows(k, 5, |_, _| weight);
                assert_eq!(packed.in_32_bits, in_32_bits);
                let mut out = [0i64; 5];
                multiply(&vec![x; k], &packed, &mut out);
                assert_eq!(out, [k as i64 * i64::from(x) * i64::from(weight); 5], "{x} {weight}");
            }
        }
    }
}
