//! Shapes of broadcasts, reductions and products.

use super::inputs::{Inputs, Rule, Stop, invalid, one, size};
use crate::op::{BatchMatMulOptions, FullyConnectedOptions, Op};
use crate::types::{DType, element_count};

/// Resolves an axis, which counts from the end if negative.
///
/// # Errors
///
/// A phrase for error messages, if the axis is out of range.
pub fn axis_in_rank(axis: i64, rank: usize) -> Result<usize, String> {
    let from_end = i64::try_from(rank).unwrap_or(i64::MAX).saturating_add(axis);
    let index = if axis < 0 { from_end } else { axis };
    match usize::try_from(index) {
        Ok(index) if index < rank => Ok(index),
        _ => Err(format!("axis {axis} does not exist in rank {rank}")),
    }
}

/// Resolves the axes of a reduction: sorted, without duplicates.
///
/// # Errors
///
/// A phrase for error messages, if an axis is out of range.
pub fn axes_of_reduction(axes: &[i64], rank: usize) -> Result<Vec<usize>, String> {
    let mut resolved =
        axes.iter().map(|&a| axis_in_rank(a, rank)).collect::<Result<Vec<_>, _>>()?;
    resolved.sort_unstable();
    resolved.dedup();
    Ok(resolved)
}

/// The shape to which both operands broadcast; `None` if they do not broadcast.
#[must_use]
pub fn broadcast_shapes(a: &[usize], b: &[usize]) -> Option<Vec<usize>> {
    let rank = a.len().max(b.len());
    let dim = |shape: &[usize], i: usize| match (i + shape.len()).checked_sub(rank) {
        Some(at) => shape.get(at).copied().unwrap_or(1),
        None => 1,
    };
    (0..rank)
        .map(|i| match (dim(a, i), dim(b, i)) {
            (x, y) if x == y => Some(x),
            (1, y) => Some(y),
            (x, 1) => Some(x),
            _ => None,
        })
        .collect()
}

pub(super) fn broadcast(inputs: &Inputs<'_>, positions: &[usize]) -> Rule {
    let mut shape = vec![];
    for &position in positions {
        let next = inputs.shape(position)?;
        shape = broadcast_shapes(&shape, next).map_or_else(
            || invalid(format!("shapes {shape:?} and {next:?} do not broadcast")),
            Ok,
        )?;
    }
    one(shape)
}

pub(super) fn broadcast_args(inputs: &Inputs<'_>) -> Rule {
    let [a] = inputs.dims(0)?;
    let [b] = inputs.dims(1)?;
    one(vec![a.max(b)])
}

pub(super) fn reduce(inputs: &Inputs<'_>, keep_dims: bool) -> Rule {
    let input = inputs.shape(0)?;
    let axes = axes_of_reduction(&inputs.ints(1)?, input.len()).map_err(Stop::Invalid)?;
    let dims = input.iter().enumerate();
    one(if keep_dims {
        dims.map(|(i, &d)| if axes.contains(&i) { 1 } else { d }).collect()
    } else {
        dims.filter(|(i, _)| !axes.contains(i)).map(|(_, &d)| d).collect()
    })
}

pub(super) fn arg_min_max(inputs: &Inputs<'_>) -> Rule {
    let mut shape = inputs.shape(0)?.to_vec();
    let axis = axis_in_rank(inputs.int(1)?, shape.len()).map_err(Stop::Invalid)?;
    shape.remove(axis);
    one(shape)
}

pub(super) fn top_k(inputs: &Inputs<'_>) -> Rule {
    let mut shape = inputs.shape(0)?.to_vec();
    let k = size(inputs.int(1)?)?;
    match shape.last_mut() {
        Some(last) if *last >= k => *last = k,
        _ => {
            return invalid(format!("shape {shape:?} has fewer than {k} elements in a row"));
        }
    }
    Ok(vec![shape.clone(), shape])
}

pub(super) fn fully_connected(inputs: &Inputs<'_>, options: &FullyConnectedOptions) -> Rule {
    let input = inputs.shape(0)?;
    let [units, depth] = inputs.dims(1)?;
    if options.keep_num_dims {
        return match input.split_last() {
            Some((&last, rest)) if last == depth => one([rest, &[units]].concat()),
            _ => {
                invalid(format!("rows of shape {input:?} do not match weights [{units}, {depth}]"))
            }
        };
    }
    let rows = match (element_count(input), input.split_last()) {
        // The number of empty rows comes from the other dimensions.
        (_, Some((_, outer))) if depth == 0 => element_count(outer),
        (Some(elements), _) if depth > 0 && elements % depth == 0 => Some(elements / depth),
        _ => None,
    };
    match rows {
        Some(rows) => one(vec![rows, units]),
        _ => invalid(format!("shape {input:?} does not match weights [{units}, {depth}]")),
    }
}

pub(super) fn batch_matmul(inputs: &Inputs<'_>, options: &BatchMatMulOptions) -> Rule {
    let (a, b) = (inputs.shape(0)?, inputs.shape(1)?);
    let (Some((batch_a, matrix_a)), Some((batch_b, matrix_b))) =
        (a.split_last_chunk::<2>(), b.split_last_chunk::<2>())
    else {
        return invalid(format!("shapes {a:?} and {b:?} are not both matrices"));
    };
    let turn = |[rows, columns]: [usize; 2], adjoint| {
        if adjoint { [columns, rows] } else { [rows, columns] }
    };
    let [m, k] = turn(*matrix_a, options.adj_x);
    let [k_b, n] = turn(*matrix_b, options.adj_y);
    match broadcast_shapes(batch_a, batch_b) {
        Some(batch) if k == k_b => one([batch.as_slice(), &[m, n]].concat()),
        _ => invalid(format!("the matrices {a:?} and {b:?} cannot be multiplied")),
    }
}

/// RANGE: the inputs are `start`, `limit` and `delta`.
pub(super) fn range(inputs: &Inputs<'_>) -> Rule {
    let fact = inputs.fact(0)?;
    if fact.dtype == DType::F32 {
        let scalar = |position| -> Rule<f32> {
            let data = inputs.fact(position)?.data.as_deref().ok_or(Stop::Dynamic)?;
            match data.as_chunks::<4>() {
                ([bytes], []) => Ok(f32::from_le_bytes(*bytes)),
                _ => invalid(format!("input {position} is not a scalar")),
            }
        };
        // In the precision of TFLite's `GetSize`, where 0.3 / 0.1 gives 3 elements.
        let count = ((scalar(1)? - scalar(0)?) / scalar(2)?).ceil();
        if !(0.0..=2f32.powi(53)).contains(&count) {
            return invalid("the range is infinite");
        }
        return one(vec![count as usize]);
    }
    let (start, limit, delta) = (inputs.int(0)?, inputs.int(1)?, inputs.int(2)?);
    let span = i128::from(limit) - i128::from(start);
    let delta = i128::from(delta);
    if delta == 0 || (span != 0 && (span < 0) != (delta < 0)) {
        return invalid("the range is infinite");
    }
    let count = span.unsigned_abs().div_ceil(delta.unsigned_abs());
    usize::try_from(count).map_or_else(|_| invalid("the range is too long"), |n| one(vec![n]))
}

pub(super) fn rfft2d(inputs: &Inputs<'_>) -> Rule {
    let mut shape = inputs.shape(0)?.to_vec();
    let (&[h, w], Some(last)) = (inputs.as_shape(1)?.as_slice(), shape.last_chunk_mut::<2>())
    else {
        return invalid("the input and its length need two dimensions");
    };
    *last = [h, w / 2 + 1];
    one(shape)
}

pub(super) fn non_max_suppression(op: &Op, inputs: &Inputs<'_>) -> Rule {
    let most = size(inputs.int(2)?)?;
    Ok(match op {
        Op::NonMaxSuppressionV4 => vec![vec![most], vec![]],
        _ => vec![vec![most], vec![most], vec![]],
    })
}

pub(super) fn multinomial(inputs: &Inputs<'_>) -> Rule {
    let [batch, _] = inputs.dims(0)?;
    one(vec![batch, size(inputs.int(1)?)?])
}

pub(super) fn unsorted_segment(inputs: &Inputs<'_>) -> Rule {
    let (data, ids) = (inputs.shape(0)?, inputs.shape(1)?);
    let segments = size(inputs.int(2)?)?;
    match data.strip_prefix(ids) {
        Some(rest) => one([&[segments], rest].concat()),
        None => invalid(format!("segment ids {ids:?} do not fit data {data:?}")),
    }
}
