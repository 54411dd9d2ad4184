//! Description of a computation: tensors, and the nodes that compute some of them from others.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};

mod attention;
mod binary;
mod blocks;
mod checks;
mod conv;
mod deconv;
mod define;
mod flags;
mod join;
pub(crate) mod lower;
mod matmul;
mod node;
mod pool;
mod reduce;
mod resize;
mod shape;
mod softmax;
mod unary;

pub use attention::{Rope, ScaledDotProductAttention};
pub use binary::{Binary, BinaryOp};
pub use blocks::{DepthToSpace2d, SpaceToDepth2d};
pub use conv::{Conv2d, DepthwiseConv2d, MAX_DYNAMIC_TAPS, OutputRange, Padding2d};
pub use deconv::Deconv2d;
pub use flags::Flags;
pub use join::{Concatenate, EvenSplit};
pub use matmul::{BatchMatMul, FullyConnected, FullyConnectedSparse};
pub use node::Node;
pub use pool::{ArgMaxPool2d, AveragePool2d, MaxPool2d, Unpool2d};
pub use reduce::{GlobalPool, PooledDims, ReduceOp, StaticReduce};
pub use resize::ResizeBilinear2d;
pub use shape::{ConstantPad, Copy, ExpandDims, Reshape, Slice, Transpose};
pub use softmax::Softmax;
pub use unary::{Unary, UnaryOp};

use crate::status::{NodeRef, Result, initialize};
use crate::value::{Datatype, ExternalId, Quantization, Role, Shape, TensorSpec, ValueId};
use node::Operator;

/// A computation to be run by XNNPACK: tensors and nodes, checked as they are defined.
///
/// Nodes must be defined in an order in which each one's inputs are constant, external or computed
/// before it. Nothing of XNNPACK is created here: the same subgraph may serve any number of
/// [`Runtime`](crate::Runtime)s, in several threads.
#[derive(Debug)]
pub struct Subgraph {
    /// Tells this subgraph's values from those of others.
    token: u64,
    values: Vec<Value>,
    /// Of each value, known from the start, or since the node that computes it was defined.
    shapes: Vec<Option<Shape>>,
    nodes: Vec<NodeEntry>,
    external_ids: HashSet<ExternalId>,
}

/// A tensor and what is known about it.
#[derive(Debug)]
pub(crate) struct Value {
    pub(crate) datatype: Datatype,
    pub(crate) quantization: Quantization,
    pub(crate) role: Role,
    /// The node that computes it.
    pub(crate) producer: Option<usize>,
    /// Whether a node reads it.
    pub(crate) consumed: bool,
    /// The pooling window in which its elements are positions.
    pub(crate) indices: Option<[u32; 2]>,
}

/// A node, with its kind for messages.
#[derive(Debug)]
pub(crate) struct NodeEntry {
    pub(crate) reference: NodeRef,
    pub(crate) operator: Box<dyn Operator>,
}

impl Subgraph {
    /// A subgraph without tensors and nodes.
    ///
    /// # Errors
    /// XNNPACK could not be initialized.
    pub fn new() -> Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        initialize()?;
        Ok(Self {
            token: NEXT.fetch_add(1, Ordering::Relaxed),
            values: Vec::new(),
            shapes: Vec::new(),
            nodes: Vec::new(),
            external_ids: HashSet::new(),
        })
    }

    /// Makes room for so many more tensors, where it is known how many will be defined.
    pub fn reserve(&mut self, tensors: usize) {
        self.values.reserve_exact(tensors);
        self.shapes.reserve_exact(tensors);
    }

    /// Adds a tensor.
    ///
    /// # Errors
    /// The shape is missing or has an empty dimension, too many or too large ones; the quantization
    /// does not fit the datatype or has parameters out of range; constant data of another length
    /// than shape and datatype make; an external id that is taken.
    pub fn define_tensor(&mut self, spec: TensorSpec) -> Result<ValueId> {
        self.add_tensor(spec).map_err(|error| error.during("define tensor"))
    }

    /// Adds a node.
    ///
    /// # Errors
    /// A value of another subgraph; an input that nothing computes before this node; an output that
    /// is constant, an external input or computed already; parameters that XNNPACK does not allow,
    /// or that do not fit the tensors. The error names the node.
    pub fn define(&mut self, node: impl Node) -> Result<()> {
        let reference = NodeRef { index: self.nodes.len(), kind: node.kind() };
        self.add_node(reference, Box::new(node))
            .map_err(|error| error.during("define node").at(reference))
    }

    /// Number of nodes.
    #[must_use]
    pub fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// Kinds of the nodes, such as `convolution_2d`, in their order.
    pub fn kinds(&self) -> impl ExactSizeIterator<Item = &'static str> {
        self.nodes.iter().map(|node| node.reference.kind)
    }

    /// Shape of a tensor as far as it is known: as defined, or as its node computes it from the
    /// defined shapes of the inputs. `None` too for a value of another subgraph.
    #[must_use]
    pub fn shape(&self, id: ValueId) -> Option<&[usize]> {
        if id.subgraph != self.token {
            return None;
        }
        self.shapes.get(usize::try_from(id.index).ok()?)?.as_deref()
    }

    /// Identifies it in this process.
    pub(crate) fn token(&self) -> u64 {
        self.token
    }

    /// A tensor of this subgraph.
    pub(crate) fn value(&self, id: ValueId) -> Option<&Value> {
        self.values.get(node::index(id)?)
    }

    pub(crate) fn values(&self) -> &[Value] {
        &self.values
    }

    pub(crate) fn nodes(&self) -> &[NodeEntry] {
        &self.nodes
    }
}
