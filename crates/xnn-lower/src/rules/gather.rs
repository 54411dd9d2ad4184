//! Partitioning rules for operators that gather slices at constant positions: GATHER, REVERSE_V2,
//! MIRROR_PAD, RESIZE_NEAREST_NEIGHBOR, and STRIDED_SLICE with strides.

use xnn_model::TensorId;
use xnn_model::op::{GatherOptions, MirrorPadOptions, ResizeOptions};

use super::checks;
use super::shape::LeadingDim;
use super::tile::{self, Tile};
use crate::view::{OpView, Operand};
use crate::why_not::WhyNot;

/// Plan for gathering slices along some axes, then reshaping to the output's shape.
#[derive(Clone, Debug)]
pub(crate) struct Gather {
    pub input: TensorId,
    pub output: TensorId,
    pub axes: Vec<GatheredAxis>,
    /// The first dimension of the output.
    pub leading: LeadingDim,
}

/// An axis, and the runs that are concatenated along it.
pub(crate) type GatheredAxis = (usize, Vec<Run>);

/// `width` neighbours at each of the positions `start`, `start + step`, ... of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub start: usize,
    /// Neighbours at each position. Larger than the step if they overlap, as frames of a signal do.
    pub width: usize,
    /// At least 1.
    pub step: usize,
    /// Number of positions. With one position the step is ignored.
    pub count: usize,
}

impl Run {
    /// A run of `length` neighbours from `start` on.
    pub const fn neighbours(start: usize, length: usize) -> Self {
        Self { start, width: length, step: length, count: 1 }
    }

    /// Total number of elements.
    pub const fn length(&self) -> usize {
        self.width * self.count
    }

    /// How the run is gathered.
    pub const fn form(&self) -> RunForm {
        if self.count == 1 || self.width == self.step {
            RunForm::Slice
        } else if self.width > self.step {
            RunForm::Overlapping
        } else {
            RunForm::Strided
        }
    }

    /// Number of slices that the run is composed of.
    const fn pieces(&self) -> usize {
        if self.count == 1 { 1 } else { self.width.div_ceil(self.step) }
    }
}

/// How a run is gathered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunForm {
    /// One slice.
    Slice,
    /// A slice of an axis that is split in two.
    Strided,
    /// A concatenation of strided runs that do not overlap.
    Overlapping,
}

/// Largest number of pieces. Each one is a slice and an operand of a concatenation, and more of
/// them cost more than a fallback.
const MAX_PIECES: usize = 128;
/// A piece of a strided run costs as much as this number of slices.
const SLICES_PER_STRIDED_PIECE: usize = 4;

/// Divides indices into runs greedily.
fn runs(indices: &[usize]) -> Vec<Run> {
    let mut runs = Vec::new();
    let mut rest = indices;
    while let [start, ..] = *rest {
        let is_neighbour = |(i, index): &(usize, &usize)| **index == start + i;
        let width = rest.iter().enumerate().take_while(is_neighbour).count();
        let next = rest.get(width).and_then(|next| next.checked_sub(start));
        let step = next.filter(|&step| step > 0).unwrap_or(width);
        let frames = rest.chunks_exact(width).enumerate();
        let is_next = |(i, frame): &(usize, &[usize])| {
            frame.iter().enumerate().all(|(j, &index)| index == start + i * step + j)
        };
        let run = Run { start, width, step, count: frames.take_while(is_next).count() };
        let worth_it = run.count >= SLICES_PER_STRIDED_PIECE * run.pieces();
        let run = if worth_it { run } else { Run::neighbours(start, width) };
        rest = &rest[run.length()..];
        runs.push(run);
    }
    runs
}

/// Divides `count` indices from `start` on into runs. All indices are inside the axis.
pub(super) fn strided(start: usize, step: i64, count: usize) -> Result<Vec<Run>, WhyNot> {
    match usize::try_from(step) {
        Ok(1) => Ok(vec![Run::neighbours(start, count)]),
        Ok(step) if count >= SLICES_PER_STRIDED_PIECE => {
            Ok(vec![Run { start, width: 1, step, count }])
        }
        _ if count > MAX_PIECES => Err(too_many(count)),
        _ => {
            // With one index the step may be of any size.
            let step = isize::try_from(step).unwrap_or(0);
            let next = |&at: &usize| at.checked_add_signed(step);
            let indices = std::iter::successors(Some(start), next).take(count);
            Ok(runs(&indices.collect::<Vec<_>>()))
        }
    }
}

fn too_many(pieces: usize) -> WhyNot {
    WhyNot::Attribute {
        name: "indices",
        value: format!("{pieces} slices"),
        expected: "at most 128",
    }
}

/// Plans a gather between tensors of the same type and quantization.
pub(crate) fn gather_slices(
    input: Operand<'_>,
    output: Operand<'_>,
    axes: Vec<GatheredAxis>,
    leading: LeadingDim,
) -> Result<Gather, WhyNot> {
    checks::same_elem(input, output)?;
    let pieces = axes.iter().flat_map(|(_, runs)| runs).map(Run::pieces).sum();
    if pieces > MAX_PIECES {
        return Err(too_many(pieces));
    }
    let mut gathered = input.shape.to_vec();
    for (axis, runs) in &axes {
        gathered[*axis] = runs.iter().map(Run::length).sum();
    }
    if gathered.iter().product::<usize>() != output.shape.iter().product::<usize>() {
        return Err(WhyNot::Shape {
            tensor: output.to_ref(),
            expected: format!("{:?} cannot hold {gathered:?}", output.shape),
        });
    }
    Ok(Gather { input: input.id, output: output.id, axes, leading })
}

/// Rule for GATHER with constant indices.
pub(crate) fn gather(view: OpView<'_>, options: &GatherOptions) -> Result<Gather, WhyNot> {
    view.arity(2..=2, 1..=1)?;
    let (input, indices, output) = (view.input(0)?, view.input(1)?, view.output(0)?);
    if options.batch_dims != 0 {
        return Err(WhyNot::Attribute {
            name: "batch_dims",
            value: options.batch_dims.to_string(),
            expected: "0",
        });
    }
    checks::usable(input)?;
    let axis = checks::axis(options.axis.into(), input.shape.len())?;
    let dim = input.shape[axis];
    let inside: Option<Vec<usize>> = checks::constant_ints(indices)?
        .into_iter()
        .map(|index| usize::try_from(index).ok().filter(|&index| index < dim))
        .collect();
    let inside = inside.ok_or_else(|| WhyNot::Shape {
        tensor: indices.to_ref(),
        expected: format!("has indices outside dimension {axis} of size {dim}"),
    })?;
    gather_slices(input, output, vec![(axis, runs(&inside))], LeadingDim::inferred_if(axis > 0))
}

/// Rule for REVERSE_V2.
pub(crate) fn reverse(view: OpView<'_>) -> Result<Gather, WhyNot> {
    view.arity(2..=2, 1..=1)?;
    let (input, axes, output) = (view.input(0)?, view.input(1)?, view.output(0)?);
    let mut axes = checks::constant_ints(axes)?
        .into_iter()
        .map(|value| checks::axis(value, input.shape.len()))
        .collect::<Result<Vec<_>, _>>()?;
    axes.sort_unstable();
    axes.dedup();
    checks::extent(input)?;
    let backwards = |axis: usize| {
        let dim = input.shape[axis];
        strided(dim - 1, -1, dim).map(|runs| (axis, runs))
    };
    let leading = LeadingDim::inferred_if(axes.first().is_none_or(|&axis| axis > 0));
    gather_slices(
        input,
        output,
        axes.into_iter().map(backwards).collect::<Result<_, _>>()?,
        leading,
    )
}

/// Rule for MIRROR_PAD with a narrow border.
pub(crate) fn mirror_pad(view: OpView<'_>, options: &MirrorPadOptions) -> Result<Gather, WhyNot> {
    view.arity(2..=2, 1..=1)?;
    let (input, paddings, output) = (view.input(0)?, view.input(1)?, view.output(0)?);
    checks::same_elem(input, output)?;
    let amounts: Result<Vec<usize>, _> =
        checks::constant_ints(paddings)?.into_iter().map(usize::try_from).collect();
    let amounts = amounts.unwrap_or_default();
    let (pairs, rest) = amounts.as_chunks::<2>();
    // Elements between the border and the first mirrored element.
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
    let border: usize = pairs.as_flattened().iter().fold(0, |sum, &n| sum.saturating_add(n));
    if border > MAX_PIECES {
        return Err(too_many(border));
    }
    let padded = pairs.iter().zip(input.shape).enumerate();
    let axes = padded.filter(|(_, (pair, _))| **pair != [0, 0]).map(|(axis, (pair, &dim))| {
        let [before, after] = *pair;
        let one = |start| Run::neighbours(start, 1);
        let first = (skip..skip + before).rev().map(one);
        let last = (dim - skip - after..dim - skip).rev().map(one);
        let inside = Run::neighbours(0, dim);
        (axis, first.chain([inside]).chain(last).collect())
    });
    let leading = LeadingDim::inferred_if(pairs.first().is_some_and(|pair| *pair == [0, 0]));
    gather_slices(input, output, axes.collect(), leading)
}

/// Plan for RESIZE_NEAREST_NEIGHBOR.
pub(crate) enum NearestResize {
    /// Pixels are repeated, for integer factors.
    Repeat(Tile),
    /// Pixels are gathered.
    Gather(Gather),
}

/// Rule for RESIZE_NEAREST_NEIGHBOR.
pub(crate) fn resize_nearest(
    view: OpView<'_>,
    options: &ResizeOptions,
) -> Result<NearestResize, WhyNot> {
    view.arity(2..=2, 1..=1)?;
    let (input, output) = (view.input(0)?, view.output(0)?);
    let [_, height, width, _] = checks::nhwc(input)?;
    let [_, new_height, new_width, _] = checks::nhwc(output)?;
    checks::same_elem(input, output)?;
    checks::constant(view.input(1)?)?;
    if new_height.max(new_width) > MAX_SIDE {
        return Err(WhyNot::Shape {
            tensor: output.to_ref(),
            expected: format!("height and width at most {MAX_SIDE}"),
        });
    }
    let rows = options.nearest(height, new_height);
    let columns = options.nearest(width, new_width);
    if let (Some(fh), Some(fw)) = (tile::factor(&rows, height), tile::factor(&columns, width)) {
        return Ok(NearestResize::Repeat(tile::repeat_pixels(input, output, [fh, fw])?));
    }
    gather_slices(input, output, vec![(1, runs(&rows)), (2, runs(&columns))], LeadingDim::Inferred)
        .map(NearestResize::Gather)
}

/// Largest height and width. The rule examines each row and column.
const MAX_SIDE: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_one_run() {
        assert_eq!(runs(&[]), []);
        let neighbours = |places: &[(usize, usize)]| {
            places.iter().map(|&(start, length)| Run::neighbours(start, length)).collect::<Vec<_>>()
        };
        assert_eq!(runs(&[7]), neighbours(&[(7, 1)]));
        assert_eq!(runs(&[0, 1, 2, 2, 3]), neighbours(&[(0, 3), (2, 2)]));
        assert_eq!(runs(&[2, 1, 0]), neighbours(&[(2, 1), (1, 1), (0, 1)]));
    }

    #[test]
    fn strided_runs_have_at_least_four_positions() {
        assert_eq!(runs(&[1, 4, 7, 10]), [Run { start: 1, width: 1, step: 3, count: 4 }]);
        let frames: Vec<usize> = (0..9).flat_map(|i| 2 * i..2 * i + 3).collect();
        assert_eq!(
            runs(&frames),
            [Run { start: 0, width: 3, step: 2, count: 9 }],
            "overlapping frames"
        );
        assert_eq!(runs(&frames[..21]).len(), 7, "seven slices cost less than two strided pieces");
        assert_eq!(runs(&[1, 4, 7]), [1, 4, 7].map(|start| Run::neighbours(start, 1)));
    }
}
