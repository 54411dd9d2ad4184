//! Delegates of this library. They hold settings: the interpreter delegates to XNNPACK anyway.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::path::PathBuf;
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use xnn_tflite_abi::{ERROR, TfLiteContext, TfLiteDelegate, TfLiteStatus};

/// Why an interpreter rejects other delegates.
pub(crate) const REFUSAL: &str = "a delegate of another library cannot run in this one, which delegates to XNNPACK itself; remove \
     it from the options, or create it with TfLiteXNNPackDelegateCreate";

/// Settings of a delegate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Settings {
    pub threads: Option<usize>,
    pub cache_dir: Option<PathBuf>,
}

impl Settings {
    /// Settings of several delegates: the first that has one decides.
    pub(crate) fn or(self, other: Self) -> Self {
        Self {
            threads: self.threads.or(other.threads),
            cache_dir: self.cache_dir.or(other.cache_dir),
        }
    }
}

/// Settings of live delegates by address.
static LIVE: Mutex<BTreeMap<usize, Settings>> = Mutex::new(BTreeMap::new());

fn live() -> MutexGuard<'static, BTreeMap<usize, Settings>> {
    LIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Settings of a delegate; `None` unless it is a live one of this library.
pub(crate) fn settings(address: usize) -> Option<Settings> {
    live().get(&address).cloned()
}

/// Creates a delegate with settings.
pub(crate) fn create(settings: Settings) -> *mut TfLiteDelegate {
    let delegate = Box::into_raw(Box::new(plain(ptr::null_mut())));
    live().insert(delegate.addr(), settings);
    delegate
}

/// Destroys a delegate of this library. Others are ignored.
pub(crate) fn delete(delegate: *mut TfLiteDelegate) {
    if live().remove(&delegate.addr()).is_some() {
        // SAFETY: a delegate that was live came from a box, and is no longer listed.
        drop(unsafe { Box::from_raw(delegate) });
    }
}

/// A delegate without functions, except for one that rejects other interpreters.
pub(crate) fn plain(data: *mut c_void) -> TfLiteDelegate {
    TfLiteDelegate {
        data,
        prepare: Some(prepare),
        copy_from_buffer_handle: ptr::null_mut(),
        copy_to_buffer_handle: ptr::null_mut(),
        free_buffer_handle: ptr::null_mut(),
        flags: 0,
        opaque_delegate_builder: ptr::null_mut(),
    }
}

/// Called by an interpreter of another library.
unsafe extern "C" fn prepare(_: *mut TfLiteContext, _: *mut TfLiteDelegate) -> TfLiteStatus {
    ERROR
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_live_delegates_have_settings() {
        let settings_of = |threads| Settings { threads, cache_dir: None };
        let delegate = create(settings_of(Some(3)));
        assert_eq!(settings(delegate.addr()), Some(settings_of(Some(3))));
        delete(delegate);
        assert_eq!(settings(delegate.addr()), None);
        delete(delegate);
        delete(ptr::null_mut());
        let mut foreign = plain(ptr::null_mut());
        delete(&raw mut foreign);
        assert_eq!(settings((&raw const foreign).addr()), None);
        assert_eq!(settings_of(None).or(settings_of(Some(2))), settings_of(Some(2)));
        assert_eq!(settings_of(Some(1)).or(settings_of(Some(2))), settings_of(Some(1)));
    }
}
