//! May SLICE, STRIDED_SLICE, SPLIT, SPLIT_V and UNPACK go?

use xnn_model::op::{StridedSliceOptions, UnpackOptions};
use xnn_model::{TensorId, element_count};

use super::checks;
use crate::view::{OpView, TensorView};
use crate::why_not::WhyNot;

/// A box cut out of a value.
#[derive(Clone, Debug)]
pub(crate) struct Slice {
    pub input: TensorId,
    pub cuts: Vec<Cut>,
}

/// One box and where it goes.
#[derive(Clone, Debug)]
pub(crate) struct Cut {
    pub offsets: Vec<usize>,
    pub sizes: Vec<usize>,
    pub output: TensorId,
    /// The result has other dimensions than the box (of size 1, more or fewer).
    pub reshaped: bool,
}

pub(crate) fn slice(view: OpView<'_>) -> Result<Slice, WhyNot> {
    view.arity(3..=3, 1..=1)?;
    let (input, output) = (view.input(0)?, view.output(0)?);
    checks::same_elem(input, output)?;
    let begins = checks::per_dimension(view.input(1)?, input)?;
    let lengths = checks::per_dimension(view.input(2)?, input)?;
    let mut cut = Cut { offsets: vec![], sizes: vec![], output: output.id, reshaped: false };
    for ((&begin, &length), &dim) in begins.iter().zip(&lengths).zip(input.shape) {
        let offset = usize::try_from(begin).ok().filter(|&offset| offset < dim);
        let size = offset.and_then(|offset| match length {
            -1 => Some(dim - offset),
            _ => usize::try_from(length).ok().filter(|&n| n > 0 && n <= dim - offset),
        });
        let (Some(offset), Some(size)) = (offset, size) else {
            return Err(WhyNot::Attribute {
                name: "begin, size",
                value: format!("{begin}, {length} of {dim}"),
                expected: "a box inside the input",
            });
        };
        cut.offsets.push(offset);
        cut.sizes.push(size);
    }
    Ok(Slice { input: input.id, cuts: vec![cut] })
}

/// STRIDED_SLICE with steps of 1: all masks, and `end = 0` taken at its word.
pub(crate) fn strided_slice(
    view: OpView<'_>,
    options: &StridedSliceOptions,
) -> Result<Slice, WhyNot> {
    view.arity(4..=4, 1..=1)?;
    let (input, output) = (view.input(0)?, view.output(0)?);
    checks::same_elem(input, output)?;
    let [begins, ends, strides] =
        [1, 2, 3].map(|position| view.input(position).and_then(checks::constant_ints));
    let (begins, ends, strides) = (begins?, ends?, strides?);
    if ends.len() != begins.len() || strides.len() != begins.len() || begins.len() > 31 {
        return Err(WhyNot::Shape {
            tensor: view.input(1)?.to_ref(),
            expected: "begin, end and strides must have the same length".into(),
        });
    }
    if strides.iter().any(|&stride| stride != 1) {
        return Err(WhyNot::Attribute {
            name: "strides",
            value: format!("{strides:?}"),
            expected: "1",
        });
    }
    let mut cut = Cut { offsets: vec![], sizes: vec![], output: output.id, reshaped: true };
    let has = |mask: i32, bit: usize| mask >> bit & 1 == 1;
    let is_ellipsis = |i: &usize| has(options.ellipsis_mask, *i);
    if (0..begins.len()).filter(is_ellipsis).count() > 1 {
        return Err(WhyNot::Attribute {
            name: "ellipsis_mask",
            value: options.ellipsis_mask.to_string(),
            expected: "at most one ellipsis",
        });
    }
    // Entries of the specification that stand for a dimension each.
    let spent =
        (0..begins.len()).filter(|i| !is_ellipsis(i) && !has(options.new_axis_mask, *i)).count();
    let skipped = input.shape.len().checked_sub(spent).ok_or_else(|| WhyNot::Rank {
        tensor: input.to_ref(),
        rank: input.shape.len(),
        expected: "at least one dimension for each entry of begin",
    })?;
    for i in 0..begins.len() {
        if is_ellipsis(&i) {
            for _ in 0..skipped {
                let dim = input.shape[cut.sizes.len()];
                cut.offsets.push(0);
                cut.sizes.push(dim);
            }
            continue;
        }
        if has(options.new_axis_mask, i) {
            continue;
        }
        let Some(&dim) = input.shape.get(cut.sizes.len()) else { break };
        let shrink = has(options.shrink_axis_mask, i);
        let begin = if has(options.begin_mask, i) && !shrink { 0 } else { begins[i] };
        let begin = from_end(begin, dim);
        let end = if shrink {
            begin.saturating_add(1)
        } else if has(options.end_mask, i) {
            dim as i64
        } else if options.offset {
            begin.saturating_add(ends[i])
        } else {
            from_end(ends[i], dim)
        };
        let inside = |value: i64| value.clamp(0, dim as i64);
        let (begin, end) = if shrink { (begin, end) } else { (inside(begin), inside(end)) };
        let (Ok(offset), Ok(size)) = (usize::try_from(begin), usize::try_from(end - begin)) else {
            return Err(WhyNot::Empty { tensor: output.to_ref() });
        };
        if size == 0 || offset >= dim {
            return Err(WhyNot::Empty { tensor: output.to_ref() });
        }
        cut.offsets.push(offset);
        cut.sizes.push(size);
    }
    for &dim in &input.shape[cut.sizes.len().min(input.shape.len())..] {
        cut.offsets.push(0);
        cut.sizes.push(dim);
    }
    if element_count(&cut.sizes) != output.tensor.elements() {
        return Err(WhyNot::Shape {
            tensor: output.to_ref(),
            expected: format!("{:?} cannot hold a box of {:?}", output.shape, cut.sizes),
        });
    }
    cut.reshaped = cut.sizes != output.shape;
    Ok(Slice { input: input.id, cuts: vec![cut] })
}

fn from_end(index: i64, dim: usize) -> i64 {
    if index < 0 { index.saturating_add(dim as i64) } else { index }
}

/// SPLIT into equal parts; the axis comes first.
pub(crate) fn split(view: OpView<'_>) -> Result<Slice, WhyNot> {
    view.arity(2..=2, 1..=usize::MAX)?;
    let (axis, input) = (view.input(0)?, view.input(1)?);
    let parts = view.operator.outputs.len();
    let axis = one_axis(axis, input)?;
    let dim = input.shape[axis];
    if !dim.is_multiple_of(parts) {
        return Err(WhyNot::Shape {
            tensor: input.to_ref(),
            expected: format!("{dim} does not divide into {parts} parts"),
        });
    }
    cuts_along(view, input, axis, &vec![dim / parts; parts], false)
}

/// SPLIT_V into parts of given sizes, one of which may be -1.
pub(crate) fn split_v(view: OpView<'_>) -> Result<Slice, WhyNot> {
    view.arity(3..=3, 1..=usize::MAX)?;
    let (input, sizes, axis) = (view.input(0)?, view.input(1)?, view.input(2)?);
    let axis = one_axis(axis, input)?;
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
            cuts_along(view, input, axis, &lengths, false)
        }
        _ => Err(WhyNot::Shape {
            tensor: sizes.to_ref(),
            expected: format!("the sizes do not add up to {}", input.shape[axis]),
        }),
    }
}

/// UNPACK: slices of size 1 that lose the dimension.
pub(crate) fn unpack(view: OpView<'_>, options: &UnpackOptions) -> Result<Slice, WhyNot> {
    view.arity(1..=1, 1..=usize::MAX)?;
    let input = view.input(0)?;
    let axis = checks::axis(options.axis.into(), input.shape.len())?;
    let parts = vec![1; input.shape[axis]];
    cuts_along(view, input, axis, &parts, true)
}

fn one_axis(t: TensorView<'_>, input: TensorView<'_>) -> Result<usize, WhyNot> {
    match *checks::constant_ints(t)? {
        [axis] => checks::axis(axis, input.shape.len()),
        _ => Err(WhyNot::Shape { tensor: t.to_ref(), expected: "must be one axis".into() }),
    }
}

fn cuts_along(
    view: OpView<'_>,
    input: TensorView<'_>,
    axis: usize,
    lengths: &[usize],
    reshaped: bool,
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
        let mut sizes = input.shape.to_vec();
        (offsets[axis], sizes[axis]) = (start, length);
        start += length;
        cuts.push(Cut { offsets, sizes, output: output.id, reshaped });
    }
    Ok(Slice { input: input.id, cuts })
}
