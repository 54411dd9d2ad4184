//! Answers to XNNPACK's calls of a weights cache.

use std::any::Any;
use std::collections::HashMap;
use std::ffi::c_void;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use xnnpack_sys as sys;

use super::offers::Offers;
use super::slab::{Piece, Slab};
use super::{NodeSeed, PackedNode, PackedWeights, WeightsCacheProvider, WeightsKey};
use crate::buffer::{AlignedBuffer, StaticData};
use crate::halves::{Halves, Widened};
use crate::subgraph::Subgraph;

/// Answers XNNPACK's calls.
pub(super) struct Adapter {
    pub(super) backing: Backing,
    pub(super) state: Mutex<State>,
    /// Excludes other creations of runtimes while one goes on.
    pub(super) creation: Mutex<()>,
}

pub(super) enum Backing {
    Native(Native),
    /// [`State::packed`] is all there is; the function is told what has been packed.
    InProcess(Listener),
    Custom(Box<dyn WeightsCacheProvider>),
}

/// What is told of the data that has been packed.
pub(super) type Listener = Box<dyn Fn(&[u8]) + Send + Sync>;

/// While it lives, on the thread that made it, a listener is told.
pub(super) struct Telling<'a> {
    _adapter: &'a Adapter,
    _of_thread: PhantomData<*const ()>,
}

impl Drop for Telling<'_> {
    fn drop(&mut self) {
        // SAFETY: nothing is called any more.
        unsafe { sys::tell_packed(None, ptr::null_mut()) };
    }
}

/// XNNPACK's own cache.
pub(super) struct Native {
    pub(super) raw: sys::xnn_weights_cache_t,
    pub(super) finalized: AtomicBool,
}

// SAFETY: the cache is written to only under the lock of creation, and only read once it is
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

#[derive(Default)]
pub(super) struct State {
    /// Weights that runtimes may use, at the offsets given to XNNPACK.
    entries: Vec<PackedWeights>,
    /// Positions in `entries` by address.
    positions: HashMap<usize, usize>,
    /// Positions in `entries` of weights at filters that several nodes use, by filter, bias and XNNPACK's fingerprint: what
    /// else they depend on, their bytes show.
    shared: HashMap<(usize, usize, u32), Vec<usize>>,
    /// Positions in `entries` of weights that are known to be right.
    pub(super) packed: HashMap<NodeSeed, usize>,
    /// Weights that may be right.
    pub(super) offers: Offers,
    /// Space that XNNPACK is packing into.
    pub(super) reserved: Option<Piece>,
    /// Where that space comes from.
    pub(super) slab: Slab,
    /// Nodes of the runtime that is being created, by the address of their filter.
    pub(super) nodes: HashMap<usize, Option<Filter>>,
    /// Filters of it that are kept in fp16, by their address.
    pub(super) halves: HashMap<usize, Halves>,
    /// The one of them that XNNPACK is packing.
    pub(super) widened: Option<Widened>,
    /// XNNPACK was told "not found" where it does not look at the answer.
    pub(super) failed: bool,
}

/// A node of a subgraph.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeKey {
    pub(crate) subgraph: u64,
    pub(crate) node: usize,
}

/// The constant operand of exactly one node.
pub(crate) struct Filter {
    pub(crate) node: NodeKey,
    pub(crate) data: StaticData,
}

/// Offset that XNNPACK takes for "not there".
const NOT_FOUND: usize = usize::MAX;

/// Marks offsets into [`State::entries`] apart from those of the native cache.
const OWN_ENTRY: usize = 1 << (usize::BITS - 1);

impl Adapter {
    /// XNNPACK's view of an adapter, valid while the adapter lives.
    pub(super) fn provider(this: &Arc<Self>) -> sys::xnn_weights_cache_provider {
        sys::xnn_weights_cache_provider {
            context: Arc::as_ptr(this).cast_mut().cast(),
            look_up: Some(look_up),
            reserve_space: Some(reserve_space),
            look_up_or_insert: Some(look_up_or_insert),
            is_finalized: Some(is_finalized),
            offset_to_addr: Some(offset_to_addr),
            delete_cache: None,
        }
    }

    /// Has the listener told of large weights while they are packed, until what this gives is dropped.
    pub(super) fn telling(&self) -> Option<Telling<'_>> {
        let Backing::InProcess(_) = &self.backing else { return None };
        let context = ptr::from_ref(self).cast_mut().cast();
        // SAFETY: the context is this adapter, which is borrowed until telling ends.
        unsafe { sys::tell_packed(Some(tell_packed), context) };
        Some(Telling { _adapter: self, _of_thread: PhantomData })
    }

    pub(super) fn is_finalized(&self) -> bool {
        match &self.backing {
            Backing::Native(Native { finalized, .. }) => finalized.load(Ordering::Acquire),
            // Entries never move, so that they can be used at once.
            Backing::InProcess(_) | Backing::Custom(_) => true,
        }
    }

    fn look_up(&self, raw: &sys::xnn_weights_cache_look_up_key) -> usize {
        let offset = self.find(raw);
        if offset == NOT_FOUND {
            // XNNPACK is going to read the filter, and no other one.
            let halves = lock(&self.state).halves.get(&raw.kernel.addr()).cloned();
            let widened = halves.map(|halves| halves.widen());
            lock(&self.state).widened = widened;
        }
        offset
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
        match state.offers.claim(key.node_seed()) {
            Some(weights) => state.keep(weights),
            None => NOT_FOUND,
        }
    }

    /// The offset of weights that are known to be right.
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

    fn reserve(&self, size: usize) -> *mut c_void {
        match &self.backing {
            Backing::Native(Native { raw, .. }) => {
                // SAFETY: the native cache is live.
                unsafe { call((**raw).reserve_space, |f| f((**raw).context, size)) }
                    .unwrap_or(ptr::null_mut())
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

    fn insert(
        &self,
        raw: &sys::xnn_weights_cache_look_up_key,
        packed: *mut c_void,
        size: usize,
    ) -> usize {
        // XNNPACK has read what it packed.
        lock(&self.state).widened = None;
        if let Backing::Native(Native { raw: cache, .. }) = &self.backing {
            // SAFETY: the native cache is live; the arguments are XNNPACK's own.
            let offset = unsafe {
                call((**cache).look_up_or_insert, |f| f((**cache).context, raw, packed, size))
            };
            return match offset {
                Some(offset) if offset != NOT_FOUND => offset,
                // A finalized cache does not take other weights, and XNNPACK would go on with
                // the "not found" as if it were an offset.
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
        // Convolutions come here with weights that they have just found too, and depthwise ones of
        // single weights pack before they ask.
        if let Some(offset) = key.and_then(|key| self.known(&key)) {
            return offset;
        }
        let mut state = lock(&self.state);
        let weights = match (key, fresh) {
            (Some(key), None) => state.offers.confirm(key.node_seed(), size),
            (Some(key), Some(fresh)) => Some(state.offers.compare(key.node_seed(), fresh)),
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
            // The weights serve this runtime whether or not the provider takes them.
            (Backing::Custom(provider), Some(key), _) => {
                contain((), || provider.insert(&key, &weights))
            }
            (Backing::InProcess(packed), _, Some(filter)) if was_packed => {
                contain((), || packed(filter.bytes()))
            }
            _ => {}
        }
        offset
    }

    fn address(&self, offset: usize) -> *mut c_void {
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

    /// The key of weights at a filter that exactly one node uses.
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

impl State {
    /// Keeps weights as long as the cache lives, and gives their offset.
    fn keep(&mut self, packed: PackedWeights) -> usize {
        let Self { entries, positions, .. } = self;
        let position = *positions.entry(packed.0.start().addr()).or_insert_with(|| {
            entries.push(packed);
            entries.len() - 1
        });
        position | OWN_ENTRY
    }

    /// Weights at a filter that several nodes use, or the same ones if they have been packed before: every runtime packs
    /// them.
    fn unify(
        &mut self,
        raw: &sys::xnn_weights_cache_look_up_key,
        fresh: PackedWeights,
    ) -> PackedWeights {
        let Self { entries, shared, .. } = self;
        let positions = shared.entry((raw.kernel.addr(), raw.bias.addr(), raw.seed)).or_default();
        let known = positions.iter().filter_map(|&position| entries.get(position));
        if let Some(known) = known.into_iter().find(|known| known.bytes() == fresh.bytes()) {
            return known.clone();
        }
        // `keep` puts them there.
        positions.push(entries.len());
        fresh
    }

    /// The weights of a subgraph's nodes.
    pub(super) fn packed_of(&self, subgraph: u64) -> Vec<PackedNode> {
        let mut nodes: Vec<PackedNode> = self
            .packed
            .iter()
            .filter(|(at, _)| at.subgraph == subgraph)
            .filter_map(|(at, &position)| {
                let weights = self.entries.get(position)?.clone();
                Some(PackedNode { node: at.node, seed: at.seed, weights })
            })
            .collect();
        nodes.sort_by_key(|packed| (packed.node, packed.seed));
        nodes
    }

    /// Whether XNNPACK will read no more than there is of the weights that it was told to use
    /// before it told their size; `packed_size` asks it.
    pub(super) fn settle_claims(&mut self, packed_size: impl Fn(NodeSeed) -> Option<usize>) {
        for at in self.offers.claimed() {
            let size = packed_size(at);
            let weights = size.and_then(|size| self.offers.confirm(at, size));
            if let Some(weights) = weights {
                let position = self.keep(weights) & !OWN_ENTRY;
                self.packed.insert(at, position);
            } else {
                self.failed = true;
            }
        }
    }

    /// Forgets what was kept since there were `count` entries.
    pub(super) fn truncate(&mut self, count: usize) {
        self.entries.truncate(count);
        self.positions.retain(|_, position| *position < count);
        self.packed.retain(|_, position| *position < count);
        self.shared.values_mut().for_each(|positions| positions.retain(|&at| at < count));
    }

    /// Prepares for the weights of a runtime of `subgraph`, most of which are there if another one has been
    /// created or offers have been made.
    pub(super) fn expect(&mut self, subgraph: &Subgraph) {
        let token = subgraph.token();
        let is_new =
            !self.packed.keys().any(|at| at.subgraph == token) && !self.offers.are_for(token);
        self.slab.expect(if is_new { subgraph.static_bytes() } else { 0 });
    }

    /// Number of weights kept.
    pub(super) fn count(&self) -> usize {
        self.entries.len()
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What the locks protect is consistent between any two statements.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Calls a function of the native cache, all of which are there.
fn call<F, T>(function: Option<F>, with: impl FnOnce(F) -> T) -> Option<T> {
    function.map(with)
}

/// Runs a callback; a panic of the provider counts as failure.
///
/// # Safety
/// `context` must be the one that [`Adapter::provider`] set, of a live cache.
unsafe fn guarded<T>(context: *mut c_void, failure: T, f: impl FnOnce(&Adapter) -> T) -> T {
    // SAFETY: the caller vouches for the context.
    let adapter = unsafe { &*context.cast::<Adapter>() };
    contain(failure, || f(adapter))
}

/// Keeps panics of a provider away from XNNPACK.
fn contain<T>(failure: T, f: impl FnOnce() -> T) -> T {
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

unsafe extern "C" fn look_up(
    context: *mut c_void,
    key: *const sys::xnn_weights_cache_look_up_key,
) -> usize {
    // SAFETY: XNNPACK passes the context that it was given and a valid key.
    unsafe { guarded(context, NOT_FOUND, |adapter| adapter.look_up(&*key)) }
}

unsafe extern "C" fn reserve_space(context: *mut c_void, n: usize) -> *mut c_void {
    // SAFETY: XNNPACK passes the context that it was given.
    unsafe { guarded(context, ptr::null_mut(), |adapter| adapter.reserve(n)) }
}

unsafe extern "C" fn look_up_or_insert(
    context: *mut c_void,
    key: *const sys::xnn_weights_cache_look_up_key,
    packed: *mut c_void,
    size: usize,
) -> usize {
    // SAFETY: XNNPACK passes the context that it was given and a valid key.
    unsafe { guarded(context, NOT_FOUND, |adapter| adapter.insert(&*key, packed, size)) }
}

unsafe extern "C" fn is_finalized(context: *mut c_void) -> bool {
    // SAFETY: XNNPACK passes the context that it was given.
    unsafe { guarded(context, false, Adapter::is_finalized) }
}

unsafe extern "C" fn offset_to_addr(context: *mut c_void, offset: usize) -> *mut c_void {
    // SAFETY: XNNPACK passes the context that it was given.
    unsafe { guarded(context, ptr::null_mut(), |adapter| adapter.address(offset)) }
}

unsafe extern "C" fn tell_packed(context: *mut c_void, weights: *const c_void, size: usize) {
    // SAFETY: the context is the one of `Adapter::telling`, and XNNPACK has just read so many bytes of a filter, which its
    // subgraph keeps.
    unsafe {
        guarded(context, (), |adapter| {
            if let Backing::InProcess(packed) = &adapter.backing {
                packed(std::slice::from_raw_parts(weights.cast(), size));
            }
        });
    }
}
