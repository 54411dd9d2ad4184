//! Compatibility with other readers of XN01.

use std::collections::BTreeSet;

use crate::error::{ErrorKind, Result};
use crate::generated::graph::XNodeUnion;
use crate::graph::Graph;
use crate::node::{Node, NodeOp};
use crate::value::{Datatype, Quantization, ValueId};
use crate::wire;

/// The readers that a blob must be compatible with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Compat {
    /// Only this project: all nodes.
    #[default]
    Own,
    /// All readers since ExecuTorch 0.4: node kinds up to 37, datatypes up to qbint4, fp32 filters
    /// for fp32 inputs, dynamic quantization per row, outputs of at least one dimension (as
    /// ExecuTorch's tensors have).
    Executorch,
}

impl Compat {
    /// Refuses a graph that these readers do not support, with a list of all unsupported nodes and
    /// values, each once.
    pub(crate) fn check(self, graph: &Graph) -> Result<()> {
        if self == Self::Own {
            return Ok(());
        }
        let reasons = Reasons { graph };
        let nodes = graph.nodes.iter().enumerate();
        let nodes = nodes.filter(|(_, node)| !is_known_since_0_4(&node.op));
        let fp16_filters: BTreeSet<u32> =
            graph.nodes.iter().filter_map(|node| fp16_filter(graph, node)).collect();
        let values = (0..).zip(&graph.values).filter(|(index, value)| match value.quantization {
            Quantization::Dynamic { num_nonbatch_dims } => num_nonbatch_dims != 1,
            _ => {
                matches!(value.datatype, Datatype::Int32 | Datatype::Bf16)
                    || fp16_filters.contains(index)
            }
        });
        let outputs = graph.outputs.iter();
        let scalars = outputs.filter(|id| graph.value(**id).is_some_and(|it| it.dims.is_empty()));
        let mut unknown: Vec<String> = nodes
            .map(|(index, node)| reasons.node(index, node))
            .chain(values.map(|(index, value)| match value.quantization {
                Quantization::Dynamic { num_nonbatch_dims } => {
                    let what = format!("dynamic over {num_nonbatch_dims} dimensions");
                    reasons.value(ValueId(index), &what)
                }
                _ => reasons.value(ValueId(index), value.datatype.name()),
            }))
            .chain(scalars.map(|&id| reasons.value(id, "an output of rank 0")))
            .collect();
        let mut seen = BTreeSet::new();
        unknown.retain(|reason| seen.insert(reason.clone()));
        if unknown.is_empty() { Ok(()) } else { Err(ErrorKind::Incompatible(unknown).into()) }
    }
}

/// Names nodes and values in errors, by the model's operators and tensors where recorded. The graph
/// does not exist as a file yet, so its indices mean nothing to the user.
struct Reasons<'a> {
    graph: &'a Graph,
}

impl Reasons<'_> {
    /// `Exp of EXP#3`, or `node 1 (Exp)`.
    fn node(&self, index: usize, node: &Node) -> String {
        let kind = node.op.kind();
        match self.graph.node_name(node) {
            Some(origin) => format!("{kind} of {origin}"),
            None => format!("node {index} ({kind})"),
        }
    }

    /// `input "x" (bf16)`, `a value of ARG_MAX#7 (int32)`, or `value 3 (bf16)`.
    fn value(&self, id: ValueId, what: &str) -> String {
        let Graph { inputs, outputs, origin, nodes, .. } = self.graph;
        let sides =
            [("input", inputs, &origin.input_names), ("output", outputs, &origin.output_names)];
        for (side, ids, names) in sides {
            let place = ids.iter().position(|other| *other == id);
            match place.and_then(|place| names.get(place)) {
                Some(name) if !name.is_empty() => return format!("{side} {name:?} ({what})"),
                _ => {}
            }
        }
        let writer = nodes.iter().find(|node| node.outputs().contains(&id));
        let user = writer.or_else(|| nodes.iter().find(|node| node.inputs().contains(&id)));
        match user.and_then(|node| self.graph.node_name(node)) {
            Some(origin) => format!("a value of {origin} ({what})"),
            None => format!("value {} ({what})", id.0),
        }
    }
}

/// The last node kind in the schema of ExecuTorch 0.4.
const LAST_KIND_OF_0_4: XNodeUnion = XNodeUnion::XNNBatchMatrixMultiply;

fn is_known_since_0_4(op: &NodeOp) -> bool {
    let tag = wire::tag(op);
    // The tag is reserved, but no released reader accepts it.
    tag <= LAST_KIND_OF_0_4 && tag != XNodeUnion::XNNScaledDotProductAttention
}

/// The fp16 filter of a node that computes in fp32.
fn fp16_filter(graph: &Graph, node: &Node) -> Option<u32> {
    let (input, filter) = match &node.op {
        NodeOp::Conv2d(conv) | NodeOp::DepthwiseConv2d(conv) | NodeOp::ConvTranspose2d(conv) => {
            (conv.input, conv.filter)
        }
        NodeOp::FullyConnected { input, filter, .. } => (*input, *filter),
        _ => return None,
    };
    let datatype = |id| graph.value(id).map(|value| value.datatype);
    let is_fp16 = (datatype(input), datatype(filter)) == (Some(Datatype::F32), Some(Datatype::F16));
    is_fp16.then_some(filter.0)
}

impl NodeOp {
    /// Whether only this project's schema defines the node. Its members of `XNodeUnion` start at
    /// 200.
    #[must_use]
    pub fn is_extension(&self) -> bool {
        wire::tag(self) >= XNodeUnion::XNNUnary
    }
}
