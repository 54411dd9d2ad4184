//! Conversion of values, datatypes and quantization to XNNPACK's.

use std::sync::Arc;

use xnn_format::{Datatype, Graph, Quantization, Value, ValueId};
use xnnpack::{ExternalId, Role, TensorSpec};

use crate::error::{Result, RuntimeError};

/// Zero point of 4-bit values.
const NIBBLE_ZERO_POINT: i32 = 8;

/// Form in which fp16 weights, or a matrix of fp32 ones, are given to XNNPACK.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Form {
    /// Converted to fp32.
    Fp32,
    /// In fp16 until XNNPACK packs them for a product.
    Fp16,
    /// Like `Fp16`, as a matrix: all dimensions but the first become one.
    Fp16Matrix,
    /// fp32 weights as a matrix.
    Fp32Matrix,
}

/// External id of the input at this position.
pub(crate) fn input_id(position: usize) -> ExternalId {
    // Positions are less than the number of values, which fits 32 bits.
    ExternalId(position as u32)
}

/// External id of the output at this position. Ids of outputs follow those of inputs.
pub(crate) fn output_id(graph: &Graph, position: usize) -> ExternalId {
    input_id(graph.inputs.len() + position)
}

pub(super) fn missing(id: ValueId) -> RuntimeError {
    RuntimeError::graph(format!("value {} does not exist", id.0))
}

/// Returns the tensor for a value of the graph.
pub(super) fn spec(value: &Value, role: Role) -> Result<TensorSpec> {
    let dims = match role {
        Role::Static(_) | Role::Fp16Weights(_) | Role::Input(_) | Role::Persistent => {
            Some(value.dims.clone())
        }
        // Shapes of computed values are inferred.
        Role::Internal | Role::Output(_) => None,
    };
    Ok(TensorSpec { dims, ..typed(value)? }.role(role))
}

/// Returns a tensor with the type of a value, without a shape.
pub(super) fn typed(value: &Value) -> Result<TensorSpec> {
    Ok(TensorSpec::inferred(datatype(value.datatype)?).quantized(quantization(value)))
}

fn datatype(datatype: Datatype) -> Result<xnnpack::Datatype> {
    Ok(match datatype {
        Datatype::F32 => xnnpack::Datatype::F32,
        Datatype::F16 => xnnpack::Datatype::F16,
        Datatype::QInt8 => xnnpack::Datatype::Qint8,
        Datatype::QUint8 => xnnpack::Datatype::Quint8,
        Datatype::QInt32 => xnnpack::Datatype::Qint32,
        Datatype::QcInt8 => xnnpack::Datatype::Qcint8,
        Datatype::QcInt32 => xnnpack::Datatype::Qcint32,
        Datatype::QcInt4 => xnnpack::Datatype::Qcint4,
        Datatype::QdInt8 => xnnpack::Datatype::Qdint8,
        Datatype::QbInt4 => xnnpack::Datatype::Qbint4,
        Datatype::Int32 => xnnpack::Datatype::I32,
        Datatype::Bf16 => xnnpack::Datatype::Bf16,
        other => {
            return Err(RuntimeError::unsupported(format!(
                "datatype {} is internal to XNNPACK",
                other.name()
            )));
        }
    })
}

fn quantization(value: &Value) -> xnnpack::Quantization {
    match &value.quantization {
        Quantization::None => xnnpack::Quantization::None,
        &Quantization::PerTensor { scale, zero_point } => {
            xnnpack::Quantization::PerTensor { zero_point, scale }
        }
        Quantization::PerChannel { scales, channel_dim } => xnnpack::Quantization::PerChannel {
            zero_point: if value.datatype == Datatype::QcInt4 { NIBBLE_ZERO_POINT } else { 0 },
            axis: *channel_dim,
            scales: Arc::clone(scales),
        },
        Quantization::Blockwise { scales, channel_dim, block_size } => {
            xnnpack::Quantization::Blockwise {
                zero_point: NIBBLE_ZERO_POINT,
                axis: *channel_dim,
                block_size: *block_size,
                scales: scales.iter().map(|&scale| bf16_bits(scale)).collect(),
            }
        }
        &Quantization::Dynamic { num_nonbatch_dims } => {
            xnnpack::Quantization::Dynamic { nonbatch_dims: num_nonbatch_dims }
        }
    }
}

/// Converts a scale to bf16 like ExecuTorch's reader: with the factor, truncation is close to
/// rounding, and values that are bf16 already do not change.
fn bf16_bits(scale: f32) -> u16 {
    const ALMOST_ROUNDING: f32 = 1.003_891;
    ((scale * ALMOST_ROUNDING).to_bits() >> 16) as u16
}

#[cfg(test)]
mod tests {
    use half::bf16;

    use super::*;

    #[test]
    fn bf16_scales_do_not_change() {
        for bits in [0x3c00u16, 0x3b81, 0x3f7f, 0x3f80, 0x3d01] {
            assert_eq!(bf16_bits(bf16::from_bits(bits).to_f32()), bits);
        }
    }

    #[test]
    fn other_scales_are_rounded_approximately() {
        let (low, high) = (0x3f80u16, 0x3f81u16);
        let between = |t: f32| {
            let [a, b] = [low, high].map(|bits| bf16::from_bits(bits).to_f32());
            a + (b - a) * t
        };
        assert_eq!(bf16_bits(between(0.4)), low);
        assert_eq!(bf16_bits(between(0.6)), high);
    }
}
