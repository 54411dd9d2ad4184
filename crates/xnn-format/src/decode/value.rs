//! Reads values from the flatbuffer.

use super::constants::Constants;
use super::scales::Scales;
use crate::error::{Error, Result};
use crate::generated::graph::{
    XNNDatatype, XNNQuantParams, XNNQuantizedTensorValue, XNNTensorValue, XValue, XValueUnion,
};
use crate::value::{Quantization, Value};
use crate::wire::{self, NO_VALUE, value_flags};

/// A value with its ids.
pub(super) struct Definition {
    pub(super) value: Value,
    /// The id that nodes use.
    pub(super) id: u32,
    pub(super) external: Option<External>,
    /// XN00: nodes read this input quantized to [`QdInt8`](crate::Datatype::QdInt8).
    pub(super) quantize_input: bool,
}

/// The role and external id of a value.
#[derive(Clone, Copy)]
pub(super) enum External {
    Input(u32),
    Output(u32),
}

pub(super) fn value(
    value: &XValue<'_>,
    constants: &Constants<'_>,
    scales: &mut Scales,
) -> Result<Definition> {
    match value.xvalue_union_type() {
        XValueUnion::XNNTensorValue => {
            let tensor = present(value.xvalue_union_as_xnntensor_value())?;
            definition(&tensor, Quantization::None, constants)
        }
        XValueUnion::XNNQuantizedTensorValue => {
            let value = present(value.xvalue_union_as_xnnquantized_tensor_value())?;
            let tensor = present(value.tensor_value())?;
            definition(&tensor, quantization(&value, constants, scales)?, constants)
        }
        XValueUnion(tag) => Err(Error::invalid(format!("unknown kind of value {tag}"))),
    }
}

fn definition(
    tensor: &XNNTensorValue<'_>,
    quantization: Quantization,
    constants: &Constants<'_>,
) -> Result<Definition> {
    let datatype = wire::datatype_from_wire(tensor.datatype())
        .ok_or_else(|| Error::invalid(format!("unknown datatype {}", tensor.datatype().0)))?;
    let quantize_input = match tensor.dq_datatype() {
        XNNDatatype::xnn_datatype_invalid => false,
        XNNDatatype::xnn_datatype_qdint8 => true,
        XNNDatatype(other) => {
            return Err(Error::invalid(format!("unsupported dq_datatype {other}")));
        }
    };
    Ok(Definition {
        value: Value {
            datatype,
            quantization,
            dims: tensor.dims().iter().flatten().map(wire::size).collect(),
            data: match tensor.constant_buffer_idx() {
                0 => None,
                index => Some(constants.get(index)?),
            },
        },
        id: tensor.id_out(),
        external: external(tensor.flags(), tensor.external_id())?,
        quantize_input,
    })
}

fn external(flags: u32, id: u32) -> Result<Option<External>> {
    const INPUT: u32 = value_flags::EXTERNAL_INPUT;
    const OUTPUT: u32 = value_flags::EXTERNAL_OUTPUT;
    const BOTH: u32 = INPUT | OUTPUT;
    match (flags, id) {
        (0, NO_VALUE) => Ok(None),
        (0, id) => Err(Error::invalid(format!(
            "has the external id {id}, but is neither input nor output"
        ))),
        (INPUT | OUTPUT, NO_VALUE) => Err(Error::invalid("input or output without an external id")),
        (INPUT, id) => Ok(Some(External::Input(id))),
        (OUTPUT, id) => Ok(Some(External::Output(id))),
        (BOTH, _) => Err(Error::invalid("cannot be both input and output; insert a copy node")),
        (flags, _) => Err(Error::invalid(format!("flags {flags:#x}; only 1 and 2 are known"))),
    }
}

fn quantization(
    value: &XNNQuantizedTensorValue<'_>,
    constants: &Constants<'_>,
    scales: &mut Scales,
) -> Result<Quantization> {
    match value.quant_params_type() {
        XNNQuantParams::PerTensorQuant => {
            let params = present(value.quant_params_as_per_tensor_quant())?;
            Ok(Quantization::PerTensor { scale: params.scale(), zero_point: params.zero_point() })
        }
        XNNQuantParams::PerChannelQuant => {
            let params = present(value.quant_params_as_per_channel_quant())?;
            Ok(Quantization::PerChannel {
                scales: scales.of_channels(&params, constants)?,
                channel_dim: unsigned("channel dimension", params.channel_dim())?,
            })
        }
        XNNQuantParams::PerChannelGroupQuant => {
            let params = present(value.quant_params_as_per_channel_group_quant())?;
            Ok(Quantization::Blockwise {
                scales: scales.of_blocks(&params, constants)?,
                channel_dim: unsigned("channel dimension", params.channel_dim())?,
                block_size: unsigned("block size", params.group_size())?,
            })
        }
        XNNQuantParams::PerTokenDynamicQuant => {
            let params = present(value.quant_params_as_per_token_dynamic_quant())?;
            Ok(Quantization::Dynamic {
                num_nonbatch_dims: unsigned(
                    "number of non-batch dimensions",
                    params.num_nonbatch_dims(),
                )?,
            })
        }
        XNNQuantParams(tag) => {
            Err(Error::invalid(format!("unknown kind of quantization parameters {tag}")))
        }
    }
}

fn unsigned(what: &str, number: i32) -> Result<usize> {
    usize::try_from(number).map_err(|_| Error::invalid(format!("the {what} is {number}")))
}

fn present<T>(part: Option<T>) -> Result<T> {
    part.ok_or_else(|| Error::invalid("its description is incomplete"))
}
