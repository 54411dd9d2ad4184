//! Process-wide registry of values that are kept alive elsewhere.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use xnn_runtime::{Program, WeakProgram};

/// Weak references to values, by key.
pub(crate) struct Registry<K, W>(Mutex<Vec<(K, W)>>);

/// A reference that does not keep its value alive.
pub(crate) trait WeakReference {
    type Strong;

    fn upgrade(&self) -> Option<Self::Strong>;
}

impl<T> WeakReference for Weak<T> {
    type Strong = Arc<T>;

    fn upgrade(&self) -> Option<Self::Strong> {
        self.upgrade()
    }
}

impl WeakReference for WeakProgram {
    type Strong = Program;

    fn upgrade(&self) -> Option<Program> {
        self.upgrade()
    }
}

impl<K: PartialEq, W: WeakReference> Registry<K, W> {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    /// Returns the first value with this key that `fits`.
    pub(crate) fn find(&self, key: &K, fits: impl Fn(&W::Strong) -> bool) -> Option<W::Strong> {
        // `fits` may be slow, so it runs without the lock.
        let candidates: Vec<W::Strong> = with_key(&self.lock(), key).collect();
        candidates.into_iter().find(fits)
    }

    /// Adds a value.
    pub(crate) fn keep(&self, key: K, value: W) {
        keep(&mut self.lock(), key, value);
    }

    /// Returns the value with this key, or creates it. Concurrent calls create one value.
    pub(crate) fn find_or_make(
        &self,
        key: K,
        make: impl FnOnce() -> Option<(W::Strong, W)>,
    ) -> Option<W::Strong> {
        let mut values = self.lock();
        let found = with_key(&values, &key).next();
        found.or_else(|| {
            let (value, weak) = make()?;
            keep(&mut values, key, weak);
            Some(value)
        })
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(K, W)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn with_key<'a, K: PartialEq, W: WeakReference>(
    values: &'a [(K, W)],
    key: &'a K,
) -> impl Iterator<Item = W::Strong> + 'a {
    values.iter().filter(move |(known, _)| known == key).filter_map(|(_, value)| value.upgrade())
}

/// Adds a value, and removes those that are no longer alive.
fn keep<K, W: WeakReference>(values: &mut Vec<(K, W)>, key: K, value: W) {
    values.retain(|(_, value)| value.upgrade().is_some());
    values.push((key, value));
}
