//! PAD, PADV2 and MIRROR_PAD; SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND.

use xnn_model::{DType, Op};

use super::copy::gather_grid;
use super::strides::{for_each_row, strides};
use crate::call::size;
use crate::dims::Dims;
use crate::error::{Refusal, refuse};
use crate::operator::{OperatorContext, Run, run};
use crate::quant::{affine, is_quantized};
use crate::tensor::width;

/// The padding element of PAD and of PADV2 without an input for it.
fn filling(context: &OperatorContext<'_>, width: usize) -> Result<Vec<u8>, Refusal> {
    let zero = match context.output(0)?.dtype {
        DType::U8 | DType::I8 | DType::I16 if is_quantized(context.output(0)?) => {
            affine(context.output(0)?)?.zero_point
        }
        _ => 0,
    };
    Ok(zero.to_le_bytes().into_iter().chain([0; 12]).take(width).collect())
}

/// Fills `target` with copies of an element, doubling the copied length each time.
fn fill_with(target: &mut [u8], element: &[u8]) {
    let mut done = element.len();
    let Some(first) = target.get_mut(..done) else { return };
    first.copy_from_slice(element);
    while done < target.len() {
        let count = done.min(target.len() - done);
        target.copy_within(..count, done);
        done += count;
    }
}

pub(super) fn pad(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    let dtype = context.common_type()?;
    let width = width(dtype)?;
    let zero = filling(context, width)?;
    run(move |call| {
        let shape = call.shape(0)?;
        let out_shape = call.output_shape(0)?;
        let paddings = call.ints(1)?;
        let before = paddings.chunks(2).map(|pair| size(pair[0]));
        let before = before.collect::<Result<Dims, _>>()?;
        let input = call.tensor(0)?.bytes;
        let fill = call.optional(2).map_or(zero.as_slice(), |value| value.bytes);
        if fill.len() != width {
            return refuse("the padding value (input 2) is not a scalar");
        }
        let output = call.output_bytes(0)?;
        let out_strides = strides(&out_shape);
        let first: usize = before.iter().zip(&out_strides).map(|(b, s)| b * s).sum();
        // From the last padded dimension on, rows are contiguous.
        let grows = shape.iter().zip(&out_shape).rposition(|(from, to)| from != to);
        let (outer, inner) = shape.split_at(grows.unwrap_or(0));
        let row = inner.iter().product::<usize>() * width;
        let mut rows = input.chunks_exact(row.max(1));
        let mut done = 0;
        let walked: Dims = outer.iter().copied().chain([row]).collect();
        for_each_row(&walked, [&out_strides], |[at]| {
            let at = (first + at) * width;
            fill_with(&mut output[done..at], fill);
            done = at + row;
            output[at..done].copy_from_slice(rows.next().unwrap_or_default());
        });
        fill_with(&mut output[done..], fill);
        Ok(())
    })
}

pub(super) fn mirror_pad(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    let Op::MirrorPad(options) = &context.operator.op else {
        return refuse(format!("{} is not MIRROR_PAD", context.operator.op));
    };
    let skip_border = usize::from(!options.symmetric);
    let width = width(context.common_type()?)?;
    run(move |call| {
        let shape = call.shape(0)?;
        let pairs = call.ints(1)?;
        let mut sources = Vec::with_capacity(shape.len());
        for (&dim, pair) in shape.iter().zip(pairs.chunks(2)) {
            let (before, after) = (size(pair[0])?, size(pair[1])?);
            if before.max(after) + skip_border > dim {
                return refuse(format!(
                    "a padding of {pair:?} is too large for a dimension of {dim}"
                ));
            }
            let left = (skip_border..before + skip_border).rev();
            let right = (dim - after - skip_border..dim - skip_border).rev();
            sources.push(left.chain(0..dim).chain(right).collect());
        }
        let input = call.tensor(0)?.bytes;
        gather_grid(&strides(shape), &sources, width, input, call.output_bytes(0)?);
        Ok(())
    })
}

/// A shape with two spatial dimensions; rank 3 has only one.
fn spatial(shape: &[usize]) -> Result<[usize; 4], Refusal> {
    match *shape {
        [n, h, w, c] => Ok([n, h, w, c]),
        [n, h, c] => Ok([n, h, 1, c]),
        _ => refuse(format!("the shape is {shape:?}, expected rank 3 or 4")),
    }
}

/// Values for two spatial dimensions, of which the second may be missing.
fn pair_of(values: &[i64], default: i64) -> Result<[usize; 2], Refusal> {
    let at = |i: usize| size(values.get(i).copied().unwrap_or(default));
    Ok([at(0)?, at(1)?])
}

pub(super) fn space_to_batch(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    let width = width(context.common_type()?)?;
    let zero = filling(context, width)?;
    run(move |call| {
        let [batches, height, columns, depth] = spatial(call.shape(0)?)?;
        let [_, out_h, out_w, _] = spatial(&call.output_shape(0)?)?;
        let [block_h, block_w] = pair_of(&call.ints(1)?, 1)?;
        let paddings = call.ints(2)?;
        let starts: Vec<i64> = paddings.chunks(2).map(|pair| pair[0]).collect();
        let [top, left] = pair_of(&starts, 0)?;
        let input = call.tensor(0)?.bytes;
        let pixel = depth * width;
        let mut targets = call.output_bytes(0)?.chunks_exact_mut(pixel.max(1));
        for block in 0..block_h * block_w {
            for batch in 0..batches {
                for (y, x) in (0..out_h).flat_map(|y| (0..out_w).map(move |x| (y, x))) {
                    let Some(target) = targets.next() else { return Ok(()) };
                    let y = (y * block_h + block / block_w).checked_sub(top);
                    let x = (x * block_w + block % block_w).checked_sub(left);
                    match (y, x) {
                        (Some(y), Some(x)) if y < height && x < columns => {
                            let from = ((batch * height + y) * columns + x) * pixel;
                            target.copy_from_slice(&input[from..][..pixel]);
                        }
                        _ => fill_with(target, &zero),
                    }
                }
            }
        }
        Ok(())
    })
}

pub(super) fn batch_to_space(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    let width = width(context.common_type()?)?;
    run(move |call| {
        let [_, height, columns, depth] = spatial(call.shape(0)?)?;
        let [batches, out_h, out_w, _] = spatial(&call.output_shape(0)?)?;
        let [block_h, block_w] = pair_of(&call.ints(1)?, 1)?;
        let crops = call.ints(2)?;
        let starts: Vec<i64> = crops.chunks(2).map(|pair| pair[0]).collect();
        let [top, left] = pair_of(&starts, 0)?;
        let input = call.tensor(0)?.bytes;
        let pixel = depth * width;
        let mut targets = call.output_bytes(0)?.chunks_exact_mut(pixel.max(1));
        for batch in 0..batches {
            for (y, x) in (0..out_h).flat_map(|y| (0..out_w).map(move |x| (y, x))) {
                let Some(target) = targets.next() else { return Ok(()) };
                let (y, x) = (y + top, x + left);
                let block = y % block_h * block_w + x % block_w;
                let image = block * batches + batch;
                let from = ((image * height + y / block_h) * columns + x / block_w) * pixel;
                target.copy_from_slice(&input[from..][..pixel]);
            }
        }
        Ok(())
    })
}
