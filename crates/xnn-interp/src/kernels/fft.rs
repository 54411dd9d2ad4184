//! RFFT2D.

use std::f64::consts::PI;
use std::sync::OnceLock;

use xnn_model::DType;

use crate::call::{Call, size};
use crate::error::{Refusal, refuse};
use crate::node::{Node, Run, is_fixed, run};
use crate::tensor::Complex;

/// A complex number in double precision.
#[derive(Clone, Copy, Default)]
struct Wide {
    re: f64,
    im: f64,
}

impl Wide {
    fn narrow(self) -> Complex {
        Complex { re: self.re as f32, im: self.im as f32 }
    }

    fn times(self, other: Self) -> Self {
        Self {
            re: self.re * other.re - self.im * other.im,
            im: self.re * other.im + self.im * other.re,
        }
    }

    fn plus(self, other: Self) -> Self {
        Self { re: self.re + other.re, im: self.im + other.im }
    }

    fn minus(self, other: Self) -> Self {
        Self { re: self.re - other.re, im: self.im - other.im }
    }
}

/// Transforms of one length, a power of two.
struct Fft {
    length: usize,
    /// `exp(-pi i k / half)` for `k` below `half`, for each power of two below the length, one behind the other.
    roots: Vec<Wide>,
}

impl Fft {
    fn new(length: usize) -> Self {
        let root = |k: usize, half: usize| {
            let (im, re) = (-PI * k as f64 / half as f64).sin_cos();
            Wide { re, im }
        };
        let halves = (0..length.trailing_zeros()).map(|bit| 1 << bit);
        let roots = halves.flat_map(|half| (0..half).map(move |k| root(k, half))).collect();
        Self { length, roots }
    }

    fn roots(&self, half: usize) -> &[Wide] {
        &self.roots[half - 1..2 * half - 1]
    }

    /// Transforms in place. The data are as long, or a power of two shorter.
    fn transform(&self, data: &mut [Wide]) {
        let n = data.len();
        if n < 2 {
            return;
        }
        let bits = n.trailing_zeros();
        for i in 0..n {
            let j = i.reverse_bits() >> (usize::BITS - bits);
            if i < j {
                data.swap(i, j);
            }
        }
        let mut half = 1;
        while half < n {
            let roots = self.roots(half);
            for block in data.chunks_exact_mut(2 * half) {
                let (low, high) = block.split_at_mut(half);
                for ((a, b), &root) in low.iter_mut().zip(high).zip(roots) {
                    let turned = b.times(root);
                    (*a, *b) = (a.plus(turned), a.minus(turned));
                }
            }
            half *= 2;
        }
    }

    /// The first half, and the element behind it, of the transform of real
    /// numbers; missing ones are 0. `work` is scratch.
    fn transform_real(&self, row: &[f32], work: &mut Vec<Wide>, out: &mut [Wide]) {
        let at = |i: usize| row.get(i).copied().map_or(0.0, f64::from);
        let half = self.length / 2;
        if half == 0 {
            out[0] = Wide { re: at(0), im: 0.0 };
            return;
        }
        // Even elements as real parts and odd ones as imaginary parts: the
        // transform of each is the even or odd part of the transform of both.
        work.clear();
        work.extend((0..half).map(|i| Wide { re: at(2 * i), im: at(2 * i + 1) }));
        self.transform(work);
        // Transforms are periodic.
        work.push(work[0]);
        let roots = self.roots(half).iter().chain(&[Wide { re: -1.0, im: 0.0 }]);
        for (((a, b), root), out) in work.iter().zip(work.iter().rev()).zip(roots).zip(out) {
            let even = Wide { re: (a.re + b.re) / 2.0, im: (a.im - b.im) / 2.0 };
            let odd = Wide { re: (a.im + b.im) / 2.0, im: (b.re - a.re) / 2.0 };
            *out = even.plus(odd.times(*root));
        }
    }
}

/// Transforms of rows and columns.
struct Fft2d {
    rows: Fft,
    columns: Fft,
}

impl Fft2d {
    fn new(lengths: &[i64]) -> Result<Self, Refusal> {
        let &[rows, columns] = lengths else {
            return refuse("a length without two dimensions");
        };
        let (rows, columns) = (size(rows)?, size(columns)?);
        if !rows.is_power_of_two() || !columns.is_power_of_two() {
            return refuse(format!("lengths {rows} and {columns} that are no powers of two"));
        }
        Ok(Self { rows: Fft::new(rows), columns: Fft::new(columns) })
    }

    /// Transforms the last two dimensions; what reaches beyond the lengths is
    /// left out, what is missing is 0.
    fn run(&self, call: &mut Call<'_>) -> Result<(), Refusal> {
        let Some((_, &[height, width])) = call.shape(0)?.split_last_chunk::<2>() else {
            return refuse("an input without two dimensions");
        };
        let input = call.input::<f32>(0)?;
        let (rows, columns) = (self.rows.length, self.columns.length);
        let kept = columns / 2 + 1;
        let output = call.output::<Complex>(0)?;
        let mut grid = vec![Wide::default(); rows * kept];
        let mut work = Vec::with_capacity(rows.max(columns));
        let slices = input.chunks_exact((height * width).max(1));
        for (slice, out) in slices.zip(output.chunks_exact_mut(rows * kept)) {
            grid.fill(Wide::default());
            let lines = slice.chunks_exact(width.max(1)).map(|line| &line[..width.min(columns)]);
            for (line, grid) in lines.zip(grid.chunks_exact_mut(kept)) {
                self.columns.transform_real(line, &mut work, grid);
            }
            if rows == 1 {
                out.iter_mut().zip(&grid).for_each(|(out, value)| *out = value.narrow());
                continue;
            }
            for x in 0..kept {
                work.clear();
                work.extend(grid.iter().skip(x).step_by(kept));
                self.rows.transform(&mut work);
                for (out, value) in out.iter_mut().skip(x).step_by(kept).zip(&work) {
                    *out = value.narrow();
                }
            }
        }
        Ok(())
    }
}

pub(super) fn rfft2d(node: &Node<'_>) -> Result<Run, Refusal> {
    node.expect_input(0, DType::F32)?;
    node.expect_output(0, DType::Complex64)?;
    let fixed = is_fixed(node.input(1)?);
    let plan = OnceLock::new();
    run(move |call| {
        // Only an output with elements bounds the lengths.
        if call.output::<Complex>(0)?.is_empty() {
            return Ok(());
        }
        match plan.get() {
            Some(plan) => Fft2d::run(plan, call),
            None => {
                let fresh = Fft2d::new(&call.ints(1)?)?;
                if fixed { plan.get_or_init(|| fresh).run(call) } else { fresh.run(call) }
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use std::f64::consts::TAU;

    use super::*;

    #[test]
    fn transforms_of_real_numbers() {
        for length in [1usize, 2, 4, 8, 64] {
            for width in [1, length.div_ceil(2), length] {
                let row: Vec<f32> = (0..width).map(|i| ((i * 7) % 11) as f32 - 4.5).collect();
                let mut out = vec![Wide::default(); length / 2 + 1];
                Fft::new(length).transform_real(&row, &mut Vec::new(), &mut out);
                for (k, out) in out.iter().enumerate() {
                    let terms = row.iter().enumerate().map(|(i, &x)| {
                        let (im, re) = (-TAU * (i * k) as f64 / length as f64).sin_cos();
                        Wide { re: re * f64::from(x), im: im * f64::from(x) }
                    });
                    let expected = terms.fold(Wide::default(), Wide::plus);
                    let error = (out.re - expected.re).abs().max((out.im - expected.im).abs());
                    assert!(error < 1e-12 * length as f64 * 8.0, "{length} {width} {k}: {error}");
                }
            }
        }
    }
}
