//! May SOFTMAX go?

use xnn_model::TensorId;
use xnn_model::op::SoftmaxOptions;

use super::Forms;
use super::checks::{self, Elem};
use crate::view::OpView;
use crate::why_not::WhyNot;

/// A softmax over the last dimension that XNNPACK takes, in floats.
#[derive(Clone, Debug)]
pub(crate) struct Softmax {
    pub input: TensorId,
    pub output: TensorId,
    /// Factor of the logits.
    pub beta: f32,
    /// The largest that 8-bit logits can be by magnitude, `beta` included, if that matters: not all readers know nodes for
    /// exponentials.
    pub bound: Option<f32>,
}

pub(crate) fn softmax(
    view: OpView<'_>,
    options: &SoftmaxOptions,
    forms: Forms,
) -> Result<Softmax, WhyNot> {
    view.arity(1..=1, 1..=1)?;
    let (input, output) = (view.input(0)?, view.output(0)?);
    let (elem, _) = checks::same_type(input, output)?;
    if input.shape.is_empty() {
        return Err(WhyNot::Rank { tensor: input.to_ref(), rank: 0, expected: "1 to 6" });
    }
    // The largest logit is taken off, which with a negative factor is the one of the smallest exponential.
    if !(options.beta.is_finite() && options.beta >= 0.0) {
        return Err(WhyNot::Attribute {
            name: "beta",
            value: options.beta.to_string(),
            expected: "a finite number, not negative",
        });
    }
    let bound = match elem {
        Elem::Q8(q) if !forms.widely_known => {
            let (low, high) = q.bounds();
            let real = |integer: i16| ((f32::from(integer) - q.zero()) * q.scale).abs();
            Some(real(low).max(real(high)) * options.beta)
        }
        _ => None,
    };
    Ok(Softmax { input: input.id, output: output.id, beta: options.beta, bound })
}
