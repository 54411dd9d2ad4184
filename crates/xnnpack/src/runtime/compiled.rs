//! XNNPACK's runtime object.

use std::ptr::{self, NonNull};

use xnnpack_sys as sys;

use super::options::RuntimeOptions;
use crate::fp16_weights::Widened;
use crate::status::{Error, Result, check};
use crate::subgraph::Subgraph;
use crate::subgraph::raw::RawSubgraph;
use crate::threadpool::ThreadPool;
use crate::value::Shape;
use crate::weights_cache::WeightsCache;
use crate::weights_cache::probe::packed_size;
use crate::workspace::Workspace;

/// XNNPACK's runtime object.
pub(super) struct Compiled {
    pub(super) raw: NonNull<sys::xnn_runtime>,
    /// fp32 copies of fp16 weights. Without a cache it is not known when they have been packed, so
    /// they are kept.
    _widened: Vec<Widened>,
}

impl Drop for Compiled {
    fn drop(&mut self) {
        // SAFETY: the runtime is live, and is dropped under the lock of its workspace.
        unsafe { sys::xnn_delete_runtime(self.raw.as_ptr()) };
    }
}

impl Compiled {
    /// Creates XNNPACK's runtime for these shapes, which counts as a user of the workspace.
    ///
    /// # Safety
    /// The caller keeps subgraph, workspace, and the options' cache and thread pool at least as
    /// long as the runtime.
    pub(super) unsafe fn new(
        subgraph: &Subgraph,
        shapes: &[Option<Shape>],
        options: &RuntimeOptions,
        workspace: &Workspace,
    ) -> Result<Self> {
        const OP: &str = "create runtime";
        let mut users = workspace.lock();
        users.usable().map_err(|error| error.during(OP))?;
        users.admit(subgraph.has_persistent()).map_err(|error| error.during(OP))?;
        let create = || {
            // XNNPACK modifies the subgraph that it creates a runtime from.
            let graph = RawSubgraph::new(subgraph, shapes)?;
            let pool = options.threadpool.as_deref();
            let widened = match &options.weights_cache {
                Some(_) => Vec::new(),
                None => subgraph.fp16_weights().map(|weights| weights.widen(pool)).collect(),
            };
            let pool = pool.map_or(ptr::null_mut(), ThreadPool::raw);
            let mut raw = ptr::null_mut();
            // SAFETY: all handles are live, and the caller keeps them as long as the runtime. The
            // workspace is locked.
            let status = unsafe {
                sys::pack_with(pool);
                let status = sys::xnn_create_runtime_v4(
                    graph.raw(),
                    options.weights_cache.as_ref().map_or(ptr::null_mut(), WeightsCache::raw),
                    workspace.raw(),
                    pool,
                    options.flags(subgraph),
                    &raw mut raw,
                );
                sys::pack_with(ptr::null_mut());
                status
            };
            check(OP, status)?;
            let compiled = NonNull::new(raw).map(|raw| Self { raw, _widened: widened });
            compiled.ok_or_else(|| Error::state("XNNPACK returned no runtime").during(OP))
        };
        let compiled = match &options.weights_cache {
            Some(cache) => {
                let packed_size = |node, seed| {
                    let flags = options.flags(subgraph);
                    packed_size(subgraph, shapes, node, seed, flags, workspace)
                };
                // SAFETY: the runtime is live, and the cache has compared the lengths.
                let is_sound =
                    |compiled: &Self| unsafe { sys::has_sound_weights(compiled.raw.as_ptr()) };
                let pool = options.threadpool.as_ref();
                cache.creating(subgraph, pool, create, packed_size, is_sound)
            }
            None => create(),
        }
        .map_err(|error| error.during(OP))?;
        users.users += 1;
        users.persistent |= subgraph.has_persistent();
        Ok(compiled)
    }
}
