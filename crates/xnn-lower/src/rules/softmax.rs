//! Partitioning rule for SOFTMAX.

use xnn_model::TensorId;
use xnn_model::op::SoftmaxOptions;

use super::checks::{self, Elem};
use super::options::RuleOptions;
use crate::view::OpView;
use crate::why_not::WhyNot;

/// Plan for a softmax over the last dimension, computed in floats.
#[derive(Clone, Debug)]
pub(crate) struct Softmax {
    pub form: SoftmaxForm,
    pub input: TensorId,
    pub output: TensorId,
    /// Factor of the logits.
    pub beta: f32,
}

/// The nodes that compute a softmax.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SoftmaxForm {
    /// XNNPACK's node, which calls three kernels for each row.
    Node,
    /// XNNPACK's node on logits that are scaled first, after the largest of each row is subtracted.
    ScaledNode,
    /// The logistic function of the difference of both classes.
    TwoClasses {
        /// Whether logits may be infinite, so that their rows must become NaN.
        may_be_infinite: bool,
    },
    /// Exponentials divided by their sums. The sums are a product with a matrix of ones.
    FewClasses,
}

/// From this number of rows on, a matrix product is faster than kernel calls for each row.
const MANY_ROWS: usize = 4;

/// Largest number of classes for which a product with a square matrix is faster.
const FEW_CLASSES: usize = 32;

/// Exponentials of logits up to this magnitude, and sums of a few of them, are far from the limits
/// of floats.
const MAX_LOGIT: f32 = 80.0;

/// Rule for SOFTMAX.
pub(crate) fn softmax(
    view: OpView<'_>,
    options: &SoftmaxOptions,
    rule_options: RuleOptions,
) -> Result<Softmax, WhyNot> {
    view.arity(1..=1, 1..=1)?;
    let (input, output) = (view.input(0)?, view.output(0)?);
    let (elem, _) = checks::same_type(input, output)?;
    let Some((&count, rows)) = input.shape.split_last() else {
        return Err(WhyNot::Rank { tensor: input.to_ref(), rank: 0, expected: "1 to 6" });
    };
    let beta = options.beta;
    // The largest logit is subtracted, which with a negative factor has the smallest exponential.
    if !(beta.is_finite() && beta >= 0.0) {
        return Err(WhyNot::Attribute {
            name: "beta",
            value: beta.to_string(),
            expected: "a finite number, not negative",
        });
    }
    let has_many_rows = rows.iter().product::<usize>() >= MANY_ROWS;
    // Not all readers of graphs know nodes for exponentials.
    let is_bounded = !rule_options.widely_known && has_bounded_logits(elem, beta);
    #[allow(clippy::float_cmp, reason = "exactly 1 changes nothing")]
    let is_scaled = beta != 1.0;
    let form = match count {
        2 if has_many_rows => SoftmaxForm::TwoClasses { may_be_infinite: elem.is_f32() },
        ..=FEW_CLASSES if has_many_rows && is_bounded => SoftmaxForm::FewClasses,
        _ if is_scaled => SoftmaxForm::ScaledNode,
        _ => SoftmaxForm::Node,
    };
    Ok(Softmax { form, input: input.id, output: output.id, beta })
}

/// Whether no logit, multiplied by `beta`, exceeds [`MAX_LOGIT`] by magnitude.
fn has_bounded_logits(elem: Elem, beta: f32) -> bool {
    let Elem::Q8(q) = elem else { return false };
    let (low, high) = q.bounds();
    let real = |integer: i16| ((f32::from(integer) - q.zero()) * q.scale).abs();
    real(low).max(real(high)) * beta <= MAX_LOGIT
}
