//! Shapes of operators that select elements by index.

use super::inputs::{Inputs, Rule, Stop, invalid, one, positive, size};
use super::math::axis_in_rank;
use crate::op::{GatherOptions, Op, StridedSliceOptions};

fn axis(value: i64, rank: usize) -> Rule<usize> {
    axis_in_rank(value, rank).map_err(Stop::Invalid)
}

/// A resolved STRIDED_SLICE: output element `i` along a dimension is input element
/// `start + i * stride`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StridedSlice {
    /// First index along each input dimension.
    pub starts: Vec<usize>,
    /// Step along each input dimension.
    pub strides: Vec<i64>,
    /// Number of indices along each input dimension.
    pub counts: Vec<usize>,
    /// The output's shape: `counts` without shrunk dimensions and with new dimensions.
    pub shape: Vec<usize>,
}

/// The three index inputs of STRIDED_SLICE.
#[derive(Clone, Copy, Debug)]
pub struct StridedSliceBounds<'a> {
    /// First index per dimension. Negative indices count from the end.
    pub begin: &'a [i64],
    /// Exclusive last index per dimension.
    pub end: &'a [i64],
    /// Step per dimension; not 0.
    pub strides: &'a [i64],
}

impl StridedSlice {
    /// Resolves masks, negative indices and the ellipsis against a shape.
    ///
    /// # Errors
    ///
    /// A phrase for error messages, if the bounds do not fit the shape.
    pub fn new(
        input: &[usize],
        bounds: StridedSliceBounds<'_>,
        options: &StridedSliceOptions,
    ) -> Result<Self, String> {
        let StridedSliceBounds { begin, end, strides } = bounds;
        let specs = begin.len();
        if specs > 31 || end.len() != specs || strides.len() != specs {
            return Err("begin, end and strides must have the same length of at most 31".into());
        }
        let set = |mask: i32, i: usize| mask >> i & 1 != 0;
        let ellipsis = (0..specs).find(|&i| set(options.ellipsis_mask, i));
        let consuming =
            (0..specs).filter(|&i| Some(i) != ellipsis && !set(options.new_axis_mask, i)).count();
        let Some(open) = input.len().checked_sub(consuming) else {
            return Err(format!("{specs} slices do not fit shape {input:?}"));
        };

        let mut slice = Self { starts: vec![], strides: vec![], counts: vec![], shape: vec![] };
        let mut dims = input.iter().copied();
        for i in 0..specs {
            if Some(i) == ellipsis {
                dims.by_ref().take(open).for_each(|d| slice.keep(d));
            } else if set(options.new_axis_mask, i) {
                slice.shape.push(1);
            } else if let Some(dim) = dims.next() {
                let range = Range {
                    begin: (!set(options.begin_mask, i)).then_some(begin[i]),
                    end: (!set(options.end_mask, i)).then_some(end[i]),
                    stride: strides[i],
                    offset: options.offset,
                };
                if set(options.shrink_axis_mask, i) {
                    slice.shrink(&range, dim)?;
                } else {
                    slice.take(&range, dim)?;
                }
            }
        }
        dims.for_each(|d| slice.keep(d));
        Ok(slice)
    }

    fn keep(&mut self, dim: usize) {
        self.push(0, 1, dim);
        self.shape.push(dim);
    }

    fn shrink(&mut self, range: &Range, dim: usize) -> Result<(), String> {
        let start = range.start(dim)?;
        match usize::try_from(start) {
            Ok(start) if start < dim => self.push(start, 1, 1),
            _ => {
                return Err(format!("index {start} does not exist in a dimension of {dim}"));
            }
        }
        Ok(())
    }

    fn take(&mut self, range: &Range, dim: usize) -> Result<(), String> {
        let start = range.start(dim)?;
        let count = range.count(start, dim);
        self.push(usize::try_from(start).unwrap_or(0), range.stride, count);
        self.shape.push(count);
        Ok(())
    }

    fn push(&mut self, start: usize, stride: i64, count: usize) {
        self.starts.push(start);
        self.strides.push(stride);
        self.counts.push(count);
    }
}

/// One dimension of a strided slice. A missing bound means the end of the dimension.
struct Range {
    begin: Option<i64>,
    end: Option<i64>,
    stride: i64,
    /// `end` is relative to the start.
    offset: bool,
}

impl Range {
    fn start(&self, dim: usize) -> Result<i64, String> {
        let dim = i64::try_from(dim).map_err(|e| e.to_string())?;
        match (self.stride, self.begin) {
            (0, _) => Err("a stride is 0".into()),
            (1.., None) => Ok(0),
            (_, None) => Ok(dim - 1),
            (1.., Some(begin)) => Ok(from_end(begin, dim).clamp(0, dim)),
            (_, Some(begin)) => Ok(from_end(begin, dim).clamp(-1, dim - 1)),
        }
    }

    fn count(&self, start: i64, dim: usize) -> usize {
        let dim = i64::try_from(dim).unwrap_or(i64::MAX);
        let forward = self.stride > 0;
        let stop = match self.end {
            None if forward => dim,
            None => -1,
            Some(end) => {
                let end = if self.offset { start.saturating_add(end) } else { from_end(end, dim) };
                if forward { end.clamp(0, dim) } else { end.clamp(-1, dim - 1) }
            }
        };
        let span = if forward { stop - start } else { start - stop };
        usize::try_from(span).map_or(0, |span| {
            let step = usize::try_from(self.stride.unsigned_abs()).unwrap_or(usize::MAX);
            span.div_ceil(step)
        })
    }
}

fn from_end(index: i64, dim: i64) -> i64 {
    if index < 0 { index.saturating_add(dim) } else { index }
}

pub(super) fn strided_slice(inputs: &Inputs<'_>, options: &StridedSliceOptions) -> Rule {
    let (begin, end, strides) = (inputs.ints(1)?, inputs.ints(2)?, inputs.ints(3)?);
    let bounds = StridedSliceBounds { begin: &begin, end: &end, strides: &strides };
    let slice = StridedSlice::new(inputs.shape(0)?, bounds, options).map_err(Stop::Invalid)?;
    one(slice.shape)
}

pub(super) fn slice(inputs: &Inputs<'_>) -> Rule {
    let input = inputs.shape(0)?;
    let (begins, sizes) = (inputs.ints(1)?, inputs.ints(2)?);
    if begins.len() != input.len() || sizes.len() != input.len() {
        return invalid(format!("a slice of {} dimensions does not fit {input:?}", begins.len()));
    }
    let mut shape = Vec::with_capacity(input.len());
    for ((&dim, begin), count) in input.iter().zip(begins).zip(sizes) {
        let available = dim.checked_sub(size(begin)?);
        let count = if count == -1 { available } else { Some(size(count)?) };
        match (available, count) {
            (Some(available), Some(count)) if count <= available => shape.push(count),
            _ => return invalid(format!("the slice extends beyond shape {input:?}")),
        }
    }
    one(shape)
}

pub(super) fn split(inputs: &Inputs<'_>, splits: i32, outputs: usize) -> Rule {
    let mut shape = inputs.shape(1)?.to_vec();
    let at = axis(inputs.int(0)?, shape.len())?;
    let splits = positive(splits, "the number of splits")?;
    if splits != outputs {
        return invalid(format!("a split into {splits} parts with {outputs} outputs"));
    }
    if shape[at] % splits != 0 {
        return invalid(format!("dimension {at} of {shape:?} does not split into {splits}"));
    }
    shape[at] /= splits;
    Ok(vec![shape; splits])
}

pub(super) fn split_v(inputs: &Inputs<'_>) -> Rule {
    let input = inputs.shape(0)?;
    let sizes = inputs.ints(1)?;
    let at = axis(inputs.int(2)?, input.len())?;
    let fixed: Vec<usize> =
        sizes.iter().filter(|&&s| s != -1).map(|&s| size(s)).collect::<Result<_, _>>()?;
    let open = sizes.len() - fixed.len();
    let rest = fixed.iter().try_fold(input[at], |rest, &s| rest.checked_sub(s));
    let (Some(rest), 0 | 1) = (rest, open) else {
        return invalid(format!("sizes {sizes:?} do not fit dimension {at} of {input:?}"));
    };
    if open == 0 && rest != 0 {
        return invalid(format!("sizes {sizes:?} do not fill dimension {at} of {input:?}"));
    }
    let part = |s: i64| {
        let mut shape = input.to_vec();
        shape[at] = if s == -1 { rest } else { size(s)? };
        Ok(shape)
    };
    sizes.iter().map(|&s| part(s)).collect()
}

pub(super) fn unpack(inputs: &Inputs<'_>, along: i32, outputs: usize) -> Rule {
    let mut shape = inputs.shape(0)?.to_vec();
    let at = axis(i64::from(along), shape.len())?;
    if shape.remove(at) != outputs {
        return invalid(format!("dimension {at} does not unpack into {outputs} tensors"));
    }
    Ok(vec![shape; outputs])
}

pub(super) fn gather(inputs: &Inputs<'_>, options: &GatherOptions) -> Rule {
    let (input, positions) = (inputs.shape(0)?, inputs.shape(1)?);
    let at = axis(i64::from(options.axis), input.len())?;
    let batch = match i64::from(options.batch_dims) {
        negative @ ..0 => axis(negative, positions.len())?,
        batch => size(batch)?,
    };
    if batch > at || batch > positions.len() || input[..batch] != positions[..batch] {
        return invalid(format!(
            "{batch} batch dimensions do not fit shapes {input:?} and {positions:?}"
        ));
    }
    one([&input[..at], &positions[batch..], &input[at + 1..]].concat())
}

pub(super) fn gather_nd(inputs: &Inputs<'_>) -> Rule {
    let (input, indices) = (inputs.shape(0)?, inputs.shape(1)?);
    match indices.split_last() {
        Some((&depth, rest)) if depth <= input.len() => one([rest, &input[depth..]].concat()),
        _ => invalid(format!("indices {indices:?} do not fit shape {input:?}")),
    }
}

/// EMBEDDING_LOOKUP and HASHTABLE_LOOKUP: rows of a table, by index or key.
pub(super) fn lookup(op: &Op, inputs: &Inputs<'_>) -> Rule {
    let [ids] = inputs.dims(0)?;
    let by_key = matches!(op, Op::HashtableLookup);
    let table = inputs.shape(if by_key { 2 } else { 1 })?;
    let rows = match table.split_first() {
        Some((_, row)) => [&[ids], row].concat(),
        None => return invalid("a scalar has no rows"),
    };
    Ok(if by_key { vec![rows, vec![ids]] } else { vec![rows] })
}

pub(super) fn one_hot(inputs: &Inputs<'_>, along: i32) -> Rule {
    let mut shape = inputs.shape(0)?.to_vec();
    let at = axis(i64::from(along), shape.len() + 1)?;
    shape.insert(at, size(inputs.int(1)?)?);
    one(shape)
}
