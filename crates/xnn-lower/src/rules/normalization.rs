//! Partitioning rules for LOG_SOFTMAX, L2_NORMALIZATION, LOCAL_RESPONSE_NORMALIZATION, and Circle's
//! INSTANCE_NORM and RMS_NORM.

use xnn_model::TensorId;
use xnn_model::op::{
    Activation, ActivationOptions, InstanceNormOptions, LocalResponseNormalizationOptions,
    RmsNormOptions,
};

use super::activation::{FusedActivation, activation};
use super::checks;
use crate::view::{OpView, Operand};
use crate::why_not::WhyNot;

/// Plan for a normalization over the last dimension, computed in floats.
#[derive(Clone, Debug)]
pub(crate) struct Normalization {
    pub kind: NormalizationKind,
    pub input: TensorId,
    pub output: TensorId,
}

/// The function of a normalization.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NormalizationKind {
    /// `x - max(x) - log(sum(exp(x - max(x))))`
    LogSoftmax,
    /// `x / max(sqrt(sum(x * x)), 1e-6)`
    L2,
}

/// Rule for LOG_SOFTMAX.
pub(crate) fn log_softmax(view: OpView<'_>) -> Result<Normalization, WhyNot> {
    normalization(view, NormalizationKind::LogSoftmax)
}

/// Rule for L2_NORMALIZATION.
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

/// Plan for floats divided by the root of their mean square.
#[derive(Clone, Debug)]
pub(crate) struct MeanSquareNorm {
    pub input: TensorId,
    pub output: TensorId,
    /// Dimensions that share a mean.
    pub axes: Vec<usize>,
    /// Whether the mean is subtracted first.
    pub centered: bool,
    /// Added to the mean square.
    pub epsilon: f32,
    /// Factors: one, or one for each element of the last dimension.
    pub gain: TensorId,
    /// Summands: one, or one for each element of the last dimension.
    pub offset: Option<TensorId>,
    pub fused: FusedActivation,
}

/// Rule for Circle's INSTANCE_NORM, with the mean and variance of each image's channels.
pub(crate) fn instance_norm(
    view: OpView<'_>,
    options: &InstanceNormOptions,
) -> Result<MeanSquareNorm, WhyNot> {
    view.arity(3..=3, 1..=1)?;
    let (input, gain, offset) = (view.input(0)?, view.input(1)?, view.input(2)?);
    checks::nhwc(input)?;
    let fused = activation(options.activation, checks::elem(input)?)?;
    if fused == FusedActivation::Tanh {
        return Err(WhyNot::Attribute {
            name: "fused_activation_function",
            value: "TANH".into(),
            expected: "NONE, RELU, RELU_N1_TO_1 or RELU6",
        });
    }
    let output = floats(view, input, &[gain, offset])?;
    Ok(MeanSquareNorm {
        input: input.id,
        output,
        axes: vec![1, 2],
        centered: true,
        epsilon: epsilon(options.epsilon)?,
        gain: gain.id,
        offset: Some(offset.id),
        fused,
    })
}

/// Rule for Circle's RMS_NORM, with the mean square of each row.
pub(crate) fn rms_norm(
    view: OpView<'_>,
    options: &RmsNormOptions,
) -> Result<MeanSquareNorm, WhyNot> {
    view.arity(2..=2, 1..=1)?;
    let (input, gain) = (view.input(0)?, view.input(1)?);
    let output = floats(view, input, &[gain])?;
    let Some(last) = input.shape.len().checked_sub(1) else {
        return Err(WhyNot::Rank { tensor: input.to_ref(), rank: 0, expected: "1 to 6" });
    };
    Ok(MeanSquareNorm {
        input: input.id,
        output,
        axes: vec![last],
        centered: false,
        epsilon: epsilon(options.epsilon)?,
        gain: gain.id,
        offset: None,
        fused: FusedActivation::None,
    })
}

/// Checks that input, output and parameters are floats, and that the parameters match the input's
/// last dimension. Returns the output.
fn floats(
    view: OpView<'_>,
    input: Operand<'_>,
    parameters: &[Operand<'_>],
) -> Result<TensorId, WhyNot> {
    let output = view.output(0)?;
    checks::f32_operand(input)?;
    checks::f32_operand(output)?;
    let channels = input.shape.last().copied().unwrap_or(1);
    for &t in parameters {
        checks::f32_operand(t)?;
        if *t.shape != [channels] && *t.shape != [1] {
            return Err(WhyNot::Shape {
                tensor: t.to_ref(),
                expected: format!("must have 1 or {channels} elements"),
            });
        }
    }
    Ok(output.id)
}

fn epsilon(epsilon: f32) -> Result<f32, WhyNot> {
    if epsilon.is_finite() && epsilon >= 0.0 {
        return Ok(epsilon);
    }
    let expected = "a finite number, not negative";
    Err(WhyNot::Attribute { name: "epsilon", value: epsilon.to_string(), expected })
}

/// Plan for floats divided by a power of the squares of their neighbours along the last dimension.
#[derive(Clone, Debug)]
pub(crate) struct LocalResponse {
    pub input: TensorId,
    pub output: TensorId,
    /// Number of neighbours on each side; at least 1.
    pub radius: u32,
    pub bias: f32,
    pub alpha: f32,
    pub beta: f32,
}

/// Rule for LOCAL_RESPONSE_NORMALIZATION.
pub(crate) fn local_response(
    view: OpView<'_>,
    options: &LocalResponseNormalizationOptions,
) -> Result<LocalResponse, WhyNot> {
    view.arity(1..=1, 1..=1)?;
    let input = view.input(0)?;
    checks::nhwc(input)?;
    let output = floats(view, input, &[])?;
    let LocalResponseNormalizationOptions { radius, bias, alpha, beta } = *options;
    let radius = checks::positive("radius", radius)?;
    if radius > MAX_RADIUS || ![bias, alpha, beta].iter().all(|value| value.is_finite()) {
        return Err(WhyNot::Attribute {
            name: "radius, bias, alpha, beta",
            value: format!("{radius}, {bias}, {alpha}, {beta}"),
            expected: "a radius up to 4096, and finite numbers",
        });
    }
    Ok(LocalResponse { input: input.id, output, radius, bias, alpha, beta })
}

/// Largest radius: far more channels than images have.
const MAX_RADIUS: u32 = 4096;
