//! Packed weights, kept once for several runtimes.

mod adapter;
mod calls;
mod candidates;
pub(crate) mod probe;
mod slab;
mod state;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use xnnpack_sys as sys;

use crate::buffer::{ALIGNMENT, EXTRA_BYTES, StaticData};
use crate::status::{Error, Result, Status, check, initialize};
use crate::subgraph::Subgraph;
use adapter::{Adapter, Backing, Native, lock};
use slab::Slab;
pub(crate) use state::{Filter, NodeKey};

/// What identifies weights that XNNPACK has packed for a node.
///
/// Packing depends on the node's parameters and on both tensors' quantization, not only on the
/// data, so a key that is to outlive the process must cover them all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct WeightsKey {
    /// Identifies the [`Subgraph`](crate::Subgraph) in this process.
    pub subgraph: u64,
    /// Index of the node in it.
    pub node: usize,
    /// XNNPACK's fingerprint of microkernel and layout; differs between processors.
    pub seed: u32,
    /// Address of the filter's data.
    pub kernel: usize,
    /// Address of the bias's data, or 0.
    pub bias: usize,
}

/// A node, and how XNNPACK packs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct NodeSeed {
    pub(crate) subgraph: u64,
    pub(crate) node: usize,
    pub(crate) seed: u32,
}

impl WeightsKey {
    /// A subgraph never changes and keeps its data alive, and those that are computed in fp16 have no cache: within a
    /// process this says it all.
    fn node_seed(&self) -> NodeSeed {
        NodeSeed { subgraph: self.subgraph, node: self.node, seed: self.seed }
    }
}

/// Weights in the layout of a microkernel.
#[derive(Clone, Debug)]
pub struct PackedWeights(StaticData);

impl PackedWeights {
    /// Packed weights from elsewhere, such as a file; copied if they are not aligned to
    /// [`ALIGNMENT`].
    ///
    /// # Errors
    /// There is no memory for a copy.
    pub fn new(data: StaticData) -> Result<Self> {
        Ok(Self(data.meeting(ALIGNMENT, EXTRA_BYTES)?))
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.0.bytes()
    }

    /// The bytes as a share of the memory that they lie in.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        self.0.into_bytes()
    }
}

/// The packed weights of a node, to be kept beyond the process.
#[derive(Clone, Debug)]
pub struct PackedNode {
    /// Index of the node in its subgraph.
    pub node: usize,
    /// XNNPACK's fingerprint of microkernel and layout, see [`WeightsKey::seed`].
    pub seed: u32,
    /// The weights.
    pub weights: PackedWeights,
}

/// Keeps packed weights for a [`WeightsCache`].
///
/// # Safety
/// For a key `look_up` must return only bytes that XNNPACK itself packed, in the same build and on
/// a processor with the same features, for a node with the same parameters and tensors: XNNPACK
/// knows their length and trusts them.
pub unsafe trait WeightsCacheProvider: Send + Sync + 'static {
    /// Weights packed earlier for `key`.
    fn look_up(&self, key: &WeightsKey) -> Option<PackedWeights>;

    /// Takes note of weights that XNNPACK has just packed for `key`.
    fn insert(&self, key: &WeightsKey, packed: &PackedWeights);
}

/// When XNNPACK's own cache stops to take weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finalization {
    /// No more runtimes can be created with the cache; least memory.
    Hard,
    /// Runtimes with the same weights can still be created.
    Soft,
}

/// A cache of packed weights, to be given to the runtimes that share it.
#[derive(Clone)]
pub struct WeightsCache(Arc<Cache>);

struct Cache {
    /// XNNPACK's view; its context is `adapter`.
    provider: Box<sys::xnn_weights_cache_provider>,
    adapter: Arc<Adapter>,
}

// SAFETY: XNNPACK only reads `provider`, whose context is the adapter, which may be shared.
unsafe impl Send for Cache {}
// SAFETY: as above.
unsafe impl Sync for Cache {}

impl WeightsCache {
    /// XNNPACK's own cache. It tells weights apart by their content, so it saves memory but not the
    /// time of packing. Runtimes can be created until it is finalized and run from then on.
    ///
    /// # Errors
    /// XNNPACK could not be initialized, or memory is exhausted.
    pub fn native() -> Result<Self> {
        initialize()?;
        let mut raw = ptr::null_mut();
        // SAFETY: XNNPACK is initialized and the out pointer is valid.
        check("create weights cache", unsafe { sys::xnn_create_weights_cache(&raw mut raw) })?;
        Ok(Self::with(Backing::Native(Native { raw, finalized: AtomicBool::new(false) })))
    }

    /// A cache for runtimes of the same [`Subgraph`](crate::Subgraph)s in this process: the first
    /// runtime of a subgraph packs, the others find the weights.
    #[must_use]
    pub fn in_process() -> Self {
        Self::in_process_with(|_| ())
    }

    /// [`WeightsCache::in_process`] that calls `packed` with the data of each filter that has been packed, and before with
    /// parts of a large one while it is, and with one of [`Halves`](crate::Halves) before that: nothing reads them again,
    /// unless they are packed for another node or subgraph.
    #[must_use]
    pub fn in_process_with(packed: impl Fn(&[u8]) + Send + Sync + 'static) -> Self {
        Self::with(Backing::InProcess(Box::new(packed)))
    }

    /// A cache that `provider` keeps.
    #[must_use]
    pub fn custom(provider: impl WeightsCacheProvider) -> Self {
        Self::with(Backing::Custom(Box::new(provider)))
    }

    /// Offers weights that were packed before, by this process or another, to the first runtime of
    /// `subgraph`. They may be wrong: only weights of the length that XNNPACK asks for are used, of
    /// each kind of node the smallest are compared with what XNNPACK packs, and if anything differs
    /// all are packed anew.
    ///
    /// They must all the same come from a trusted place: wrong numbers give wrong results. XNNPACK's
    /// own cache takes no offers.
    pub fn offer(&self, subgraph: &Subgraph, packed: impl IntoIterator<Item = PackedNode>) {
        lock(&self.0.adapter.state).offers.add(subgraph, packed.into_iter().collect());
    }

    /// Weights that runtimes of `subgraph` share by this cache, ordered by node: what another
    /// process may be offered. XNNPACK's own cache does not tell.
    #[must_use]
    pub fn packed(&self, subgraph: &Subgraph) -> Vec<PackedNode> {
        lock(&self.0.adapter.state).packed_of(subgraph.token())
    }

    /// Stops XNNPACK's own cache from taking weights; other caches need no finalization.
    ///
    /// # Errors
    /// It is finalized already.
    pub fn finalize(&self, how: Finalization) -> Result<()> {
        let Backing::Native(native) = &self.0.adapter.backing else { return Ok(()) };
        let kind = match how {
            Finalization::Hard => sys::xnn_weights_cache_finalization_kind_hard,
            Finalization::Soft => sys::xnn_weights_cache_finalization_kind_soft,
        };
        let _creation = lock(&self.0.adapter.creation);
        // SAFETY: `raw` is live and no runtime is being created.
        check("finalize weights cache", unsafe {
            sys::xnn_finalize_weights_cache(native.raw, kind)
        })?;
        native.finalized.store(true, Ordering::Release);
        Ok(())
    }

    /// Whether runtimes that use the cache may run.
    #[must_use]
    pub fn is_finalized(&self) -> bool {
        self.0.adapter.is_finalized()
    }

    fn with(backing: Backing) -> Self {
        let adapter =
            Arc::new(Adapter { backing, state: Mutex::default(), creation: Mutex::default() });
        let provider = Box::new(Adapter::provider(&adapter));
        Self(Arc::new(Cache { provider, adapter }))
    }

    /// Runs `create`, which creates a runtime of `subgraph`. `packed_size` tells how many bytes
    /// XNNPACK packs a node's weights into, if it packs them under this seed.
    ///
    /// # Errors
    /// That of `create`, or weights could not be kept.
    pub(crate) fn creating<T>(
        &self,
        subgraph: &Subgraph,
        create: impl Fn() -> Result<T>,
        packed_size: impl Fn(usize, u32) -> Option<usize>,
    ) -> Result<T> {
        let adapter = &self.0.adapter;
        let _creation = lock(&adapter.creation);
        let kept = {
            let mut state = lock(&adapter.state);
            state.nodes = subgraph.nodes_by_data();
            state.halves =
                subgraph.halves().map(|halves| (halves.start().addr(), halves.clone())).collect();
            state.expect(subgraph);
            state.count()
        };
        let attempt = || {
            let telling = adapter.telling();
            let result = create();
            drop(telling);
            let mut state = lock(&adapter.state);
            if result.is_ok() {
                state.settle_claims(|at| packed_size(at.node, at.seed));
            }
            state.reserved = None;
            state.widened = None;
            (result, std::mem::take(&mut state.failed))
        };
        let (mut result, mut failed) = attempt();
        if !lock(&adapter.state).offers.close(subgraph.token()) {
            drop(result);
            lock(&adapter.state).truncate(kept);
            (result, failed) = attempt();
        }
        let mut state = lock(&adapter.state);
        state.nodes = HashMap::new();
        state.halves = HashMap::new();
        state.slab = Slab::default();
        drop(state);
        if failed {
            return Err(Error::new(Status::OutOfMemory, "the weights cache failed"));
        }
        result
    }

    /// Valid while `self` lives.
    pub(crate) fn raw(&self) -> sys::xnn_weights_cache_t {
        (&raw const *self.0.provider).cast_mut()
    }
}

impl fmt::Debug for WeightsCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0.adapter.backing {
            Backing::Native(_) => "WeightsCache(native)",
            Backing::InProcess(_) => "WeightsCache(in process)",
            Backing::Custom(_) => "WeightsCache(custom)",
        })
    }
}
