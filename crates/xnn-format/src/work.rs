//! Multiply-accumulates, memory and work of a graph.

use smallvec::SmallVec;
use xnn_file::{Demand, peak_bytes, saturating_elements as elements};

use crate::error::Result;
use crate::graph::Graph;
use crate::limits::GraphLimits;
use crate::node::{Node, NodeOp};
use crate::parameters::Pooling2d;
use crate::shape;
use crate::value::ValueId;
use crate::wire::size;

impl Graph {
    /// Multiply-accumulates of all nodes for the shapes of [`Value::dims`](crate::Value::dims);
    /// saturates.
    #[must_use]
    pub fn macs(&self) -> u64 {
        self.nodes.iter().map(|node| self.node_macs(node)).fold(0, u64::saturating_add)
    }

    /// Multiply-accumulates of one node; 0 for nodes without a product of matrices or filters.
    #[must_use]
    pub fn node_macs(&self, node: &Node) -> u64 {
        macs(&node.op, |id| self.value(id).map_or(&[][..], |value| &value.dims))
    }

    /// Approximate size of the graph in a file, in bytes: see [`xnn_file::stored_bytes`].
    #[must_use]
    pub fn stored_bytes(&self) -> u64 {
        let constants = self.values.iter().filter_map(|value| value.data.as_deref());
        xnn_file::stored_bytes(self.values.len() + self.nodes.len(), constants)
    }

    /// Memory and work of a run with these `shapes`, one per value of the graph.
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
            let constants: SmallVec<[ValueId; 4]> =
                read.iter().copied().filter(is_constant).collect();
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
        let steps: Vec<[SmallVec<[usize; 4]>; 2]> =
            self.nodes.iter().map(|node| [index(&node.inputs()), index(&node.outputs())]).collect();
        let kept: Vec<usize> =
            self.inputs.iter().chain(&self.outputs).map(|id| id.index()).collect();
        let sizes: Vec<u64> = (0u32..).map(ValueId).map(bytes).take(self.values.len()).collect();
        let values = Demand { bytes: peak_bytes(&steps, &kept, &sizes), work: 0 };
        self.nodes.iter().map(node).fold(values, Demand::and)
    }

    /// Checks that a run with inputs of these dimensions does not request more than
    /// [`GraphLimits::amplification`] allows for the size of the graph.
    ///
    /// # Errors
    /// The errors of [`Graph::shapes`], and [`ErrorKind::Limit`](crate::ErrorKind::Limit).
    pub fn check_demand(&self, inputs: &[&[usize]], limits: &GraphLimits) -> Result<()> {
        let shapes = self.shapes(inputs, limits)?;
        Ok(limits.amplification.check(self.stored_bytes(), self.demand(&shapes))?)
    }
}

/// Multiply-accumulates of a node with these dimensions; saturates.
fn macs<'d>(op: &NodeOp, dims: impl Fn(ValueId) -> &'d [usize]) -> u64 {
    let elements = |id| elements(dims(id));
    let last = |id| dims(id).last().map_or(1, |&dim| (dim as u64).max(1));
    match op {
        // Each output is a sum over the weights of its channel.
        NodeOp::Conv2d(layer) | NodeOp::DepthwiseConv2d(layer) => {
            elements(layer.output).saturating_mul(elements(layer.filter) / last(layer.output))
        }
        // Each input is multiplied by the weights of its channel.
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

/// Size in bytes of the logits between the two products of attention.
fn logits<'d>(op: &NodeOp, dims: impl Fn(ValueId) -> &'d [usize]) -> u64 {
    let NodeOp::ScaledDotProductAttention { query, mask, .. } = op else { return 0 };
    let rows = dims(*query).split_last().map_or(0, |(_, rows)| elements(rows));
    let keys = dims(*mask).last().map_or(0, |&keys| keys as u64);
    rows.saturating_mul(keys).saturating_mul(size_of::<f32>() as u64)
}

/// Number of elements that all windows read.
fn elements_of_windows(window: &Pooling2d, output: &[usize]) -> u64 {
    let window =
        (size(window.kernel.height) as u64).saturating_mul(size(window.kernel.width) as u64);
    elements(output).saturating_mul(window)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters::{Conv2d, Padding2d, Size2d, UnaryOp};
    use crate::value::{Datatype, Quantization, Value};

    /// Multiply-accumulates of one node on values of these dimensions.
    fn macs<const N: usize>(dims: [&[usize]; N], op: impl Fn([ValueId; N]) -> NodeOp) -> u64 {
        let mut graph = Graph::default();
        let value = |dims: &[usize]| Value::new(Datatype::F32, Quantization::None, dims);
        let ids = dims.map(|dims| graph.push_value(value(dims)));
        graph.nodes.push(Node::new(op(ids)));
        graph.macs()
    }

    /// Only the shapes of the values matter here.
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
    fn nodes_without_products_have_none_and_sizes_saturate() {
        let abs = |[input, output]: [ValueId; 2]| NodeOp::Unary { op: UnaryOp::Abs, input, output };
        assert_eq!(macs([&[9], &[9]], abs), 0);
        let huge = usize::MAX;
        assert_eq!(macs([&[huge, 3], &[5, 3], &[huge, 5]], dense), u64::MAX);
        assert_eq!(macs([&[0, 3], &[0, 3], &[0, 0]], dense), 0);
        assert_eq!(macs([&[], &[], &[]], dense), 1);
    }
}
