//! May the reductions go?

use xnn_model::TensorId;
use xnn_model::op::ReducerOptions;

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
    Ok(Reduce { op, input: input.id, output: output.id, axes, keep_dims: options.keep_dims })
}
