//! What other readers of XN01 know.

use crate::error::{ErrorKind, Result};
use crate::generated::graph::XNodeUnion;
use crate::graph::{Datatype, Graph, Quantization};
use crate::node::NodeOp;
use crate::wire;

/// Who must be able to read a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Compat {
    /// This project: all nodes.
    #[default]
    Own,
    /// Every reader since ExecuTorch 0.4: node kinds up to 37, datatypes up to
    /// qbint4, dynamic quantization by rows, outputs of at least one dimension
    /// (their runtime's tensors have no fewer).
    Executorch,
}

impl Compat {
    /// Refuses a graph that not every reader knows, with a list of all nodes
    /// and values that are the reason.
    pub(crate) fn check(self, graph: &Graph) -> Result<()> {
        if self == Self::Own {
            return Ok(());
        }
        let nodes = graph.nodes.iter().enumerate();
        let nodes = nodes.filter(|(_, node)| !is_known_since_0_4(&node.op));
        let values = graph.values.iter().enumerate();
        let values = values.filter(|(_, value)| match value.quantization {
            Quantization::Dynamic { num_nonbatch_dims } => num_nonbatch_dims != 1,
            _ => matches!(value.datatype, Datatype::Int32 | Datatype::Bf16),
        });
        let outputs = graph.outputs.iter();
        let scalars = outputs.filter(|id| graph.value(**id).is_some_and(|it| it.dims.is_empty()));
        let unknown: Vec<String> = nodes
            .map(|(index, node)| format!("node {index} ({})", node.op.kind()))
            .chain(values.map(|(index, value)| match value.quantization {
                Quantization::Dynamic { num_nonbatch_dims } => {
                    format!("value {index} (dynamic over {num_nonbatch_dims} dimensions)")
                }
                _ => format!("value {index} ({})", value.datatype.name()),
            }))
            .chain(scalars.map(|id| format!("value {} (an output without dimensions)", id.0)))
            .collect();
        if unknown.is_empty() { Ok(()) } else { Err(ErrorKind::Incompatible(unknown).into()) }
    }
}

/// The last node kind of the schema that ExecuTorch 0.4 was released with.
const LAST_KIND_OF_0_4: XNodeUnion = XNodeUnion::XNNBatchMatrixMultiply;

fn is_known_since_0_4(op: &NodeOp) -> bool {
    let tag = wire::tag(op);
    // Its number is reserved, but no released reader accepts it.
    tag <= LAST_KIND_OF_0_4 && tag != XNodeUnion::XNNScaledDotProductAttention
}

impl NodeOp {
    /// Whether only this project's schema has the node: its members of
    /// `XNodeUnion` start at 200.
    #[must_use]
    pub fn is_extension(&self) -> bool {
        wire::tag(self) >= XNodeUnion::XNNUnary
    }
}
