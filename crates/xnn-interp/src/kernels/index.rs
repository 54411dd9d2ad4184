//! Operators that select elements by their position.

use xnn_model::infer::{StridedSlice, StridedSliceBounds};
use xnn_model::op::StridedSliceOptions;
use xnn_model::{DType, Op};

use super::copy::{View, around};
use super::strides::strides;
use crate::call::{Call, Ints, axis, size};
use crate::error::{Refusal, refuse};
use crate::operator::{OperatorContext, Run, is_fixed, run};
use crate::tensor::Element;
use crate::tensor::width;

pub(super) fn slice(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    let width = width(context.common_type()?)?;
    run(move |call| {
        let mut view = View::of(call.shape(0)?);
        let shape = call.output_shape(0)?;
        for (d, (begin, &count)) in call.ints(1)?.into_iter().zip(&shape).enumerate() {
            view = view.slice(d, size(begin)?, count);
        }
        let input = call.tensor(0)?.bytes;
        view.copy(width, input, call.output_bytes(0)?)
    })
}

pub(super) fn strided_slice(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    let Op::StridedSlice(options) = context.operator.op.clone() else {
        return refuse(format!("{} is not STRIDED_SLICE", context.operator.op));
    };
    let width = width(context.common_type()?)?;
    let planned = planned_slice(context, &options);
    run(move |call| {
        let input = call.tensor(0)?;
        match &planned {
            Some((shape, view)) if *shape == input.shape => {
                view.copy(width, input.bytes, call.output_bytes(0)?)
            }
            _ => {
                let bounds = [call.ints(1)?, call.ints(2)?, call.ints(3)?];
                let view = strided_view(input.shape, bounds, &options)?;
                view.copy(width, input.bytes, call.output_bytes(0)?)
            }
        }
    })
}

/// The view of a STRIDED_SLICE with constant bounds and an input of the inferred shape, or `None`
/// if either is unknown before a run.
fn planned_slice(
    context: &OperatorContext<'_>,
    options: &StridedSliceOptions,
) -> Option<(Vec<usize>, View)> {
    let shape = context.optional(0)?.shape.clone()?;
    let bounds = [1, 2, 3].map(|at| context.optional(at).filter(|t| is_fixed(t))?.constant_ints());
    let [Some(begin), Some(end), Some(steps)] = bounds else { return None };
    let bounds = [begin, end, steps].map(Ints::from_vec);
    let view = strided_view(&shape, bounds, options).ok()?;
    Some((shape, view))
}

fn strided_view(
    shape: &[usize],
    [begin, end, steps]: [Ints; 3],
    options: &StridedSliceOptions,
) -> Result<View, Refusal> {
    let bounds = StridedSliceBounds { begin: &begin, end: &end, strides: &steps };
    let slice = StridedSlice::new(shape, bounds, options)?;
    let mut view = View::of(shape);
    for (d, (&start, &count)) in slice.starts.iter().zip(&slice.counts).enumerate() {
        view = view.slice(d, start, count);
    }
    for (stride, &step) in view.strides.iter_mut().zip(&slice.strides) {
        *stride = stride.saturating_mul(isize::try_from(step).unwrap_or(isize::MAX));
    }
    Ok(view)
}

/// A position along a dimension, which must exist.
fn position(index: i64, dim: usize) -> Result<usize, Refusal> {
    match usize::try_from(index) {
        Ok(index) if index < dim => Ok(index),
        _ => refuse(format!("index {index} is out of range for a dimension of {dim}")),
    }
}

pub(super) fn gather(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    let Op::Gather(options) = context.operator.op.clone() else {
        return refuse(format!("{} is not GATHER", context.operator.op));
    };
    let width = width(context.common_type()?)?;
    run(move |call| {
        let (shape, positions_shape) = (call.shape(0)?, call.shape(1)?);
        let at = axis(options.axis.into(), shape.len())?;
        let batch_dims = match i64::from(options.batch_dims) {
            negative @ ..0 => axis(negative, positions_shape.len())?,
            positive => size(positive)?,
        };
        if batch_dims > at {
            return refuse(format!("{batch_dims} batch dimensions exceed axis {at}"));
        }
        let (_, dim, behind) = around(shape, at);
        let batches: usize = shape[..batch_dims].iter().product();
        let outer: usize = shape[batch_dims..at].iter().product();
        let rows = Rows { batches, outer, dim, block: behind * width };
        match call.tensor(1)?.dtype {
            // Spectrograms have half a million indices, so they are not widened.
            DType::I32 => rows.gather(call.input::<i32>(1)?, call),
            _ => rows.gather(&call.ints(1)?, call),
        }
    })
}

/// The operand of GATHER: `batches x outer x dim` blocks of bytes.
struct Rows {
    batches: usize,
    outer: usize,
    dim: usize,
    block: usize,
}

impl Rows {
    /// Writes the blocks of each batch's indices, once per outer row.
    fn gather<I: Copy + Into<i64>>(
        &self,
        indices: &[I],
        call: &mut Call<'_>,
    ) -> Result<(), Refusal> {
        let input = call.tensor(0)?.bytes;
        let output = call.output_bytes(0)?;
        match self.block {
            // Copies of a constant size do not need a call.
            4 => self.copy(indices, 4, input, output),
            8 => self.copy(indices, 8, input, output),
            block => self.copy(indices, block, input, output),
        }
    }

    #[inline(always)]
    fn copy<I: Copy + Into<i64>>(
        &self,
        indices: &[I],
        block: usize,
        input: &[u8],
        output: &mut [u8],
    ) -> Result<(), Refusal> {
        let per_batch = indices.len().checked_div(self.batches).unwrap_or(0);
        let mut targets = output.chunks_exact_mut(block.max(1));
        for batch in 0..self.batches {
            for row in 0..self.outer {
                let first = (batch * self.outer + row) * self.dim;
                for &index in &indices[batch * per_batch..][..per_batch] {
                    let from = (first + position(index.into(), self.dim)?) * block;
                    if let Some(target) = targets.next() {
                        target.copy_from_slice(&input[from..][..block]);
                    }
                }
            }
        }
        Ok(())
    }
}

/// The first element of each slice that a row of indices selects, and the number of elements of a
/// slice.
fn slices_of(
    shape: &[usize],
    indices: &[i64],
    depth: usize,
) -> Result<(Vec<usize>, usize), Refusal> {
    let steps = strides(shape);
    let block = shape[depth..].iter().product();
    if depth == 0 {
        return Ok((vec![0], block));
    }
    let starts = indices.chunks_exact(depth).map(|row| {
        let terms = row.iter().zip(shape).zip(&steps);
        terms.map(|((&i, &dim), step)| Ok(position(i, dim)? * step)).sum::<Result<usize, Refusal>>()
    });
    Ok((starts.collect::<Result<_, _>>()?, block))
}

pub(super) fn gather_nd(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    let width = width(context.common_type()?)?;
    run(move |call| {
        let depth = call.shape(1)?.last().copied().unwrap_or(0);
        let (starts, block) = slices_of(call.shape(0)?, &call.ints(1)?, depth)?;
        let input = call.tensor(0)?.bytes;
        let block = block * width;
        let targets = call.output_bytes(0)?.chunks_exact_mut(block.max(1));
        for (target, start) in targets.zip(starts) {
            target.copy_from_slice(&input[start * width..][..block]);
        }
        Ok(())
    })
}

/// SCATTER_ND adds overlapping slices.
pub(super) fn scatter_nd(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    match context.output(0)?.dtype {
        DType::F32 => scatter_of::<f32>(context, |a, b| a + b),
        DType::U8 => scatter_of::<u8>(context, u8::wrapping_add),
        DType::Bool => scatter_of::<u8>(context, |a, b| a | b),
        DType::I8 => scatter_of::<i8>(context, i8::wrapping_add),
        DType::I32 => scatter_of::<i32>(context, i32::wrapping_add),
        DType::I64 => scatter_of::<i64>(context, i64::wrapping_add),
        other => context.unsupported(other),
    }
}

fn scatter_of<T: Element>(
    context: &OperatorContext<'_>,
    add: fn(T, T) -> T,
) -> Result<Run, Refusal> {
    context.expect_input(1, context.output(0)?.dtype)?;
    run(move |call| {
        let depth = call.shape(0)?.last().copied().unwrap_or(0);
        let shape = call.output_shape(0)?;
        if depth > shape.len() {
            return refuse(format!(
                "indices of {depth} dimensions exceed the rank of shape {shape:?}"
            ));
        }
        let (starts, block) = slices_of(&shape, &call.ints(0)?, depth)?;
        let updates = call.input::<T>(1)?;
        if updates.len() != starts.len() * block {
            return refuse("the size of the updates does not match the indices");
        }
        let output = call.output::<T>(0)?;
        output.fill(T::default());
        for (update, start) in updates.chunks_exact(block.max(1)).zip(starts) {
            let target = output[start..][..block].iter_mut();
            target.zip(update).for_each(|(out, &x)| *out = add(*out, x));
        }
        Ok(())
    })
}

/// DYNAMIC_UPDATE_SLICE clamps the start so that the update fits.
pub(super) fn dynamic_update_slice(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    let width = width(context.common_type()?)?;
    context.expect_input(1, context.input(0)?.dtype)?;
    run(move |call| {
        let (operand, update) = (call.tensor(0)?, call.tensor(1)?);
        if update.rank() != operand.rank()
            || update.shape.iter().zip(operand.shape).any(|(u, o)| u > o)
        {
            return refuse(format!(
                "an update of shape {:?} does not fit in shape {:?}",
                update.shape, operand.shape
            ));
        }
        let steps = strides(operand.shape);
        let starts = call.ints(2)?;
        if starts.len() != steps.len() {
            return refuse("the number of start indices differs from the rank");
        }
        let dims = operand.shape.iter().zip(update.shape).zip(&starts).zip(&steps);
        let first: usize = dims
            .map(|(((&o, &u), &start), step)| usize::try_from(start).unwrap_or(0).min(o - u) * step)
            .sum();
        let output = call.output_bytes(0)?;
        output.copy_from_slice(operand.bytes);
        let row = update.shape.last().copied().unwrap_or(1) * width;
        let mut rows = update.bytes.chunks_exact(row.max(1));
        super::strides::for_each_row(update.shape, [&steps], |[at]| {
            if let Some(row) = rows.next() {
                output[(first + at) * width..][..row.len()].copy_from_slice(row);
            }
        });
        Ok(())
    })
}

/// EMBEDDING_LOOKUP: rows of a table by index. 8-bit tables may have a float output.
pub(super) fn embedding_lookup(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    let (table, output) = (context.input(1)?, context.output(0)?.dtype);
    if table.dtype == output {
        let width = width(output)?;
        return run(move |call| {
            let (dim, row, indices) = lookup_rows(call)?;
            let input = call.tensor(1)?.bytes;
            let block = row * width;
            let targets = call.output_bytes(0)?.chunks_exact_mut(block.max(1));
            for (target, index) in targets.zip(indices) {
                target.copy_from_slice(&input[position(index, dim)? * block..][..block]);
            }
            Ok(())
        });
    }
    match (table.dtype, output) {
        (DType::I8, DType::F32) => {
            let scales = crate::quant::weight_scales(table, 0)?;
            run(move |call| {
                let (dim, row, indices) = lookup_rows(call)?;
                let input = call.input::<i8>(1)?;
                let targets = call.output::<f32>(0)?.chunks_exact_mut(row.max(1));
                for (target, index) in targets.zip(indices) {
                    let index = position(index, dim)?;
                    let scale = scales[index.min(scales.len() - 1)];
                    let source = &input[index * row..][..row];
                    target.iter_mut().zip(source).for_each(|(out, &q)| *out = f32::from(q) * scale);
                }
                Ok(())
            })
        }
        (table, output) => refuse(format!("{table} table with {output} output")),
    }
}

/// Number of rows, elements per row, and the indices of the requested rows.
fn lookup_rows(call: &Call<'_>) -> Result<(usize, usize, Ints), Refusal> {
    let (&dim, row) =
        call.shape(1)?.split_first().ok_or_else(|| Refusal("the table is a scalar".into()))?;
    Ok((dim, row.iter().product(), call.ints(0)?))
}

pub(super) fn one_hot(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    let Op::OneHot(options) = context.operator.op.clone() else {
        return refuse(format!("{} is not ONE_HOT", context.operator.op));
    };
    let dtype = context.output(0)?.dtype;
    context.expect_input(2, dtype)?;
    context.expect_input(3, dtype)?;
    let width = width(dtype)?;
    run(move |call| {
        let shape = call.output_shape(0)?;
        let at = axis(options.axis.into(), shape.len())?;
        let (before, depth, behind) = around(&shape, at);
        let indices = call.ints(0)?;
        let (on, off) = (call.tensor(2)?.bytes, call.tensor(3)?.bytes);
        if on.len() != width || off.len() != width {
            return refuse("on and off value must have one element each");
        }
        let mut targets = call.output_bytes(0)?.chunks_exact_mut(width);
        for outer in 0..before {
            for d in 0..depth {
                for inner in 0..behind {
                    let hot = indices[outer * behind + inner] == d as i64;
                    if let Some(target) = targets.next() {
                        target.copy_from_slice(if hot { on } else { off });
                    }
                }
            }
        }
        Ok(())
    })
}

pub(super) fn reverse_sequence(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    let Op::ReverseSequence(options) = context.operator.op.clone() else {
        return refuse(format!("{} is not REVERSE_SEQUENCE", context.operator.op));
    };
    let width = width(context.common_type()?)?;
    run(move |call| {
        let shape = call.shape(0)?;
        let (along, batch) = (
            axis(options.seq_dim.into(), shape.len())?,
            axis(options.batch_dim.into(), shape.len())?,
        );
        let lengths = call.ints(1)?;
        if lengths.len() != shape[batch] || along == batch {
            return refuse(format!(
                "{} sequence lengths do not match shape {shape:?}",
                lengths.len()
            ));
        }
        let steps = strides(shape);
        let input = call.tensor(0)?.bytes;
        let output = call.output_bytes(0)?;
        for (at, target) in output.chunks_exact_mut(width).enumerate() {
            let index = at / steps[along] % shape[along];
            let length = size(lengths[at / steps[batch] % shape[batch]])?;
            if length > shape[along] {
                return refuse(format!(
                    "a sequence length of {length} exceeds the dimension of {}",
                    shape[along]
                ));
            }
            let source = if index < length { length - 1 - index } else { index };
            let from = at - index * steps[along] + source * steps[along];
            target.copy_from_slice(&input[from * width..][..width]);
        }
        Ok(())
    })
}
