//! Reads nodes from the flatbuffer.

use flatbuffers::Vector;

use super::ids::Ids;
use crate::error::{Error, Result, require};
use crate::generated::graph::{
    _XNNBlock2D, _XNNCat, _XNNNodeConv, _XNNPooling2D, XNNFullyConnected, XNode, XNodeUnion,
};
use crate::node::{Node, NodeOp, OutputRange};
use crate::parameters::{Conv2d, Padding2d, Pooling2d, Size2d, UnaryOp};
use crate::value::ValueId;
use crate::wire::{
    self, BINARY, BINARY_EXTENSION, CONCATENATE, NO_DEBUG_HANDLE, REDUCE, UNARY, UNARY_EXTENSION,
};

/// Reads one node.
pub(super) fn node(node: &XNode<'_>, ids: &Ids) -> Result<Node> {
    let (op, flags) = operator(node, ids)?;
    Ok(Node {
        op,
        output_range: node
            .output_min_max()
            .map(|range| OutputRange { min: range.output_min(), max: range.output_max() }),
        flags,
        debug_handle: Some(node.debug_handle()).filter(|&handle| handle != NO_DEBUG_HANDLE),
    })
}

/// The operator and its flags.
fn operator(node: &XNode<'_>, ids: &Ids) -> Result<(NodeOp, u32)> {
    let tag = node.xnode_union_type();
    if let Some(&(op, _, table)) = UNARY.iter().find(|row| row.1 == tag) {
        let node = present(table(node))?;
        return unary(op, node.input_id(), node.output_id(), node.flags(), ids);
    }
    if let Some(&(op, _, table)) = BINARY.iter().find(|row| row.1 == tag) {
        let node = present(table(node))?;
        let (inputs, output) = ([node.input1_id(), node.input2_id()], node.output_id());
        let op = NodeOp::Binary { op, inputs: pair(inputs, ids)?, output: ids.value(output)? };
        return Ok((op, node.flags()));
    }
    if let Some(count) = wire::typed(&CONCATENATE, tag) {
        return concatenate(count, node, ids);
    }
    match tag {
        XNodeUnion::XNNELU => {
            let node = present(node.xnode_union_as_xnnelu())?;
            let op = UnaryOp::Elu { alpha: node.alpha() };
            unary(op, node.input_id(), node.output_id(), node.flags(), ids)
        }
        XNodeUnion::XNNLeakyReLU => {
            let node = present(node.xnode_union_as_xnnleaky_re_lu())?;
            let op = UnaryOp::LeakyRelu { negative_slope: node.negative_slope() };
            unary(op, node.input_id(), node.output_id(), node.flags(), ids)
        }
        XNodeUnion::XNNUnary => {
            let node = present(node.xnode_union_as_xnnunary())?;
            let op = known(wire::typed(&UNARY_EXTENSION, node.op()), node.op().0)?;
            unary(op, node.input_id(), node.output_id(), node.flags(), ids)
        }
        XNodeUnion::XNNBinary => {
            let node = present(node.xnode_union_as_xnnbinary())?;
            let op = NodeOp::Binary {
                op: known(wire::typed(&BINARY_EXTENSION, node.op()), node.op().0)?,
                inputs: pair([node.input1_id(), node.input2_id()], ids)?,
                output: ids.value(node.output_id())?,
            };
            Ok((op, node.flags()))
        }
        XNodeUnion::XNNConv2d => {
            let (conv, flags) = convolution(node.xnode_union_as_xnnconv_2d(), ids)?;
            Ok((NodeOp::Conv2d(conv), flags))
        }
        XNodeUnion::XNNDepthwiseConv2d => {
            let (conv, flags) = convolution(node.xnode_union_as_xnndepthwise_conv_2d(), ids)?;
            Ok((NodeOp::DepthwiseConv2d(conv), flags))
        }
        XNodeUnion::XNNConvTranspose2d => {
            let (conv, flags) = convolution(node.xnode_union_as_xnnconv_transpose_2d(), ids)?;
            Ok((NodeOp::ConvTranspose2d(conv), flags))
        }
        XNodeUnion::XNNFullyConnected => {
            fully_connected(node.xnode_union_as_xnnfully_connected(), false, ids)
        }
        XNodeUnion::XNNFullyConnectedSparse => {
            fully_connected(node.xnode_union_as_xnnfully_connected_sparse(), true, ids)
        }
        XNodeUnion::XNNBatchMatrixMultiply => {
            let node = present(node.xnode_union_as_xnnbatch_matrix_multiply())?;
            let op = NodeOp::BatchMatrixMultiply {
                inputs: pair([node.input1_id(), node.input2_id()], ids)?,
                output: ids.value(node.output_id())?,
            };
            Ok((op, node.flags()))
        }
        XNodeUnion::XNNAvgPooling2d => {
            let (mut window, flags) = pooling(node.xnode_union_as_xnnavg_pooling_2d(), ids)?;
            // Upstream writes 0 and ignores the field.
            window.dilation = Size2d::ONE;
            Ok((NodeOp::AveragePooling2d(window), flags))
        }
        XNodeUnion::XNNMaxPooling2d => {
            let (window, flags) = pooling(node.xnode_union_as_xnnmax_pooling_2d(), ids)?;
            Ok((NodeOp::MaxPooling2d(window), flags))
        }
        XNodeUnion::XNNArgMaxPooling2d => arg_max_pooling(node, ids),
        XNodeUnion::XNNUnpooling2D => unpooling(node, ids),
        XNodeUnion::XNNGlobalAvgPooling2d => {
            let node = present(node.xnode_union_as_xnnglobal_avg_pooling_2d())?;
            let (input, output) = (ids.value(node.input_id())?, ids.value(node.output_id())?);
            Ok((NodeOp::GlobalAveragePooling2d { input, output }, node.flags()))
        }
        XNodeUnion::XNNSoftmax => {
            let node = present(node.xnode_union_as_xnnsoftmax())?;
            let (input, output) = (ids.value(node.input_id())?, ids.value(node.output_id())?);
            Ok((NodeOp::Softmax { input, output }, node.flags()))
        }
        XNodeUnion::XNNEvenSplit => {
            let node = present(node.xnode_union_as_xnneven_split())?;
            let outputs = present(node.output_ids())?;
            let op = NodeOp::EvenSplit {
                axis: node.axis(),
                input: ids.value(node.input_id())?,
                outputs: outputs.iter().map(|id| ids.value(id)).collect::<Result<_>>()?,
            };
            Ok((op, node.flags()))
        }
        XNodeUnion::XNNStaticReshape => {
            let node = present(node.xnode_union_as_xnnstatic_reshape())?;
            let op = NodeOp::StaticReshape {
                new_shape: counted("new_shape", node.new_shape(), node.num_dims())?,
                input: ids.value(node.input_id())?,
                output: ids.value(node.output_id())?,
            };
            Ok((op, node.flags()))
        }
        XNodeUnion::XNNStaticExpandDims => {
            let node = present(node.xnode_union_as_xnnstatic_expand_dims())?;
            let op = NodeOp::StaticExpandDims {
                new_axes: sizes(node.new_axes()),
                input: ids.value(node.input_id())?,
                output: ids.value(node.output_id())?,
            };
            Ok((op, node.flags()))
        }
        XNodeUnion::XNNStaticTranspose => {
            let node = present(node.xnode_union_as_xnnstatic_transpose())?;
            let op = NodeOp::StaticTranspose {
                perm: counted("perm", node.perm(), node.num_dims())?,
                input: ids.value(node.input_id())?,
                output: ids.value(node.output_id())?,
            };
            Ok((op, node.flags()))
        }
        XNodeUnion::XNNStaticSlice => {
            let node = present(node.xnode_union_as_xnnstatic_slice())?;
            let op = NodeOp::StaticSlice {
                offsets: counted("offsets", node.offsets(), node.num_dims())?,
                sizes: counted("sizes", node.sizes(), node.num_dims())?,
                input: ids.value(node.input_id())?,
                output: ids.value(node.output_id())?,
            };
            Ok((op, node.flags()))
        }
        XNodeUnion::XNNStaticConstantPad => {
            let node = present(node.xnode_union_as_xnnstatic_constant_pad())?;
            let op = NodeOp::StaticConstantPad {
                pre_paddings: sizes(node.pre_paddings()),
                post_paddings: sizes(node.post_paddings()),
                padding_value: node.padding_value(),
                input: ids.value(node.input_id())?,
                output: ids.value(node.output_id())?,
            };
            Ok((op, node.flags()))
        }
        XNodeUnion::XNNStaticResizeBilinear2D => {
            let node = present(node.xnode_union_as_xnnstatic_resize_bilinear_2_d())?;
            let op = NodeOp::StaticResizeBilinear2d {
                new_height: wire::size(node.new_height()),
                new_width: wire::size(node.new_width()),
                input: ids.value(node.input_id())?,
                output: ids.value(node.output_id())?,
            };
            Ok((op, node.flags()))
        }
        XNodeUnion::XNNStaticReduce => {
            let node = present(node.xnode_union_as_xnnstatic_reduce())?;
            let op = NodeOp::StaticReduce {
                op: known(wire::typed(&REDUCE, node.op()), node.op().0)?,
                axes: sizes(node.axes()),
                input: ids.value(node.input_id())?,
                output: ids.value(node.output_id())?,
            };
            Ok((op, node.flags()))
        }
        XNodeUnion::XNNDepthToSpace2D => {
            let node = present(node.xnode_union_as_xnndepth_to_space_2_d())?;
            let (block_size, input, output) = block(&node, ids)?;
            Ok((NodeOp::DepthToSpace2d { block_size, input, output }, node.flags()))
        }
        XNodeUnion::XNNSpaceToDepth2D => {
            let node = present(node.xnode_union_as_xnnspace_to_depth_2_d())?;
            let (block_size, input, output) = block(&node, ids)?;
            Ok((NodeOp::SpaceToDepth2d { block_size, input, output }, node.flags()))
        }
        XNodeUnion::XNNRope => {
            let node = present(node.xnode_union_as_xnnrope())?;
            let op = NodeOp::Rope {
                max_tokens: wire::size(node.max_tokens()),
                input: ids.value(node.input_id())?,
                weights: ids.value(node.weights_id())?,
                output: ids.value(node.output_id())?,
            };
            Ok((op, node.flags()))
        }
        XNodeUnion::XNNScaledDotProductAttention => {
            let node = present(node.xnode_union_as_xnnscaled_dot_product_attention())?;
            let op = NodeOp::ScaledDotProductAttention {
                query: ids.value(node.query_id())?,
                key: ids.value(node.key_id())?,
                value: ids.value(node.value_id())?,
                scale: ids.value(node.scale_id())?,
                mask: ids.value(node.mask_id())?,
                output: ids.value(node.output_id())?,
            };
            Ok((op, node.flags()))
        }
        XNodeUnion(tag) => Err(Error::invalid(format!(
            "unknown kind of node {tag}; the file may come from a newer version"
        ))),
    }
}

fn unary(op: UnaryOp, input: u32, output: u32, flags: u32, ids: &Ids) -> Result<(NodeOp, u32)> {
    Ok((NodeOp::Unary { op, input: ids.value(input)?, output: ids.value(output)? }, flags))
}

fn pair([first, second]: [u32; 2], ids: &Ids) -> Result<[ValueId; 2]> {
    Ok([ids.value(first)?, ids.value(second)?])
}

fn concatenate(count: usize, node: &XNode<'_>, ids: &Ids) -> Result<(NodeOp, u32)> {
    let node: _XNNCat<'_> = present(
        node.xnode_union_as_xnnconcatenate_2()
            .or_else(|| node.xnode_union_as_xnnconcatenate_3())
            .or_else(|| node.xnode_union_as_xnnconcatenate_4())
            .or_else(|| node.xnode_union_as_xnnconcatenate_5()),
    )?;
    let inputs =
        [node.input1_id(), node.input2_id(), node.input3_id(), node.input4_id(), node.input5_id()];
    let op = NodeOp::Concatenate {
        axis: node.axis(),
        inputs: inputs.iter().take(count).map(|&id| ids.value(id)).collect::<Result<_>>()?,
        output: ids.value(node.output_id())?,
    };
    Ok((op, node.flags()))
}

fn convolution(node: Option<_XNNNodeConv<'_>>, ids: &Ids) -> Result<(Conv2d, u32)> {
    let node = present(node)?;
    let conv = Conv2d {
        padding: Padding2d {
            top: node.padding_top(),
            right: node.padding_right(),
            bottom: node.padding_bottom(),
            left: node.padding_left(),
        },
        kernel: Size2d { height: node.kernel_height(), width: node.kernel_width() },
        stride: Size2d { height: node.subsampling_height(), width: node.subsampling_width() },
        dilation: Size2d { height: node.dilation_height(), width: node.dilation_width() },
        adjustment: Size2d { height: node.adjustment_height(), width: node.adjustment_width() },
        groups: node.groups(),
        group_input_channels: node.group_input_channels(),
        group_output_channels: node.group_output_channels(),
        input: ids.value(node.input1_id())?,
        filter: ids.value(node.filter_id())?,
        bias: ids.optional(node.bias_id())?,
        output: ids.value(node.output_id())?,
    };
    Ok((conv, node.flags()))
}

fn fully_connected(
    node: Option<XNNFullyConnected<'_>>,
    sparse: bool,
    ids: &Ids,
) -> Result<(NodeOp, u32)> {
    let node = present(node)?;
    let op = NodeOp::FullyConnected {
        input: ids.value(node.input1_id())?,
        filter: ids.value(node.filter_id())?,
        bias: ids.optional(node.bias_id())?,
        output: ids.value(node.output_id())?,
        sparse,
    };
    Ok((op, node.flags()))
}

fn pooling(node: Option<_XNNPooling2D<'_>>, ids: &Ids) -> Result<(Pooling2d, u32)> {
    let node = present(node)?;
    let window = Pooling2d {
        padding: Padding2d {
            top: node.padding_top(),
            right: node.padding_right(),
            bottom: node.padding_bottom(),
            left: node.padding_left(),
        },
        kernel: Size2d { height: node.pooling_height(), width: node.pooling_width() },
        stride: Size2d { height: node.stride_height(), width: node.stride_width() },
        dilation: Size2d { height: node.dilation_height(), width: node.dilation_width() },
        input: ids.value(node.input_id())?,
        output: ids.value(node.output_id())?,
    };
    Ok((window, node.flags()))
}

fn arg_max_pooling(node: &XNode<'_>, ids: &Ids) -> Result<(NodeOp, u32)> {
    let node = present(node.xnode_union_as_xnnarg_max_pooling_2d())?;
    let kernel = Size2d { height: node.pooling_height(), width: node.pooling_width() };
    let window = Pooling2d {
        padding: Padding2d {
            top: node.padding_top(),
            right: node.padding_right(),
            bottom: node.padding_bottom(),
            left: node.padding_left(),
        },
        kernel,
        stride: kernel,
        dilation: Size2d::ONE,
        input: ids.value(node.input_id())?,
        output: ids.value(node.output_value_id())?,
    };
    let index = ids.value(node.output_index_id())?;
    Ok((NodeOp::ArgMaxPooling2d { window, index }, node.flags()))
}

fn unpooling(node: &XNode<'_>, ids: &Ids) -> Result<(NodeOp, u32)> {
    let node = present(node.xnode_union_as_xnnunpooling_2_d())?;
    let kernel = Size2d { height: node.pooling_height(), width: node.pooling_width() };
    let window = Pooling2d {
        padding: Padding2d {
            top: node.padding_top(),
            right: node.padding_right(),
            bottom: node.padding_bottom(),
            left: node.padding_left(),
        },
        kernel,
        stride: kernel,
        dilation: Size2d::ONE,
        input: ids.value(node.input_value_id())?,
        output: ids.value(node.output_id())?,
    };
    let index = ids.value(node.input_index_id())?;
    Ok((NodeOp::Unpooling2d { window, index }, node.flags()))
}

fn block(node: &_XNNBlock2D<'_>, ids: &Ids) -> Result<(u32, ValueId, ValueId)> {
    Ok((node.block_size(), ids.value(node.input_id())?, ids.value(node.output_id())?))
}

/// A table or vector that the file may omit.
fn present<T>(part: Option<T>) -> Result<T> {
    part.ok_or_else(|| Error::invalid("its parameters are missing"))
}

/// A function that the file names by its code.
fn known<T>(function: Option<T>, number: i16) -> Result<T> {
    function.ok_or_else(|| Error::invalid(format!("unknown function {number}")))
}

fn sizes(vector: Option<Vector<'_, u32>>) -> Vec<usize> {
    vector.map(|vector| vector.iter().map(wire::size).collect()).unwrap_or_default()
}

/// A vector whose length is also stored in `num_dims`.
fn counted(name: &str, vector: Option<Vector<'_, u32>>, count: u32) -> Result<Vec<usize>> {
    let sizes = sizes(vector);
    require!(
        sizes.len() == wire::size(count),
        "{name} has {} entries, but num_dims is {count}",
        sizes.len()
    );
    Ok(sizes)
}

/// The name of a node's kind for errors.
pub(super) fn kind(node: &XNode<'_>) -> &'static str {
    wire::tag_name(node.xnode_union_type())
}
