//! C functions through which XNNPACK uses a weights cache.

use std::ffi::c_void;
use std::marker::PhantomData;
use std::ptr;
use std::sync::Arc;

use xnnpack_sys as sys;

use super::adapter::{Adapter, Backing, NOT_FOUND, contain};

/// While it lives, the listener is told which parts of large weights have been packed on this
/// thread.
pub(super) struct Telling<'a> {
    _adapter: &'a Adapter,
    _of_thread: PhantomData<*const ()>,
}

impl Drop for Telling<'_> {
    fn drop(&mut self) {
        // SAFETY: this removes the callback.
        unsafe { sys::tell_packed(None, ptr::null_mut()) };
    }
}

impl Adapter {
    /// XNNPACK's interface to an adapter, valid while the adapter lives.
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

    /// Tells the listener about large weights while they are packed, until the returned guard is
    /// dropped.
    pub(super) fn telling(&self) -> Option<Telling<'_>> {
        let Backing::InProcess(_) = &self.backing else { return None };
        let context = ptr::from_ref(self).cast_mut().cast();
        // SAFETY: the context is this adapter, which the guard borrows.
        unsafe { sys::tell_packed(Some(tell_packed), context) };
        Some(Telling { _adapter: self, _of_thread: PhantomData })
    }
}

/// Runs a callback, and returns `failure` if the provider panics.
///
/// # Safety
/// `context` must be the one that [`Adapter::provider`] has set, of a live cache.
unsafe fn guarded<T>(context: *mut c_void, failure: T, f: impl FnOnce(&Adapter) -> T) -> T {
    // SAFETY: guaranteed by the caller.
    let adapter = unsafe { &*context.cast::<Adapter>() };
    contain(failure, || f(adapter))
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
    // SAFETY: the context is the one of `Adapter::telling`, and XNNPACK has just read `size` bytes
    // of a filter, which its subgraph keeps alive.
    unsafe {
        guarded(context, (), |adapter| {
            adapter.tell_read(std::slice::from_raw_parts(weights.cast(), size));
        });
    }
}
