//! Partitioning rules for weights and biases of convolutions and fully connected layers.

use xnn_model::{DType, Quantization, TensorId};

use super::checks::{self, Elem, Q8, check_scale, q8};
use crate::view::Operand;
use crate::why_not::WhyNot;

/// A layer with weights: its tensors and how they are multiplied.
#[derive(Clone, Debug)]
pub(crate) struct Layer {
    pub input: TensorId,
    pub filter: TensorId,
    pub bias: Option<TensorId>,
    pub output: TensorId,
    pub arithmetic: Arithmetic,
    /// The filter's dimension of output channels.
    pub channel_dim: usize,
    /// Number of last dimensions of the input that share a scale in dynamic quantization.
    pub num_nonbatch_dims: usize,
}

impl Layer {
    /// A layer whose filter has output channels as its first dimension.
    pub fn new(
        [input, filter, output]: [Operand<'_>; 3],
        bias: Option<Operand<'_>>,
        arithmetic: Arithmetic,
        num_nonbatch_dims: usize,
    ) -> Self {
        Self {
            input: input.id,
            filter: filter.id,
            bias: bias.map(|bias| bias.id),
            output: output.id,
            arithmetic,
            channel_dim: 0,
            num_nonbatch_dims,
        }
    }
}

/// How the activations and weights of a layer are multiplied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arithmetic {
    /// Float activations, float weights.
    Float,
    /// Float activations, 8-bit or 4-bit weights that are converted to floats before the run.
    WeightsUnpacked,
    /// Float activations that are quantized at run time with a scale for each row, 8-bit or 4-bit
    /// weights.
    Dynamic(DynamicFilter),
    /// Float activations that are quantized at run time with a scale for each image, 8-bit weights
    /// with a scale for each channel.
    DynamicImages,
    /// 8-bit activations and weights.
    Quantized(QuantizedFilter),
}

/// Representation of weights that multiply activations quantized at run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DynamicFilter {
    /// 8 bits, a scale for each channel.
    Int8,
    /// 4 bits, a scale for each channel.
    Int4,
    /// 4 bits, a scale for each block.
    Blockwise,
}

/// Representation of weights that multiply 8-bit activations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QuantizedFilter {
    /// A type with one scale.
    PerTensor,
    /// Signed weights with a scale for each channel.
    PerChannel,
}

impl Arithmetic {
    /// Quantizes images instead of rows if `by_image`.
    pub fn by_image_if(self, by_image: bool) -> Self {
        match self {
            Self::WeightsUnpacked | Self::Dynamic(_) if by_image => Self::DynamicImages,
            other => other,
        }
    }
}

/// Returns the arithmetic for the types of activations and weights.
pub(crate) fn arithmetic(
    elem: Elem,
    input: Operand<'_>,
    filter: Operand<'_>,
    output: Operand<'_>,
    channel_dim: usize,
) -> Result<Arithmetic, WhyNot> {
    checks::constant(filter)?;
    if filter.shape.contains(&0) {
        return Err(WhyNot::Empty { tensor: filter.to_ref() });
    }
    match (elem, filter.tensor.dtype) {
        (Elem::F32, DType::F32 | DType::F16) => Ok(Arithmetic::Float),
        (Elem::F32, DType::I8 | DType::I4) => {
            quantized_weights(filter, channel_dim)?;
            Ok(dynamic(filter))
        }
        (Elem::Q8(q), dtype) if dtype == input.tensor.dtype || (q.signed && dtype == DType::I4) => {
            quantized_weights(filter, channel_dim)?;
            requantization(q, filter, q8(output)?)?;
            // 4-bit weights are widened to 8 bits with a scale for each channel.
            let per_tensor = dtype != DType::I4 && filter.tensor.per_tensor().is_some();
            Ok(Arithmetic::Quantized(if per_tensor {
                QuantizedFilter::PerTensor
            } else {
                QuantizedFilter::PerChannel
            }))
        }
        (_, dtype) => Err(WhyNot::Type {
            tensor: filter.to_ref(),
            dtype,
            expected: "f32, f16, i8 or i4 weights for f32 activations, their own type or i4 for 8-bit",
        }),
    }
}

/// Returns how floats are multiplied by 8-bit or 4-bit weights.
///
/// A convolution quantizes a pixel for each pixel of the result, which costs as much as integer
/// products save with about 4000 weights (`docs/optimization.md` has measurements). Convolutions
/// with fewer weights multiply floats, which is more exact and takes at most 16 KiB. Fully
/// connected layers mostly have one row, where floats are no faster, and quantize as interpreters
/// do.
fn dynamic(filter: Operand<'_>) -> Arithmetic {
    const MIN_QUANTIZED_WEIGHTS: usize = 4096;
    let is_convolution = filter.tensor.rank() == Some(4);
    match filter.tensor.elements() {
        Some(0..MIN_QUANTIZED_WEIGHTS) if is_convolution => Arithmetic::WeightsUnpacked,
        _ if is_int4_matrix(filter) => Arithmetic::Dynamic(DynamicFilter::Int4),
        _ => Arithmetic::Dynamic(DynamicFilter::Int8),
    }
}

/// Whether XNNPACK can multiply the 4-bit weights without widening them: it needs a matrix with
/// whole bytes in each row.
fn is_int4_matrix(filter: Operand<'_>) -> bool {
    filter.tensor.dtype == DType::I4 && matches!(*filter.shape, [_, row] if row.is_multiple_of(2))
}

/// Checks that 8-bit or 4-bit weights have positive scales, one for all or one for each channel,
/// and that zero points of signed weights are 0.
pub(crate) fn quantized_weights(filter: Operand<'_>, channel_dim: usize) -> Result<(), WhyNot> {
    match &filter.tensor.quantization {
        None => Err(WhyNot::NotQuantized { tensor: filter.to_ref() }),
        Some(Quantization::PerTensor { scale, zero_point }) => {
            check_scale(filter, *scale)?;
            if filter.tensor.dtype == DType::U8 {
                q8(filter).map(|_| ())
            } else {
                zero_points_are_zero(filter, Some(*zero_point).filter(|&it| it != 0))
            }
        }
        Some(Quantization::PerAxis { scales, zero_points, axis }) => {
            if *axis != channel_dim || filter.tensor.dtype == DType::U8 {
                return Err(WhyNot::Quantization {
                    tensor: filter.to_ref(),
                    expected: "per tensor, or signed per output channel",
                });
            }
            let channels = filter.shape.get(channel_dim).copied();
            if channels != Some(scales.len()) {
                return Err(WhyNot::Quantization {
                    tensor: filter.to_ref(),
                    expected: "as many scales as there are channels",
                });
            }
            scales.iter().try_for_each(|&scale| check_scale(filter, scale))?;
            zero_points_are_zero(filter, zero_points.nonzero())
        }
        Some(_) => Err(WhyNot::Quantization {
            tensor: filter.to_ref(),
            expected: "per tensor or per channel",
        }),
    }
}

/// Checks that there is no nonzero zero point.
fn zero_points_are_zero(t: Operand<'_>, nonzero: Option<i64>) -> Result<(), WhyNot> {
    match nonzero {
        None => Ok(()),
        Some(zero_point) => Err(WhyNot::ZeroPoint {
            tensor: t.to_ref(),
            zero_point,
            expected: "0 for signed weights",
        }),
    }
}

/// The scales of a quantized tensor: one, or one for each channel.
fn scales<'a>(t: Operand<'a>) -> &'a [f32] {
    match &t.tensor.quantization {
        Some(Quantization::PerTensor { scale, .. }) => std::slice::from_ref(scale),
        Some(Quantization::PerAxis { scales, .. }) => scales,
        _ => &[],
    }
}

/// Checks that XNNPACK can requantize accumulators: `input * weight / output` must be below 256.
/// Lowering raises ratios below [`MIN_REQUANTIZATION`] to that.
pub(crate) fn requantization(input: Q8, filter: Operand<'_>, output: Q8) -> Result<(), WhyNot> {
    let ratios = scales(filter).iter().map(|scale| input.scale * scale / output.scale);
    match ratios.into_iter().find(|ratio| !(0.0..256.0).contains(ratio)) {
        None => Ok(()),
        Some(value) => Err(WhyNot::ScaleRatio {
            what: "input scale x weight scale / output scale",
            value,
            expected: "below 256",
        }),
    }
}

/// 2^-32: a 32-bit accumulator scaled by this or any smaller ratio rounds to 0, but some kernels
/// cannot express smaller ratios.
pub(crate) const MIN_REQUANTIZATION: f32 = 2.328_306_4e-10;

/// Checks that a bias has one element for each output channel, and the type that matches the
/// activations.
pub(crate) fn bias(
    bias: Option<Operand<'_>>,
    channels: usize,
    arithmetic: Arithmetic,
) -> Result<(), WhyNot> {
    let Some(bias) = bias else { return Ok(()) };
    checks::constant(bias)?;
    if bias.tensor.elements() != Some(channels) {
        return Err(WhyNot::Shape {
            tensor: bias.to_ref(),
            expected: format!("a bias must have {channels} elements"),
        });
    }
    let (dtype, expected) = match arithmetic {
        Arithmetic::Quantized(_) => (DType::I32, "i32"),
        _ => (DType::F32, "f32"),
    };
    if bias.tensor.dtype == dtype {
        Ok(())
    } else {
        Err(WhyNot::Type { tensor: bias.to_ref(), dtype: bias.tensor.dtype, expected })
    }
}
