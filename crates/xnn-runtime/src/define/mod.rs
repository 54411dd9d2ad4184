//! Defines a graph's values and nodes on an XNNPACK subgraph.
//!
//! There is one file per operator family; [`node`] dispatches to them.

mod attention;
mod constants;
mod conv;
mod definer;
mod elementwise;
mod fp16_weights;
mod fully_connected;
mod matmul;
mod pool;
mod probe;
mod reduce;
mod resize;
mod shape;
mod softmax;
mod sparse_weights;
mod value;

use bytes::Bytes;
use xnn_format::{Graph, NodeOp};
use xnnpack::Subgraph;

pub(crate) use self::constants::static_data;
use self::definer::{Definer, NodeDefiner};
pub(crate) use self::fully_connected::has_few_rows;
pub(crate) use self::value::{input_id, output_id};
use crate::error::{NodePlace, Result, RuntimeError};

/// A graph that is defined on an XNNPACK subgraph.
pub(crate) struct Defined {
    /// The subgraph, from which runtimes are created.
    pub(crate) subgraph: Subgraph,
    /// For each node of the subgraph, the index of the graph's node.
    pub(crate) origins: Vec<usize>,
    /// Whether sparse kernels are used, which modify their packed weights.
    pub(crate) sparse: bool,
    /// Constants that runs read without a copy.
    pub(crate) read_in_place: Vec<Bytes>,
}

/// Defines all of `graph`, which has been checked. Bytes after a constant in `storage` serve as its
/// padding.
pub(crate) fn graph(graph: &Graph, storage: &Bytes) -> Result<Defined> {
    let mut definer = Definer::new(graph, storage)?;
    for (index, node) in graph.nodes.iter().enumerate() {
        definer.current = index;
        self::node(&mut NodeDefiner { definer: &mut definer, node })
            .map_err(|error| error.at(NodePlace::new(graph, index)))?;
    }
    let Definer { subgraph, origins, sparse, read_in_place, .. } = definer;
    Ok(Defined { subgraph, origins, sparse, read_in_place })
}

fn node(cx: &mut NodeDefiner<'_, '_>) -> Result<()> {
    match &cx.node.op {
        NodeOp::Unary { op, input, output } => elementwise::unary(cx, *op, *input, *output),
        NodeOp::Binary { op, inputs, output } => elementwise::binary(cx, *op, *inputs, *output),
        NodeOp::Conv2d(conv) => conv::conv_2d(cx, conv),
        NodeOp::DepthwiseConv2d(conv) => conv::depthwise_conv_2d(cx, conv),
        NodeOp::ConvTranspose2d(conv) => conv::conv_transpose_2d(cx, conv),
        NodeOp::FullyConnected { input, filter, bias, output, sparse } => {
            fully_connected::fully_connected(cx, *input, *filter, *bias, *output, *sparse)
        }
        NodeOp::BatchMatrixMultiply { inputs, output } => {
            matmul::batch_matrix_multiply(cx, *inputs, *output)
        }
        NodeOp::AveragePooling2d(window) => pool::average_pooling_2d(cx, window),
        NodeOp::MaxPooling2d(window) => pool::max_pooling_2d(cx, window),
        NodeOp::ArgMaxPooling2d { window, index } => pool::argmax_pooling_2d(cx, window, *index),
        NodeOp::Unpooling2d { window, index } => pool::unpooling_2d(cx, window, *index),
        NodeOp::GlobalAveragePooling2d { input, output } => {
            reduce::global_average_pooling_2d(cx, *input, *output)
        }
        NodeOp::StaticReduce { op, axes, input, output } => {
            reduce::static_reduce(cx, *op, axes, *input, *output)
        }
        NodeOp::Softmax { input, output } => softmax::softmax(cx, *input, *output),
        NodeOp::Concatenate { axis, inputs, output } => {
            shape::concatenate(cx, *axis, inputs, *output)
        }
        NodeOp::EvenSplit { axis, input, outputs } => shape::even_split(cx, *axis, *input, outputs),
        NodeOp::StaticReshape { new_shape, input, output } => {
            shape::static_reshape(cx, new_shape, *input, *output)
        }
        NodeOp::StaticExpandDims { new_axes, input, output } => {
            shape::static_expand_dims(cx, new_axes, *input, *output)
        }
        NodeOp::StaticTranspose { perm, input, output } => {
            shape::static_transpose(cx, perm, *input, *output)
        }
        NodeOp::StaticSlice { offsets, sizes, input, output } => {
            shape::static_slice(cx, offsets, sizes, *input, *output)
        }
        NodeOp::StaticConstantPad { pre_paddings, post_paddings, padding_value, input, output } => {
            let paddings = [pre_paddings.as_slice(), post_paddings];
            shape::static_constant_pad(cx, paddings, *padding_value, *input, *output)
        }
        NodeOp::DepthToSpace2d { block_size, input, output } => {
            shape::depth_to_space_2d(cx, *block_size, *input, *output)
        }
        NodeOp::SpaceToDepth2d { block_size, input, output } => {
            shape::space_to_depth_2d(cx, *block_size, *input, *output)
        }
        NodeOp::StaticResizeBilinear2d { new_height, new_width, input, output } => {
            resize::static_resize_bilinear_2d(cx, [*new_height, *new_width], *input, *output)
        }
        NodeOp::Rope { max_tokens: _, input, weights, output } => {
            attention::rope(cx, *input, *weights, *output)
        }
        NodeOp::ScaledDotProductAttention { query, key, value, scale, mask, output } => {
            let operands = [*query, *key, *value, *scale, *mask];
            attention::scaled_dot_product_attention(cx, operands, *output)
        }
        _ => Err(RuntimeError::unsupported("this kind of node is not supported")),
    }
}
