//! CONCATENATION and PACK.

use smallvec::SmallVec;
use xnn_model::{DType, Op};

use super::copy::around;
use crate::call::{Call, axis};
use crate::dims::{Dims, INLINE};
use crate::error::{Refusal, refuse};
use crate::operator::{OperatorContext, Run, run};
use crate::quant::{Affine, affine, integer_range, is_quantized};
use crate::tensor::width;

pub(super) fn prepare(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    let Op::Concatenation(options) = &context.operator.op else {
        return refuse(format!("{} is not CONCATENATION", context.operator.op));
    };
    let along = options.axis;
    let dtype = context.common_type()?;
    for position in 0..context.operator.inputs.len() {
        context.expect_input(position, dtype)?;
    }
    if dtype.is_8bit() && is_quantized(context.output(0)?) {
        let to = affine(context.output(0)?)?;
        let inputs = (0..context.operator.inputs.len()).map(|i| affine(context.input(i)?));
        let inputs = inputs.collect::<Result<Vec<_>, _>>()?;
        if inputs.iter().any(|from| *from != to) {
            return rescaled(dtype, along, inputs, to);
        }
    }
    let width = width(dtype)?;
    run(move |call| {
        let rank = call.shape(0)?.len();
        let at = axis(along.into(), rank)?;
        let rows = rows_of_inputs(call, at)?;
        interleave(call, &rows, width)
    })
}

/// Number of elements of each input in one row of the result. Rows count the dimensions before
/// `axis`.
fn rows_of_inputs(call: &Call<'_>, axis: usize) -> Result<Dims, Refusal> {
    (0..call.inputs.len())
        .map(|position| {
            let (_, along, behind) = around(call.shape(position)?, axis);
            Ok(along * behind)
        })
        .collect()
}

/// Joins the rows of all inputs, one after the other.
fn interleave(call: &mut Call<'_>, rows: &[usize], width: usize) -> Result<(), Refusal> {
    let total: usize = rows.iter().sum::<usize>() * width;
    let inputs = (0..rows.len()).map(|position| Ok(call.tensor(position)?.bytes));
    let inputs = inputs.collect::<Result<SmallVec<[&[u8]; INLINE]>, Refusal>>()?;
    let output = call.output_bytes(0)?;
    for (index, target) in output.chunks_exact_mut(total.max(1)).enumerate() {
        let mut rest = target;
        for (&row, input) in rows.iter().zip(&inputs) {
            let (part, later) = rest.split_at_mut(row * width);
            let source = input.get(index * row * width..).and_then(|i| i.get(..row * width));
            let Some(source) = source else { return refuse("the inputs have different shapes") };
            part.copy_from_slice(source);
            rest = later;
        }
    }
    Ok(())
}

pub(super) fn pack(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    let Op::Pack(options) = &context.operator.op else {
        return refuse(format!("{} is not PACK", context.operator.op));
    };
    let along = options.axis;
    let width = width(context.common_type()?)?;
    run(move |call| {
        let shape = call.shape(0)?;
        let at = axis(along.into(), shape.len() + 1)?;
        let row = shape[at..].iter().product();
        interleave(call, &Dims::from_elem(row, call.inputs.len()), width)
    })
}

/// Concatenates 8-bit inputs whose scales differ from the output's.
fn rescaled(dtype: DType, along: i32, inputs: Vec<Affine>, to: Affine) -> Result<Run, Refusal> {
    if dtype != DType::U8 {
        return refuse(format!("{dtype} inputs with scales that differ from the output's"));
    }
    let (low, high) = integer_range(dtype)?;
    let inverse = 1.0 / to.scale;
    run(move |call| {
        let at = axis(along.into(), call.shape(0)?.len())?;
        let rows = rows_of_inputs(call, at)?;
        let data = (0..rows.len()).map(|position| call.input::<u8>(position));
        let data = data.collect::<Result<Vec<_>, _>>()?;
        let mut output = call.output::<u8>(0)?.iter_mut();
        let total = rows.iter().sum::<usize>().max(1);
        for index in 0..output.len() / total {
            for ((&row, data), from) in rows.iter().zip(&data).zip(&inputs) {
                let scale = from.scale * inverse;
                let bias = -from.zero_point as f32 * scale;
                for &q in &data[index * row..][..row] {
                    let value = if *from == to {
                        q.into()
                    } else {
                        ((f32::from(q) * scale + bias).round() as i32).saturating_add(to.zero_point)
                    };
                    if let Some(out) = output.next() {
                        *out = value.clamp(low, high) as u8;
                    }
                }
            }
        }
        Ok(())
    })
}
