//! Caches of packed weights that several runtimes share.

mod adapter;
mod calls;
mod candidates;
pub(crate) mod probe;
mod slab;
mod state;
#[cfg(test)]
mod tests;
mod weights;

pub use weights::{PackedNode, PackedWeights, WeightsCacheProvider, WeightsKey};

use std::collections::HashMap;
use std::fmt;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use xnnpack_sys as sys;

use crate::initialize::initialize;
use crate::status::{Error, Result, Status, check};
use crate::subgraph::Subgraph;
use crate::threadpool::ThreadPool;
use adapter::{Adapter, Backing, Native, lock};
use slab::Slab;

/// How XNNPACK's own cache is finalized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finalization {
    /// No more runtimes can be created with the cache. Uses the least memory.
    Hard,
    /// Runtimes with the same weights can still be created.
    Soft,
}

/// A cache of packed weights for the runtimes that are created with it.
#[derive(Clone)]
pub struct WeightsCache(Arc<Cache>);

struct Cache {
    /// XNNPACK's interface to the cache, whose context is `adapter`.
    provider: Box<sys::xnn_weights_cache_provider>,
    adapter: Arc<Adapter>,
}

// SAFETY: XNNPACK only reads `provider`, whose context is the adapter, which is `Sync`.
unsafe impl Send for Cache {}
// SAFETY: as above.
unsafe impl Sync for Cache {}

impl WeightsCache {
    /// Creates XNNPACK's own cache. It compares weights by content, so it saves memory, but not the
    /// time of packing. Runtimes can be created until it is finalized, and run from then on.
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

    /// Creates a cache for runtimes of the same [`Subgraph`](crate::Subgraph)s in this process: the
    /// first runtime of a subgraph packs the weights, and the others reuse them.
    #[must_use]
    pub fn in_process() -> Self {
        Self::in_process_with(|_| ())
    }

    /// Like [`WeightsCache::in_process`], and calls `packed` with data that is not read again
    /// unless it is packed for another node or subgraph: the data of each filter after it is
    /// packed, parts of a large filter during packing, and fp16 data of
    /// [`Fp16Weights`](crate::Fp16Weights) before packing.
    #[must_use]
    pub fn in_process_with(packed: impl Fn(&[u8]) + Send + Sync + 'static) -> Self {
        Self::with(Backing::InProcess(Box::new(packed)))
    }

    /// Creates a cache that is stored by `provider`.
    #[must_use]
    pub fn custom(provider: impl WeightsCacheProvider) -> Self {
        Self::with(Backing::Custom(Box::new(provider)))
    }

    /// Adds candidates for the first runtime of `subgraph`: weights that were packed earlier, by
    /// this process or another. They are validated: their length must be the one that XNNPACK
    /// requests, and for each kind of node the smallest are compared with weights that XNNPACK
    /// packs. If any differ, all weights are packed again.
    ///
    /// Candidates must nevertheless come from a trusted source, since wrong values give wrong
    /// results. XNNPACK's own cache ignores them.
    pub fn add_candidates(
        &self,
        subgraph: &Subgraph,
        packed: impl IntoIterator<Item = PackedNode>,
    ) {
        lock(&self.0.adapter.state).candidates.add(subgraph, packed.into_iter().collect());
    }

    /// Packed weights of `subgraph` in this cache, ordered by node, which can be candidates in
    /// another process. Empty for XNNPACK's own cache.
    #[must_use]
    pub fn packed(&self, subgraph: &Subgraph) -> Vec<PackedNode> {
        lock(&self.0.adapter.state).packed_of(subgraph.token())
    }

    /// Finalizes XNNPACK's own cache, which then accepts no more weights. Does nothing for other
    /// caches.
    ///
    /// # Errors
    /// The cache is already finalized.
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

    /// Whether runtimes that use the cache can run.
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

    /// Calls `create`, which creates a runtime of `subgraph` with the threads of `pool`.
    /// `packed_size` returns the size in bytes of a node's packed weights, if XNNPACK packs them
    /// with this seed; `is_sound`, whether the packed weights of a runtime, which have their right
    /// lengths, tell microkernels to read only inputs that exist.
    ///
    /// # Errors
    /// The errors of `create`; or memory for packed weights is exhausted.
    pub(crate) fn creating<T>(
        &self,
        subgraph: &Subgraph,
        pool: Option<&Arc<ThreadPool>>,
        create: impl Fn() -> Result<T>,
        packed_size: impl Fn(usize, u32) -> Option<usize>,
        is_sound: impl Fn(&T) -> bool,
    ) -> Result<T> {
        let adapter = &self.0.adapter;
        let _creation = lock(&adapter.creation);
        let kept = {
            let mut state = lock(&adapter.state);
            state.nodes = subgraph.nodes_by_data();
            state.fp16_weights = subgraph
                .fp16_weights()
                .map(|weights| (weights.start().addr(), weights.clone()))
                .collect();
            state.expect(subgraph, pool);
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
            let failed = std::mem::take(&mut state.failed);
            let must_validate = !failed && state.candidates.need_validation();
            drop(state);
            if let Ok(runtime) = &result
                && must_validate
                && !is_sound(runtime)
            {
                lock(&adapter.state).candidates.refuse_unsound();
            }
            (result, failed)
        };
        let (mut result, mut failed) = attempt();
        if !lock(&adapter.state).candidates.close(subgraph.token()) {
            drop(result);
            lock(&adapter.state).truncate(kept);
            (result, failed) = attempt();
        }
        if failed {
            let reason = "out of memory: cannot allocate packed weights";
            result = Err(Error::new(Status::OutOfMemory, reason));
        }
        let mut state = lock(&adapter.state);
        if result.is_err() {
            // Candidates are validated with the runtime that uses them.
            state.truncate(kept);
        }
        state.nodes = HashMap::new();
        state.fp16_weights = HashMap::new();
        state.slab = Slab::default();
        result
    }

    /// XNNPACK's handle, valid while `self` lives.
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
