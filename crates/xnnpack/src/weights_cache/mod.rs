//! Packed weights, kept once for several runtimes.

mod adapter;

use std::collections::HashMap;
use std::fmt;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use xnnpack_sys as sys;

use crate::buffer::{ALIGNMENT, EXTRA_BYTES, StaticData};
use crate::status::{Error, Result, Status, check, initialize};
pub(crate) use adapter::NodeKey;
use adapter::{Adapter, Backing, Native, lock};

/// What identifies weights that XNNPACK has packed for a node.
///
/// Packing depends on the node's parameters and on both tensors' quantization, not only on the
/// data, so a key that is to outlive the process must cover them all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct WeightsKey {
    /// Identifies the [`Subgraph`](crate::Subgraph) in this process.
    pub subgraph: u32,
    /// Index of the node in it.
    pub node: usize,
    /// XNNPACK's fingerprint of microkernel and layout; differs between processors.
    pub seed: u32,
    /// Address of the filter's data.
    pub kernel: usize,
    /// Address of the bias's data, or 0.
    pub bias: usize,
}

/// Weights in the layout of a microkernel.
#[derive(Clone, Debug)]
pub struct PackedWeights(StaticData);

impl PackedWeights {
    /// Packed weights from elsewhere, such as a file; copied if they are not aligned to
    /// [`ALIGNMENT`].
    #[must_use]
    pub fn new(data: StaticData) -> Self {
        Self(data.meeting(ALIGNMENT, EXTRA_BYTES))
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.0.bytes()
    }
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
        Self::custom(InProcess::default())
    }

    /// A cache that `provider` keeps.
    #[must_use]
    pub fn custom(provider: impl WeightsCacheProvider) -> Self {
        Self::with(Backing::Custom(Box::new(provider)))
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

    /// Runs `create`, which creates a runtime whose filters lie at the addresses in `nodes`; `None`
    /// stands for an address that several nodes use.
    ///
    /// # Errors
    /// That of `create`, or weights could not be kept.
    pub(crate) fn creating<T>(
        &self,
        nodes: HashMap<usize, Option<NodeKey>>,
        create: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let _creation = lock(&self.0.adapter.creation);
        lock(&self.0.adapter.state).nodes = nodes;
        let result = create();
        let mut state = lock(&self.0.adapter.state);
        state.nodes.clear();
        state.reserved = None;
        if std::mem::take(&mut state.failed) {
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
            Backing::Custom(_) => "WeightsCache(custom)",
        })
    }
}

/// The provider behind [`WeightsCache::in_process`].
#[derive(Default)]
struct InProcess(Mutex<HashMap<(u32, usize, u32), PackedWeights>>);

impl InProcess {
    /// A subgraph never changes and keeps its data alive, so node and microkernel say it all.
    fn key(key: &WeightsKey) -> (u32, usize, u32) {
        (key.subgraph, key.node, key.seed)
    }
}

// SAFETY: entries are what XNNPACK packed in this process for the same node of the same subgraph
// with the same microkernel.
unsafe impl WeightsCacheProvider for InProcess {
    fn look_up(&self, key: &WeightsKey) -> Option<PackedWeights> {
        lock(&self.0).get(&Self::key(key)).cloned()
    }

    fn insert(&self, key: &WeightsKey, packed: &PackedWeights) {
        lock(&self.0).insert(Self::key(key), packed.clone());
    }
}
