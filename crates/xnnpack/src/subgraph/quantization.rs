//! Checks of quantization parameters against datatype and shape.

use crate::status::{Error, Result};
use crate::value::{Datatype, Quantization, Shape};

/// Refuses quantization parameters that do not match datatype and shape.
pub(super) fn check_quantization(
    datatype: Datatype,
    quantization: &Quantization,
    shape: Option<&Shape>,
) -> Result<()> {
    use Datatype as D;
    use Quantization as Q;

    let known =
        || shape.ok_or_else(|| Error::invalid(format!("a {datatype} tensor requires a shape")));
    match (datatype, quantization) {
        (D::F32 | D::F16 | D::Bf16 | D::I32, Q::None) => Ok(()),
        (D::Qint8, Q::PerTensor { zero_point, scale }) => {
            check_zero_point(*zero_point, -128..=127)?;
            check_scale(*scale)
        }
        (D::Quint8, Q::PerTensor { zero_point, scale }) => {
            check_zero_point(*zero_point, 0..=255)?;
            check_scale(*scale)
        }
        (D::Qint32, Q::PerTensor { zero_point, scale }) => {
            check_zero_point(*zero_point, 0..=0)?;
            check_scale(*scale)
        }
        (D::Qcint8 | D::Qcint32 | D::Qcint4, Q::PerChannel { zero_point, axis, scales }) => {
            let shape = known()?;
            match (datatype, zero_point) {
                (_, 0) | (D::Qcint4, 8) => {}
                _ => {
                    return Err(Error::invalid(format!(
                        "zero point {zero_point} is not valid for {datatype}"
                    )));
                }
            }
            if datatype == D::Qcint4 {
                check_pairs(shape)?;
            }
            let channels = *shape.get(*axis).ok_or_else(|| {
                Error::invalid(format!(
                    "quantized dimension {axis} is out of range for shape {shape:?}"
                ))
            })?;
            if scales.len() != channels {
                return Err(Error::invalid(format!(
                    "{} scales for {channels} channels",
                    scales.len()
                )));
            }
            check_scales(scales)
        }
        (D::Qbint4, Q::Blockwise { zero_point, axis, block_size, scales }) => {
            let shape = known()?;
            if !matches!(zero_point, 0 | 8) {
                return Err(Error::invalid(format!(
                    "zero point {zero_point} is not valid for {datatype}"
                )));
            }
            let &[outputs, inputs] = &**shape else {
                return Err(Error::invalid(format!(
                    "{datatype} tensor of shape {shape:?}; expected two dimensions"
                )));
            };
            if *axis != 0 {
                return Err(Error::unsupported(format!(
                    "blocks along dimension {axis} are not supported"
                )));
            }
            if *block_size == 0 || !inputs.is_multiple_of(*block_size) {
                return Err(Error::invalid(format!(
                    "{inputs} input channels cannot be divided into blocks of {block_size}"
                )));
            }
            check_pairs(shape)?;
            let blocks = outputs * (inputs / block_size);
            if scales.len() != blocks {
                return Err(Error::invalid(format!("{} scales for {blocks} blocks", scales.len())));
            }
            let wide = |&bits: &u16| f32::from_bits(u32::from(bits) << 16);
            scales.iter().map(wide).try_for_each(check_scale)
        }
        (D::Qdint8, Q::Dynamic { nonbatch_dims }) => match shape {
            Some(shape) if *nonbatch_dims > shape.len() => Err(Error::invalid(format!(
                "rows of {nonbatch_dims} dimensions do not fit shape {shape:?}"
            ))),
            _ => Ok(()),
        },
        _ => Err(Error::invalid(format!("{datatype} does not support this kind of quantization"))),
    }
}

fn check_zero_point(zero_point: i32, range: std::ops::RangeInclusive<i32>) -> Result<()> {
    if range.contains(&zero_point) {
        return Ok(());
    }
    Err(Error::invalid(format!("zero point {zero_point} is outside {range:?}")))
}

/// Checks all scales at once, and looks for an invalid one only if there is one.
fn check_scales(scales: &[f32]) -> Result<()> {
    let range = f32::MIN_POSITIVE..=f32::MAX;
    if scales.iter().fold(true, |all, scale| all & range.contains(scale)) {
        return Ok(());
    }
    scales.iter().copied().try_for_each(check_scale)
}

fn check_scale(scale: f32) -> Result<()> {
    if scale > 0.0 && scale.is_normal() {
        return Ok(());
    }
    Err(Error::invalid(format!("scale {scale} is not positive, finite and normal")))
}

/// Checks that rows have an even length: 4-bit elements are stored in pairs, which cannot span
/// rows.
fn check_pairs(shape: &Shape) -> Result<()> {
    match shape.last() {
        Some(last) if last.is_multiple_of(2) => Ok(()),
        _ => Err(Error::unsupported(format!(
            "4-bit elements require rows of even length, found shape {shape:?}"
        ))),
    }
}
