//! Shapes of broadcasts, reductions and rearrangements.

use super::shapes::{Dims, Shapes};
use crate::error::{Error, Result, require};
use crate::node::flags;
use crate::value::ValueId;
use crate::wire::size;

/// Broadcasts two shapes, aligned at the last dimension.
pub(super) fn broadcast(a: &[usize], b: &[usize]) -> Result<Dims> {
    let rank = a.len().max(b.len());
    let padded = |dims: &[usize]| {
        let ones = rank - dims.len();
        std::iter::repeat_n(1, ones).chain(dims.iter().copied()).collect::<Dims>()
    };
    padded(a)
        .into_iter()
        .zip(padded(b))
        .map(|pair| match pair {
            (a, b) if a == b || b == 1 => Ok(a),
            (1, b) => Ok(b),
            _ => Err(Error::invalid(format!("the shapes {a:?} and {b:?} do not broadcast"))),
        })
        .collect()
}

pub(super) fn reduce(dims: &[usize], axes: &[usize], flags: u32) -> Result<Dims> {
    require!(
        axes.iter().all(|&axis| axis < dims.len()),
        "the axes {axes:?} are out of range for {dims:?}"
    );
    let keep = flags & flags::KEEP_DIMS != 0;
    Ok(dims
        .iter()
        .enumerate()
        .filter_map(|(axis, &dim)| match axes.contains(&axis) {
            true => keep.then_some(1),
            false => Some(dim),
        })
        .collect())
}

pub(super) fn concatenate(axis: u32, inputs: &[ValueId], shapes: &Shapes) -> Result<Dims> {
    let mut sum = 0usize;
    let mut result: Option<Dims> = None;
    for &input in inputs {
        let mut dims = shapes.of(input)?.to_vec();
        let dim = axis_of(&mut dims, axis)?;
        sum = sum.saturating_add(*dim);
        *dim = 1;
        let others = result.get_or_insert_with(|| dims.clone());
        require!(*others == dims, "the shapes differ in more than dimension {axis}");
    }
    let mut dims = result.unwrap_or_default();
    *axis_of(&mut dims, axis)? = sum;
    Ok(dims)
}

pub(super) fn axis_of(dims: &mut Dims, axis: u32) -> Result<&mut usize> {
    let rank = dims.len();
    dims.get_mut(size(axis)).ok_or_else(|| {
        Error::invalid(format!("the axis {axis} is out of range for {rank} dimensions"))
    })
}

pub(super) fn reshape(dims: &[usize], new_shape: &[usize]) -> Result<Dims> {
    let elements = product(dims)?;
    let known: Dims = new_shape.iter().copied().filter(|&dim| dim > 0).collect();
    let known = product(&known)?;
    let rest = (elements.is_multiple_of(known)).then(|| elements / known);
    match rest {
        Some(rest) if rest == 1 || new_shape.contains(&0) => {
            Ok(new_shape.iter().map(|&dim| if dim == 0 { rest } else { dim }).collect())
        }
        _ => Err(Error::invalid(format!("{dims:?} cannot be reshaped to {new_shape:?}"))),
    }
}

pub(super) fn slice(dims: &[usize], offsets: &[usize], sizes: &[usize]) -> Result<Dims> {
    let outside =
        || Error::invalid(format!("offsets {offsets:?} and sizes {sizes:?} do not fit {dims:?}"));
    if offsets.len() != dims.len() || sizes.len() != dims.len() {
        return Err(outside());
    }
    dims.iter()
        .zip(offsets.iter().zip(sizes))
        .map(|(&dim, (&offset, &size))| {
            let rest = dim.checked_sub(offset);
            let rest = rest.filter(|&rest| (rest > 0 || dim == 0) && size <= rest);
            let rest = rest.ok_or_else(outside)?;
            Ok(if size == 0 { rest } else { size })
        })
        .collect()
}

pub(super) fn pad(dims: &[usize], pre: &[usize], post: &[usize]) -> Result<Dims> {
    require!(
        pre.len() == dims.len() && post.len() == dims.len(),
        "paddings for {} dimensions instead of {}",
        pre.len(),
        dims.len()
    );
    let padded = dims.iter().zip(pre).zip(post);
    Ok(padded.map(|((dim, pre), post)| dim.saturating_add(*pre).saturating_add(*post)).collect())
}

pub(super) fn product(factors: &[usize]) -> Result<usize> {
    factors
        .iter()
        .try_fold(1usize, |product, &factor| product.checked_mul(factor))
        .ok_or_else(|| Error::invalid(format!("the product of {factors:?} is too large")))
}
