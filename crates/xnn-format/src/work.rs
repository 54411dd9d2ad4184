//! How much a graph multiplies.

use crate::graph::{Graph, ValueId};
use crate::node::{Node, NodeOp};

impl Graph {
    /// Multiply-accumulates of all nodes.
    #[must_use]
    pub fn macs(&self) -> u64 {
        self.nodes.iter().map(|node| self.node_macs(node)).fold(0, u64::saturating_add)
    }

    /// Multiply-accumulates of one node; 0 for those that do not multiply
    /// matrices or filters.
    #[must_use]
    pub fn node_macs(&self, node: &Node) -> u64 {
        let dims = |id: ValueId| self.value(id).map_or(&[][..], |value| &value.dims);
        let elements =
            |id| dims(id).iter().fold(1u64, |count, &dim| count.saturating_mul(dim as u64));
        let last = |id| dims(id).last().map_or(1, |&dim| (dim as u64).max(1));
        match &node.op {
            // Each output is a sum over the weights of its channel.
            NodeOp::Conv2d(layer) | NodeOp::DepthwiseConv2d(layer) => {
                elements(layer.output).saturating_mul(elements(layer.filter) / last(layer.output))
            }
            // Each input goes into one for each weight of its own.
            NodeOp::ConvTranspose2d(layer) => {
                elements(layer.input).saturating_mul(elements(layer.filter) / last(layer.input))
            }
            NodeOp::FullyConnected { filter, output, .. } => {
                elements(*output).saturating_mul(elements(*filter) / last(*output))
            }
            NodeOp::BatchMatrixMultiply { inputs: [input, _], output } => {
                elements(*output).saturating_mul(last(*input))
            }
            NodeOp::ScaledDotProductAttention { query, mask, output, .. } => {
                let operands = elements(*query).saturating_add(elements(*output));
                operands.saturating_mul(last(*mask))
            }
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Datatype, Quantization, Value};
    use crate::node::{Conv2d, Padding2d, Size2d, UnaryOp};

    /// Multiply-accumulates of one node on values of these dimensions.
    fn macs<const N: usize>(dims: [&[usize]; N], op: impl Fn([ValueId; N]) -> NodeOp) -> u64 {
        let mut graph = Graph::default();
        let value = |dims: &[usize]| Value::new(Datatype::F32, Quantization::None, dims);
        let ids = dims.map(|dims| graph.push_value(value(dims)));
        graph.nodes.push(Node::new(op(ids)));
        graph.macs()
    }

    /// Only the values count: what else a layer has decides about their dimensions.
    fn layer([input, filter, output]: [ValueId; 3]) -> Conv2d {
        Conv2d {
            padding: Padding2d { top: 0, right: 0, bottom: 0, left: 0 },
            kernel: Size2d { height: 1, width: 1 },
            stride: Size2d { height: 1, width: 1 },
            dilation: Size2d { height: 1, width: 1 },
            adjustment: Size2d { height: 1, width: 1 },
            groups: 1,
            group_input_channels: 1,
            group_output_channels: 1,
            input,
            filter,
            bias: None,
            output,
        }
    }

    fn dense([input, filter, output]: [ValueId; 3]) -> NodeOp {
        NodeOp::FullyConnected { input, filter, bias: None, output, sparse: false }
    }

    #[test]
    fn layers() {
        let convolution = |ids| NodeOp::Conv2d(layer(ids));
        let dims: [&[usize]; 3] = [&[1, 8, 8, 3], &[5, 3, 3, 3], &[1, 8, 8, 5]];
        assert_eq!(macs(dims, convolution), 8 * 8 * 5 * 27);
        // In two groups.
        let dims: [&[usize]; 3] = [&[1, 8, 8, 4], &[6, 3, 3, 2], &[1, 8, 8, 6]];
        assert_eq!(macs(dims, convolution), 8 * 8 * 6 * 18);
        let dims: [&[usize]; 3] = [&[2, 8, 8, 3], &[1, 3, 3, 6], &[2, 4, 4, 6]];
        assert_eq!(macs(dims, |ids| NodeOp::DepthwiseConv2d(layer(ids))), 2 * 4 * 4 * 6 * 9);
        let dims: [&[usize]; 3] = [&[1, 4, 4, 3], &[5, 2, 2, 3], &[1, 8, 8, 5]];
        assert_eq!(macs(dims, |ids| NodeOp::ConvTranspose2d(layer(ids))), 4 * 4 * 3 * 20);
    }

    #[test]
    fn products() {
        assert_eq!(macs([&[7, 3], &[5, 3], &[7, 5]], dense), 7 * 5 * 3);
        let product =
            |[a, b, output]: [ValueId; 3]| NodeOp::BatchMatrixMultiply { inputs: [a, b], output };
        assert_eq!(macs([&[2, 4, 3], &[2, 3, 6], &[2, 4, 6]], product), 2 * 4 * 3 * 6);
        let attention = |[query, key, value, scale, mask, output]: [ValueId; 6]| {
            NodeOp::ScaledDotProductAttention { query, key, value, scale, mask, output }
        };
        let dims: [&[usize]; 6] =
            [&[1, 2, 4, 3], &[1, 2, 6, 3], &[1, 2, 6, 5], &[3], &[4, 6], &[1, 2, 4, 5]];
        assert_eq!(macs(dims, attention), 2 * 4 * 6 * (3 + 5));
    }

    #[test]
    fn nodes_without_products_and_absurd_sizes() {
        let abs = |[input, output]: [ValueId; 2]| NodeOp::Unary { op: UnaryOp::Abs, input, output };
        assert_eq!(macs([&[9], &[9]], abs), 0);
        let huge = usize::MAX;
        assert_eq!(macs([&[huge, 3], &[5, 3], &[huge, 5]], dense), u64::MAX);
        assert_eq!(macs([&[0, 3], &[0, 3], &[0, 0]], dense), 0);
        assert_eq!(macs([&[], &[], &[]], dense), 1);
    }
}
