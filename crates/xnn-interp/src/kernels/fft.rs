//! RFFT2D.

use std::iter;
use std::sync::{Arc, OnceLock};

use rustfft::Fft;
use rustfft::num_complex::Complex64;
use xnn_model::DType;

use crate::call::{Call, size};
use crate::error::{Refusal, refuse};
use crate::kernels::real_fft::{RealFft, complex_fft};
use crate::operator::{OperatorContext, Run, is_fixed, run};
use crate::tensor::Complex;

/// Transforms of rows and columns, in double precision as in TFLite.
struct Fft2d {
    /// Transform of a row.
    along: RealFft,
    /// Transform of a column.
    across: Arc<dyn Fft<f64>>,
}

impl Fft2d {
    fn new(lengths: &[i64]) -> Result<Self, Refusal> {
        let &[rows, columns] = lengths else {
            return refuse("the FFT length must have two elements");
        };
        let (rows, columns) = (size(rows)?, size(columns)?);
        if !rows.is_power_of_two() || !columns.is_power_of_two() {
            return refuse(format!("FFT lengths {rows} and {columns} are not powers of two"));
        }
        Ok(Self { along: RealFft::new(columns), across: complex_fft(rows) })
    }

    /// Transforms the last two dimensions, cropped or padded with zeros to the lengths.
    fn run(&self, call: &mut Call<'_>) -> Result<(), Refusal> {
        let Some((_, &[height, width])) = call.shape(0)?.split_last_chunk::<2>() else {
            return refuse("the input must have at least two dimensions");
        };
        let input = call.input::<f32>(0)?;
        let (rows, kept) = (self.across.len(), self.along.bins());
        let output = call.output::<Complex>(0)?;
        let mut row = vec![0.0; self.along.len()];
        let mut grid = vec![Complex64::ZERO; rows * kept];
        let mut column = vec![Complex64::ZERO; rows];
        let scratch = self.along.scratch_len().max(self.across.get_inplace_scratch_len());
        let mut scratch = vec![Complex64::ZERO; scratch];
        let slices = input.chunks_exact((height * width).max(1));
        for (slice, out) in slices.zip(output.chunks_exact_mut(rows * kept)) {
            grid.fill(Complex64::ZERO);
            for (line, grid) in slice.chunks_exact(width.max(1)).zip(grid.chunks_exact_mut(kept)) {
                let elements = line.iter().copied().map(f64::from).chain(iter::repeat(0.0));
                row.iter_mut().zip(elements).for_each(|(x, element)| *x = element);
                self.along.run(&row, grid, &mut scratch);
            }
            if rows == 1 {
                out.iter_mut().zip(&grid).for_each(|(out, value)| *out = narrow(value));
                continue;
            }
            for x in 0..kept {
                let elements = grid.iter().skip(x).step_by(kept);
                column.iter_mut().zip(elements).for_each(|(x, element)| *x = *element);
                self.across.process_with_scratch(&mut column, &mut scratch);
                let targets = out.iter_mut().skip(x).step_by(kept);
                targets.zip(&column).for_each(|(out, value)| *out = narrow(value));
            }
        }
        Ok(())
    }
}

fn narrow(value: &Complex64) -> Complex {
    Complex { re: value.re as f32, im: value.im as f32 }
}

pub(super) fn rfft2d(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    context.expect_input(0, DType::F32)?;
    context.expect_output(0, DType::Complex64)?;
    let fixed = is_fixed(context.input(1)?);
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
