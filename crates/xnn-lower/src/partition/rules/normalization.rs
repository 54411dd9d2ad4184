//! May normalizations over the last dimension go: LOG_SOFTMAX,
//! L2_NORMALIZATION?

use xnn_model::TensorId;
use xnn_model::op::{Activation, ActivationOptions};

use super::checks;
use crate::view::OpView;
use crate::why_not::WhyNot;

/// A normalization over the last dimension, computed in floats.
#[derive(Clone, Debug)]
pub(crate) struct Normalization {
    pub kind: NormalizationKind,
    pub input: TensorId,
    pub output: TensorId,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NormalizationKind {
    /// `x - max(x) - log(sum(exp(x - max(x))))`
    LogSoftmax,
    /// `x / max(sqrt(sum(x * x)), 1e-6)`
    L2,
}

pub(crate) fn log_softmax(view: OpView<'_>) -> Result<Normalization, WhyNot> {
    normalization(view, NormalizationKind::LogSoftmax)
}

pub(crate) fn l2_normalization(
    view: OpView<'_>,
    options: &ActivationOptions,
) -> Result<Normalization, WhyNot> {
    if options.activation != Activation::None {
        return Err(WhyNot::Attribute {
            name: "fused_activation_function",
            value: format!("{:?}", options.activation),
            expected: "NONE",
        });
    }
    normalization(view, NormalizationKind::L2)
}

fn normalization(view: OpView<'_>, kind: NormalizationKind) -> Result<Normalization, WhyNot> {
    view.arity(1..=1, 1..=1)?;
    let (input, output) = (view.input(0)?, view.output(0)?);
    checks::same_type(input, output)?;
    if input.shape.is_empty() {
        return Err(WhyNot::Rank { tensor: input.to_ref(), rank: 0, expected: "1 to 6" });
    }
    Ok(Normalization { kind, input: input.id, output: output.id })
}
