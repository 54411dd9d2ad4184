//! May operators that repeat elements go: TILE, BROADCAST_TO, FILL, and
//! RESIZE_NEAREST_NEIGHBOR by whole factors?

use xnn_model::TensorId;

use super::checks;
use crate::view::{OpView, Operand};
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

/// FILL: one element everywhere.
pub(crate) fn fill(view: OpView<'_>) -> Result<Tile, WhyNot> {
    view.arity(2..=2, 1..=1)?;
    let (value, output) = (view.input(1)?, view.output(0)?);
    checks::constant(view.input(0)?)?;
    checks::usable(value)?;
    let one = value.tensor.elements() == Some(1);
    let repeats = one.then(|| output.shape.iter().map(|&times| (1, times)).collect());
    tiled(view, value, output, repeats)
}

fn tiled(
    view: OpView<'_>,
    input: Operand<'_>,
    output: Operand<'_>,
    repeats: Option<Vec<(usize, usize)>>,
) -> Result<Tile, WhyNot> {
    checks::same_elem(input, output)?;
    let fits = |repeats: &Vec<(usize, usize)>| {
        repeats.iter().map(|(dim, times)| dim * times).eq(output.shape.iter().copied())
    };
    match repeats.filter(fits) {
        Some(repeats) => Ok(Tile { input: input.id, output: output.id, repeats }),
        None => Err(WhyNot::Shape {
            tensor: view.input(1)?.to_ref(),
            expected: format!("does not lead from {:?} to {:?}", input.shape, output.shape),
        }),
    }
}

/// Nearest-neighbour resize by whole factors: each pixel is repeated.
#[derive(Clone, Debug)]
pub(crate) struct Enlarge {
    pub input: TensorId,
    pub output: TensorId,
    pub factors: [usize; 2],
}

/// How often each of `pixels` is repeated, if all of them are equally often.
pub(super) fn factor(sources: &[usize], pixels: usize) -> Option<usize> {
    let factor = sources.len() / pixels;
    let repeated = sources.len().is_multiple_of(pixels)
        && sources.iter().enumerate().all(|(pixel, &source)| source == pixel / factor);
    repeated.then_some(factor)
}
