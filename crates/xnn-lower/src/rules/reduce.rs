//! Partitioning rules for reductions, ARG_MAX, ARG_MIN and CUMSUM.

use xnn_format::ReduceOp;
use xnn_model::op::{CumsumOptions, ReducerOptions};
use xnn_model::{DType, TensorId};

use super::checks;
use crate::view::OpView;
use crate::why_not::WhyNot;

/// The function of a reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reduction {
    Mean,
    Sum,
    Max,
    Min,
    /// For floats only.
    Product,
}

/// The nodes that compute a reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReduceForm {
    /// A reduction.
    Node(ReduceOp),
    /// The node for the mean of an image, which ExecuTorch supports too.
    ImageMean,
    /// Maximum poolings.
    Max,
    /// Maximum poolings of negated elements.
    Min,
    /// Products of halves.
    Product,
}

/// Plan for a reduction.
#[derive(Clone, Debug)]
pub(crate) struct Reduce {
    pub form: ReduceForm,
    pub input: TensorId,
    pub output: TensorId,
    /// Ascending and not empty.
    pub axes: Vec<usize>,
    pub keep_dims: bool,
}

/// Rule for reductions over constant axes.
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
        // Poolings compute with one scale.
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
            expected: "must contain an axis".into(),
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
    let form = match op {
        Reduction::Mean if axes == [1, 2] && input.shape.len() == 4 => ReduceForm::ImageMean,
        Reduction::Mean => ReduceForm::Node(ReduceOp::Mean),
        Reduction::Sum => ReduceForm::Node(ReduceOp::Sum),
        Reduction::Max => ReduceForm::Max,
        Reduction::Min => ReduceForm::Min,
        Reduction::Product => ReduceForm::Product,
    };
    Ok(Reduce { form, input: input.id, output: output.id, axes, keep_dims: options.keep_dims })
}

/// Largest number of 8-bit elements in a sum. XNNPACK adds them in 32 bits.
const MAX_SUMMED_BYTES: usize = i32::MAX as usize / u8::MAX as usize;

/// Plan for the position of the maximum or minimum along an axis.
#[derive(Clone, Debug)]
pub(crate) struct ArgReduce {
    pub input: TensorId,
    pub output: TensorId,
    pub axis: usize,
    /// Whether it is the position of the minimum.
    pub min: bool,
}

/// Rule for ARG_MAX and ARG_MIN with 32-bit positions, which XNNPACK's pooling returns.
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
    let mut positions = input.shape.to_vec();
    let length = positions.remove(axis);
    if !(2..=MAX_LENGTH).contains(&length) || positions != output.shape {
        return Err(WhyNot::Shape {
            tensor: input.to_ref(),
            expected: format!("2 to {MAX_LENGTH} elements along the axis {axis}, not {length}"),
        });
    }
    Ok(ArgReduce { input: input.id, output: output.id, axis, min })
}

/// Longest axis. Positions are converted through floats, which are exact up to here.
const MAX_LENGTH: usize = 1 << 24;

/// Plan for a running sum.
#[derive(Clone, Debug)]
pub(crate) struct Cumsum {
    pub input: TensorId,
    pub output: TensorId,
    pub axis: usize,
    /// Whether each sum excludes the element at its own position.
    pub exclusive: bool,
    /// Whether sums start at the end.
    pub reverse: bool,
}

/// Rule for CUMSUM of floats.
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
            expected: "an exclusive sum needs at least 2 elements".into(),
        });
    }
    Ok(Cumsum { input: input.id, output: output.id, axis, exclusive, reverse })
}
