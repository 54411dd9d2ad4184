//! Operators that keep elements and change their arrangement.

use smallvec::{SmallVec, smallvec};
use xnn_model::infer::axes_of_reduction;
use xnn_model::{DType, Op};

use super::copy::{View, around, width};
use super::strides::{broadcast_strides, for_each_row, strides};
use crate::call::{Call, axis, size};
use crate::error::{Refusal, refuse};
use crate::node::{Node, Run, run};
use crate::quant::{affine, is_quantized};
use crate::{Dims, INLINE};

/// Elements in the same order: RESHAPE, SQUEEZE, EXPAND_DIMS.
pub(super) fn reshape(node: &Node<'_>) -> Result<Run, Refusal> {
    width(node.common_type()?)?;
    run(|call| {
        let input = call.tensor(0)?.bytes;
        call.output_bytes(0)?.copy_from_slice(input);
        Ok(())
    })
}

pub(super) fn bitcast(node: &Node<'_>) -> Result<Run, Refusal> {
    let (from, to) = (width(node.input(0)?.dtype)?, width(node.output(0)?.dtype)?);
    run(move |call| {
        let input = call.tensor(0)?;
        let mut shape = input.shape.to_vec();
        if from > to {
            shape.push(from / to);
        } else if from < to && shape.pop() != Some(to / from) {
            return refuse(format!("shape {:?} does not become larger elements", input.shape));
        }
        call.allocate(0, &shape)?;
        call.output_bytes(0)?.copy_from_slice(input.bytes);
        Ok(())
    })
}

/// Copies a view of the first input into the first output.
fn viewed(
    node: &Node<'_>,
    view: impl Fn(&Call<'_>) -> Result<View, Refusal> + Send + Sync + 'static,
) -> Result<Run, Refusal> {
    let width = width(node.common_type()?)?;
    run(move |call| {
        let view = view(call)?;
        let input = call.tensor(0)?.bytes;
        view.copy(width, input, call.output_bytes(0)?)
    })
}

pub(super) fn transpose(node: &Node<'_>) -> Result<Run, Refusal> {
    viewed(node, |call| {
        let whole = View::of(call.shape(0)?);
        let rank = whole.shape.len();
        let order = call.ints(1)?.into_iter().map(|p| axis(p, rank));
        let order = order.collect::<Result<Dims, _>>()?;
        Ok(View {
            start: 0,
            shape: order.iter().map(|&p| whole.shape[p]).collect(),
            strides: order.iter().map(|&p| whole.strides[p]).collect(),
        })
    })
}

pub(super) fn broadcast_to(node: &Node<'_>) -> Result<Run, Refusal> {
    viewed(node, |call| {
        let shape = call.output_shape(0)?;
        let strides = broadcast_strides(call.shape(0)?, &shape);
        Ok(View { start: 0, shape, strides: strides.into_iter().map(usize::cast_signed).collect() })
    })
}

/// Every dimension becomes two: the repetition, which does not move, and the
/// dimension itself.
pub(super) fn tile(node: &Node<'_>) -> Result<Run, Refusal> {
    viewed(node, |call| {
        let whole = View::of(call.shape(0)?);
        let mut view = View { start: 0, shape: smallvec![], strides: smallvec![] };
        for ((dim, stride), times) in whole.shape.iter().zip(whole.strides).zip(call.ints(1)?) {
            view.shape.extend([size(times)?, *dim]);
            view.strides.extend([0, stride]);
        }
        Ok(view)
    })
}

pub(super) fn reverse(node: &Node<'_>) -> Result<Run, Refusal> {
    viewed(node, |call| {
        let mut view = View::of(call.shape(0)?);
        for axis in axes_of_reduction(&call.ints(1)?, view.shape.len())? {
            let last = view.shape[axis].saturating_sub(1).cast_signed();
            view.start = view.start.wrapping_add_signed(last * view.strides[axis]);
            view.strides[axis] = -view.strides[axis];
        }
        Ok(view)
    })
}

/// `[n, h, w, b, b, c]` seen as `[n, h, b, w, b, c]`.
pub(super) fn depth_to_space(node: &Node<'_>) -> Result<Run, Refusal> {
    viewed(node, |call| {
        let [n, h, w, _] = call.dims(0)?;
        let [_, out_h, _, c] = call.output_dims(0)?;
        let block = out_h.checked_div(h).unwrap_or(0);
        Ok(swapped(&[n, h, w, block, block, c], 2, 3))
    })
}

/// `[n, h, b, w, b, c]` seen as `[n, h, w, b, b, c]`.
pub(super) fn space_to_depth(node: &Node<'_>) -> Result<Run, Refusal> {
    viewed(node, |call| {
        let [n, h, _, c] = call.dims(0)?;
        let [_, out_h, out_w, _] = call.output_dims(0)?;
        let block = h.checked_div(out_h).unwrap_or(0);
        Ok(swapped(&[n, out_h, block, out_w, block, c], 2, 3))
    })
}

fn swapped(shape: &[usize], a: usize, b: usize) -> View {
    let mut view = View::of(shape);
    view.shape.swap(a, b);
    view.strides.swap(a, b);
    view
}

pub(super) fn concatenation(node: &Node<'_>) -> Result<Run, Refusal> {
    let Op::Concatenation(options) = &node.operator.op else {
        return refuse(format!("{} is not CONCATENATION", node.operator.op));
    };
    let along = options.axis;
    let dtype = node.common_type()?;
    for position in 0..node.operator.inputs.len() {
        node.expect_input(position, dtype)?;
    }
    if dtype.is_8bit() && is_quantized(node.output(0)?) {
        let to = affine(node.output(0)?)?;
        let inputs = (0..node.operator.inputs.len()).map(|i| affine(node.input(i)?));
        let inputs = inputs.collect::<Result<Vec<_>, _>>()?;
        if inputs.iter().any(|from| *from != to) {
            return super::quantize::concatenation(dtype, along, inputs, to);
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

/// Elements of each input in one row of the result, where the rows count the
/// dimensions before `axis`.
pub(super) fn rows_of_inputs(call: &Call<'_>, axis: usize) -> Result<Dims, Refusal> {
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
            let Some(source) = source else { return refuse("inputs of different shapes") };
            part.copy_from_slice(source);
            rest = later;
        }
    }
    Ok(())
}

pub(super) fn pack(node: &Node<'_>) -> Result<Run, Refusal> {
    let Op::Pack(options) = &node.operator.op else {
        return refuse(format!("{} is not PACK", node.operator.op));
    };
    let along = options.axis;
    let width = width(node.common_type()?)?;
    run(move |call| {
        let shape = call.shape(0)?;
        let at = axis(along.into(), shape.len() + 1)?;
        let row = shape[at..].iter().product();
        interleave(call, &Dims::from_elem(row, call.inputs.len()), width)
    })
}

pub(super) fn unpack(node: &Node<'_>) -> Result<Run, Refusal> {
    let Op::Unpack(options) = &node.operator.op else {
        return refuse(format!("{} is not UNPACK", node.operator.op));
    };
    let along = options.axis;
    let width = width(node.common_type()?)?;
    run(move |call| {
        let shape = call.shape(0)?;
        let at = axis(along.into(), shape.len())?;
        let input = call.tensor(0)?.bytes;
        for position in 0..call.outputs.len() {
            let view = View::of(shape).slice(at, position, 1);
            view.copy(width, input, call.output_bytes(position)?)?;
        }
        Ok(())
    })
}

/// The positions of the value and of the axis differ between the two.
pub(super) fn split(node: &Node<'_>) -> Result<Run, Refusal> {
    let (value, axis_at) = match node.operator.op {
        Op::Split(_) => (1, 0),
        _ => (0, 2),
    };
    let width = width(node.input(value)?.dtype)?;
    node.expect_output(0, node.input(value)?.dtype)?;
    run(move |call| {
        let shape = call.shape(value)?;
        let at = axis(call.int(axis_at)?, shape.len())?;
        let input = call.tensor(value)?.bytes;
        let mut start = 0;
        for position in 0..call.outputs.len() {
            let count = call.output_shape(position)?[at];
            let view = View::of(shape).slice(at, start, count);
            view.copy(width, input, call.output_bytes(position)?)?;
            start += count;
        }
        Ok(())
    })
}

/// The bytes with which PAD and PADV2 fill.
fn filling(node: &Node<'_>, width: usize) -> Result<Vec<u8>, Refusal> {
    let zero = match node.output(0)?.dtype {
        DType::U8 | DType::I8 | DType::I16 if is_quantized(node.output(0)?) => {
            affine(node.output(0)?)?.zero_point
        }
        _ => 0,
    };
    Ok(zero.to_le_bytes().into_iter().chain([0; 12]).take(width).collect())
}

/// Repeats an element, twice as many with each copy.
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

pub(super) fn pad(node: &Node<'_>) -> Result<Run, Refusal> {
    let dtype = node.common_type()?;
    let width = width(dtype)?;
    let zero = filling(node, width)?;
    run(move |call| {
        let shape = call.shape(0)?;
        let out_shape = call.output_shape(0)?;
        let paddings = call.ints(1)?;
        let before = paddings.chunks(2).map(|pair| size(pair[0]));
        let before = before.collect::<Result<Dims, _>>()?;
        let input = call.tensor(0)?.bytes;
        let fill = call.optional(2).map_or(zero.as_slice(), |value| value.bytes);
        if fill.len() != width {
            return refuse("what is to be filled with (input 2) is not a scalar");
        }
        let output = call.output_bytes(0)?;
        let out_strides = strides(&out_shape);
        let first: usize = before.iter().zip(&out_strides).map(|(b, s)| b * s).sum();
        // From the last dimension that grows on, rows are in one piece.
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

pub(super) fn mirror_pad(node: &Node<'_>) -> Result<Run, Refusal> {
    let Op::MirrorPad(options) = &node.operator.op else {
        return refuse(format!("{} is not MIRROR_PAD", node.operator.op));
    };
    let skip_border = usize::from(!options.symmetric);
    let width = width(node.common_type()?)?;
    run(move |call| {
        let shape = call.shape(0)?;
        let pairs = call.ints(1)?;
        let mut sources = Vec::with_capacity(shape.len());
        for (&dim, pair) in shape.iter().zip(pairs.chunks(2)) {
            let (before, after) = (size(pair[0])?, size(pair[1])?);
            if before.max(after) + skip_border > dim {
                return refuse(format!("a border of {pair:?} does not fit a dimension of {dim}"));
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

/// Copies the elements whose index is, in every dimension, the one that a
/// table gives for the result's.
pub(super) fn gather_grid(
    strides: &[usize],
    sources: &[Vec<usize>],
    width: usize,
    input: &[u8],
    output: &mut [u8],
) {
    let mut offsets = vec![0];
    for (stride, sources) in strides.iter().zip(sources) {
        offsets = offsets
            .iter()
            .flat_map(|offset| sources.iter().map(move |source| offset + source * stride))
            .collect();
    }
    for (target, offset) in output.chunks_exact_mut(width).zip(offsets) {
        target.copy_from_slice(&input[offset * width..][..width]);
    }
}

/// Spatial dimensions as two; rank 3 has just one.
fn spatial(shape: &[usize]) -> Result<[usize; 4], Refusal> {
    match *shape {
        [n, h, w, c] => Ok([n, h, w, c]),
        [n, h, c] => Ok([n, h, 1, c]),
        _ => refuse(format!("shape {shape:?}, expected rank 3 or 4")),
    }
}

/// Numbers for two spatial dimensions, of which the second may be missing.
fn pair_of(values: &[i64], default: i64) -> Result<[usize; 2], Refusal> {
    let at = |i: usize| size(values.get(i).copied().unwrap_or(default));
    Ok([at(0)?, at(1)?])
}

pub(super) fn space_to_batch(node: &Node<'_>) -> Result<Run, Refusal> {
    let width = width(node.common_type()?)?;
    let zero = filling(node, width)?;
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

pub(super) fn batch_to_space(node: &Node<'_>) -> Result<Run, Refusal> {
    let width = width(node.common_type()?)?;
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
