//! Shapes of operators that rearrange elements.

use super::inputs::{Inputs, Rule, Stop, invalid, one, positive, size};
use super::math::{axis_in_rank, broadcast_shapes};
use crate::op::ReshapeOptions;
use crate::types::element_count;

fn axis(value: i64, rank: usize) -> Rule<usize> {
    axis_in_rank(value, rank).map_err(Stop::Invalid)
}

fn product(shape: &[usize]) -> Rule<usize> {
    element_count(shape).map_or_else(|| invalid("a shape overflows"), Ok)
}

pub(super) fn reshape(inputs: &Inputs<'_>, options: &ReshapeOptions) -> Rule {
    let input = inputs.shape(0)?;
    let as_tensor = inputs.has(1) && inputs.fact(1)?.shape.as_ref().is_some_and(|s| s.len() == 1);
    let target: Vec<i64> = match &options.new_shape {
        _ if as_tensor => inputs.ints(1)?,
        // Old files store a scalar as a single zero.
        Some(shape) if shape.as_slice() == [0] => vec![],
        Some(shape) => shape.iter().map(|&d| i64::from(d)).collect(),
        None if inputs.has(1) => inputs.ints(1)?,
        None => return invalid("expected the new shape as an input or an option"),
    };
    let elements = product(input)?;
    let mut open = None;
    let mut shape = Vec::with_capacity(target.len());
    for (i, &d) in target.iter().enumerate() {
        if d == -1 {
            if open.replace(i).is_some() {
                return invalid("more than one dimension of the new shape is -1");
            }
            shape.push(1);
        } else {
            shape.push(size(d)?);
        }
    }
    if let Some(open) = open {
        // If both shapes are empty, the inferred dimension replaces all others.
        let is_empty = elements == 0 && shape.contains(&0);
        let factors = |shape: &[usize]| -> Rule<usize> {
            product(&shape.iter().copied().filter(|&d| !is_empty || d != 0).collect::<Vec<_>>())
        };
        shape[open] = factors(input)?.checked_div(factors(&shape)?).unwrap_or(0);
    }
    if product(&shape)? != elements {
        return invalid(format!("shape {input:?} cannot become {target:?}"));
    }
    one(shape)
}

pub(super) fn squeeze(inputs: &Inputs<'_>, dims: &[i32]) -> Rule {
    let input = inputs.shape(0)?;
    let mut drop = vec![dims.is_empty(); input.len()];
    for &d in dims {
        let d = axis(i64::from(d), input.len())?;
        if input[d] != 1 {
            return invalid(format!("dimension {d} of {input:?} is not 1"));
        }
        drop[d] = true;
    }
    let kept = input.iter().zip(drop).filter(|&(&d, drop)| !drop || d != 1);
    one(kept.map(|(&d, _)| d).collect())
}

pub(super) fn expand_dims(inputs: &Inputs<'_>) -> Rule {
    let mut shape = inputs.shape(0)?.to_vec();
    let at = axis(inputs.int(1)?, shape.len() + 1)?;
    shape.insert(at, 1);
    one(shape)
}

pub(super) fn transpose(inputs: &Inputs<'_>) -> Rule {
    let input = inputs.shape(0)?;
    let permutation = inputs.ints(1)?;
    if permutation.len() != input.len() {
        return invalid(format!("permutation {permutation:?} does not fit shape {input:?}"));
    }
    let mut seen = vec![false; input.len()];
    let mut shape = Vec::with_capacity(input.len());
    for &p in &permutation {
        let p = axis(p, input.len())?;
        if std::mem::replace(&mut seen[p], true) {
            return invalid(format!("{permutation:?} is not a permutation"));
        }
        shape.push(input[p]);
    }
    one(shape)
}

pub(super) fn concatenation(inputs: &Inputs<'_>, along: i32) -> Rule {
    let mut shape = inputs.shape(0)?.to_vec();
    let at = axis(i64::from(along), shape.len())?;
    for i in 1..inputs.len() {
        let other = inputs.shape(i)?;
        let fits = other.len() == shape.len()
            && shape.iter().zip(other).enumerate().all(|(d, (a, b))| d == at || a == b);
        if !fits {
            return invalid(format!(
                "shapes {shape:?} and {other:?} cannot be concatenated along dimension {at}"
            ));
        }
        shape[at] = shape[at].saturating_add(other[at]);
    }
    one(shape)
}

pub(super) fn pack(inputs: &Inputs<'_>, along: i32) -> Rule {
    let first = inputs.shape(0)?;
    for i in 1..inputs.len() {
        let other = inputs.shape(i)?;
        if other != first {
            return invalid(format!("shapes {first:?} and {other:?} differ"));
        }
    }
    let mut shape = first.to_vec();
    let at = axis(i64::from(along), shape.len() + 1)?;
    shape.insert(at, inputs.len());
    one(shape)
}

/// Pairs of paddings or crops, one per dimension.
fn pairs(inputs: &Inputs<'_>, position: usize, count: usize) -> Rule<Vec<(usize, usize)>> {
    let flat = inputs.as_shape(position)?;
    let (pairs, rest) = flat.as_chunks::<2>();
    if pairs.len() != count || !rest.is_empty() {
        return invalid(format!(
            "input {position} has {} elements, expected {count} pairs",
            flat.len()
        ));
    }
    Ok(pairs.iter().map(|&[before, after]| (before, after)).collect())
}

pub(super) fn pad(inputs: &Inputs<'_>) -> Rule {
    let input = inputs.shape(0)?;
    let paddings = pairs(inputs, 1, input.len())?;
    let padded =
        input.iter().zip(paddings).map(|(d, (a, b))| d.saturating_add(a).saturating_add(b));
    one(padded.collect())
}

pub(super) fn tile(inputs: &Inputs<'_>) -> Rule {
    let input = inputs.shape(0)?;
    let multiples = inputs.as_shape(1)?;
    if multiples.len() != input.len() {
        return invalid(format!("multiples {multiples:?} do not fit shape {input:?}"));
    }
    one(input.iter().zip(multiples).map(|(&d, m)| d.saturating_mul(m)).collect())
}

pub(super) fn broadcast_to(inputs: &Inputs<'_>) -> Rule {
    let input = inputs.shape(0)?;
    let target = inputs.as_shape(1)?;
    match broadcast_shapes(input, &target) {
        Some(shape) if shape == target => one(target),
        _ => invalid(format!("shape {input:?} does not broadcast to {target:?}")),
    }
}

pub(super) fn matrix_diag(inputs: &Inputs<'_>) -> Rule {
    let mut shape = inputs.shape(0)?.to_vec();
    match shape.last() {
        Some(&last) => shape.push(last),
        None => return invalid("a scalar has no diagonal"),
    }
    one(shape)
}

pub(super) fn depth_to_space(inputs: &Inputs<'_>, block: i32) -> Rule {
    let [n, h, w, c] = inputs.dims(0)?;
    let block = positive(block, "the block size")?;
    let area = block.saturating_mul(block);
    if c % area != 0 {
        return invalid(format!("{c} channels do not divide into blocks of {block} × {block}"));
    }
    one(vec![n, h.saturating_mul(block), w.saturating_mul(block), c / area])
}

pub(super) fn space_to_depth(inputs: &Inputs<'_>, block: i32) -> Rule {
    let [n, h, w, c] = inputs.dims(0)?;
    let block = positive(block, "the block size")?;
    if h % block != 0 || w % block != 0 {
        return invalid(format!("{h} × {w} does not divide into blocks of {block} × {block}"));
    }
    one(vec![n, h / block, w / block, c.saturating_mul(block).saturating_mul(block)])
}

/// Input, block sizes, and paddings or crops of SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND.
struct Blocks<'a> {
    input: &'a [usize],
    sizes: Vec<usize>,
    borders: Vec<(usize, usize)>,
}

/// Reads the inputs of either operator, which have rank 3 (one spatial dimension) or 4 (two).
fn blocks<'a>(inputs: &'a Inputs<'_>) -> Rule<Blocks<'a>> {
    let input = inputs.shape(0)?;
    let sizes = inputs.as_shape(1)?;
    if !matches!(input.len(), 3 | 4) || sizes.len() + 2 != input.len() || sizes.contains(&0) {
        return invalid(format!("blocks {sizes:?} do not fit shape {input:?}"));
    }
    let borders = pairs(inputs, 2, sizes.len())?;
    Ok(Blocks { input, sizes, borders })
}

pub(super) fn space_to_batch(inputs: &Inputs<'_>) -> Rule {
    let Blocks { input, sizes, borders } = blocks(inputs)?;
    let mut shape = input.to_vec();
    for (i, (&block, (before, after))) in sizes.iter().zip(borders).enumerate() {
        let padded = input[i + 1].saturating_add(before).saturating_add(after);
        if padded % block != 0 {
            return invalid(format!("{padded} does not divide into blocks of {block}"));
        }
        shape[0] = shape[0].saturating_mul(block);
        shape[i + 1] = padded / block;
    }
    one(shape)
}

pub(super) fn batch_to_space(inputs: &Inputs<'_>) -> Rule {
    let Blocks { input, sizes, borders } = blocks(inputs)?;
    let mut shape = input.to_vec();
    for (i, (&block, (before, after))) in sizes.iter().zip(borders).enumerate() {
        let uncropped = input[i + 1].saturating_mul(block);
        let cropped = uncropped.checked_sub(before).and_then(|d| d.checked_sub(after));
        let (Some(cropped), 0) = (cropped, shape[0] % block) else {
            return invalid(format!("blocks {sizes:?} and their crops do not fit shape {input:?}"));
        };
        shape[0] /= block;
        shape[i + 1] = cropped;
    }
    one(shape)
}
