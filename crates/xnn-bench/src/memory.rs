//! This process's memory, as Linux counts it.

use std::fs;

use anyhow::{Context, Result};

use crate::protocol::Memory;

/// Resident memory at some moment, from which growth is counted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Base(u64);

impl Base {
    /// Returns the current resident memory, and resets its peak.
    ///
    /// # Errors
    /// The system does not report or reset the memory.
    pub(crate) fn now() -> Result<Self> {
        fs::write("/proc/self/clear_refs", "5").context("cannot reset the peak of memory")?;
        status("VmRSS:").map(Self)
    }

    /// Returns the growth of resident memory since this base.
    ///
    /// # Errors
    /// The system does not report the memory.
    pub(crate) fn growth(self) -> Result<Memory> {
        Ok(Memory {
            steady: status("VmRSS:")?.saturating_sub(self.0),
            peak: status("VmHWM:")?.saturating_sub(self.0),
        })
    }
}

/// Bytes.
fn status(field: &str) -> Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(field)).context("no such field")?;
    let kib: u64 = line.trim().trim_end_matches("kB").trim().parse()?;
    kib.checked_mul(1024).context("no size of memory")
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;

    use super::*;

    #[test]
    fn touched_memory_counts() -> Result<()> {
        const MANY: usize = 64 << 20;
        let base = Base::now()?;
        let touched = black_box(vec![1u8; MANY]);
        let with = base.growth()?;
        assert!(with.steady >= touched.len() as u64 / 2, "{with:?}");
        drop(black_box(touched));
        let without = base.growth()?;
        assert!(without.steady < MANY as u64 / 2, "{without:?}");
        // The system counts in steps.
        assert!(without.peak >= MANY as u64 / 2, "{without:?}");
        Ok(())
    }
}
