//! Packed weights, kept once for several runtimes.

use std::any::Any;
use std::collections::HashMap;
use std::ffi::c_void;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use xnnpack_sys as sys;

use crate::buffer::{ALIGNMENT, AlignedBuffer, EXTRA_BYTES, StaticData};
use crate::status::{Error, Result, Status, check, initialize};

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

/// Answers XNNPACK's calls.
struct Adapter {
    backing: Backing,
    state: Mutex<State>,
    /// Excludes other creations of runtimes while one goes on.
    creation: Mutex<()>,
}

enum Backing {
    Native(Native),
    Custom(Box<dyn WeightsCacheProvider>),
}

/// XNNPACK's own cache.
struct Native {
    raw: sys::xnn_weights_cache_t,
    finalized: AtomicBool,
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
struct State {
    /// Weights that runtimes may use, at the offsets given to XNNPACK.
    entries: Vec<PackedWeights>,
    /// Positions in `entries` by address.
    positions: HashMap<usize, usize>,
    /// Space that XNNPACK is packing into.
    reserved: Option<AlignedBuffer>,
    /// Nodes of the runtime that is being created, by the address of their filter.
    nodes: HashMap<usize, Option<NodeKey>>,
    /// XNNPACK was told "not found" where it does not look at the answer.
    failed: bool,
}

/// A node of a subgraph.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeKey {
    pub(crate) subgraph: u32,
    pub(crate) node: usize,
}

/// Offset that XNNPACK takes for "not there".
const NOT_FOUND: usize = usize::MAX;

/// Marks offsets into [`State::entries`] apart from those of the native cache.
const OWN_ENTRY: usize = 1 << (usize::BITS - 1);

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
        let provider = Box::new(sys::xnn_weights_cache_provider {
            context: Arc::as_ptr(&adapter).cast_mut().cast(),
            look_up: Some(look_up),
            reserve_space: Some(reserve_space),
            look_up_or_insert: Some(look_up_or_insert),
            is_finalized: Some(is_finalized),
            offset_to_addr: Some(offset_to_addr),
            delete_cache: None,
        });
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

impl Adapter {
    fn is_finalized(&self) -> bool {
        match &self.backing {
            Backing::Native(Native { finalized, .. }) => finalized.load(Ordering::Acquire),
            // Entries never move, so that they can be used at once.
            Backing::Custom(_) => true,
        }
    }

    fn look_up(&self, raw: &sys::xnn_weights_cache_look_up_key) -> usize {
        let Backing::Custom(provider) = &self.backing else { return NOT_FOUND };
        let Some(key) = self.key(raw) else { return NOT_FOUND };
        match provider.look_up(&key) {
            Some(packed) => self.keep(packed),
            None => NOT_FOUND,
        }
    }

    fn reserve(&self, size: usize) -> *mut c_void {
        match &self.backing {
            Backing::Native(Native { raw, .. }) => {
                // SAFETY: the native cache is live.
                unsafe { call((**raw).reserve_space, |f| f((**raw).context, size)) }
                    .unwrap_or(ptr::null_mut())
            }
            Backing::Custom(_) => {
                let mut state = lock(&self.state);
                let buffer = state.reserved.insert(AlignedBuffer::new(size));
                buffer.as_mut_slice().as_mut_ptr().cast()
            }
        }
    }

    fn insert(
        &self,
        raw: &sys::xnn_weights_cache_look_up_key,
        packed: *mut c_void,
        size: usize,
    ) -> usize {
        match &self.backing {
            Backing::Native(Native { raw: cache, .. }) => {
                // SAFETY: the native cache is live; the arguments are XNNPACK's own.
                let offset = unsafe {
                    call((**cache).look_up_or_insert, |f| f((**cache).context, raw, packed, size))
                };
                match offset {
                    Some(offset) if offset != NOT_FOUND => offset,
                    // A finalized cache does not take other weights, and XNNPACK would go on with
                    // the "not found" as if it were an offset.
                    _ => {
                        // SAFETY: XNNPACK has just written `size` bytes there.
                        let bytes = unsafe { std::slice::from_raw_parts(packed.cast(), size) };
                        self.keep(PackedWeights(AlignedBuffer::copy_of(bytes).into()))
                    }
                }
            }
            Backing::Custom(provider) => {
                let reserved = lock(&self.state).reserved.take();
                let key = self.key(raw);
                // Convolutions come here with weights that they have just found too, and depthwise
                // ones pack before they ask.
                let known = key.and_then(|key| contain(None, || provider.look_up(&key)));
                if let Some(weights) = known {
                    return self.keep(weights);
                }
                let weights = reserved.map(|buffer| PackedWeights(buffer.into()));
                let Some(weights) = weights else {
                    lock(&self.state).failed = true;
                    return NOT_FOUND;
                };
                if let Some(key) = key {
                    // The weights serve this runtime whether or not the provider takes them.
                    contain((), || provider.insert(&key, &weights));
                }
                self.keep(weights)
            }
        }
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

    /// Keeps weights as long as the cache lives.
    fn keep(&self, packed: PackedWeights) -> usize {
        let mut guard = lock(&self.state);
        let State { entries, positions, .. } = &mut *guard;
        let position = *positions.entry(packed.0.start().addr()).or_insert_with(|| {
            entries.push(packed);
            entries.len() - 1
        });
        position | OWN_ENTRY
    }

    /// The key of weights at a filter that exactly one node uses.
    fn key(&self, raw: &sys::xnn_weights_cache_look_up_key) -> Option<WeightsKey> {
        let node = lock(&self.state).nodes.get(&raw.kernel.addr()).copied().flatten()?;
        Some(WeightsKey {
            subgraph: node.subgraph,
            node: node.node,
            seed: raw.seed,
            kernel: raw.kernel.addr(),
            bias: raw.bias.addr(),
        })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
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
/// `context` must be the one that [`WeightsCache::with`] set, of a live cache.
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
