//! Limits on the memory and work that a file may request, in proportion to its size.

use std::collections::HashSet;
use std::fmt;

/// Memory and work that a computation takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    /// Bytes of the tensors that are alive at the same time, of the constants of each operator, and
    /// of the pointers that windows over images need.
    pub bytes: u64,
    /// Multiply-accumulates, or the elements read and written by operators where those are more.
    pub work: u64,
}

/// Limits on what a file may request, by its own size and that of the inputs that the caller
/// resizes: small files have a fixed allowance, larger ones a multiple of their size.
///
/// The defaults accept all known production models.
///
/// ```
/// use xnn_file::{Amplification, Demand};
///
/// let mut limits = Amplification::default();
/// (limits.free_bytes, limits.bytes_per_byte) = (1 << 20, 100);
/// let demand = Demand { bytes: 3 << 20, work: 1000 };
/// assert!(limits.check(1000, demand).is_err()); // allows 1 MiB
/// assert!(limits.check(100_000, demand).is_ok()); // allows 10 MB
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Amplification {
    /// Bytes that a file of any size may request.
    pub free_bytes: u64,
    /// Bytes per byte of the file and its inputs, where that is more than `free_bytes`.
    pub bytes_per_byte: u64,
    /// Work that a file of any size may request in one run.
    pub free_work: u64,
    /// Work per byte of the file and its inputs, where that is more than `free_work`.
    pub work_per_byte: u64,
    /// Bytes of inputs whose shapes the caller has chosen. Shapes that the file states do not
    /// count: the file could state any.
    pub inputs: u64,
}

/// Approximate bytes that a tensor, value, operator or node takes in a file besides its constants.
pub const RECORD_BYTES: u64 = 64;

/// Approximate size in a file of `records` tensors and operators and of their `constants`.
/// Constants at the same address count once.
#[must_use]
pub fn stored_bytes<'data>(records: usize, constants: impl Iterator<Item = &'data [u8]>) -> u64 {
    let mut seen = HashSet::new();
    let distinct = constants.filter(|data| seen.insert(data.as_ptr()));
    let records = (records as u64).saturating_mul(RECORD_BYTES);
    distinct.fold(records, |sum, data| sum.saturating_add(data.len() as u64))
}

/// Number of elements of a shape; saturates. 0 if any dimension is 0.
#[must_use]
pub fn saturating_elements(shape: &[usize]) -> u64 {
    shape.iter().fold(1, |count, &dim| count.saturating_mul(dim as u64))
}

/// A request that exceeds [`Amplification`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Excess {
    /// Quantity that exceeds its limit: [`Excess::MEMORY`] or [`Excess::WORK`].
    pub what: &'static str,
    /// The requested amount.
    pub value: u64,
    /// The allowed amount.
    pub limit: u64,
}

impl Excess {
    /// [`Excess::what`] for memory.
    pub const MEMORY: &'static str = "the memory for tensors in bytes";
    /// [`Excess::what`] for work.
    pub const WORK: &'static str = "the work of a run in multiplications";
}

impl Demand {
    /// The sum of both; saturates.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_add(other.bytes),
            work: self.work.saturating_add(other.work),
        }
    }
}

impl Default for Amplification {
    fn default() -> Self {
        Self {
            free_bytes: 1 << 30,
            bytes_per_byte: 1 << 12,
            free_work: 1 << 37,
            work_per_byte: 1 << 22,
            inputs: 0,
        }
    }
}

impl Amplification {
    /// No limits, for files that have been checked before.
    pub const UNBOUNDED: Self = Self {
        free_bytes: u64::MAX,
        bytes_per_byte: u64::MAX,
        free_work: u64::MAX,
        work_per_byte: u64::MAX,
        inputs: 0,
    };

    /// Memory and work that a file of `size` bytes may request.
    #[must_use]
    pub fn allowed(&self, size: u64) -> Demand {
        let given = size.saturating_add(self.inputs);
        Demand {
            bytes: given.saturating_mul(self.bytes_per_byte).max(self.free_bytes),
            work: given.saturating_mul(self.work_per_byte).max(self.free_work),
        }
    }

    /// Checks what a file of `size` bytes requests.
    ///
    /// # Errors
    /// The first of memory and work that exceeds its limit.
    pub fn check(&self, size: u64, requested: Demand) -> Result<(), Excess> {
        let allowed = self.allowed(size);
        for (what, value, limit) in [
            (Excess::MEMORY, requested.bytes, allowed.bytes),
            (Excess::WORK, requested.work, allowed.work),
        ] {
            if value > limit {
                return Err(Excess { what, value, limit });
            }
        }
        Ok(())
    }
}

impl fmt::Display for Excess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, value, limit } = self;
        write!(f, "{what} is {value}, above the limit of {limit}")
    }
}

impl std::error::Error for Excess {}

/// Peak number of bytes of the values that are alive at the same time.
///
/// Each step is the values that it reads and those that it writes, which are indices into `bytes`. A
/// value is alive from the step that writes it to the last step that reads it. Values in `kept` are
/// alive to the end, and from the beginning unless a step writes them. Values that are neither
/// written nor kept do not count, nor do those that `bytes` lacks.
#[must_use]
pub fn peak_bytes<Values: AsRef<[usize]>>(
    steps: &[[Values; 2]],
    kept: &[usize],
    bytes: &[u64],
) -> u64 {
    let steps = || steps.iter().map(|[reads, writes]| (reads.as_ref(), writes.as_ref()));
    let mut lives = vec![Life::default(); bytes.len()];
    for &value in kept {
        if let Some(life) = lives.get_mut(value) {
            life.is_kept = true;
        }
    }
    for (step, (reads, writes)) in steps().enumerate() {
        for &value in reads.iter().chain(writes) {
            if let Some(life) = lives.get_mut(value) {
                life.last_use = step;
            }
        }
        for &value in writes {
            if let Some(life) = lives.get_mut(value) {
                life.is_written = true;
            }
        }
    }
    let from_the_beginning =
        lives.iter().zip(bytes).filter(|(life, _)| life.is_kept && !life.is_written);
    let mut present = from_the_beginning.fold(0u64, |sum, (_, &bytes)| sum.saturating_add(bytes));
    let mut peak = present;
    for (step, (reads, writes)) in steps().enumerate() {
        let written = writes.iter().filter_map(|&value| bytes.get(value));
        present = written.fold(present, |sum, &bytes| sum.saturating_add(bytes));
        peak = peak.max(present);
        for &value in reads.iter().chain(writes) {
            let Some((life, &bytes)) = lives.get_mut(value).zip(bytes.get(value)) else { continue };
            if life.is_written && !life.is_kept && life.last_use == step {
                present = present.saturating_sub(bytes);
                // A step may read a value twice.
                life.is_written = false;
            }
        }
    }
    peak
}

/// When a value is alive.
#[derive(Clone, Default)]
struct Life {
    is_kept: bool,
    is_written: bool,
    /// The last step that reads or writes it.
    last_use: usize,
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn values_are_alive_until_the_last_step_that_reads_them() {
        let peak =
            |steps: &[[&[usize]; 2]], kept: &[usize]| peak_bytes(steps, kept, &[1, 10, 100, 1000]);
        assert_eq!(peak(&[], &[]), 0);
        assert_eq!(peak(&[], &[2]), 100);
        // A chain from an input.
        assert_eq!(peak(&[[&[0], &[1]], [&[1], &[2]], [&[2], &[3]]], &[0, 3]), 1101);
        // The first value is read again at the end.
        assert_eq!(peak(&[[&[0], &[1]], [&[1], &[2]], [&[2, 1], &[3]]], &[0, 3]), 1111);
        // A value that no step reads.
        assert_eq!(peak(&[[&[0], &[3]], [&[0], &[1]]], &[0, 1]), 1001);
        // A value that one step reads twice, and a constant.
        assert_eq!(peak(&[[&[0, 0, 5], &[1]], [&[1, 1], &[2]]], &[0, 2]), 111);
    }

    #[test]
    fn constants_at_the_same_address_count_once() {
        let data = [0; 100];
        assert_eq!(stored_bytes(0, [].into_iter()), 0);
        let parts = [&data[..40], &data[..40], &data[40..]];
        assert_eq!(stored_bytes(3, parts.into_iter()), 100 + 3 * RECORD_BYTES);
    }

    #[test]
    fn elements_saturate_and_empty_shapes_have_none() {
        assert_eq!(saturating_elements(&[]), 1);
        assert_eq!(saturating_elements(&[2, 3, 4]), 24);
        assert_eq!(saturating_elements(&[usize::MAX, usize::MAX]), u64::MAX);
        assert_eq!(saturating_elements(&[usize::MAX, usize::MAX, 0]), 0);
    }

    #[test]
    fn limits_grow_with_the_file_and_its_inputs() {
        let bounds = Amplification {
            free_bytes: 100,
            bytes_per_byte: 10,
            free_work: 1000,
            work_per_byte: 7,
            inputs: 0,
        };
        let allowed = |size, inputs| {
            let Demand { bytes, work } = Amplification { inputs, ..bounds }.allowed(size);
            (bytes, work)
        };
        assert_eq!(allowed(0, 0), (100, 1000));
        assert_eq!(allowed(10, 0), (100, 1000));
        assert_eq!(allowed(11, 0), (110, 1000));
        assert_eq!(allowed(5, 995), (10_000, 7000));
        assert_eq!(allowed(u64::MAX, 5), (u64::MAX, u64::MAX));
        let check = |bytes, work| bounds.check(11, Demand { bytes, work });
        assert_eq!(check(110, 1000), Ok(()));
        for (bytes, work, value, limit) in [(111, 0, 111, 110), (0, 1001, 1001, 1000)] {
            let excess = check(bytes, work).unwrap_err();
            assert_eq!((excess.value, excess.limit), (value, limit));
            assert!(excess.to_string().contains("above the limit of"));
        }
        let all = Demand { bytes: u64::MAX, work: u64::MAX };
        assert_eq!(Amplification::UNBOUNDED.check(0, all), Ok(()));
        assert_eq!(all.and(all), all);
    }
}
