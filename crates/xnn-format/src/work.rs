//! How much a graph multiplies, and what a run of it takes.

use std::collections::HashSet;

use xnn_file::{Demand, most_at_once};

use crate::error::Result;
use crate::graph::{Graph, ValueId};
use crate::limits::GraphLimits;
use crate::node::{Node, NodeOp, Pooling2d};
use crate::shape;
use crate::wire::size;

/// What a value or a node takes in a file beside its constants, about.
const RECORD: u64 = 64;

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
        macs(&node.op, |id| self.value(id).map_or(&[][..], |value| &value.dims))
    }

    /// What the graph takes in a file, about: its constants, each place once, and a little for each value and node.
    #[must_use]
    pub fn stored_bytes(&self) -> u64 {
        let mut seen = HashSet::new();
        let constants = self.values.iter().filter_map(|value| value.data.as_ref());
        let constants = constants.filter(|data| seen.insert(data.as_ptr()));
        let records = (self.values.len() + self.nodes.len()) as u64 * RECORD;
        constants.fold(records, |sum, data| sum.saturating_add(data.len() as u64))
    }

    /// What a run takes if values have these dimensions, in the graph's order.
    #[must_use]
    pub fn demand(&self, shapes: &[Vec<usize>]) -> Demand {
        let dims = |id: ValueId| shapes.get(id.index()).map_or(&[][..], Vec::as_slice);
        let bytes = |id: ValueId| {
            let size = self.value(id).and_then(|value| value.datatype.byte_size(dims(id)));
            size.unwrap_or(usize::MAX) as u64
        };
        let sum = |ids: &[ValueId]| ids.iter().map(|&id| bytes(id)).fold(0, u64::saturating_add);
        let node = |node: &Node| {
            let (read, written) = (node.inputs(), node.outputs());
            let is_constant =
                |id: &ValueId| self.value(*id).is_some_and(|value| value.data.is_some());
            let constants: Vec<ValueId> = read.iter().copied().filter(is_constant).collect();
            let elements = read.iter().chain(&written).map(|&id| elements(dims(id)));
            let windows = match &node.op {
                NodeOp::AveragePooling2d(window)
                | NodeOp::MaxPooling2d(window)
                | NodeOp::ArgMaxPooling2d { window, .. } => {
                    elements_of_windows(window, dims(window.output))
                }
                _ => 0,
            };
            let result = written.first().map_or(&[][..], |&id| dims(id));
            let beside = (shape::pointers(&node.op, result, dims) as u64)
                .saturating_add(logits(&node.op, dims));
            Demand {
                bytes: sum(&constants).saturating_add(beside),
                work: elements.fold(0, u64::saturating_add).max(windows).max(macs(&node.op, dims)),
            }
        };
        let index = |ids: &[ValueId]| ids.iter().map(|id| id.index()).collect();
        let steps: Vec<(Vec<usize>, Vec<usize>)> =
            self.nodes.iter().map(|node| (index(&node.inputs()), index(&node.outputs()))).collect();
        let kept: Vec<usize> =
            self.inputs.iter().chain(&self.outputs).map(|id| id.index()).collect();
        let value = |index: usize| u32::try_from(index).map_or(0, |id| bytes(ValueId(id)));
        let values = Demand { bytes: most_at_once(&steps, &kept, value), work: 0 };
        self.nodes.iter().map(node).fold(values, Demand::and)
    }

    /// Refuses a graph out of a file that asks for more than [`GraphLimits::amplification`] allows for its size, if inputs have
    /// these dimensions.
    ///
    /// # Errors
    /// As [`Graph::shapes`], and [`ErrorKind::Limit`](crate::ErrorKind::Limit).
    pub fn check_demand(&self, inputs: &[&[usize]], limits: &GraphLimits) -> Result<()> {
        let shapes = self.shapes(inputs, limits)?;
        Ok(limits.amplification.check(self.stored_bytes(), self.demand(&shapes))?)
    }
}

/// Multiply-accumulates of a node whose values have these dimensions; saturates.
fn macs<'d>(op: &NodeOp, dims: impl Fn(ValueId) -> &'d [usize]) -> u64 {
    let elements = |id| elements(dims(id));
    let last = |id| dims(id).last().map_or(1, |&dim| (dim as u64).max(1));
    match op {
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

/// Bytes of what attention has between its two products.
fn logits<'d>(op: &NodeOp, dims: impl Fn(ValueId) -> &'d [usize]) -> u64 {
    let NodeOp::ScaledDotProductAttention { query, mask, .. } = op else { return 0 };
    let rows = dims(*query).split_last().map_or(0, |(_, rows)| elements(rows));
    let keys = dims(*mask).last().map_or(0, |&keys| keys as u64);
    rows.saturating_mul(keys).saturating_mul(size_of::<f32>() as u64)
}

/// Elements that windows look at, each as often as it is seen.
fn elements_of_windows(window: &Pooling2d, output: &[usize]) -> u64 {
    let window =
        (size(window.kernel.height) as u64).saturating_mul(size(window.kernel.width) as u64);
    elements(output).saturating_mul(window)
}

fn elements(dims: &[usize]) -> u64 {
    dims.iter().fold(1u64, |count, &dim| count.saturating_mul(dim as u64))
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
