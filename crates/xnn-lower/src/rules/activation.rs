//! Fused activations.

use xnn_format::OutputRange;
use xnn_model::DType;
use xnn_model::op::Activation;

use super::checks::Elem;
use crate::why_not::WhyNot;

/// A fused activation in the form that XNNPACK needs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum FusedActivation {
    /// No activation.
    None,
    /// Bounds of the result.
    Range(OutputRange),
    /// A tanh in a node of its own.
    Tanh,
}

impl FusedActivation {
    /// The bounds to fuse into the node.
    pub fn range(self) -> Option<OutputRange> {
        match self {
            Self::Range(range) => Some(range),
            Self::None | Self::Tanh => None,
        }
    }

    /// The bounds to fuse into a node that always bounds its result. Interpreters keep floats of
    /// such nodes finite even if the model has no bounds, and sums of infinities would become NaN.
    pub fn finite_range(self, dtype: DType) -> Option<OutputRange> {
        if dtype != DType::F32 || self == Self::Tanh {
            return self.range();
        }
        let OutputRange { min, max } = self.range().unwrap_or(OutputRange::UNBOUNDED);
        let OutputRange { min: lowest, max: highest } = OutputRange::FINITE;
        Some(OutputRange { min: min.max(lowest), max: max.min(highest) })
    }
}

/// Converts a fused activation. TANH is only supported for floats: interpreters refuse it for
/// integers.
pub(crate) fn activation(activation: Activation, elem: Elem) -> Result<FusedActivation, WhyNot> {
    Ok(match activation {
        Activation::None => FusedActivation::None,
        Activation::Relu => FusedActivation::Range(RELU),
        Activation::Relu6 => FusedActivation::Range(RELU6),
        Activation::ReluN1To1 => FusedActivation::Range(RELU_N1_TO_1),
        Activation::Tanh if elem.is_f32() => FusedActivation::Tanh,
        other => {
            return Err(WhyNot::Attribute {
                name: "fused_activation_function",
                value: format!("{other:?}"),
                expected: "NONE, RELU, RELU_N1_TO_1 or RELU6; TANH for floats",
            });
        }
    })
}

/// Bounds of RELU.
pub(crate) const RELU: OutputRange = OutputRange { min: 0.0, max: f32::INFINITY };
/// Bounds of RELU6.
pub(crate) const RELU6: OutputRange = OutputRange { min: 0.0, max: 6.0 };
/// Bounds of RELU_N1_TO_1.
pub(crate) const RELU_N1_TO_1: OutputRange = OutputRange { min: -1.0, max: 1.0 };
/// Bounds of RELU_0_TO_1.
pub(crate) const RELU_0_TO_1: OutputRange = OutputRange { min: 0.0, max: 1.0 };
