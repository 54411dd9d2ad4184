//! Partitioning rules for operators that repeat elements: TILE, BROADCAST_TO, FILL, and
//! RESIZE_NEAREST_NEIGHBOR by integer factors.

use xnn_model::TensorId;

use super::checks;
use super::shape::LeadingDim;
use crate::view::{OpView, Operand};
use crate::why_not::WhyNot;

/// Plan for repeating a value along its dimensions.
#[derive(Clone, Debug)]
pub(crate) struct Tile {
    pub input: TensorId,
    pub output: TensorId,
    /// Sizes of the dimensions to which the input is reshaped, and how many times each is repeated.
    pub repeats: Vec<(usize, usize)>,
    /// The first dimension of the reshaped input and of the output.
    pub leading: LeadingDim,
}

/// Rule for TILE.
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

/// Rule for BROADCAST_TO.
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

/// Rule for FILL, which repeats one element.
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
        Some(repeats) => {
            // The length of a new or repeated dimension comes from the model.
            let keeps_batch = input.shape.len() == repeats.len()
                && repeats.first().is_some_and(|&(_, times)| times == 1);
            let leading = LeadingDim::inferred_if(keeps_batch);
            Ok(Tile { input: input.id, output: output.id, repeats, leading })
        }
        None => Err(WhyNot::Shape {
            tensor: view.input(1)?.to_ref(),
            expected: format!("does not repeat {:?} to {:?}", input.shape, output.shape),
        }),
    }
}

/// Plans a repetition of each pixel by the factors of height and width.
pub(super) fn repeat_pixels(
    input: Operand<'_>,
    output: Operand<'_>,
    [fh, fw]: [usize; 2],
) -> Result<Tile, WhyNot> {
    let [n, h, w, c] = checks::nhwc(input)?;
    let repeats = vec![(n, 1), (h, 1), (1, fh), (w, 1), (1, fw), (c, 1)];
    Ok(Tile { input: input.id, output: output.id, repeats, leading: LeadingDim::Inferred })
}

/// Returns how often each of `pixels` is repeated, if all are repeated equally often.
pub(super) fn factor(sources: &[usize], pixels: usize) -> Option<usize> {
    let factor = sources.len() / pixels;
    let repeated = sources.len().is_multiple_of(pixels)
        && sources.iter().enumerate().all(|(pixel, &source)| source == pixel / factor);
    repeated.then_some(factor)
}
