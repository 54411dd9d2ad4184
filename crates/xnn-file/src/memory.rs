//! Memory that files ask for, and that there may not be.

use std::borrow::Cow;
use std::{fmt, io};

use memmap2::MmapMut;

/// What stays free for the small allocations beside a large one, which end the process where they fail.
const HEADROOM: usize = 4 << 20;

/// Memory is exhausted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutOfMemory {
    /// What it was for.
    pub what: Cow<'static, str>,
    /// How many bytes were asked for, where that is known.
    pub bytes: Option<u64>,
}

impl OutOfMemory {
    /// There are not so many bytes for this.
    #[must_use]
    pub fn new(what: impl Into<Cow<'static, str>>, bytes: usize) -> Self {
        Self { what: what.into(), bytes: Some(bytes as u64) }
    }
}

impl fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self { what, bytes: Some(bytes) } => {
                write!(f, "out of memory: there are no {bytes} bytes for {what}")
            }
            Self { what, bytes: None } => write!(f, "out of memory: there is none for {what}"),
        }
    }
}

impl std::error::Error for OutOfMemory {}

impl From<OutOfMemory> for io::Error {
    fn from(exhausted: OutOfMemory) -> Self {
        Self::new(io::ErrorKind::OutOfMemory, exhausted)
    }
}

/// Makes sure that so much memory can be had, for work that takes it piece by piece and cannot fail on the way.
///
/// # Errors
/// It cannot, or nothing would be left for what is small.
pub fn ensure(bytes: usize, what: impl Into<Cow<'static, str>>) -> Result<(), OutOfMemory> {
    // Pages that nothing touches take none. The allocator, asked for them, would keep other things differently afterwards.
    match MmapMut::map_anon(bytes.saturating_add(HEADROOM)) {
        Ok(_) => Ok(()),
        Err(_) => Err(OutOfMemory::new(what, bytes)),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn what_there_is_can_be_had() {
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
