//! Checks of single values.

use half::bf16;

use crate::error::{Error, Result, require};
use crate::limits::{GraphLimits, MAX_RANK, at_most};
use crate::value::{Datatype, Quantization, Value};

/// The block size of 4-bit elements is a multiple of this.
const BLOCK_UNIT: usize = 32;

pub(super) fn check(value: &Value, limits: &GraphLimits) -> Result<()> {
    at_most("the rank", value.dims.len(), MAX_RANK)?;
    for &dim in &value.dims {
        require!(dim > 0, "a dimension of {:?} is 0", value.dims);
        require!(u32::try_from(dim).is_ok(), "the dimension {dim} does not fit in 32 bits");
    }
    let size = value.byte_size().unwrap_or(usize::MAX);
    at_most("the size in bytes", size, limits.max_value_bytes)?;
    if let Some(data) = &value.data {
        require!(
            data.len() == size,
            "{} constants of {:?} take {size} bytes, not {}",
            value.datatype.name(),
            value.dims,
            data.len()
        );
    }
    quantization(value)
}

fn quantization(value: &Value) -> Result<()> {
    match (value.datatype, &value.quantization) {
        (Datatype::F32 | Datatype::F16 | Datatype::Bf16 | Datatype::Int32, Quantization::None) => {
            Ok(())
        }
        (Datatype::QInt8, &Quantization::PerTensor { scale, zero_point }) => {
            per_tensor(scale, zero_point, i8::MIN.into(), i8::MAX.into())
        }
        (Datatype::QUint8, &Quantization::PerTensor { scale, zero_point }) => {
            per_tensor(scale, zero_point, 0, u8::MAX.into())
        }
        (Datatype::QInt32, &Quantization::PerTensor { scale, zero_point }) => {
            per_tensor(scale, zero_point, 0, 0)
        }
        (
            Datatype::QcInt8 | Datatype::QcInt32 | Datatype::QcInt4,
            Quantization::PerChannel { scales, channel_dim },
        ) => per_channel(value, scales, *channel_dim),
        (Datatype::QbInt4, Quantization::Blockwise { scales, channel_dim, block_size }) => {
            blockwise(value, scales, *channel_dim, *block_size)
        }
        (Datatype::QdInt8, &Quantization::Dynamic { num_nonbatch_dims }) => {
            dynamic(value, num_nonbatch_dims)
        }
        (Datatype::QpInt8 | Datatype::PackedF32, _) => {
            Err(Error::invalid(format!("{} must not be stored in a file", value.datatype.name())))
        }
        (datatype, quantization) => Err(Error::invalid(format!(
            "{} cannot have the quantization \"{}\"",
            datatype.name(),
            quantization.name()
        ))),
    }
}

fn per_tensor(scale: f32, zero_point: i32, min: i32, max: i32) -> Result<()> {
    check_scale(scale)?;
    require!(
        (min..=max).contains(&zero_point),
        "the zero point {zero_point} is outside of [{min}, {max}]"
    );
    Ok(())
}

fn per_channel(value: &Value, scales: &[f32], channel_dim: usize) -> Result<()> {
    require!(value.data.is_some(), "only constants can be quantized per channel");
    let channels = value.dims.get(channel_dim).copied().ok_or_else(|| {
        Error::invalid(format!(
            "the channel dimension {channel_dim} is out of range for {:?}",
            value.dims
        ))
    })?;
    require!(scales.len() == channels, "{} scales for {channels} channels", scales.len());
    check_scales(scales)
}

fn blockwise(value: &Value, scales: &[f32], channel_dim: usize, block_size: usize) -> Result<()> {
    require!(value.data.is_some(), "only constants can be quantized blockwise");
    let &[channels, row] = value.dims.as_slice() else {
        return Err(Error::invalid("only matrices can be quantized blockwise"));
    };
    require!(channel_dim == 0, "the channel dimension of blocks is {channel_dim}, expected 0");
    require!(
        block_size > 0 && block_size.is_multiple_of(BLOCK_UNIT) && row.is_multiple_of(block_size),
        "the block size {block_size} is not a multiple of {BLOCK_UNIT} that divides rows of {row}"
    );
    require!(
        i32::try_from(block_size).is_ok(),
        "the block size {block_size} does not fit in 31 bits"
    );
    let blocks = channels.checked_mul(row / block_size);
    require!(
        blocks == Some(scales.len()),
        "{} scales for {channels} rows of {} blocks",
        scales.len(),
        row / block_size
    );
    // XNNPACK rounds these scales to bf16.
    scales.iter().try_for_each(|&scale| check_scale(bf16::from_f32(scale).to_f32()))
}

fn dynamic(value: &Value, num_nonbatch_dims: usize) -> Result<()> {
    require!(value.data.is_none(), "constants cannot be quantized at run time");
    let rank = value.dims.len();
    require!(
        (1..=rank).contains(&num_nonbatch_dims),
        "{num_nonbatch_dims} of {rank} dimensions cannot share a scale"
    );
    Ok(())
}

/// Checks all scales in one pass without branches, as weights have many; searches for the first
/// invalid scale only if the pass fails.
fn check_scales(scales: &[f32]) -> Result<()> {
    let range = f32::MIN_POSITIVE..=f32::MAX;
    if scales.iter().fold(true, |all, scale| all & range.contains(scale)) {
        return Ok(());
    }
    scales.iter().copied().try_for_each(check_scale)
}

fn check_scale(scale: f32) -> Result<()> {
    require!(
        scale.is_normal() && scale > 0.0,
        "the scale {scale} is not positive, finite and normal"
    );
    Ok(())
}
