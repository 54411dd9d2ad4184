//! Implementation of XNNPACK's weights cache interface.

use std::any::Any;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use xnnpack_sys as sys;

use super::state::{OWN_ENTRY, State};
use super::weights::{PackedWeights, WeightsCacheProvider, WeightsKey};
use crate::buffer::AlignedBuffer;

/// Implements XNNPACK's calls of a weights cache.
pub(super) struct Adapter {
    pub(super) backing: Backing,
    pub(super) state: Mutex<State>,
    /// Excludes other creations of runtimes while one is in progress.
    pub(super) creation: Mutex<()>,
}

pub(super) enum Backing {
    Native(Native),
    /// Weights are stored in [`State::packed`] only; the listener is told which data has been
    /// packed.
    InProcess(Listener),
    Custom(Box<dyn WeightsCacheProvider>),
}

/// Function that is told which data has been packed.
pub(super) type Listener = Box<dyn Fn(&[u8]) + Send + Sync>;

/// XNNPACK's own cache.
pub(super) struct Native {
    pub(super) raw: sys::xnn_weights_cache_t,
    pub(super) finalized: AtomicBool,
}

// SAFETY: the cache is written to only under the lock of creation, and only read after it is
// finalized.
unsafe impl Send for Native {}
// SAFETY: as above.
unsafe impl Sync for Native {}

impl Drop for Native {
    fn drop(&mut self) {
        // SAFETY: `raw` is live and unused: each runtime holds a reference to the cache.
        unsafe { sys::xnn_delete_weights_cache(self.raw) };
    }
}

/// Offset by which XNNPACK recognizes a missing entry.
pub(super) const NOT_FOUND: usize = usize::MAX;

impl Adapter {
    pub(super) fn is_finalized(&self) -> bool {
        match &self.backing {
            Backing::Native(Native { finalized, .. }) => finalized.load(Ordering::Acquire),
            // Entries never move, so they can be used at once.
            Backing::InProcess(_) | Backing::Custom(_) => true,
        }
    }

    pub(super) fn look_up(&self, raw: &sys::xnn_weights_cache_look_up_key) -> usize {
        let offset = self.find(raw);
        if offset == NOT_FOUND {
            // XNNPACK reads this filter next, and no other one.
            let state = lock(&self.state);
            let weights = state.fp16_weights.get(&raw.kernel.addr()).cloned();
            let pool = state.slab.pool().cloned();
            drop(state);
            let widened = weights.map(|weights| {
                let widened = weights.widen(pool.as_deref());
                self.tell_read(weights.data().bytes());
                widened
            });
            lock(&self.state).widened = widened;
        }
        offset
    }

    /// Tells the listener that some weights are not read again.
    pub(super) fn tell_read(&self, weights: &[u8]) {
        if let Backing::InProcess(packed) = &self.backing {
            contain((), || packed(weights));
        }
    }

    fn find(&self, raw: &sys::xnn_weights_cache_look_up_key) -> usize {
        if let Backing::Native(_) = self.backing {
            return NOT_FOUND;
        }
        let Some(key) = self.key(raw) else { return NOT_FOUND };
        if let Some(offset) = self.known(&key) {
            return offset;
        }
        let mut state = lock(&self.state);
        match state.candidates.claim(key.node_seed()) {
            Some(weights) => state.keep(weights),
            None => NOT_FOUND,
        }
    }

    /// Offset of weights that are known to be correct.
    fn known(&self, key: &WeightsKey) -> Option<usize> {
        match &self.backing {
            Backing::Native(_) => None,
            Backing::InProcess(_) => {
                let position = lock(&self.state).packed.get(&key.node_seed()).copied()?;
                Some(position | OWN_ENTRY)
            }
            Backing::Custom(provider) => {
                let weights = contain(None, || provider.look_up(key))?;
                Some(lock(&self.state).keep(weights))
            }
        }
    }

    /// Memory for weights, which is zero; null if memory is exhausted.
    pub(super) fn reserve(&self, size: usize) -> *mut c_void {
        match &self.backing {
            Backing::Native(Native { raw, .. }) => {
                // SAFETY: the native cache is live.
                let space = unsafe { call((**raw).reserve_space, |f| f((**raw).context, size)) };
                let space = space.unwrap_or(ptr::null_mut());
                if !space.is_null() {
                    // SAFETY: the cache has reserved `size` bytes there, and nothing else uses them.
                    unsafe { space.cast::<u8>().write_bytes(0, size) };
                }
                space
            }
            Backing::InProcess(_) | Backing::Custom(_) => {
                let mut state = lock(&self.state);
                let State { reserved, slab, .. } = &mut *state;
                *reserved = slab.take(size);
                reserved
                    .as_mut()
                    .map_or(ptr::null_mut(), |piece| piece.bytes_mut().as_mut_ptr().cast())
            }
        }
    }

    pub(super) fn insert(
        &self,
        raw: &sys::xnn_weights_cache_look_up_key,
        packed: *mut c_void,
        size: usize,
    ) -> usize {
        // XNNPACK has finished packing, and no longer reads the fp32 values.
        lock(&self.state).widened = None;
        if let Backing::Native(Native { raw: cache, .. }) = &self.backing {
            // SAFETY: the native cache is live; the arguments are XNNPACK's own.
            let offset = unsafe {
                call((**cache).look_up_or_insert, |f| f((**cache).context, raw, packed, size))
            };
            return match offset {
                Some(offset) if offset != NOT_FOUND => offset,
                // A finalized cache accepts no other weights, and XNNPACK would use `NOT_FOUND` as
                // if it were an offset.
                _ => {
                    // SAFETY: XNNPACK has just written `size` bytes there.
                    let bytes = unsafe { std::slice::from_raw_parts(packed.cast(), size) };
                    let weights = PackedWeights(AlignedBuffer::copy_of(bytes).into());
                    lock(&self.state).keep(weights)
                }
            };
        }
        let fresh = lock(&self.state).reserved.take();
        let was_packed = fresh.is_some();
        let key = self.key(raw);
        // Convolutions also call this with weights that they have just found, and depthwise ones
        // with one weight per channel pack before they look up.
        if let Some(offset) = key.and_then(|key| self.known(&key)) {
            return offset;
        }
        let mut state = lock(&self.state);
        let weights = match (key, fresh) {
            (Some(key), None) => state.candidates.confirm(key.node_seed(), size),
            (Some(key), Some(fresh)) => Some(state.candidates.compare(key.node_seed(), fresh)),
            (None, fresh) => fresh.map(|fresh| state.unify(raw, fresh.into())),
        };
        let Some(weights) = weights else {
            state.failed = true;
            return NOT_FOUND;
        };
        let offset = state.keep(weights.clone());
        if let Some(key) = key {
            state.packed.insert(key.node_seed(), offset & !OWN_ENTRY);
        }
        let filter = state.nodes.get(&raw.kernel.addr()).and_then(Option::as_ref);
        let filter = filter.map(|filter| filter.data.clone());
        drop(state);
        match (&self.backing, key, filter) {
            // The runtime uses the weights whether or not the provider stores them.
            (Backing::Custom(provider), Some(key), _) => {
                contain((), || provider.insert(&key, &weights))
            }
            (_, _, Some(filter)) if was_packed => self.tell_read(filter.bytes()),
            _ => {}
        }
        offset
    }

    pub(super) fn address(&self, offset: usize) -> *mut c_void {
        match &self.backing {
            Backing::Native(Native { raw, .. }) if offset & OWN_ENTRY == 0 => {
                // SAFETY: the native cache is live and gave the offset.
                unsafe { call((**raw).offset_to_addr, |f| f((**raw).context, offset)) }
                    .unwrap_or(ptr::null_mut())
            }
            _ => lock(&self.state)
                .entries
                .get(offset & !OWN_ENTRY)
                .map_or(ptr::null_mut(), |packed| packed.0.start().cast_mut().cast()),
        }
    }

    /// Key of the weights of a filter that exactly one node uses.
    fn key(&self, raw: &sys::xnn_weights_cache_look_up_key) -> Option<WeightsKey> {
        let state = lock(&self.state);
        let node = state.nodes.get(&raw.kernel.addr())?.as_ref()?.node;
        Some(WeightsKey {
            subgraph: node.subgraph,
            node: node.node,
            seed: raw.seed,
            kernel: raw.kernel.addr(),
            bias: raw.bias.addr(),
        })
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The protected data is consistent after every statement.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Calls a function of the native cache. XNNPACK sets all of them.
fn call<F, T>(function: Option<F>, with: impl FnOnce(F) -> T) -> Option<T> {
    function.map(with)
}

/// Catches panics of a provider, which must not unwind into XNNPACK.
pub(super) fn contain<T>(failure: T, f: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(f)).unwrap_or_else(|panic| {
        log::error!("weights cache provider panicked: {}", message(&*panic));
        failure
    })
}

fn message(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}
