//! Quantization parameters as kernels use them.

use xnn_model::op::Activation;
use xnn_model::{DType, Quantization, Tensor};

use crate::error::{Refusal, refuse};
use crate::fixed::Multiplier;
use crate::tensor::Element;

/// Scale and zero point of a whole tensor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Affine {
    pub(crate) scale: f32,
    pub(crate) zero_point: i32,
}

/// The parameters of a per-tensor quantized tensor.
pub(crate) fn affine(tensor: &Tensor) -> Result<Affine, Refusal> {
    let (scale, zero_point) = match &tensor.quantization {
        Some(Quantization::PerTensor { scale, zero_point }) => (*scale, *zero_point),
        Some(Quantization::PerAxis { scales, zero_points, .. }) if scales.len() == 1 => {
            (scales[0], zero_points.at(0))
        }
        _ => {
            return refuse(format!(
                "tensor {:?} is {} without a scale of its own",
                tensor.name, tensor.dtype
            ));
        }
    };
    if !(scale.is_finite() && scale > 0.0) {
        return refuse(format!("tensor {:?} has scale {scale}", tensor.name));
    }
    // Kernels subtract the zero point from elements and multiply what is left.
    let (low, high) = match tensor.dtype {
        DType::I8 => (i8::MIN.into(), i8::MAX.into()),
        DType::U8 => (u8::MIN.into(), u8::MAX.into()),
        DType::I16 => (i16::MIN.into(), i16::MAX.into()),
        _ => (i32::MIN, i32::MAX),
    };
    match i32::try_from(zero_point) {
        Ok(zero_point) if (low..=high).contains(&zero_point) => Ok(Affine { scale, zero_point }),
        _ => refuse(format!(
            "tensor {:?} has zero point {zero_point}, which is not a value of {}",
            tensor.name, tensor.dtype
        )),
    }
}

/// Whether a tensor is quantized.
pub(crate) fn is_quantized(tensor: &Tensor) -> bool {
    affine(tensor).is_ok()
}

/// The scales of weights along `axis`: one for all, or one per slice.
pub(crate) fn weight_scales(tensor: &Tensor, axis: usize) -> Result<Vec<f32>, Refusal> {
    match &tensor.quantization {
        Some(Quantization::PerTensor { scale, .. }) => Ok(vec![*scale]),
        Some(Quantization::PerAxis { scales, axis: along, .. }) => {
            if *along == axis || scales.len() == 1 {
                Ok(scales.to_vec())
            } else {
                refuse(format!("weights are quantized along dimension {along}, expected {axis}"))
            }
        }
        _ => refuse("weights have no scale"),
    }
}

/// The zero point of weights, or 0 if they are quantized per slice.
pub(crate) fn weight_zero_point(tensor: &Tensor) -> Result<i32, Refusal> {
    match &tensor.quantization {
        Some(Quantization::PerAxis { scales, zero_points, .. }) if scales.len() > 1 => {
            if zero_points.nonzero().is_some() {
                return refuse(format!("tensor {:?} has zero points for slices", tensor.name));
            }
            Ok(0)
        }
        _ => Ok(affine(tensor)?.zero_point),
    }
}

/// Requantization of accumulators, with one multiplier or one per output channel.
#[derive(Clone, Debug)]
pub(crate) struct Requantize {
    multipliers: Vec<Multiplier>,
}

impl Requantize {
    pub(crate) fn new(multipliers: Vec<Multiplier>) -> Self {
        Self { multipliers }
    }

    /// `input scale * weight scale / output scale`, in double precision.
    pub(crate) fn of_scales(input: f32, weights: &[f32], output: f32) -> Self {
        let multiplier = |&weight: &f32| {
            Multiplier::new(f64::from(input) * f64::from(weight) / f64::from(output))
        };
        Self::new(weights.iter().map(multiplier).collect())
    }

    /// Multipliers of an 8-bit layer whose weights have output channels along `axis`, and the zero point of the weights.
    pub(crate) fn of_layer(
        input: Affine,
        weights: &Tensor,
        axis: usize,
        output: Affine,
    ) -> Result<(Self, i32), Refusal> {
        if weights.dtype != DType::U8 {
            return Ok((
                Self::of_scales(input.scale, &weight_scales(weights, axis)?, output.scale),
                0,
            ));
        }
        let weights = affine(weights)?;
        // The product of the scales is rounded to single precision.
        let product = f64::from(input.scale * weights.scale);
        let multiplier = Multiplier::new(product / f64::from(output.scale));
        Ok((Self::new(vec![multiplier]), weights.zero_point))
    }

    pub(crate) fn multiplier(&self, channel: usize) -> Multiplier {
        let last = self.multipliers.len() - 1;
        self.multipliers[channel.min(last)]
    }

    /// Whether there is one multiplier, or one per channel.
    pub(crate) fn fits(&self, channels: usize) -> bool {
        self.multipliers.len() == 1 || self.multipliers.len() == channels
    }
}

/// Bounds of a fused activation in real numbers.
pub(crate) fn float_bounds(activation: Activation) -> Result<(f32, f32), Refusal> {
    Ok(match activation {
        Activation::None => (f32::MIN, f32::MAX),
        Activation::Relu => (0.0, f32::MAX),
        Activation::ReluN1To1 => (-1.0, 1.0),
        Activation::Relu6 => (0.0, 6.0),
        other => return refuse(format!("fused activation {other:?}")),
    })
}

/// Clamps as TFLite does, `min(max(x, low), high)` with comparisons that are false for NaN.
pub(crate) fn clamp(x: f32, (low, high): (f32, f32)) -> f32 {
    let x = if x < low { low } else { x };
    if high < x { high } else { x }
}

/// The range of an integer type.
pub(crate) fn integer_range(dtype: DType) -> Result<(i32, i32), Refusal> {
    Ok(match dtype {
        DType::I4 => (-8, 7),
        DType::I8 => (-128, 127),
        DType::U8 => (0, 255),
        DType::I16 => (-32768, 32767),
        DType::I32 => (i32::MIN, i32::MAX),
        other => return refuse(format!("element type {other}")),
    })
}

/// Bounds of a fused activation in the output's quantized integers.
pub(crate) fn quantized_bounds(
    activation: Activation,
    output: &Tensor,
) -> Result<(i32, i32), Refusal> {
    let (low, high) = integer_range(output.dtype)?;
    let Affine { scale, zero_point } = affine(output)?;
    let quantize = |real: f32| zero_point.saturating_add((real / scale).round() as i32);
    Ok(match activation {
        Activation::None => (low, high),
        Activation::Relu => (low.max(quantize(0.0)), high),
        Activation::Relu6 => (low.max(quantize(0.0)), high.min(quantize(6.0))),
        Activation::ReluN1To1 => (low.max(quantize(-1.0)), high.min(quantize(1.0))),
        other => return refuse(format!("fused activation {other:?}")),
    })
}

/// The integer types of quantized tensors.
pub(crate) trait Quantized: Element + Ord + Into<i32> {
    const MIN: i32;
    const MAX: i32;

    /// Converts a value in `MIN..=MAX`.
    fn narrow(value: i32) -> Self;

    /// Converts any value to the nearest one.
    fn saturate(value: i32) -> Self {
        Self::narrow(value.clamp(Self::MIN, Self::MAX))
    }

    /// Converts to the nearest value in `low..=high`. Clamping to the type's range first is the
    /// fastest on processors.
    fn bounded(value: i32, (low, high): (i32, i32)) -> Self {
        Self::saturate(value).max(Self::saturate(low)).min(Self::saturate(high))
    }
}

macro_rules! quantized {
    ($($ty:ty)*) => {$(
        impl Quantized for $ty {
            const MIN: i32 = <$ty>::MIN as i32;
            const MAX: i32 = <$ty>::MAX as i32;

            fn narrow(value: i32) -> Self {
                value as Self
            }
        }
    )*};
}

quantized! { i8 u8 i16 i32 }

/// Tabulates a function of 8-bit integers, indexed by the byte.
pub(crate) fn byte_table<T: Quantized>(
    input: Affine,
    output: Affine,
    f: impl Fn(f32) -> f32,
) -> Vec<T> {
    let inverse = 1.0 / output.scale;
    // In the order of bytes: for signed integers 0..=127, then -128..=-1.
    (0..=255u8)
        .map(|byte| {
            let q = if T::MIN < 0 { i32::from(byte.cast_signed()) } else { i32::from(byte) };
            let real = input.scale * (q - input.zero_point) as f32;
            let rescaled = (f(real) * inverse).round();
            T::saturate((rescaled + output.zero_point as f32) as i32)
        })
        .collect()
}

/// Unpacks a tensor of 4-bit integers. Elements with even indices are in the low four bits of the
/// bytes.
pub(crate) fn unpack_i4(bytes: &[u8], elements: usize) -> Vec<i8> {
    bytes
        .iter()
        .flat_map(|&b| [(b << 4).cast_signed() >> 4, b.cast_signed() >> 4])
        .take(elements)
        .collect()
}
