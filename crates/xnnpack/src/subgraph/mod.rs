//! Description of a computation: tensors, and nodes that compute tensors from others.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};

mod attention;
mod binary;
mod blocks;
mod checks;
mod constants;
mod context;
mod conv;
mod deconv;
mod define;
mod flags;
mod fusion;
mod inference;
mod join;
mod liveness;
mod matmul;
mod operator;
mod params;
mod pool;
mod quantization;
pub(crate) mod raw;
mod reduce;
mod resize;
mod shape;
mod softmax;
mod unary;

pub use attention::{Rope, ScaledDotProductAttention};
pub use binary::{Binary, BinaryOp};
pub use blocks::{DepthToSpace2d, SpaceToDepth2d};
pub use conv::{Conv2d, DepthwiseConv2d, MAX_DYNAMIC_TAPS};
pub use deconv::Deconv2d;
pub use flags::Flags;
pub use join::{Concatenate, EvenSplit};
pub use matmul::{BatchMatMul, FullyConnected, FullyConnectedSparse};
pub use operator::DefineOperator;
pub use params::{OutputRange, Padding2d};
pub use pool::{ArgMaxPool2d, AveragePool2d, MaxPool2d, Unpool2d};
pub use reduce::{GlobalPool, PooledDims, ReduceOp, StaticReduce};
pub use resize::ResizeBilinear2d;
pub use shape::{ConstantPad, Copy, ExpandDims, Reshape, Slice, Transpose};
pub use softmax::Softmax;
pub use unary::{Unary, UnaryOp};

pub(crate) use constants::Filter;

use crate::initialize::initialize;
use crate::status::{NodeRef, Result};
use crate::value::{ExternalId, Shape, TensorSpec, ValueId};
use context::{Value, index, unknown};
use operator::Operator;

/// A computation for XNNPACK: tensors and nodes, checked as they are defined.
///
/// Nodes must be defined in execution order: each input of a node is constant, external or computed
/// by an earlier node. A subgraph does not hold XNNPACK objects, so any number of
/// [`Runtime`](crate::Runtime)s can be created from it, in several threads.
#[derive(Debug)]
pub struct Subgraph {
    /// Distinguishes this subgraph's values from those of others.
    token: u64,
    values: Vec<Value>,
    /// Shape of each value; `None` until the node that computes it is defined.
    shapes: Vec<Option<Shape>>,
    nodes: Vec<NodeEntry>,
    external_ids: HashSet<ExternalId>,
}

/// A node, with its index and kind for messages.
#[derive(Debug)]
pub(crate) struct NodeEntry {
    pub(crate) reference: NodeRef,
    pub(crate) operator: Box<dyn Operator>,
}

impl Subgraph {
    /// Creates a subgraph without tensors and nodes.
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

    /// Reserves capacity for `tensors` more tensors.
    pub fn reserve(&mut self, tensors: usize) {
        self.values.reserve_exact(tensors);
        self.shapes.reserve_exact(tensors);
    }

    /// Adds a tensor.
    ///
    /// # Errors
    /// The shape is missing, has a dimension of 0, too many dimensions or too many elements; the
    /// quantization does not match the datatype or has parameters out of range; the length of
    /// constant data does not match shape and datatype; or the external id is in use.
    pub fn define_tensor(&mut self, spec: TensorSpec) -> Result<ValueId> {
        self.add_tensor(spec).map_err(|error| error.during("define tensor"))
    }

    /// Adds a node.
    ///
    /// # Errors
    /// A value belongs to another subgraph; an input is not computed by an earlier node; an output
    /// is constant, an external input or already computed; or parameters are not supported by
    /// XNNPACK or do not match the tensors. The error names the node.
    pub fn define(&mut self, node: impl DefineOperator) -> Result<()> {
        let reference = NodeRef { index: self.nodes.len(), kind: node.kind() };
        self.add_node(reference, Box::new(node))
            .map_err(|error| error.during("define node").at(reference))
    }

    /// Number of nodes.
    #[must_use]
    pub fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// Kinds of the nodes, such as `convolution_2d`, in execution order.
    pub fn kinds(&self) -> impl ExactSizeIterator<Item = &'static str> {
        self.nodes.iter().map(|node| node.reference.kind)
    }

    /// Shape of a tensor: as defined, or as its node computes it from the defined shapes of the
    /// inputs. `None` if it is not known yet, or if the value belongs to another subgraph.
    #[must_use]
    pub fn shape(&self, id: ValueId) -> Option<&[usize]> {
        if id.subgraph != self.token {
            return None;
        }
        self.shapes.get(usize::try_from(id.index).ok()?)?.as_deref()
    }

    /// Identifies the subgraph in this process.
    pub(crate) fn token(&self) -> u64 {
        self.token
    }

    /// Returns the position of a value. Refuses ids of other subgraphs.
    pub(super) fn own(&self, id: ValueId) -> Result<usize> {
        index(id)
            .filter(|&index| id.subgraph == self.token && index < self.values.len())
            .ok_or_else(|| unknown(id))
    }

    /// Returns a tensor of this subgraph.
    pub(crate) fn value(&self, id: ValueId) -> Option<&Value> {
        self.values.get(index(id)?)
    }

    pub(crate) fn values(&self) -> &[Value] {
        &self.values
    }

    pub(crate) fn nodes(&self) -> &[NodeEntry] {
        &self.nodes
    }

    /// Positions of the external tensors, whose XNNPACK ids are 0, 1, ... in this order.
    pub(crate) fn externals(&self) -> impl Iterator<Item = usize> {
        let external = |(index, value): (usize, &Value)| value.role.external_id().map(|_| index);
        self.values().iter().enumerate().filter_map(external)
    }
}
