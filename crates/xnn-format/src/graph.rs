//! The typed XNNGraph: values, nodes and origin.

use bytes::Bytes;

use crate::node::Node;
use crate::value::{Value, ValueId};

/// A graph of XNNPACK nodes over values.
///
/// This is the interface between lowering and the runtime. It depends neither on TFLite nor on
/// XNNPACK's C API.
///
/// ```
/// use xnn_format::{Datatype, Graph, Node, NodeOp, Quantization, UnaryOp, Value};
///
/// let mut graph = Graph::default();
/// let value = || Value::new(Datatype::F32, Quantization::None, &[1, 2]);
/// let (input, output) = (graph.push_value(value()), graph.push_value(value()));
/// graph.nodes.push(Node::new(NodeOp::Unary { op: UnaryOp::Abs, input, output }));
/// graph.inputs.push(input);
/// graph.outputs.push(output);
/// assert!(graph.check().is_ok());
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Graph {
    /// All values, indexed by [`ValueId`].
    pub values: Vec<Value>,
    /// Nodes in execution order: each after the producers of its inputs.
    pub nodes: Vec<Node>,
    /// Values that the caller provides, in the order of external ids.
    pub inputs: Vec<ValueId>,
    /// Values that the caller receives. Their external ids continue those of the inputs.
    pub outputs: Vec<ValueId>,
    /// Names and provenance. They do not affect results.
    pub origin: Origin,
}

/// Provenance of a graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// Program and version that wrote the graph.
    pub producer: String,
    /// File name of the model, without folders.
    pub source_name: String,
    /// SHA-256 of the model file.
    pub source_sha256: Option<[u8; 32]>,
    /// Key of the signature that was lowered, if any.
    pub signature: String,
    /// Names of [`Graph::inputs`], one each; empty if unknown.
    pub input_names: Vec<String>,
    /// Names of [`Graph::outputs`], one each; empty if unknown.
    pub output_names: Vec<String>,
    /// Model operators, like `CONV_2D#3`, by the `debug_handle` of the nodes lowered from them;
    /// ascending by handle.
    pub node_names: Vec<(u32, String)>,
    /// Named data stored with the graph, such as the model's metadata.
    pub metadata: Vec<(String, Bytes)>,
}

impl Graph {
    /// The value with this id; `None` if the id is out of range.
    #[must_use]
    pub fn value(&self, id: ValueId) -> Option<&Value> {
        self.values.get(id.index())
    }

    /// Appends a value and returns its id.
    pub fn push_value(&mut self, value: Value) -> ValueId {
        // A graph of 2^32 values does not fit in memory.
        let id = ValueId(self.values.len() as u32);
        self.values.push(value);
        id
    }

    /// The name of the model operator that a node was lowered from, if recorded.
    #[must_use]
    pub fn node_name(&self, node: &Node) -> Option<&str> {
        let handle = node.debug_handle?;
        let names = &self.origin.node_names;
        let position = names.binary_search_by_key(&handle, |(handle, _)| *handle).ok()?;
        names.get(position).map(|(_, name)| name.as_str())
    }
}
