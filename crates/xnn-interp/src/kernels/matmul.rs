//! BATCH_MATMUL.

use xnn_model::op::BatchMatMulOptions;
use xnn_model::{DType, Op};

use super::copy::View;
use super::gemm::{Accumulator, Packed, Weight, multiply};
use super::hybrid;
use super::strides::{broadcast_strides, for_each_row};
use crate::call::Call;
use crate::error::{Refusal, refuse};
use crate::fixed::Multiplier;
use crate::operator::{OperatorContext, Run, run};
use crate::quant::{Quantized, Requantize, affine, weight_scales, weight_zero_point};
use crate::tensor::{Element, TensorView};

pub(super) fn prepare(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    let Op::BatchMatMul(options) = &context.operator.op else {
        return refuse(format!("{} is not BATCH_MATMUL", context.operator.op));
    };
    let options = options.clone();
    match (context.input(0)?.dtype, context.input(1)?.dtype, context.output(0)?.dtype) {
        (DType::F32, DType::F32, DType::F32) => run(move |call| {
            let operands = Operands::new(call, &options)?;
            operands.multiply(call, |x: f32| x, |x: f32| x, |_, _, sum: f32| sum)
        }),
        (DType::F32, DType::I8, DType::F32) => dynamic_range(context, options),
        (DType::I8, DType::I8, DType::I8) => eight_bit(context, options),
        (DType::I16, DType::I16, DType::I16) => sixteen_bit::<i16>(context, options),
        (DType::I16, DType::I8, DType::I16) => sixteen_bit::<i8>(context, options),
        (DType::I8, DType::I8, DType::I32) => run(move |call| {
            let operands = Operands::new(call, &options)?;
            let widen = |q: i8| i16::from(q);
            operands.multiply(call, widen, widen, |_, _, sum: i32| sum)
        }),
        (a, b, to) => refuse(format!("{a} times {b} with {to} output")),
    }
}

/// Sizes of the operands and offsets of their matrices.
struct Operands {
    m: usize,
    k: usize,
    n: usize,
    /// Whether the matrices are stored transposed.
    adjoint: [bool; 2],
    /// The first element of each product's matrices.
    matrices: Vec<[usize; 2]>,
}

impl Operands {
    fn new(call: &Call<'_>, options: &BatchMatMulOptions) -> Result<Self, Refusal> {
        let (a, b) = (call.shape(0)?, call.shape(1)?);
        let shape = call.output_shape(0)?;
        let (Some((batch_a, &[rows, columns])), Some((batch_b, _)), Some((batch, &[m, n]))) =
            (a.split_last_chunk(), b.split_last_chunk::<2>(), shape.split_last_chunk())
        else {
            return refuse(format!("shapes {a:?} and {b:?} must have at least two dimensions"));
        };
        let k = if options.adj_x { rows } else { columns };
        let scaled = |batch_of: &[usize], size: usize| {
            let strides = broadcast_strides(batch_of, batch);
            strides.into_iter().map(|s| s * size).collect::<Vec<_>>()
        };
        let (steps_a, steps_b) = (scaled(batch_a, m * k), scaled(batch_b, k * n));
        let last = batch.last().copied().unwrap_or(1);
        let (step_a, step_b) =
            (steps_a.last().copied().unwrap_or(0), steps_b.last().copied().unwrap_or(0));
        let mut matrices = Vec::new();
        for_each_row(batch, [&steps_a, &steps_b], |[at_a, at_b]| {
            matrices.extend((0..last).map(|i| [at_a + i * step_a, at_b + i * step_b]));
        });
        Ok(Self { m, k, n, adjoint: [options.adj_x, options.adj_y], matrices })
    }

    /// Multiplies all matrices. `finish` gets row and column of a sum, with rows counted through
    /// all products.
    fn multiply<T: Element, U: Element, A: Copy, W: Weight, C: Accumulator<A, W>, O>(
        &self,
        call: &mut Call<'_>,
        lift_a: impl Fn(T) -> A,
        lift_b: impl Fn(U) -> W,
        finish: impl Fn(usize, usize, C) -> O,
    ) -> Result<(), Refusal>
    where
        O: Element,
    {
        let (a, b) = (call.input::<T>(0)?, call.input::<U>(1)?);
        let output = call.output::<O>(0)?;
        let mut sums = vec![C::default(); self.m * self.n];
        let mut rows = Vec::with_capacity(self.m * self.k);
        let size = (self.m * self.n).max(1);
        for (index, (out, [at_a, at_b])) in
            output.chunks_exact_mut(size).zip(&self.matrices).enumerate()
        {
            rows.clear();
            let a = &a[*at_a..][..self.m * self.k];
            for row in 0..self.m {
                rows.extend((0..self.k).map(|i| {
                    lift_a(a[if self.adjoint[0] { i * self.m + row } else { row * self.k + i }])
                }));
            }
            let b = &b[*at_b..][..self.k * self.n];
            let packed = Packed::from_rows(self.k, self.n, |column, i| {
                lift_b(b[if self.adjoint[1] { column * self.k + i } else { i * self.n + column }])
            });
            multiply(&rows, &packed, &mut sums);
            for (at, (out, &sum)) in out.iter_mut().zip(&sums).enumerate() {
                *out = finish(index * self.m + at / self.n, at % self.n, sum);
            }
        }
        Ok(())
    }
}

/// One scale, or one per column of the second operand.
fn column_scales(
    context: &OperatorContext<'_>,
    options: &BatchMatMulOptions,
) -> Result<Vec<f32>, Refusal> {
    let b = context.input(1)?;
    let rank = b.shape.as_ref().map_or(0, Vec::len);
    weight_scales(b, rank.saturating_sub(if options.adj_y { 2 } else { 1 }))
}

/// Integer types of outputs.
fn requantize(
    context: &OperatorContext<'_>,
    options: &BatchMatMulOptions,
) -> Result<Requantize, Refusal> {
    let (from, to) = (affine(context.input(0)?)?, affine(context.output(0)?)?);
    // The product of the scales is rounded to single precision.
    let multiplier =
        |&scale: &f32| Multiplier::new(f64::from(from.scale * scale) / f64::from(to.scale));
    Ok(Requantize::new(column_scales(context, options)?.iter().map(multiplier).collect()))
}

fn expect_columns(fits: bool, columns: usize) -> Result<(), Refusal> {
    if fits {
        Ok(())
    } else {
        refuse(format!("the number of weight scales differs from the {columns} columns"))
    }
}

fn eight_bit(context: &OperatorContext<'_>, options: BatchMatMulOptions) -> Result<Run, Refusal> {
    let (a, to) = (affine(context.input(0)?)?, affine(context.output(0)?)?);
    let zero_point = weight_zero_point(context.input(1)?)?;
    let rescale = requantize(context, &options)?;
    run(move |call| {
        let operands = Operands::new(call, &options)?;
        expect_columns(rescale.fits(operands.n), operands.n)?;
        operands.multiply(
            call,
            |q: i8| (i32::from(q) - a.zero_point) as i16,
            |q: i8| (i32::from(q) - zero_point) as i16,
            |_, column, sum: i32| {
                let scaled = rescale.multiplier(column).apply(sum);
                i8::saturate(scaled.saturating_add(to.zero_point))
            },
        )
    })
}

fn sixteen_bit<W: Element + Into<i16>>(
    context: &OperatorContext<'_>,
    options: BatchMatMulOptions,
) -> Result<Run, Refusal> {
    let (a, to) = (affine(context.input(0)?)?, affine(context.output(0)?)?);
    if a.zero_point != 0 || weight_zero_point(context.input(1)?)? != 0 || to.zero_point != 0 {
        return refuse("16-bit tensors with a nonzero zero point");
    }
    let rescale = requantize(context, &options)?;
    run(move |call| {
        let operands = Operands::new(call, &options)?;
        expect_columns(rescale.fits(operands.n), operands.n)?;
        operands.multiply(
            call,
            |q: i16| q,
            |q: W| q.into(),
            |_, column, sum: i64| i16::saturate(rescale.multiplier(column).apply_wide(sum)),
        )
    })
}

/// Dynamic-range quantization: floats times 8-bit integers. The rows of the floats are quantized in
/// each run.
fn dynamic_range(
    context: &OperatorContext<'_>,
    options: BatchMatMulOptions,
) -> Result<Run, Refusal> {
    let scales = column_scales(context, &options)?;
    let asymmetric = options.asymmetric_quantize_inputs;
    run(move |call| {
        let operands = Operands::new(call, &options)?;
        expect_columns(scales.len() == 1 || scales.len() == operands.n, operands.n)?;
        let input = call.input::<f32>(0)?;
        let floats = in_row_order(call.tensor(0)?, options.adj_x)?;
        let count = input.len().checked_div(operands.k).unwrap_or(0);
        let rows = hybrid::quantize_rows(&floats, count, asymmetric);
        let weights = call.input::<i8>(1)?;
        let output = call.output::<f32>(0)?;
        let (m, k, n) = (operands.m, operands.k, operands.n);
        if k == 0 {
            // Rows without elements have no scales, and their sums are empty.
            output.fill(0.0);
            return Ok(());
        }
        let mut sums = vec![0i32; m * n];
        for (out, [at_a, at_b]) in output.chunks_exact_mut((m * n).max(1)).zip(&operands.matrices) {
            let b = &weights[*at_b..][..k * n];
            let packed = Packed::from_rows(k, n, |column, i| {
                i16::from(b[if operands.adjoint[1] { column * k + i } else { i * n + column }])
            });
            multiply(&rows.values[*at_a..][..m * k], &packed, &mut sums);
            let first = at_a.checked_div(k).unwrap_or(0);
            for (at, (out, &sum)) in out.iter_mut().zip(&sums).enumerate() {
                let scale = scales[(at % n).min(scales.len() - 1)];
                *out = sum as f32 * (rows.scales[first + at / n] * scale);
            }
        }
        Ok(())
    })
}

/// The elements of matrices in row-major order.
fn in_row_order(tensor: TensorView<'_>, adjoint: bool) -> Result<Vec<f32>, Refusal> {
    let mut view = View::of(tensor.shape);
    if adjoint {
        let rank = view.shape.len();
        view.shape.swap(rank - 1, rank - 2);
        view.strides.swap(rank - 1, rank - 2);
    }
    let mut ordered = vec![0f32; tensor.elements()];
    view.copy(4, tensor.bytes, bytemuck::cast_slice_mut(&mut ordered))?;
    Ok(ordered)
}
