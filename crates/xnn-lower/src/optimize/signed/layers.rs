//! Layers with unsigned 8-bit weights, and which of the weights do not fit into int8.

use std::ops::RangeInclusive;

use xnn_format::{Conv2d, Datatype, NodeOp, Quantization, Value, ValueId, flags};

use super::super::rewriter::Rewriter;

/// Smallest number of multiply-accumulates for each byte of input and output with which a signed
/// layer saves more than conversions of its tensors cost: signed kernels save about 1/300 ns for
/// each multiply-accumulate, and conversions cost about 1/16 ns for each byte.
const WORTHWHILE_MACS_PER_BYTE: usize = 16;

/// Range of a signed layer's weights, from TFLite's specification of 8-bit quantization.
/// Other readers of files, such as ExecuTorch, have microkernels for ARM that do not support two
/// weights of -128 in a channel (`xnnpack::adds_in_16_bits`), and files must run on all processors.
pub(super) const RANGE: RangeInclusive<i16> = -127..=127;

/// How a layer combines channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LayerKind {
    /// A convolution with one group. Filter `[O, KH, KW, I]`.
    Convolution,
    /// A depthwise convolution. Filter `[1, KH, KW, C]`.
    Depthwise,
    /// Any other layer, whose channels stay as they are.
    Other,
}

/// A node with constant unsigned weights between unsigned tensors.
#[derive(Clone, Debug)]
pub(super) struct Layer {
    pub node: usize,
    pub kind: LayerKind,
    pub input: ValueId,
    pub filter: ValueId,
    pub bias: Option<ValueId>,
    pub output: ValueId,
    pub scale: f32,
    pub zero_point: u8,
    /// The filter's dimension of output channels.
    pub channel_dim: usize,
    /// Positions of the weights that are outside [`RANGE`] without the zero point.
    pub overflow: Vec<usize>,
    /// Whether signed arithmetic saves more than conversions cost.
    pub worthwhile: bool,
}

impl Layer {
    /// Returns the node as a layer, if it is one.
    pub fn new(rewriter: &Rewriter, node: usize) -> Option<Self> {
        let rewritten = rewriter.node(node)?;
        let (kind, channel_dim, input, filter, bias, output) = match rewritten.op {
            NodeOp::Conv2d(Conv2d { groups: 1, input, filter, bias, output, .. }) => {
                (LayerKind::Convolution, 0, input, filter, bias, output)
            }
            NodeOp::DepthwiseConv2d(Conv2d {
                group_output_channels,
                input,
                filter,
                bias,
                output,
                ..
            }) => {
                let kind = if group_output_channels == 1 {
                    LayerKind::Depthwise
                } else {
                    LayerKind::Other
                };
                (kind, 3, input, filter, bias, output)
            }
            NodeOp::Conv2d(Conv2d { input, filter, bias, output, .. })
            | NodeOp::ConvTranspose2d(Conv2d { input, filter, bias, output, .. }) => {
                (LayerKind::Other, 0, input, filter, bias, output)
            }
            NodeOp::FullyConnected { input, filter, bias, output, .. } => {
                let is_transposed = rewritten.flags & flags::TRANSPOSE_WEIGHTS != 0;
                (LayerKind::Other, usize::from(is_transposed), input, filter, bias, output)
            }
            _ => return None,
        };
        let weights = rewriter.value(filter);
        let dynamic = |id| is_unsigned(rewriter.value(id)) && rewriter.value(id).data.is_none();
        let known = bias.is_none_or(|id| {
            let bias = rewriter.value(id);
            bias.datatype == Datatype::QInt32 && bias.data.is_some()
        });
        if !is_unsigned(weights) || !dynamic(input) || !dynamic(output) || !known {
            return None;
        }
        let data = weights.data.as_deref()?;
        let &Quantization::PerTensor { scale, zero_point } = &weights.quantization else {
            return None;
        };
        let zero_point = u8::try_from(zero_point).ok()?;
        Some(Self {
            node,
            kind,
            input,
            filter,
            bias,
            output,
            scale,
            zero_point,
            channel_dim,
            overflow: overflow(data, zero_point),
            worthwhile: is_worthwhile(rewriter, weights, channel_dim, input, output),
        })
    }

    /// The weight at a position without the zero point.
    pub fn weight(&self, data: &[u8], position: usize) -> i16 {
        i16::from(data[position]) - i16::from(self.zero_point)
    }
}

pub(super) fn is_unsigned(value: &Value) -> bool {
    value.datatype == Datatype::QUint8
}

fn overflow(data: &[u8], zero_point: u8) -> Vec<usize> {
    let fits = |&byte: &u8| RANGE.contains(&(i16::from(byte) - i16::from(zero_point)));
    data.iter().enumerate().filter(|(_, byte)| !fits(byte)).map(|(position, _)| position).collect()
}

fn is_worthwhile(
    rewriter: &Rewriter,
    weights: &Value,
    channel_dim: usize,
    input: ValueId,
    output: ValueId,
) -> bool {
    let size = |value: &Value| value.dims.iter().product::<usize>();
    let channels = weights.dims.get(channel_dim).copied().unwrap_or(1).max(1);
    let (input, output) = (size(rewriter.value(input)), size(rewriter.value(output)));
    let macs = (output / channels).saturating_mul(size(weights));
    macs >= WORTHWHILE_MACS_PER_BYTE.saturating_mul(input.saturating_add(output))
}
