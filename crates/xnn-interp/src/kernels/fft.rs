//! RFFT2D.

use std::f64::consts::TAU;

use xnn_model::DType;

use crate::call::size;
use crate::error::{Refusal, refuse};
use crate::node::{Node, Run, run};
use crate::tensor::Complex;

/// A complex number in double precision.
#[derive(Clone, Copy, Default)]
struct Wide {
    re: f64,
    im: f64,
}

impl Wide {
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

/// Transforms in place; the length is a power of two.
fn transform(data: &mut [Wide]) {
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
    let roots: Vec<Wide> = (0..n / 2)
        .map(|k| {
            let angle = -TAU * k as f64 / n as f64;
            Wide { re: angle.cos(), im: angle.sin() }
        })
        .collect();
    let mut half = 1;
    while half < n {
        for block in data.chunks_exact_mut(2 * half) {
            let (low, high) = block.split_at_mut(half);
            for (k, (a, b)) in low.iter_mut().zip(high).enumerate() {
                let turned = b.times(roots[k * (n / (2 * half))]);
                (*a, *b) = (a.plus(turned), a.minus(turned));
            }
        }
        half *= 2;
    }
}

pub(super) fn rfft2d(node: &Node<'_>) -> Result<Run, Refusal> {
    node.expect_input(0, DType::F32)?;
    node.expect_output(0, DType::Complex64)?;
    run(|call| {
        let Some((_, &[height, width])) = call.shape(0)?.split_last_chunk::<2>() else {
            return refuse("an input without two dimensions");
        };
        let lengths = call.ints(1)?;
        let &[rows, columns] = lengths.as_slice() else {
            return refuse("a length without two dimensions");
        };
        let (rows, columns) = (size(rows)?, size(columns)?);
        if !rows.is_power_of_two() || !columns.is_power_of_two() {
            return refuse(format!("lengths {rows} and {columns} that are no powers of two"));
        }
        let input = call.input::<f32>(0)?;
        let kept = columns / 2 + 1;
        let output = call.output::<Complex>(0)?;
        let slices = input.chunks_exact((height * width).max(1));
        for (slice, out) in slices.zip(output.chunks_exact_mut((rows * kept).max(1))) {
            let mut grid = vec![Wide::default(); rows * columns];
            for y in 0..rows.min(height) {
                for x in 0..columns.min(width) {
                    grid[y * columns + x].re = slice[y * width + x].into();
                }
            }
            grid.chunks_exact_mut(columns).for_each(transform);
            let mut column = vec![Wide::default(); rows];
            for x in 0..kept {
                for (y, value) in column.iter_mut().enumerate() {
                    *value = grid[y * columns + x];
                }
                transform(&mut column);
                for (y, value) in column.iter().enumerate() {
                    out[y * kept + x] = Complex { re: value.re as f32, im: value.im as f32 };
                }
            }
        }
        Ok(())
    })
}
