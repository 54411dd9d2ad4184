//! Writes nodes to the flatbuffer.

use flatbuffers::{FlatBufferBuilder, UnionWIPOffset, Vector, WIPOffset};

use crate::generated::graph as fb;
use crate::node::{Node, NodeOp};
use crate::parameters::{Conv2d, Pooling2d, UnaryOp};
use crate::value::ValueId;
use crate::wire::{self, BINARY_EXTENSION, NO_DEBUG_HANDLE, NO_VALUE, REDUCE, UNARY_EXTENSION};

/// Writes a node that [`Graph::check`](crate::Graph::check) has accepted.
pub(super) fn node<'a>(fbb: &mut FlatBufferBuilder<'a>, node: &Node) -> WIPOffset<fb::XNode<'a>> {
    let output_min_max = node.output_range.map(|range| {
        let args = fb::OutputMinMaxArgs { output_min: range.min, output_max: range.max };
        fb::OutputMinMax::create(fbb, &args)
    });
    let parameters = parameters(fbb, &node.op, node.flags);
    let args = fb::XNodeArgs {
        xnode_union_type: wire::tag(&node.op),
        xnode_union: Some(parameters),
        debug_handle: node.debug_handle.unwrap_or(NO_DEBUG_HANDLE),
        output_min_max,
    };
    fb::XNode::create(fbb, &args)
}

/// Writes the table for [`wire::tag`].
fn parameters(
    fbb: &mut FlatBufferBuilder<'_>,
    op: &NodeOp,
    flags: u32,
) -> WIPOffset<UnionWIPOffset> {
    match op {
        NodeOp::Unary { op, input, output } => unary(fbb, *op, *input, *output, flags),
        NodeOp::GlobalAveragePooling2d { input, output } | NodeOp::Softmax { input, output } => {
            let args = fb::_XNNNode1x1Args { input_id: input.0, output_id: output.0, flags };
            fb::_XNNNode1x1::create(fbb, &args).as_union_value()
        }
        NodeOp::Binary { op, inputs: [input1, input2], output } => {
            match wire::wire(&BINARY_EXTENSION, *op) {
                Some(op) => {
                    let args = fb::XNNBinaryArgs {
                        op,
                        input1_id: input1.0,
                        input2_id: input2.0,
                        output_id: output.0,
                        flags,
                    };
                    fb::XNNBinary::create(fbb, &args).as_union_value()
                }
                None => two_operands(fbb, [*input1, *input2], *output, flags),
            }
        }
        NodeOp::BatchMatrixMultiply { inputs, output } => {
            two_operands(fbb, *inputs, *output, flags)
        }
        NodeOp::Conv2d(conv) | NodeOp::DepthwiseConv2d(conv) | NodeOp::ConvTranspose2d(conv) => {
            convolution(fbb, conv, flags)
        }
        NodeOp::FullyConnected { input, filter, bias, output, sparse: _ } => {
            let args = fb::XNNFullyConnectedArgs {
                input1_id: input.0,
                filter_id: filter.0,
                bias_id: optional(*bias),
                output_id: output.0,
                flags,
            };
            fb::XNNFullyConnected::create(fbb, &args).as_union_value()
        }
        NodeOp::AveragePooling2d(window) | NodeOp::MaxPooling2d(window) => {
            pooling(fbb, window, flags)
        }
        NodeOp::ArgMaxPooling2d { window, index } => {
            let args = fb::XNNArgMaxPooling2dArgs {
                padding_top: window.padding.top,
                padding_right: window.padding.right,
                padding_bottom: window.padding.bottom,
                padding_left: window.padding.left,
                pooling_height: window.kernel.height,
                pooling_width: window.kernel.width,
                input_id: window.input.0,
                output_value_id: window.output.0,
                output_index_id: index.0,
                flags,
            };
            fb::XNNArgMaxPooling2d::create(fbb, &args).as_union_value()
        }
        NodeOp::Unpooling2d { window, index } => {
            let args = fb::XNNUnpooling2DArgs {
                padding_top: window.padding.top,
                padding_right: window.padding.right,
                padding_bottom: window.padding.bottom,
                padding_left: window.padding.left,
                pooling_height: window.kernel.height,
                pooling_width: window.kernel.width,
                input_value_id: window.input.0,
                input_index_id: index.0,
                output_id: window.output.0,
                flags,
            };
            fb::XNNUnpooling2D::create(fbb, &args).as_union_value()
        }
        NodeOp::Concatenate { axis, inputs, output } => {
            let input = |n: usize| optional(inputs.get(n).copied());
            let args = fb::_XNNCatArgs {
                axis: *axis,
                input1_id: input(0),
                input2_id: input(1),
                input3_id: input(2),
                input4_id: input(3),
                input5_id: input(4),
                output_id: output.0,
                flags,
            };
            fb::_XNNCat::create(fbb, &args).as_union_value()
        }
        NodeOp::EvenSplit { axis, input, outputs } => {
            let ids: Vec<u32> = outputs.iter().map(|id| id.0).collect();
            let args = fb::XNNEvenSplitArgs {
                axis: *axis,
                input_id: input.0,
                output_ids: Some(fbb.create_vector(&ids)),
                flags,
            };
            fb::XNNEvenSplit::create(fbb, &args).as_union_value()
        }
        NodeOp::StaticReshape { new_shape, input, output } => {
            let args = fb::XNNStaticReshapeArgs {
                num_dims: new_shape.len() as u32,
                new_shape: Some(sizes(fbb, new_shape)),
                input_id: input.0,
                output_id: output.0,
                flags,
            };
            fb::XNNStaticReshape::create(fbb, &args).as_union_value()
        }
        NodeOp::StaticExpandDims { new_axes, input, output } => {
            let args = fb::XNNStaticExpandDimsArgs {
                new_axes: Some(sizes(fbb, new_axes)),
                input_id: input.0,
                output_id: output.0,
                flags,
            };
            fb::XNNStaticExpandDims::create(fbb, &args).as_union_value()
        }
        NodeOp::StaticTranspose { perm, input, output } => {
            let args = fb::XNNStaticTransposeArgs {
                num_dims: perm.len() as u32,
                perm: Some(sizes(fbb, perm)),
                input_id: input.0,
                output_id: output.0,
                flags,
            };
            fb::XNNStaticTranspose::create(fbb, &args).as_union_value()
        }
        NodeOp::StaticSlice { offsets, sizes: extents, input, output } => {
            let args = fb::XNNStaticSliceArgs {
                num_dims: offsets.len() as u32,
                offsets: Some(sizes(fbb, offsets)),
                sizes: Some(sizes(fbb, extents)),
                input_id: input.0,
                output_id: output.0,
                flags,
            };
            fb::XNNStaticSlice::create(fbb, &args).as_union_value()
        }
        NodeOp::StaticConstantPad { pre_paddings, post_paddings, padding_value, input, output } => {
            let args = fb::XNNStaticConstantPadArgs {
                pre_paddings: Some(sizes(fbb, pre_paddings)),
                post_paddings: Some(sizes(fbb, post_paddings)),
                padding_value: *padding_value,
                input_id: input.0,
                output_id: output.0,
                flags,
            };
            fb::XNNStaticConstantPad::create(fbb, &args).as_union_value()
        }
        NodeOp::StaticResizeBilinear2d { new_height, new_width, input, output } => {
            let args = fb::XNNStaticResizeBilinear2DArgs {
                new_height: *new_height as u32,
                new_width: *new_width as u32,
                input_id: input.0,
                output_id: output.0,
                flags,
            };
            fb::XNNStaticResizeBilinear2D::create(fbb, &args).as_union_value()
        }
        NodeOp::StaticReduce { op, axes, input, output } => {
            let args = fb::XNNStaticReduceArgs {
                op: wire::wire(&REDUCE, *op).unwrap_or_default(),
                axes: Some(sizes(fbb, axes)),
                input_id: input.0,
                output_id: output.0,
                flags,
            };
            fb::XNNStaticReduce::create(fbb, &args).as_union_value()
        }
        NodeOp::DepthToSpace2d { block_size, input, output }
        | NodeOp::SpaceToDepth2d { block_size, input, output } => {
            let args = fb::_XNNBlock2DArgs {
                block_size: *block_size,
                input_id: input.0,
                output_id: output.0,
                flags,
            };
            fb::_XNNBlock2D::create(fbb, &args).as_union_value()
        }
        NodeOp::Rope { max_tokens, input, weights, output } => {
            let args = fb::XNNRopeArgs {
                max_tokens: *max_tokens as u32,
                input_id: input.0,
                weights_id: weights.0,
                output_id: output.0,
                flags,
            };
            fb::XNNRope::create(fbb, &args).as_union_value()
        }
        NodeOp::ScaledDotProductAttention { query, key, value, scale, mask, output } => {
            let args = fb::XNNScaledDotProductAttentionArgs {
                query_id: query.0,
                key_id: key.0,
                value_id: value.0,
                scale_id: scale.0,
                mask_id: mask.0,
                output_id: output.0,
                flags,
            };
            fb::XNNScaledDotProductAttention::create(fbb, &args).as_union_value()
        }
    }
}

fn unary(
    fbb: &mut FlatBufferBuilder<'_>,
    op: UnaryOp,
    input: ValueId,
    output: ValueId,
    flags: u32,
) -> WIPOffset<UnionWIPOffset> {
    let (input_id, output_id) = (input.0, output.0);
    match op {
        UnaryOp::Elu { alpha } => {
            let args = fb::XNNELUArgs { alpha, input_id, output_id, flags };
            fb::XNNELU::create(fbb, &args).as_union_value()
        }
        UnaryOp::LeakyRelu { negative_slope } => {
            let args = fb::XNNLeakyReLUArgs { negative_slope, input_id, output_id, flags };
            fb::XNNLeakyReLU::create(fbb, &args).as_union_value()
        }
        op => match wire::wire(&UNARY_EXTENSION, op) {
            Some(op) => {
                let args = fb::XNNUnaryArgs { op, alpha: 0.0, input_id, output_id, flags };
                fb::XNNUnary::create(fbb, &args).as_union_value()
            }
            None => {
                let args = fb::_XNNNode1x1Args { input_id, output_id, flags };
                fb::_XNNNode1x1::create(fbb, &args).as_union_value()
            }
        },
    }
}

fn two_operands(
    fbb: &mut FlatBufferBuilder<'_>,
    [input1, input2]: [ValueId; 2],
    output: ValueId,
    flags: u32,
) -> WIPOffset<UnionWIPOffset> {
    let args = fb::_XNNNode2x1Args {
        input1_id: input1.0,
        input2_id: input2.0,
        output_id: output.0,
        flags,
    };
    fb::_XNNNode2x1::create(fbb, &args).as_union_value()
}

fn convolution(
    fbb: &mut FlatBufferBuilder<'_>,
    conv: &Conv2d,
    flags: u32,
) -> WIPOffset<UnionWIPOffset> {
    let args = fb::_XNNNodeConvArgs {
        padding_top: conv.padding.top,
        padding_right: conv.padding.right,
        padding_bottom: conv.padding.bottom,
        padding_left: conv.padding.left,
        kernel_height: conv.kernel.height,
        kernel_width: conv.kernel.width,
        subsampling_height: conv.stride.height,
        subsampling_width: conv.stride.width,
        dilation_height: conv.dilation.height,
        dilation_width: conv.dilation.width,
        group_input_channels: conv.group_input_channels,
        group_output_channels: conv.group_output_channels,
        groups: conv.groups,
        adjustment_height: conv.adjustment.height,
        adjustment_width: conv.adjustment.width,
        input1_id: conv.input.0,
        filter_id: conv.filter.0,
        bias_id: optional(conv.bias),
        output_id: conv.output.0,
        flags,
    };
    fb::_XNNNodeConv::create(fbb, &args).as_union_value()
}

fn pooling(
    fbb: &mut FlatBufferBuilder<'_>,
    window: &Pooling2d,
    flags: u32,
) -> WIPOffset<UnionWIPOffset> {
    let args = fb::_XNNPooling2DArgs {
        padding_top: window.padding.top,
        padding_right: window.padding.right,
        padding_bottom: window.padding.bottom,
        padding_left: window.padding.left,
        pooling_height: window.kernel.height,
        pooling_width: window.kernel.width,
        stride_height: window.stride.height,
        stride_width: window.stride.width,
        dilation_height: window.dilation.height,
        dilation_width: window.dilation.width,
        input_id: window.input.0,
        output_id: window.output.0,
        flags,
    };
    fb::_XNNPooling2D::create(fbb, &args).as_union_value()
}

fn optional(id: Option<ValueId>) -> u32 {
    id.map_or(NO_VALUE, |id| id.0)
}

/// Writes sizes, which are at most `u32::MAX` in a checked graph.
pub(super) fn sizes<'a>(
    fbb: &mut FlatBufferBuilder<'a>,
    sizes: &[usize],
) -> WIPOffset<Vector<'a, u32>> {
    let sizes: Vec<u32> = sizes.iter().map(|&size| size as u32).collect();
    fbb.create_vector(&sizes)
}
