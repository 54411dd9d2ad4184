//! What other readers of XN01 know.

use std::collections::BTreeSet;

use crate::error::{ErrorKind, Result};
use crate::generated::graph::XNodeUnion;
use crate::graph::{Datatype, Graph, Quantization, ValueId};
use crate::node::{Node, NodeOp};
use crate::wire;

/// Who must be able to read a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Compat {
    /// This project: all nodes.
    #[default]
    Own,
    /// Every reader since ExecuTorch 0.4: node kinds up to 37, datatypes up to
    /// qbint4, filters in fp32 for inputs in fp32, dynamic quantization by rows, outputs of at
    /// least one dimension (their runtime's tensors have no fewer).
    Executorch,
}

impl Compat {
    /// Refuses a graph that not every reader knows, with a list of all nodes
    /// and values that are the reason, each once.
    pub(crate) fn check(self, graph: &Graph) -> Result<()> {
        if self == Self::Own {
            return Ok(());
        }
        let reasons = Reasons { graph };
        let nodes = graph.nodes.iter().enumerate();
        let nodes = nodes.filter(|(_, node)| !is_known_since_0_4(&node.op));
        let half_filters: BTreeSet<u32> =
            graph.nodes.iter().filter_map(|node| half_filter(graph, node)).collect();
        let values = (0..).zip(&graph.values).filter(|(index, value)| match value.quantization {
            Quantization::Dynamic { num_nonbatch_dims } => num_nonbatch_dims != 1,
            _ => {
                matches!(value.datatype, Datatype::Int32 | Datatype::Bf16)
                    || half_filters.contains(index)
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
            .chain(scalars.map(|&id| reasons.value(id, "an output without dimensions")))
            .collect();
        let mut seen = BTreeSet::new();
        unknown.retain(|reason| seen.insert(reason.clone()));
        if unknown.is_empty() { Ok(()) } else { Err(ErrorKind::Incompatible(unknown).into()) }
    }
}

/// Says what of a graph is not known, by the model's names where there are some: nobody has seen the graph yet.
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

/// The last node kind of the schema that ExecuTorch 0.4 was released with.
const LAST_KIND_OF_0_4: XNodeUnion = XNodeUnion::XNNBatchMatrixMultiply;

fn is_known_since_0_4(op: &NodeOp) -> bool {
    let tag = wire::tag(op);
    // Its number is reserved, but no released reader accepts it.
    tag <= LAST_KIND_OF_0_4 && tag != XNodeUnion::XNNScaledDotProductAttention
}

/// The filter in fp16 of a node that computes in fp32.
fn half_filter(graph: &Graph, node: &Node) -> Option<u32> {
    let (input, filter) = match &node.op {
        NodeOp::Conv2d(conv) | NodeOp::DepthwiseConv2d(conv) | NodeOp::ConvTranspose2d(conv) => {
            (conv.input, conv.filter)
        }
        NodeOp::FullyConnected { input, filter, .. } => (*input, *filter),
        _ => return None,
    };
    let datatype = |id| graph.value(id).map(|value| value.datatype);
    let is_half = (datatype(input), datatype(filter)) == (Some(Datatype::F32), Some(Datatype::F16));
    is_half.then_some(filter.0)
}

impl NodeOp {
    /// Whether only this project's schema has the node: its members of
    /// `XNodeUnion` start at 200.
    #[must_use]
    pub fn is_extension(&self) -> bool {
        wire::tag(self) >= XNodeUnion::XNNUnary
    }
}
