//! May the reductions go, ARG_MAX, ARG_MIN and CUMSUM?

use xnn_model::op::{CumsumOptions, ReducerOptions};
use xnn_model::{DType, TensorId};

use super::checks;
use crate::view::OpView;
use crate::why_not::WhyNot;

/// What a reduction keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reduction {
    Mean,
    Sum,
    /// Maximum; XNNPACK has it as a pooling.
    Max,
    /// Minimum: the negated maximum of the negated.
    Min,
    /// Of floats.
    Product,
}

/// A reduction that XNNPACK takes.
#[derive(Clone, Debug)]
pub(crate) struct Reduce {
    pub op: Reduction,
    pub input: TensorId,
    pub output: TensorId,
    /// Ascending, not empty.
    pub axes: Vec<usize>,
    pub keep_dims: bool,
}

pub(crate) fn reduce(
    view: OpView<'_>,
    options: &ReducerOptions,
    op: Reduction,
) -> Result<Reduce, WhyNot> {
    view.arity(2..=2, 1..=1)?;
    let (input, axes_tensor, output) = (view.input(0)?, view.input(1)?, view.output(0)?);
    match op {
        Reduction::Mean | Reduction::Sum => {
            checks::same_type(input, output)?;
        }
        // A pooling only moves data.
        Reduction::Max | Reduction::Min => {
            checks::same_elem(input, output)?;
        }
        Reduction::Product => {
            checks::f32_operand(input)?;
            checks::f32_operand(output)?;
        }
    }
    let mut axes = checks::constant_ints(axes_tensor)?
        .into_iter()
        .map(|value| checks::axis(value, input.shape.len()))
        .collect::<Result<Vec<_>, _>>()?;
    axes.sort_unstable();
    axes.dedup();
    if axes.is_empty() {
        return Err(WhyNot::Shape {
            tensor: axes_tensor.to_ref(),
            expected: "names no axis".into(),
        });
    }
    let summed = axes.iter().try_fold(1usize, |n, &axis| n.checked_mul(input.shape[axis]));
    let in_bytes = matches!(op, Reduction::Mean | Reduction::Sum) && !checks::elem(input)?.is_f32();
    if in_bytes && summed.is_none_or(|summed| summed > MAX_SUMMED_BYTES) {
        return Err(WhyNot::Shape {
            tensor: input.to_ref(),
            expected: format!("at most {MAX_SUMMED_BYTES} 8-bit elements in a sum"),
        });
    }
    Ok(Reduce { op, input: input.id, output: output.id, axes, keep_dims: options.keep_dims })
}

/// XNNPACK adds up 8-bit elements in 32 bits.
const MAX_SUMMED_BYTES: usize = i32::MAX as usize / u8::MAX as usize;

/// Where the extreme along an axis is.
#[derive(Clone, Debug)]
pub(crate) struct ArgReduce {
    pub input: TensorId,
    pub output: TensorId,
    pub axis: usize,
    /// The place of the minimum.
    pub min: bool,
}

/// ARG_MAX and ARG_MIN with 32-bit places, which XNNPACK's pooling gives.
pub(crate) fn arg_reduce(view: OpView<'_>, min: bool) -> Result<ArgReduce, WhyNot> {
    view.arity(2..=2, 1..=1)?;
    let (input, axis, output) = (view.input(0)?, view.input(1)?, view.output(0)?);
    checks::elem(input)?;
    checks::usable(input)?;
    if output.tensor.dtype != DType::I32 {
        let dtype = output.tensor.dtype;
        return Err(WhyNot::Type { tensor: output.to_ref(), dtype, expected: "i32" });
    }
    let axis = checks::one_axis(axis, input)?;
    let mut places = input.shape.to_vec();
    let length = places.remove(axis);
    if !(2..=MAX_LENGTH).contains(&length) || places != output.shape {
        return Err(WhyNot::Shape {
            tensor: input.to_ref(),
            expected: format!("2 to {MAX_LENGTH} elements along the axis {axis}, not {length}"),
        });
    }
    Ok(ArgReduce { input: input.id, output: output.id, axis, min })
}

/// Places up to here are exact as floats, which they are for a moment.
const MAX_LENGTH: usize = 1 << 24;

/// A running sum.
#[derive(Clone, Debug)]
pub(crate) struct Cumsum {
    pub input: TensorId,
    pub output: TensorId,
    pub axis: usize,
    /// Leave the element itself out.
    pub exclusive: bool,
    /// From the end.
    pub reverse: bool,
}

/// CUMSUM of floats.
pub(crate) fn cumsum(view: OpView<'_>, options: &CumsumOptions) -> Result<Cumsum, WhyNot> {
    view.arity(2..=2, 1..=1)?;
    let (input, axis, output) = (view.input(0)?, view.input(1)?, view.output(0)?);
    checks::f32_operand(input)?;
    checks::f32_operand(output)?;
    let axis = checks::one_axis(axis, input)?;
    let CumsumOptions { exclusive, reverse } = *options;
    if exclusive && input.shape[axis] == 1 {
        return Err(WhyNot::Shape {
            tensor: input.to_ref(),
            expected: "at least 2 elements to leave one out".into(),
        });
    }
    Ok(Cumsum { input: input.id, output: output.id, axis, exclusive, reverse })
}
