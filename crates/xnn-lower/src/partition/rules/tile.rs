//! May operators that repeat elements go: TILE, BROADCAST_TO,
//! RESIZE_NEAREST_NEIGHBOR, MIRROR_PAD?

use xnn_model::TensorId;
use xnn_model::op::{MirrorPadOptions, ResizeOptions};

use super::checks;
use crate::view::{MAX_RANK, OpView, TensorView};
use crate::why_not::WhyNot;

/// Copies of a value side by side.
#[derive(Clone, Debug)]
pub(crate) struct Tile {
    pub input: TensorId,
    pub output: TensorId,
    /// For each dimension of the output, the input's size (1 where it has no
    /// such dimension) and how many times it is repeated.
    pub repeats: Vec<(usize, usize)>,
}

/// TILE.
pub(crate) fn tile(view: OpView<'_>) -> Result<Tile, WhyNot> {
    view.arity(2..=2, 1..=1)?;
    let (input, output) = (view.input(0)?, view.output(0)?);
    let multiples = checks::per_dimension(view.input(1)?, input)?;
    let repeats: Option<Vec<_>> = multiples
        .iter()
        .zip(input.shape)
        .map(|(&multiple, &dim)| Some((dim, usize::try_from(multiple).ok().filter(|&m| m > 0)?)))
        .collect();
    tiled(view, input, output, repeats)
}

/// BROADCAST_TO.
pub(crate) fn broadcast_to(view: OpView<'_>) -> Result<Tile, WhyNot> {
    view.arity(2..=2, 1..=1)?;
    let (input, output) = (view.input(0)?, view.output(0)?);
    let missing = output.shape.len().checked_sub(input.shape.len());
    let repeats = missing.and_then(|missing| {
        let dims = std::iter::repeat_n(&1, missing).chain(input.shape);
        dims.zip(output.shape)
            .map(|(&from, &to)| match from {
                1 => Some((1, to)),
                _ => (from == to).then_some((from, 1)),
            })
            .collect()
    });
    tiled(view, input, output, repeats)
}

fn tiled(
    view: OpView<'_>,
    input: TensorView<'_>,
    output: TensorView<'_>,
    repeats: Option<Vec<(usize, usize)>>,
) -> Result<Tile, WhyNot> {
    checks::same_elem(input, output)?;
    let fits = |repeats: &Vec<(usize, usize)>| {
        repeats.iter().map(|(dim, times)| dim * times).eq(output.shape.iter().copied())
    };
    match repeats.filter(fits) {
        // Each repeated dimension becomes two for a moment.
        Some(repeats) if split_rank(&repeats) <= MAX_RANK => {
            Ok(Tile { input: input.id, output: output.id, repeats })
        }
        Some(_) => Err(WhyNot::Rank {
            tensor: output.to_ref(),
            rank: output.shape.len(),
            expected: "6 minus the repeated dimensions",
        }),
        None => Err(WhyNot::Shape {
            tensor: view.input(1)?.to_ref(),
            expected: format!("does not lead from {:?} to {:?}", input.shape, output.shape),
        }),
    }
}

/// Dimensions that are needed to repeat: two where a dimension larger than 1
/// is repeated.
fn split_rank(repeats: &[(usize, usize)]) -> usize {
    repeats.iter().map(|&(dim, times)| if dim > 1 && times > 1 { 2 } else { 1 }).sum()
}

/// Nearest-neighbour resize by whole factors: each pixel is repeated.
#[derive(Clone, Debug)]
pub(crate) struct Enlarge {
    pub input: TensorId,
    pub output: TensorId,
    pub factors: [usize; 2],
}

/// RESIZE_NEAREST_NEIGHBOR where every coordinate convention repeats pixels.
pub(crate) fn resize_nearest(view: OpView<'_>, options: &ResizeOptions) -> Result<Enlarge, WhyNot> {
    view.arity(2..=2, 1..=1)?;
    let (input, output) = (view.input(0)?, view.output(0)?);
    let [_, height, width, _] = checks::nhwc(input)?;
    let [_, new_height, new_width, _] = checks::nhwc(output)?;
    checks::same_elem(input, output)?;
    checks::constant(view.input(1)?)?;
    let whole = |new: usize, old: usize| {
        (old > 0 && new.is_multiple_of(old) && new >= old).then(|| new / old)
    };
    match (whole(new_height, height), whole(new_width, width)) {
        (Some(fh), Some(fw)) if !options.align_corners || (fh == 1 && fw == 1) => {
            Ok(Enlarge { input: input.id, output: output.id, factors: [fh, fw] })
        }
        _ => Err(WhyNot::Attribute {
            name: "size",
            value: format!("{height}x{width} to {new_height}x{new_width}"),
            expected: "whole multiples without align_corners",
        }),
    }
}

/// A border that mirrors the inside.
#[derive(Clone, Debug)]
pub(crate) struct MirrorPad {
    pub input: TensorId,
    pub output: TensorId,
    /// For each dimension, elements before and behind.
    pub paddings: Vec<[usize; 2]>,
    /// Elements between the border and the first mirrored one: 0 or 1.
    pub skip: usize,
}

/// Elements of border that are worth a slice each.
const MAX_MIRRORED: usize = 16;

/// MIRROR_PAD with a narrow border.
pub(crate) fn mirror_pad(
    view: OpView<'_>,
    options: &MirrorPadOptions,
) -> Result<MirrorPad, WhyNot> {
    view.arity(2..=2, 1..=1)?;
    let (input, paddings, output) = (view.input(0)?, view.input(1)?, view.output(0)?);
    checks::same_elem(input, output)?;
    let amounts: Result<Vec<usize>, _> =
        checks::constant_ints(paddings)?.into_iter().map(usize::try_from).collect();
    let amounts = amounts.unwrap_or_default();
    let (pairs, rest) = amounts.as_chunks::<2>();
    let skip = usize::from(!options.symmetric);
    let fits = pairs.len() == input.shape.len()
        && rest.is_empty()
        && pairs
            .iter()
            .zip(input.shape)
            .all(|(pair, &dim)| pair.iter().all(|&amount| amount.saturating_add(skip) <= dim));
    if !fits {
        return Err(WhyNot::Shape {
            tensor: paddings.to_ref(),
            expected: "needs a pair below the size of each dimension".into(),
        });
    }
    if pairs.as_flattened().iter().sum::<usize>() > MAX_MIRRORED {
        return Err(WhyNot::Attribute {
            name: "paddings",
            value: format!("{pairs:?}"),
            expected: "at most 16 elements of border in all",
        });
    }
    Ok(MirrorPad { input: input.id, output: output.id, paddings: pairs.to_vec(), skip })
}
