//! Circle, identifier `CIR0`.

use std::sync::Arc;

use bytes::Bytes;
use flatbuffers::{FlatBufferBuilder, ForwardsUOffset, Vector, WIPOffset};

use super::buffers::{Blobs, DATA_ALIGNMENT, OpCodes, push_aligned, push_custom_options};
use super::fields::{
    affine, all, dimensions, indices, is_scalar, item, items, op_from_code, opcode,
};
use super::file::File;
use super::wire::{self, FromWire, ToWire};
use crate::error::Error;
use crate::generated::cir as schema;
use crate::graph::{
    Dialect, Metadata, Model, Operator, Signature, SparseDimension, Sparsity, Subgraph, Tensor,
};
use crate::limits::ModelLimits;
use crate::op::{Activation, CustomOptions, Op, Padding, WeightsFormat};
use crate::types::{DType, Quantization};

type Result<T> = std::result::Result<T, Error>;

/// Schema version in Circle files, which do not store the minor version.
pub(crate) const VERSION: u32 = 0;

/// The highest operator code that Circle shares with TFLite.
const LAST_SHARED_CODE: i32 = 205;

wire_enums!(Dialect::Circle);
wire_enums!(@code RoPEMode(i32) => bool,);
reader!(Dialect::Circle);
writer!(Dialect::Circle, VERSION);
options! {
    own {
        BatchMatMul: BatchMatMulOptions BatchMatMulOptionsArgs builtin_options_as_batch_mat_mul_options
            { adj_x = adjoint_lhs, adj_y = adjoint_rhs, asymmetric_quantize_inputs = asymmetric_quantize_inputs };
        BcqFullyConnected: BCQFullyConnectedOptions BCQFullyConnectedOptionsArgs
            builtin_options_as_bcqfully_connected_options
            { weights_hidden_size = weights_hidden_size, activation = fused_activation_function };
        BcqGather: BCQGatherOptions BCQGatherOptionsArgs builtin_options_as_bcqgather_options
            { input_hidden_size = input_hidden_size, axis = axis };
        Gru: GRUOptions GRUOptionsArgs builtin_options_as_gruoptions
            { activation = fused_activation_function, return_sequences = return_sequences, time_major = time_major };
        InstanceNorm: InstanceNormOptions InstanceNormOptionsArgs builtin_options_as_instance_norm_options
            { epsilon = epsilon, activation = fused_activation_function };
        RmsNorm: RmsNormOptions RmsNormOptionsArgs builtin_options_as_rms_norm_options
            { epsilon = epsilon };
        Rope: RoPEOptions RoPEOptionsArgs builtin_options_as_ro_peoptions
            { interleaved = mode };
        RunModel: RunModelOptions RunModelOptionsArgs builtin_options_as_run_model_options
            { location = location, signature = signature };
    }
    second {}
}

/// Accepts any version: tools write 0 and ignore the field.
fn check_version(_: u32) -> Result<()> {
    Ok(())
}

fn own_code(code: i32) -> bool {
    code <= LAST_SHARED_CODE
}

fn check_layout(graph: &schema::SubGraph<'_>) -> Result<()> {
    match graph.data_format() {
        schema::DataFormat::CHANNELS_LAST => Ok(()),
        schema::DataFormat::CHANNELS_FIRST => Err(Error::invalid(
            "its tensors are stored channels first (data_format CHANNELS_FIRST); \
             convert the model to channels last",
        )),
        other => Err(Error::invalid(format!("unknown data_format {}", other.0))),
    }
}

fn unusable(tensor: &schema::Tensor<'_>) -> Option<String> {
    match tensor.compression_type() {
        schema::CompressionType::NONE => None,
        schema::CompressionType::HUFFMAN => Some("its data is compressed (HUFFMAN)".to_owned()),
        other => Some(format!("its data has the unknown compression {}", other.0)),
    }
}

fn detailed_quantization(
    quantization: &schema::QuantizationParameters<'_>,
) -> Result<Option<Quantization>> {
    let tag = quantization.details_type().0;
    Ok((tag != 0).then_some(Quantization::Other(tag)))
}

/// Refuses quantization details, which Circle does not support.
fn write_details<'b>(
    quantization: &Quantization,
    _: &mut FlatBufferBuilder<'b>,
    _: &mut schema::QuantizationParametersArgs<'b>,
) -> Result<()> {
    match quantization {
        Quantization::PerTensor { .. } | Quantization::PerAxis { .. } => Ok(()),
        Quantization::Blockwise { .. } => {
            Err(Error::invalid("Circle has no blockwise quantization"))
        }
        Quantization::Other(tag) => {
            Err(Error::invalid(format!("quantization details {tag} cannot be written")))
        }
    }
}
