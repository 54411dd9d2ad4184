//! Writes the typed graph to a flatbuffer.

mod node;

use std::ops::Range;

use flatbuffers::{FlatBufferBuilder, UnionWIPOffset, WIPOffset};

use crate::generated::graph as fb;
use crate::graph::Graph;
use crate::value::{Quantization, Value, ValueId};
use crate::wire::{self, NO_VALUE, value_flags};
use node::sizes;

/// Byte ranges of the constants of a graph.
pub(crate) struct Placement {
    /// Ranges of the distinct constants from the start of the constants.
    pub(crate) places: Vec<Range<u64>>,
    /// Index into `places` for each value; `None` for values that are not constant.
    pub(crate) of_value: Vec<Option<usize>>,
}

/// Writes a graph that [`Graph::check`] has accepted.
pub(crate) fn graph(graph: &Graph, placement: &Placement) -> Vec<u8> {
    let mut fbb = FlatBufferBuilder::new();
    // Store default values, too: readers may have other defaults, and -0.0 is kept.
    fbb.force_defaults(true);
    let values: Vec<_> = graph
        .values
        .iter()
        .zip(&placement.of_value)
        .zip(externals(graph))
        .enumerate()
        .map(|(id, ((value, place), external))| {
            // Index 0 of the constants means "not constant".
            let constant = place.map_or(0, |place| place as u32 + 1);
            self::value(&mut fbb, id as u32, value, constant, external)
        })
        .collect();
    let nodes: Vec<_> = graph.nodes.iter().map(|node| node::node(&mut fbb, node)).collect();
    let none = 0..0;
    let constants: Vec<_> = std::iter::once(&none)
        .chain(&placement.places)
        .map(|place| {
            let args = fb::ConstantDataOffsetArgs {
                offset: place.start,
                size: place.end - place.start,
                // Upstream's readers look up even an empty name.
                named_key: None,
            };
            fb::ConstantDataOffset::create(&mut fbb, &args)
        })
        .collect();
    let args = fb::XNNGraphArgs {
        version: Some(fbb.create_string("0")),
        xnodes: Some(fbb.create_vector(&nodes)),
        xvalues: Some(fbb.create_vector(&values)),
        num_externs: (graph.inputs.len() + graph.outputs.len()) as u32,
        input_ids: Some(ids(&mut fbb, &graph.inputs)),
        output_ids: Some(ids(&mut fbb, &graph.outputs)),
        constant_buffer: None,
        constant_data: Some(fbb.create_vector(&constants)),
    };
    let root = fb::XNNGraph::create(&mut fbb, &args);
    fb::finish_xnngraph_buffer(&mut fbb, root);
    fbb.finished_data().to_vec()
}

/// External id and flags for each value.
fn externals(graph: &Graph) -> Vec<(u32, u32)> {
    let mut externals = vec![(NO_VALUE, 0); graph.values.len()];
    let inputs = graph.inputs.iter().map(|id| (id, value_flags::EXTERNAL_INPUT));
    let outputs = graph.outputs.iter().map(|id| (id, value_flags::EXTERNAL_OUTPUT));
    for (external, (id, flags)) in inputs.chain(outputs).enumerate() {
        if let Some(slot) = externals.get_mut(id.index()) {
            *slot = (external as u32, flags);
        }
    }
    externals
}

fn ids<'a>(
    fbb: &mut FlatBufferBuilder<'a>,
    ids: &[ValueId],
) -> WIPOffset<flatbuffers::Vector<'a, u32>> {
    let ids: Vec<u32> = ids.iter().map(|id| id.0).collect();
    fbb.create_vector(&ids)
}

fn value<'a>(
    fbb: &mut FlatBufferBuilder<'a>,
    id: u32,
    value: &Value,
    constant: u32,
    (external_id, flags): (u32, u32),
) -> WIPOffset<fb::XValue<'a>> {
    let args = fb::XNNTensorValueArgs {
        datatype: wire::datatype_to_wire(value.datatype),
        num_dims: value.dims.len() as u32,
        dims: Some(sizes(fbb, &value.dims)),
        constant_buffer_idx: constant,
        external_id,
        flags,
        id_out: id,
        dq_datatype: fb::XNNDatatype::xnn_datatype_invalid,
    };
    let tensor = fb::XNNTensorValue::create(fbb, &args);
    let args = match quantization(fbb, &value.quantization) {
        None => fb::XValueArgs {
            xvalue_union_type: fb::XValueUnion::XNNTensorValue,
            xvalue_union: Some(tensor.as_union_value()),
        },
        Some((quant_params_type, params)) => {
            let args = fb::XNNQuantizedTensorValueArgs {
                tensor_value: Some(tensor),
                quant_params_type,
                quant_params: Some(params),
            };
            fb::XValueArgs {
                xvalue_union_type: fb::XValueUnion::XNNQuantizedTensorValue,
                xvalue_union: Some(
                    fb::XNNQuantizedTensorValue::create(fbb, &args).as_union_value(),
                ),
            }
        }
    };
    fb::XValue::create(fbb, &args)
}

/// Stores scales in the flatbuffer as fp32, the only form that all readers since ExecuTorch 0.4
/// support.
fn quantization(
    fbb: &mut FlatBufferBuilder<'_>,
    quantization: &Quantization,
) -> Option<(fb::XNNQuantParams, WIPOffset<UnionWIPOffset>)> {
    match quantization {
        Quantization::None => None,
        &Quantization::PerTensor { scale, zero_point } => {
            let args = fb::PerTensorQuantArgs { scale, zero_point };
            let params = fb::PerTensorQuant::create(fbb, &args).as_union_value();
            Some((fb::XNNQuantParams::PerTensorQuant, params))
        }
        Quantization::PerChannel { scales, channel_dim } => {
            let args = fb::PerChannelQuantArgs {
                scale: Some(fbb.create_vector(scales)),
                channel_dim: *channel_dim as i32,
                scale_buffer_idx: 0,
                num_scales: 0,
            };
            let params = fb::PerChannelQuant::create(fbb, &args).as_union_value();
            Some((fb::XNNQuantParams::PerChannelQuant, params))
        }
        Quantization::Blockwise { scales, channel_dim, block_size } => {
            let args = fb::PerChannelGroupQuantArgs {
                scale: Some(fbb.create_vector(scales)),
                channel_dim: *channel_dim as i32,
                group_size: *block_size as i32,
                scale_bf16: None,
                scale_buffer_idx: 0,
                num_scales: 0,
            };
            let params = fb::PerChannelGroupQuant::create(fbb, &args).as_union_value();
            Some((fb::XNNQuantParams::PerChannelGroupQuant, params))
        }
        Quantization::Dynamic { num_nonbatch_dims } => {
            let args =
                fb::PerTokenDynamicQuantArgs { num_nonbatch_dims: *num_nonbatch_dims as i32 };
            let params = fb::PerTokenDynamicQuant::create(fbb, &args).as_union_value();
            Some((fb::XNNQuantParams::PerTokenDynamicQuant, params))
        }
    }
}
