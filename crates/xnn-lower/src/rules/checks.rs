//! Checks that rules share, one function for each requirement of XNNPACK.

use xnn_model::DType;

use crate::view::{MAX_RANK, Operand};
use crate::why_not::WhyNot;

/// Element type of a tensor that XNNPACK computes with.
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
    /// The lowest and the highest integer of the type.
    pub fn bounds(self) -> (i16, i16) {
        if self.signed { (i8::MIN.into(), i8::MAX.into()) } else { (0, u8::MAX.into()) }
    }

    /// The zero point as a float.
    pub fn zero(self) -> f32 {
        self.zero_point as f32
    }

    /// Clamps a value to the bounds of the type.
    pub fn saturate(self, value: f32) -> f32 {
        let (low, high) = self.bounds();
        value.clamp(low.into(), high.into())
    }
}

impl Elem {
    pub fn is_f32(self) -> bool {
        self == Self::F32
    }

    /// Whether both have the same type; quantization may differ.
    pub fn same_type(self, other: Self) -> bool {
        match (self, other) {
            (Self::F32, Self::F32) => true,
            (Self::Q8(a), Self::Q8(b)) => a.signed == b.signed,
            _ => false,
        }
    }
}

/// Checks that XNNPACK can compute with a tensor: it must be float or 8-bit with one scale, have
/// elements, and a supported rank.
pub(crate) fn elem(t: Operand<'_>) -> Result<Elem, WhyNot> {
    extent(t)?;
    match t.tensor.dtype {
        DType::F32 => Ok(Elem::F32),
        DType::I8 | DType::U8 => Ok(Elem::Q8(q8(t)?)),
        dtype => Err(WhyNot::Type { tensor: t.to_ref(), dtype, expected: "f32, i8 or u8" }),
    }
}

/// Checks that a tensor has elements and a supported rank.
pub(crate) fn extent(t: Operand<'_>) -> Result<(), WhyNot> {
    rank_at_most(t, MAX_RANK)?;
    if t.shape.contains(&0) {
        return Err(WhyNot::Empty { tensor: t.to_ref() });
    }
    Ok(())
}

/// Checks that a tensor is float, and that a constant has all of its elements.
pub(crate) fn f32_operand(t: Operand<'_>) -> Result<(), WhyNot> {
    if !elem(t)?.is_f32() {
        let dtype = t.tensor.dtype;
        return Err(WhyNot::Type { tensor: t.to_ref(), dtype, expected: "f32" });
    }
    usable(t)
}

/// Checks the scale and the zero point of an 8-bit tensor, and returns them.
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

/// Checks that a scale is a positive normal number.
pub(crate) fn check_scale(t: Operand<'_>, scale: f32) -> Result<(), WhyNot> {
    if scale.is_normal() && scale > 0.0 {
        Ok(())
    } else {
        Err(WhyNot::Scale { tensor: t.to_ref(), scale })
    }
}

/// Checks that a graph can have a tensor as an input, even if no node reads it.
pub(crate) fn graph_input(t: Operand<'_>) -> Result<(), WhyNot> {
    extent(t)?;
    match t.tensor.dtype {
        DType::F32 | DType::F16 | DType::I32 => Ok(()),
        DType::I8 | DType::U8 | DType::Bool => match t.tensor.quantization {
            // The integers are the values.
            None => Ok(()),
            Some(_) => q8(t).map(drop),
        },
        dtype => {
            let expected = "f32, f16, i32, i8, u8 or bool";
            Err(WhyNot::Type { tensor: t.to_ref(), dtype, expected })
        }
    }
}

/// Checks that both tensors have the same type; quantization may differ.
pub(crate) fn same_type(a: Operand<'_>, b: Operand<'_>) -> Result<(Elem, Elem), WhyNot> {
    let (ea, eb) = (elem(a)?, elem(b)?);
    if ea.same_type(eb) {
        Ok((ea, eb))
    } else {
        Err(WhyNot::TypeMismatch { a: a.to_ref(), b: b.to_ref() })
    }
}

/// Checks that both tensors have the same type and, for integers, the same quantization, as
/// operators that only move data require.
pub(crate) fn same_elem(a: Operand<'_>, b: Operand<'_>) -> Result<Elem, WhyNot> {
    let (ea, eb) = same_type(a, b)?;
    if ea == eb {
        Ok(ea)
    } else {
        Err(WhyNot::QuantizationDiffers { a: a.to_ref(), b: b.to_ref() })
    }
}

/// Checks that the rank is `rank`.
pub(crate) fn rank(t: Operand<'_>, rank: usize, expected: &'static str) -> Result<(), WhyNot> {
    if t.shape.len() == rank {
        Ok(())
    } else {
        Err(WhyNot::Rank { tensor: t.to_ref(), rank: t.shape.len(), expected })
    }
}

/// Checks that a tensor is a batch of images, and returns its dimensions `[N, H, W, C]`.
pub(crate) fn nhwc(t: Operand<'_>) -> Result<[usize; 4], WhyNot> {
    <[usize; 4]>::try_from(t.shape).map_err(|_| WhyNot::Rank {
        tensor: t.to_ref(),
        rank: t.shape.len(),
        expected: "4 (NHWC)",
    })
}

/// Checks that the rank is at most `max`.
pub(crate) fn rank_at_most(t: Operand<'_>, max: usize) -> Result<(), WhyNot> {
    if t.shape.len() <= max {
        Ok(())
    } else {
        Err(WhyNot::Rank { tensor: t.to_ref(), rank: t.shape.len(), expected: "0 to 6" })
    }
}

/// Checks that a tensor is constant and has all of its elements.
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

/// Checks that a tensor, if it is constant, has all of its elements.
pub(crate) fn usable(t: Operand<'_>) -> Result<(), WhyNot> {
    if t.tensor.is_constant() { constant(t) } else { Ok(()) }
}

/// Returns the elements of a constant integer tensor, such as axes, shapes and paddings.
pub(crate) fn constant_ints(t: Operand<'_>) -> Result<Vec<i64>, WhyNot> {
    constant(t)?;
    t.tensor.constant_ints().ok_or_else(|| WhyNot::Type {
        tensor: t.to_ref(),
        dtype: t.tensor.dtype,
        expected: "i32 or i64",
    })
}

/// Returns the elements of a constant with one integer for each dimension of `input`.
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

/// Returns the dimension that an axis names in a tensor of `rank` dimensions. Negative axes count
/// from the end.
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

/// Returns the dimension of `input` that a constant of one element names.
pub(crate) fn one_axis(t: Operand<'_>, input: Operand<'_>) -> Result<usize, WhyNot> {
    match *constant_ints(t)? {
        [value] => axis(value, input.shape.len()),
        _ => Err(WhyNot::Shape { tensor: t.to_ref(), expected: "must be one axis".into() }),
    }
}

/// Converts a positive attribute to XNNPACK's type.
pub(crate) fn positive(name: &'static str, value: i32) -> Result<u32, WhyNot> {
    match u32::try_from(value) {
        Ok(value) if value > 0 => Ok(value),
        _ => Err(WhyNot::Attribute { name, value: value.to_string(), expected: "at least 1" }),
    }
}

/// Converts a dimension to the type of XNNPACK's parameters.
pub(crate) fn dim(t: Operand<'_>, value: usize) -> Result<u32, WhyNot> {
    u32::try_from(value).map_err(|_| WhyNot::Shape {
        tensor: t.to_ref(),
        expected: format!("the dimension {value} is too large"),
    })
}
