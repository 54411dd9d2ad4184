//! Partitioning rules for SLICE, STRIDED_SLICE, SPLIT, SPLIT_V, UNPACK and DYNAMIC_UPDATE_SLICE.

use xnn_model::infer::{StridedSlice, StridedSliceBounds};
use xnn_model::op::{StridedSliceOptions, UnpackOptions};
use xnn_model::{TensorId, element_count};

use super::checks;
use super::gather::{self, Gather};
use super::shape::LeadingDim;
use crate::view::{OpView, Operand};
use crate::why_not::WhyNot;

/// Plan for slicing boxes out of a value.
#[derive(Clone, Debug)]
pub(crate) struct Slice {
    pub input: TensorId,
    pub cuts: Vec<Cut>,
}

/// One box and its output.
#[derive(Clone, Debug)]
pub(crate) struct Cut {
    pub offsets: Vec<usize>,
    /// 0 stands for the whole dimension, of any size.
    pub sizes: Vec<usize>,
    pub output: TensorId,
    /// The first dimension of the output, if the output and the box have different dimensions (of
    /// size 1).
    pub reshaped: Option<LeadingDim>,
}

/// Rule for SLICE.
pub(crate) fn slice(view: OpView<'_>) -> Result<Slice, WhyNot> {
    view.arity(3..=3, 1..=1)?;
    let (input, output) = (view.input(0)?, view.output(0)?);
    checks::same_elem(input, output)?;
    let begins = checks::per_dimension(view.input(1)?, input)?;
    let lengths = checks::per_dimension(view.input(2)?, input)?;
    let mut cut = Cut { offsets: vec![], sizes: vec![], output: output.id, reshaped: None };
    for ((&begin, &length), &dim) in begins.iter().zip(&lengths).zip(input.shape) {
        let offset = usize::try_from(begin).ok().filter(|&offset| offset < dim);
        let size = offset.and_then(|offset| match length {
            -1 => Some(dim - offset),
            _ => usize::try_from(length).ok().filter(|&n| n > 0 && n <= dim - offset),
        });
        let is_whole = (begin, length) == (0, -1);
        let (Some(offset), Some(size)) = (offset, size) else {
            return Err(WhyNot::Attribute {
                name: "begin, size",
                value: format!("{begin}, {length} of {dim}"),
                expected: "a box inside the input",
            });
        };
        cut.offsets.push(offset);
        cut.sizes.push(if is_whole { 0 } else { size });
    }
    Ok(Slice { input: input.id, cuts: vec![cut] })
}

/// Plan for STRIDED_SLICE.
pub(crate) enum StridedSlicePlan {
    /// All strides are 1.
    Slice(Slice),
    /// Some strides are not 1.
    Gather(Gather),
}

/// Rule for STRIDED_SLICE, with all masks. An end of 0 means 0.
pub(crate) fn strided_slice(
    view: OpView<'_>,
    options: &StridedSliceOptions,
) -> Result<StridedSlicePlan, WhyNot> {
    view.arity(4..=4, 1..=1)?;
    let (input, output) = (view.input(0)?, view.output(0)?);
    checks::same_elem(input, output)?;
    let [begin, end, strides] =
        [1, 2, 3].map(|position| view.input(position).and_then(checks::constant_ints));
    let (begin, end, strides) = (begin?, end?, strides?);
    let bounds = StridedSliceBounds { begin: &begin, end: &end, strides: &strides };
    let StridedSlice { starts: offsets, strides, counts: sizes, .. } =
        StridedSlice::new(input.shape, bounds, options).map_err(|expected| WhyNot::Attribute {
            name: "begin, end, strides",
            value: format!("{begin:?}, {end:?}, {strides:?} ({expected})"),
            expected: "elements of the input",
        })?;
    if sizes.contains(&0) {
        return Err(WhyNot::Empty { tensor: output.to_ref() });
    }
    // Without these masks, the first range belongs to the first dimension.
    let masks = [options.shrink_axis_mask, options.new_axis_mask, options.ellipsis_mask];
    let whole = whole_dimensions(input, bounds, options);
    let first = LeadingDim::inferred_if(
        masks.iter().all(|mask| mask & 1 == 0) && whole.first().is_some_and(|&whole| whole),
    );
    let steps = strides.iter().zip(&sizes).any(|(&step, &size)| step != 1 && size > 1);
    if steps {
        let ranges = offsets.iter().zip(&strides).zip(&sizes);
        let axes = ranges.enumerate().filter(|(axis, _)| !whole[*axis]);
        let axes = axes.map(|(axis, ((&start, &step), &count))| {
            gather::strided(start, step, count).map(|runs| (axis, runs))
        });
        return gather::gather_slices(input, output, axes.collect::<Result<_, _>>()?, first)
            .map(StridedSlicePlan::Gather);
    }
    if element_count(&sizes) != output.tensor.elements() {
        return Err(WhyNot::Shape {
            tensor: output.to_ref(),
            expected: format!("{:?} cannot hold a box of {sizes:?}", output.shape),
        });
    }
    let reshaped = (sizes != output.shape).then_some(first);
    let sizes = sizes.into_iter().zip(whole).map(|(size, whole)| if whole { 0 } else { size });
    let cut = Cut { offsets, sizes: sizes.collect(), output: output.id, reshaped };
    Ok(StridedSlicePlan::Slice(Slice { input: input.id, cuts: vec![cut] }))
}

/// Whether a STRIDED_SLICE keeps each dimension whole, for any size.
fn whole_dimensions(
    input: Operand<'_>,
    bounds: StridedSliceBounds<'_>,
    options: &StridedSliceOptions,
) -> Vec<bool> {
    const LONGEST: usize = i32::MAX as usize;
    let slice = StridedSlice::new(&vec![LONGEST; input.shape.len()], bounds, options);
    slice.map_or_else(
        |_| vec![false; input.shape.len()],
        |slice| {
            let ranges = slice.counts.iter().zip(&slice.strides);
            ranges.map(|range| range == (&LONGEST, &1)).collect()
        },
    )
}

/// Rule for SPLIT into equal parts. The axis is the first operand.
pub(crate) fn split(view: OpView<'_>) -> Result<Slice, WhyNot> {
    view.arity(2..=2, 1..=usize::MAX)?;
    let (axis, input) = (view.input(0)?, view.input(1)?);
    let parts = view.operator.outputs.len();
    let axis = checks::one_axis(axis, input)?;
    let dim = input.shape[axis];
    if !dim.is_multiple_of(parts) {
        return Err(WhyNot::Shape {
            tensor: input.to_ref(),
            expected: format!("{dim} does not divide into {parts} parts"),
        });
    }
    cuts_along(view, input, axis, &vec![dim / parts; parts], None)
}

/// Rule for SPLIT_V into parts of given sizes, one of which may be -1.
pub(crate) fn split_v(view: OpView<'_>) -> Result<Slice, WhyNot> {
    view.arity(3..=3, 1..=usize::MAX)?;
    let (input, sizes, axis) = (view.input(0)?, view.input(1)?, view.input(2)?);
    let axis = checks::one_axis(axis, input)?;
    let given = checks::constant_ints(sizes)?;
    let known: i64 = given.iter().filter(|&&size| size > 0).sum();
    let rest = (input.shape[axis] as i64).saturating_sub(known);
    let lengths: Option<Vec<usize>> = given
        .iter()
        .map(|&size| usize::try_from(if size == -1 { rest } else { size }).ok())
        .map(|size| size.filter(|&size| size > 0))
        .collect();
    match lengths {
        Some(lengths) if lengths.iter().sum::<usize>() == input.shape[axis] => {
            cuts_along(view, input, axis, &lengths, None)
        }
        _ => Err(WhyNot::Shape {
            tensor: sizes.to_ref(),
            expected: format!("the sizes do not add up to {}", input.shape[axis]),
        }),
    }
}

/// Rule for UNPACK into slices of size 1 without the dimension.
pub(crate) fn unpack(view: OpView<'_>, options: &UnpackOptions) -> Result<Slice, WhyNot> {
    view.arity(1..=1, 1..=usize::MAX)?;
    let input = view.input(0)?;
    let axis = checks::axis(options.axis.into(), input.shape.len())?;
    let found = view.operator.outputs.len();
    if found != input.shape[axis] {
        return Err(WhyNot::OutputCount { found, expected: input.shape[axis].to_string() });
    }
    cuts_along(view, input, axis, &vec![1; found], Some(LeadingDim::inferred_if(axis > 0)))
}

fn cuts_along(
    view: OpView<'_>,
    input: Operand<'_>,
    axis: usize,
    lengths: &[usize],
    reshaped: Option<LeadingDim>,
) -> Result<Slice, WhyNot> {
    let outputs = view.outputs()?;
    if outputs.len() != lengths.len() {
        return Err(WhyNot::OutputCount {
            found: outputs.len(),
            expected: lengths.len().to_string(),
        });
    }
    let mut start = 0;
    let mut cuts = Vec::with_capacity(outputs.len());
    for (output, &length) in outputs.into_iter().zip(lengths) {
        checks::same_elem(input, output)?;
        let mut offsets = vec![0; input.shape.len()];
        let mut sizes = vec![0; input.shape.len()];
        (offsets[axis], sizes[axis]) = (start, length);
        start += length;
        cuts.push(Cut { offsets, sizes, output: output.id, reshaped });
    }
    Ok(Slice { input: input.id, cuts })
}

/// Plan for replacing a box of a value by another value.
#[derive(Clone, Debug)]
pub(crate) struct Update {
    pub operand: TensorId,
    pub update: TensorId,
    pub output: TensorId,
    /// Start of the box in each dimension.
    pub starts: Vec<usize>,
}

/// Rule for DYNAMIC_UPDATE_SLICE at a constant position.
pub(crate) fn dynamic_update_slice(view: OpView<'_>) -> Result<Update, WhyNot> {
    view.arity(3..=3, 1..=1)?;
    let (operand, update, output) = (view.input(0)?, view.input(1)?, view.output(0)?);
    for t in [operand, update] {
        checks::same_elem(t, output)?;
        checks::usable(t)?;
    }
    let starts = checks::per_dimension(view.input(2)?, operand)?;
    let fits = operand.shape == output.shape
        && update.shape.len() == operand.shape.len()
        && update.shape.iter().zip(operand.shape).all(|(part, whole)| part <= whole);
    if !fits {
        return Err(WhyNot::Shape {
            tensor: update.to_ref(),
            expected: format!("{:?} is not part of {:?}", update.shape, operand.shape),
        });
    }
    // Interpreters shift a box that would exceed the operand.
    let inside = starts.iter().zip(update.shape.iter().zip(operand.shape));
    let starts = inside
        .map(|(&start, (part, whole))| usize::try_from(start).unwrap_or(0).min(whole - part))
        .collect();
    Ok(Update { operand: operand.id, update: update.id, output: output.id, starts })
}
