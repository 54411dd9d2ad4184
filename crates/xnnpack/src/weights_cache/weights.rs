//! Packed weights, their keys, and the interface of a cache that keeps them.

use bytes::Bytes;

use crate::buffer::{ALIGNMENT, EXTRA_BYTES};
use crate::static_data::StaticData;
use crate::status::Result;

/// Key of the weights that XNNPACK has packed for a node.
///
/// Packing depends on the node's parameters and the quantization of both tensors, not only on the
/// data. A key that outlives the process must cover all of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct WeightsKey {
    /// Identifies the [`Subgraph`](crate::Subgraph) in this process.
    pub subgraph: u64,
    /// Index of the node in the subgraph.
    pub node: usize,
    /// XNNPACK's fingerprint of microkernel and layout, which differs between processors.
    pub seed: u32,
    /// Address of the filter's data.
    pub kernel: usize,
    /// Address of the bias's data, or 0.
    pub bias: usize,
}

/// A node, and XNNPACK's fingerprint of how its weights are packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct NodeSeed {
    pub(crate) subgraph: u64,
    pub(crate) node: usize,
    pub(crate) seed: u32,
}

impl WeightsKey {
    /// The part of the key that suffices within a process: a subgraph never changes and keeps its
    /// data alive, and runtimes that compute in fp16 have no cache.
    pub(super) fn node_seed(&self) -> NodeSeed {
        NodeSeed { subgraph: self.subgraph, node: self.node, seed: self.seed }
    }
}

/// Weights in the layout of a microkernel.
#[derive(Clone, Debug)]
pub struct PackedWeights(pub(super) StaticData);

impl PackedWeights {
    /// Packed weights from another source, such as a file. Copied if they are not aligned to
    /// [`ALIGNMENT`].
    ///
    /// # Errors
    /// Memory for the copy is exhausted.
    pub fn new(data: StaticData) -> Result<Self> {
        Ok(Self(data.meeting(ALIGNMENT, EXTRA_BYTES)?))
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.0.bytes()
    }

    /// The bytes, as shared ownership of their memory.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        self.0.into_bytes()
    }
}

/// Packed weights of a node, which may be stored for other processes.
#[derive(Clone, Debug)]
pub struct PackedNode {
    /// Index of the node in its subgraph.
    pub node: usize,
    /// XNNPACK's fingerprint of microkernel and layout, see [`WeightsKey::seed`].
    pub seed: u32,
    /// The weights.
    pub weights: PackedWeights,
}

/// Storage of packed weights for a [`WeightsCache`](crate::WeightsCache).
///
/// # Safety
/// For a key, `look_up` must only return bytes that XNNPACK itself packed, in the same build and on
/// a processor with the same features, for a node with the same parameters and tensors: XNNPACK
/// does not validate them.
pub unsafe trait WeightsCacheProvider: Send + Sync + 'static {
    /// Returns weights that were packed earlier for `key`.
    fn look_up(&self, key: &WeightsKey) -> Option<PackedWeights>;

    /// Stores weights that XNNPACK has just packed for `key`.
    fn insert(&self, key: &WeightsKey, packed: &PackedWeights);
}
