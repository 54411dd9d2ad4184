//! Checks for available memory before large allocations.

use std::borrow::Cow;
use std::{fmt, io};

/// Bytes left for the small allocations besides a large one. The process aborts if those fail.
const HEADROOM: usize = 4 << 20;

/// Memory is exhausted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutOfMemory {
    /// Purpose of the memory, as a noun phrase.
    pub what: Cow<'static, str>,
    /// Requested bytes, where known.
    pub bytes: Option<u64>,
}

impl OutOfMemory {
    /// The error of a failed request for `bytes`.
    #[must_use]
    pub fn new(what: impl Into<Cow<'static, str>>, bytes: usize) -> Self {
        Self { what: what.into(), bytes: Some(bytes as u64) }
    }
}

impl fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self { what, bytes: Some(bytes) } => {
                write!(f, "out of memory: cannot allocate {bytes} bytes for {what}")
            }
            Self { what, bytes: None } => {
                write!(f, "out of memory: cannot allocate memory for {what}")
            }
        }
    }
}

impl std::error::Error for OutOfMemory {}

impl From<OutOfMemory> for io::Error {
    fn from(exhausted: OutOfMemory) -> Self {
        Self::new(io::ErrorKind::OutOfMemory, exhausted)
    }
}

/// Checks that `bytes` can be allocated, before work that allocates them piece by piece and cannot
/// report a failure. Allocates nothing.
///
/// # Errors
/// The memory cannot be allocated, or would leave no headroom for small allocations.
pub fn ensure(bytes: usize, what: impl Into<Cow<'static, str>>) -> Result<(), OutOfMemory> {
    match can_allocate(bytes.saturating_add(HEADROOM)) {
        true => Ok(()),
        false => Err(OutOfMemory::new(what, bytes)),
    }
}

/// Untouched pages take no memory. A request to the allocator would change its later behaviour.
#[cfg(any(unix, windows))]
fn can_allocate(bytes: usize) -> bool {
    memmap2::MmapMut::map_anon(bytes).is_ok()
}

/// Other systems have nothing but the allocator.
#[cfg(not(any(unix, windows)))]
fn can_allocate(bytes: usize) -> bool {
    Vec::<u8>::new().try_reserve_exact(bytes).is_ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn only_available_memory_is_granted() {
        assert_eq!(ensure(0, "nothing"), Ok(()));
        assert_eq!(ensure(1 << 20, "a little"), Ok(()));
        for bytes in [usize::MAX, isize::MAX as usize, 1 << 62] {
            let error = ensure(bytes, "too much").unwrap_err();
            assert_eq!(error, OutOfMemory::new("too much", bytes));
            let message = error.to_string();
            assert!(message.contains(&bytes.to_string()) && message.ends_with("for too much"));
        }
    }
}
