//! Products of rows with a matrix, for convolutions and the like.
//!
//! Every output adds its products one after the other in the order of `k`, as
//! TFLite's reference kernels do, so that floats round alike; the speed comes
//! from computing several outputs side by side.

/// Columns that are computed side by side.
const COLUMNS: usize = 8;
/// Rows that share one pass over the matrix.
const ROWS: usize = 4;
/// Panels that are multiplied by a single row at once.
const PANELS: usize = 4;

/// A matrix `[k, n]`, stored in panels of [`COLUMNS`] columns.
#[derive(Clone, Debug)]
pub(crate) struct Packed<W> {
    panels: Vec<[W; COLUMNS]>,
    k: usize,
    n: usize,
}

impl<W: Copy + Default> Packed<W> {
    /// Packs a matrix that is given as `n` rows of `k` elements.
    pub(crate) fn from_rows(k: usize, n: usize, row: impl Fn(usize, usize) -> W) -> Self {
        let mut panels = vec![[W::default(); COLUMNS]; n.div_ceil(COLUMNS) * k];
        for column in 0..n {
            let panel = &mut panels[column / COLUMNS * k..][..k];
            for (i, group) in panel.iter_mut().enumerate() {
                group[column % COLUMNS] = row(column, i);
            }
        }
        Self { panels, k, n }
    }
}

/// An accumulator that adds products.
pub(crate) trait Accumulator<A, W>: Copy + Default {
    /// `self + a * w`.
    fn add_product(self, a: A, w: W) -> Self;

    /// `self + other`.
    fn plus(self, other: Self) -> Self;
}

impl Accumulator<f32, f32> for f32 {
    fn add_product(self, a: f32, w: f32) -> f32 {
        self + a * w
    }

    fn plus(self, other: f32) -> f32 {
        self + other
    }
}

impl Accumulator<i16, i16> for i32 {
    fn add_product(self, a: i16, w: i16) -> i32 {
        self.wrapping_add(i32::from(a) * i32::from(w))
    }

    fn plus(self, other: i32) -> i32 {
        self.wrapping_add(other)
    }
}

impl Accumulator<i16, i16> for i64 {
    fn add_product(self, a: i16, w: i16) -> i64 {
        self + i64::from(i32::from(a) * i32::from(w))
    }

    fn plus(self, other: i64) -> i64 {
        self + other
    }
}

/// The sum of the products of two rows of equal length, in [`COLUMNS`] sums
/// side by side: floats round otherwise than one after the other.
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

/// `out[m, n] = rows[m, k] * weights[k, n]`.
pub(crate) fn multiply<A, W, C>(rows: &[A], weights: &Packed<W>, out: &mut [C])
where
    A: Copy,
    W: Copy,
    C: Accumulator<A, W>,
{
    let Packed { panels, k, n } = weights;
    let (k, n) = (*k, *n);
    if n == 0 {
        return;
    }
    if k == 0 {
        out.fill(C::default());
        return;
    }
    let mut rest = rows;
    let mut out = out;
    while rest.len() >= ROWS * k {
        let (block, tail) = rest.split_at(ROWS * k);
        let (results, later) = out.split_at_mut(ROWS * n);
        multiply_block::<A, W, C, ROWS>(block, panels, k, n, results);
        (rest, out) = (tail, later);
    }
    for (row, results) in rest.chunks_exact(k).zip(out.chunks_exact_mut(n)) {
        multiply_row(row, weights, |column, sum| results[column] = sum);
    }
}

/// `emit(n, row[k] * weights[k, n])` for every column; `row` has `k` elements.
///
/// A sum waits for the one before it, so several panels go side by side.
pub(crate) fn multiply_row<A, W, C>(row: &[A], weights: &Packed<W>, mut emit: impl FnMut(usize, C))
where
    A: Copy,
    W: Copy,
    C: Accumulator<A, W>,
{
    let Packed { panels, k, n } = weights;
    let mut first = 0;
    let mut groups = panels.chunks_exact((PANELS * k).max(1));
    for group in &mut groups {
        let panels: [_; PANELS] = std::array::from_fn(|p| &group[p * k..][..*k]);
        let mut sums = [[C::default(); COLUMNS]; PANELS];
        for (i, &a) in row.iter().enumerate().take(*k) {
            for (sums, panel) in sums.iter_mut().zip(panels) {
                for (sum, &w) in sums.iter_mut().zip(&panel[i]) {
                    *sum = sum.add_product(a, w);
                }
            }
        }
        sums.as_flattened().iter().zip(first..*n).for_each(|(&sum, column)| emit(column, sum));
        first += PANELS * COLUMNS;
    }
    for panel in groups.remainder().chunks_exact((*k).max(1)) {
        let mut sums = [C::default(); COLUMNS];
        for (&a, weights) in row.iter().zip(panel) {
            for (sum, &w) in sums.iter_mut().zip(weights) {
                *sum = sum.add_product(a, w);
            }
        }
        sums.iter().zip(first..*n).for_each(|(&sum, column)| emit(column, sum));
        first += COLUMNS;
    }
}

fn multiply_block<A, W, C, const R: usize>(
    rows: &[A],
    panels: &[[W; COLUMNS]],
    k: usize,
    n: usize,
    out: &mut [C],
) where
    A: Copy,
    W: Copy,
    C: Accumulator<A, W>,
{
    let rows: [&[A]; R] = std::array::from_fn(|r| &rows[r * k..][..k]);
    for (index, panel) in panels.chunks_exact(k).enumerate() {
        let mut sums = [[C::default(); COLUMNS]; R];
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
        for (m, k, n) in
            [(1, 1, 1), (3, 5, 7), (4, 3, 8), (9, 4, 17), (2, 0, 3), (1, 6, 32), (5, 2, 75)]
        {
            let rows: Vec<i16> = (0..m * k).map(|i| (i % 13) as i16 - 6).collect();
            let matrix: Vec<i16> = (0..n * k).map(|i| (i % 11) as i16 - 5).collect();
            let packed = Packed::from_rows(k, n, |column, i| matrix[column * k + i]);
            let mut out = vec![1i32; m * n];
            multiply(&rows, &packed, &mut out);
            for row in 0..m {
                for column in 0..n {
                    let expected: i32 = (0..k)
                        .map(|i| i32::from(rows[row * k + i]) * i32::from(matrix[column * k + i]))
                        .sum();
                    assert_eq!(out[row * n + column], expected, "{m} {k} {n}");
                }
            }
        }
    }
}
