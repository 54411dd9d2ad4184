//! TFLite, identifier `TFL3`.

use std::sync::Arc;

use bytes::Bytes;
use flatbuffers::{FlatBufferBuilder, ForwardsUOffset, Vector, WIPOffset};

use super::buffers::{Blobs, DATA_ALIGNMENT, OpCodes, push_aligned, push_custom_options};
use super::fields::{
    affine, all, dimensions, indices, is_scalar, item, items, op_from_code, opcode,
};
use super::file::File;
use super::wire::{self, FromWire, ToWire};
use crate::error::{Error, ErrorKind};
use crate::generated::tfl as schema;
use crate::graph::{
    Dialect, Metadata, Model, Operator, Signature, SparseDimension, Sparsity, Subgraph, Tensor,
};
use crate::limits::ModelLimits;
use crate::op::{Activation, CustomOptions, Op, Padding, WeightsFormat};
use crate::types::{DType, Quantization};

type Result<T> = std::result::Result<T, Error>;

/// Schema version in TFLite files.
pub(crate) const VERSION: u32 = 3;

/// Tag of blockwise quantization in the schema's `QuantizationDetails`.
const BLOCKWISE: schema::QuantizationDetails = schema::QuantizationDetails::BlockwiseQuantization;

wire_enums!(Dialect::Tflite);
reader!(Dialect::Tflite);
writer!(Dialect::Tflite, VERSION);
options! {
    own {
        BatchMatMul: BatchMatMulOptions BatchMatMulOptionsArgs builtin_options_as_batch_mat_mul_options
            { adj_x = adj_x, adj_y = adj_y, asymmetric_quantize_inputs = asymmetric_quantize_inputs };
    }
    second {
        StablehloComposite: StableHLOCompositeOptions StableHLOCompositeOptionsArgs
            builtin_options_2_as_stable_hlocomposite_options
            { name = name, decomposition_subgraph = decomposition_subgraph_index,
              attributes = composite_attributes, version = version };
    }
}

fn check_version(version: u32) -> Result<()> {
    if version == VERSION { Ok(()) } else { Err(ErrorKind::Version(version).into()) }
}

/// Whether TFLite has the operator code; negative codes belong to Circle.
fn own_code(code: i32) -> bool {
    code >= 0
}

fn check_layout(_: &schema::SubGraph<'_>) -> Result<()> {
    Ok(())
}

fn unusable(tensor: &schema::Tensor<'_>) -> Option<String> {
    let buffer = tensor.external_buffer();
    (buffer != 0).then(|| format!("its data is in another file (external buffer {buffer})"))
}

fn detailed_quantization(
    quantization: &schema::QuantizationParameters<'_>,
) -> Result<Option<Quantization>> {
    let Some(blocks) = quantization.details_as_blockwise_quantization() else {
        let tag = quantization.details_type().0;
        return Ok((tag != 0).then_some(Quantization::Other(tag)));
    };
    let index = |what, i: i32| {
        usize::try_from(i)
            .map_err(|_| Error::invalid(format!("blockwise quantization with {what} {i}")))
    };
    Ok(Some(Quantization::Blockwise {
        scales: index("scale tensor", blocks.scales())?,
        zero_points: match blocks.zero_points() {
            -1 => None,
            i => Some(index("zero point tensor", i)?),
        },
        block_size: index("block size", blocks.block_size())?,
    }))
}

/// Writes the details of blockwise quantization.
fn write_details<'b>(
    quantization: &Quantization,
    builder: &mut FlatBufferBuilder<'b>,
    args: &mut schema::QuantizationParametersArgs<'b>,
) -> Result<()> {
    match quantization {
        Quantization::Blockwise { scales, zero_points, block_size } => {
            let blocks = schema::BlockwiseQuantizationArgs {
                scales: scales.to_wire(builder)?,
                zero_points: zero_points.map_or(Ok(-1), |i| i.to_wire(builder))?,
                block_size: block_size.to_wire(builder)?,
            };
            args.details_type = BLOCKWISE;
            args.details =
                Some(schema::BlockwiseQuantization::create(builder, &blocks).as_union_value());
            Ok(())
        }
        Quantization::Other(tag) => {
            Err(Error::invalid(format!("quantization details {tag} cannot be written")))
        }
        Quantization::PerTensor { .. } | Quantization::PerAxis { .. } => Ok(()),
    }
}
