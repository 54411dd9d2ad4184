//! The vocabulary of checks: one function for each thing that XNNPACK needs.

use xnn_format::OutputRange;
use xnn_model::op::Activation;
use xnn_model::{DType, Quantization};

use crate::view::{MAX_RANK, Operand};
use crate::why_not::WhyNot;

/// Element type of a value that XNNPACK computes with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Elem {
    F32,
    Q8(Q8),
}

/// An 8-bit type with its scale and zero point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Q8 {
    pub signed: bool,
    pub scale: f32,
    pub zero_point: i32,
}

impl Q8 {
    /// The lowest and the highest integer.
    pub fn bounds(self) -> (i16, i16) {
        if self.signed { (i8::MIN.into(), i8::MAX.into()) } else { (0, u8::MAX.into()) }
    }

    /// The zero point as a number to compute with.
    pub fn zero(self) -> f32 {
        self.zero_point as f32
    }

    /// The nearest number that is not out of bounds.
    pub fn saturate(self, number: f32) -> f32 {
        let (low, high) = self.bounds();
        number.clamp(low.into(), high.into())
    }
}

impl Elem {
    pub fn is_f32(self) -> bool {
        self == Self::F32
    }

    /// Same kind, whatever the quantization.
    pub fn same_type(self, other: Self) -> bool {
        match (self, other) {
            (Self::F32, Self::F32) => true,
            (Self::Q8(a), Self::Q8(b)) => a.signed == b.signed,
            _ => false,
        }
    }
}

/// A tensor that operators compute with: float or 8-bit per tensor, with
/// elements, of a rank that XNNPACK takes.
pub(crate) fn elem(t: Operand<'_>) -> Result<Elem, WhyNot> {
    extent(t)?;
    match t.tensor.dtype {
        DType::F32 => Ok(Elem::F32),
        DType::I8 | DType::U8 => Ok(Elem::Q8(q8(t)?)),
        dtype => Err(WhyNot::Type { tensor: t.to_ref(), dtype, expected: "f32, i8 or u8" }),
    }
}

/// A tensor with elements, of a rank that XNNPACK takes.
pub(crate) fn extent(t: Operand<'_>) -> Result<(), WhyNot> {
    rank_at_most(t, MAX_RANK)?;
    if t.shape.contains(&0) {
        return Err(WhyNot::Empty { tensor: t.to_ref() });
    }
    Ok(())
}

/// A float tensor, of which XNNPACK reads or writes all elements.
pub(crate) fn f32_operand(t: Operand<'_>) -> Result<(), WhyNot> {
    if !elem(t)?.is_f32() {
        let dtype = t.tensor.dtype;
        return Err(WhyNot::Type { tensor: t.to_ref(), dtype, expected: "f32" });
    }
    usable(t)
}

/// Scale and zero point of an 8-bit tensor.
pub(crate) fn q8(t: Operand<'_>) -> Result<Q8, WhyNot> {
    let (scale, zero_point) = match &t.tensor.quantization {
        None => return Err(WhyNot::NotQuantized { tensor: t.to_ref() }),
        Some(quantization) => quantization.per_tensor().ok_or_else(|| WhyNot::Quantization {
            tensor: t.to_ref(),
            expected: "one scale for the whole tensor",
        })?,
    };
    check_scale(t, scale)?;
    let signed = t.tensor.dtype == DType::I8;
    let (range, expected) =
        if signed { (-128..=127, "-128 to 127") } else { (0..=255, "0 to 255") };
    match i32::try_from(zero_point) {
        Ok(zero_point) if range.contains(&zero_point) => Ok(Q8 { signed, scale, zero_point }),
        _ => Err(WhyNot::ZeroPoint { tensor: t.to_ref(), zero_point, expected }),
    }
}

/// A scale must be a positive normal number.
pub(crate) fn check_scale(t: Operand<'_>, scale: f32) -> Result<(), WhyNot> {
    if scale.is_normal() && scale > 0.0 {
        Ok(())
    } else {
        Err(WhyNot::Scale { tensor: t.to_ref(), scale })
    }
}

/// A tensor that a graph can have as an input, whether or not anything computes with it.
pub(crate) fn graph_input(t: Operand<'_>) -> Result<(), WhyNot> {
    extent(t)?;
    match t.tensor.dtype {
        DType::F32 | DType::F16 | DType::I32 => Ok(()),
        DType::I8 | DType::U8 | DType::Bool => match t.tensor.quantization {
            // They stand for themselves.
            None => Ok(()),
            Some(_) => q8(t).map(drop),
        },
        dtype => {
            let expected = "f32, f16, i32, i8, u8 or bool";
            Err(WhyNot::Type { tensor: t.to_ref(), dtype, expected })
        }
    }
}

/// Both tensors have the same type; quantization may differ.
pub(crate) fn same_type(a: Operand<'_>, b: Operand<'_>) -> Result<(Elem, Elem), WhyNot> {
    let (ea, eb) = (elem(a)?, elem(b)?);
    if ea.same_type(eb) {
        Ok((ea, eb))
    } else {
        Err(WhyNot::TypeMismatch { a: a.to_ref(), b: b.to_ref() })
    }
}

/// Both tensors have the same type and, for integers, the same quantization:
/// what operators that only move data need.
pub(crate) fn same_elem(a: Operand<'_>, b: Operand<'_>) -> Result<Elem, WhyNot> {
    let (ea, eb) = same_type(a, b)?;
    if ea == eb {
        Ok(ea)
    } else {
        Err(WhyNot::QuantizationDiffers { a: a.to_ref(), b: b.to_ref() })
    }
}

/// Rank is exactly `rank`.
pub(crate) fn rank(t: Operand<'_>, rank: usize, expected: &'static str) -> Result<(), WhyNot> {
    if t.shape.len() == rank {
        Ok(())
    } else {
        Err(WhyNot::Rank { tensor: t.to_ref(), rank: t.shape.len(), expected })
    }
}

/// The tensor is an image batch `[N, H, W, C]`.
pub(crate) fn nhwc(t: Operand<'_>) -> Result<[usize; 4], WhyNot> {
    <[usize; 4]>::try_from(t.shape).map_err(|_| WhyNot::Rank {
        tensor: t.to_ref(),
        rank: t.shape.len(),
        expected: "4 (NHWC)",
    })
}

/// Rank is at most `max`.
pub(crate) fn rank_at_most(t: Operand<'_>, max: usize) -> Result<(), WhyNot> {
    if t.shape.len() <= max {
        Ok(())
    } else {
        Err(WhyNot::Rank { tensor: t.to_ref(), rank: t.shape.len(), expected: "0 to 6" })
    }
}

/// The tensor's elements are in the file.
pub(crate) fn constant(t: Operand<'_>) -> Result<(), WhyNot> {
    match (&t.tensor.data, t.tensor.byte_size()) {
        (None, _) => Err(WhyNot::NotConstant { tensor: t.to_ref() }),
        (Some(data), Some(size)) if data.len() == size => Ok(()),
        (Some(data), _) => Err(WhyNot::Unusable {
            tensor: t.to_ref(),
            why: format!("{} bytes of data do not fit its shape", data.len()),
        }),
    }
}

/// An operand that may be constant must then have its elements.
pub(crate) fn usable(t: Operand<'_>) -> Result<(), WhyNot> {
    if t.tensor.is_constant() { constant(t) } else { Ok(()) }
}

/// The elements of a constant integer tensor: axes, shapes, paddings.
pub(crate) fn constant_ints(t: Operand<'_>) -> Result<Vec<i64>, WhyNot> {
    constant(t)?;
    t.tensor.constant_ints().ok_or_else(|| WhyNot::Type {
        tensor: t.to_ref(),
        dtype: t.tensor.dtype,
        expected: "i32 or i64",
    })
}

/// A constant with one integer for each dimension of `input`.
pub(crate) fn per_dimension(t: Operand<'_>, input: Operand<'_>) -> Result<Vec<i64>, WhyNot> {
    let values = constant_ints(t)?;
    if values.len() == input.shape.len() {
        return Ok(values);
    }
    Err(WhyNot::Shape {
        tensor: t.to_ref(),
        expected: format!("needs one element for each of {} dimensions", input.shape.len()),
    })
}

/// The axis that `axis` means for a tensor of `rank` dimensions; negative ones
/// count from the end.
pub(crate) fn axis(value: i64, rank: usize) -> Result<usize, WhyNot> {
    let from_end = if value < 0 { value.saturating_add_unsigned(rank as u64) } else { value };
    match usize::try_from(from_end) {
        Ok(axis) if axis < rank => Ok(axis),
        _ => Err(WhyNot::Attribute {
            name: "axis",
            value: value.to_string(),
            expected: "a dimension of the input",
        }),
    }
}

/// The dimension of `input` that a constant of one element names.
pub(crate) fn one_axis(t: Operand<'_>, input: Operand<'_>) -> Result<usize, WhyNot> {
    match *constant_ints(t)? {
        [value] => axis(value, input.shape.len()),
        _ => Err(WhyNot::Shape { tensor: t.to_ref(), expected: "must be one axis".into() }),
    }
}

/// A positive attribute, as XNNPACK takes it.
pub(crate) fn positive(name: &'static str, value: i32) -> Result<u32, WhyNot> {
    match u32::try_from(value) {
        Ok(value) if value > 0 => Ok(value),
        _ => Err(WhyNot::Attribute { name, value: value.to_string(), expected: "at least 1" }),
    }
}

/// A dimension as XNNPACK's 32-bit parameters take it.
pub(crate) fn dim(t: Operand<'_>, value: usize) -> Result<u32, WhyNot> {
    u32::try_from(value).map_err(|_| WhyNot::Shape {
        tensor: t.to_ref(),
        expected: format!("the dimension {value} is too large"),
    })
}

/// What a fused activation means for XNNPACK.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Fused {
    /// Nothing to do.
    None,
    /// Bounds of the result.
    Range(OutputRange),
    /// A function that follows.
    Tanh,
}

impl Fused {
    /// The bounds to fuse into the node.
    pub fn range(self) -> Option<OutputRange> {
        match self {
            Self::Range(range) => Some(range),
            Self::None | Self::Tanh => None,
        }
    }

    /// The same for a node that bounds its result in any case. Interpreters keep the floats of such layers finite, where the
    /// model has no bounds, too; a sum that goes on with an infinity soon is NaN.
    pub fn finite_range(self, elem: DType) -> Option<OutputRange> {
        if elem != DType::F32 || self == Self::Tanh {
            return self.range();
        }
        let OutputRange { min, max } = self.range().unwrap_or(OutputRange::UNBOUNDED);
        let OutputRange { min: least, max: most } = OutputRange::FINITE;
        Some(OutputRange { min: min.max(least), max: max.min(most) })
    }
}

/// The fused activation; TANH only where `elem` is float, interpreters refuse
/// it for integers.
pub(crate) fn activation(activation: Activation, elem: Elem) -> Result<Fused, WhyNot> {
    Ok(match activation {
        Activation::None => Fused::None,
        Activation::Relu => Fused::Range(RELU),
        Activation::Relu6 => Fused::Range(RELU6),
        Activation::ReluN1To1 => Fused::Range(RELU_N1_TO_1),
        Activation::Tanh if elem.is_f32() => Fused::Tanh,
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

/// How the weights of a convolution or fully connected layer are stored and
/// used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arithmetic {
    /// Float activations, float weights.
    Float,
    /// Float activations, 8-bit or 4-bit weights that are unpacked to floats.
    WeightsUnpacked,
    /// Float activations that are quantized row by row at run time, 8-bit or 4-bit
    /// weights.
    Dynamic,
    /// Float activations that are quantized image by image at run time, 8-bit weights with a scale for each channel.
    DynamicImages,
    /// 8-bit activations and weights.
    Quantized,
}

impl Arithmetic {
    /// The arithmetic of interpreters in place of those that floats and integer weights have otherwise, where `of_images`
    /// allows that.
    pub(crate) fn of_images_if(self, of_images: bool) -> Self {
        match self {
            Self::WeightsUnpacked | Self::Dynamic if of_images => Self::DynamicImages,
            other => other,
        }
    }
}

/// Checks 8-bit and 4-bit weights along `channel_axis`: zero points must be 0 for signed
/// weights, scales positive, one for all or one for each channel.
pub(crate) fn quantized_weights(filter: Operand<'_>, channel_axis: usize) -> Result<(), WhyNot> {
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
            if *axis != channel_axis || filter.tensor.dtype == DType::U8 {
                return Err(WhyNot::Quantization {
                    tensor: filter.to_ref(),
                    expected: "per tensor, or signed per output channel",
                });
            }
            let channels = filter.shape.get(channel_axis).copied();
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

/// There is none but 0.
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
pub(crate) fn scales<'a>(t: Operand<'a>) -> &'a [f32] {
    match &t.tensor.quantization {
        Some(Quantization::PerTensor { scale, .. }) => std::slice::from_ref(scale),
        Some(Quantization::PerAxis { scales, .. }) => scales,
        _ => &[],
    }
}

/// XNNPACK requantizes accumulators by `input * weight / output`, which must
/// be below 256. Ratios below [`MIN_REQUANTIZATION`] are raised to it when the
/// weights are lowered.
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

/// 2^-32: a 32-bit accumulator scaled by this rounds to 0, as it does with any
/// smaller ratio, which some kernels cannot express.
pub(crate) const MIN_REQUANTIZATION: f32 = 2.328_306_4e-10;

/// A bias has one element for each output channel and the type that goes with
/// the activations.
pub(crate) fn bias(
    bias: Option<Operand<'_>>,
    channels: usize,
    arithmetic: Arithmetic,
) -> Result<(), WhyNot> {
    let Some(bias) = bias else { return Ok(()) };
    constant(bias)?;
    if bias.tensor.elements() != Some(channels) {
        return Err(WhyNot::Shape {
            tensor: bias.to_ref(),
            expected: format!("a bias must have {channels} elements"),
        });
    }
    let (dtype, expected) = match arithmetic {
        Arithmetic::Quantized => (DType::I32, "i32"),
        _ => (DType::F32, "f32"),
    };
    if bias.tensor.dtype == dtype {
        Ok(())
    } else {
        Err(WhyNot::Type { tensor: bias.to_ref(), dtype: bias.tensor.dtype, expected })
    }
}
