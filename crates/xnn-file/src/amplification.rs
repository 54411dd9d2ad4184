//! How much a file may ask for, by its size.

use std::collections::{HashMap, HashSet};
use std::fmt;

/// What computing something takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    /// Bytes of the tensors that are there at once, of the constants of each operator, and of the pointers that windows over
    /// images need.
    pub bytes: u64,
    /// Multiply-accumulates, or elements where an operator reads or writes more of them.
    pub work: u64,
}

/// Bounds on what a file asks for, by its own size and that of the inputs that a caller gives it: a small file may ask for
/// little, a large one for a multiple of its size.
///
/// The defaults let every model through that is known to be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Amplification {
    /// Bytes that any file may ask for.
    pub free_bytes: u64,
    /// Bytes for each byte of the file and its inputs, where that is more.
    pub bytes_per_byte: u64,
    /// Work that any file may ask for in one run.
    pub free_work: u64,
    /// Work for each byte of the file and its inputs, where that is more.
    pub work_per_byte: u64,
    /// Bytes of inputs whose sizes a caller has chosen. Sizes in the file say nothing of what is there.
    pub inputs: u64,
}

/// A file asks for more than [`Amplification`] allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Excess {
    /// What is too much.
    pub what: &'static str,
    /// What the file asks for.
    pub value: u64,
    /// What is allowed.
    pub limit: u64,
}

impl Excess {
    /// [`Excess::what`] of memory.
    pub const MEMORY: &'static str = "the memory for tensors in bytes";
    /// [`Excess::what`] of work.
    pub const WORK: &'static str = "the work of a run in multiplications";
}

impl Demand {
    /// Both together.
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
    /// Bounds that nothing exceeds: for what has been checked before.
    pub const UNBOUNDED: Self = Self {
        free_bytes: u64::MAX,
        bytes_per_byte: u64::MAX,
        free_work: u64::MAX,
        work_per_byte: u64::MAX,
        inputs: 0,
    };

    /// What a file of `size` bytes may ask for.
    #[must_use]
    pub fn allowed(&self, size: u64) -> Demand {
        let given = size.saturating_add(self.inputs);
        Demand {
            bytes: given.saturating_mul(self.bytes_per_byte).max(self.free_bytes),
            work: given.saturating_mul(self.work_per_byte).max(self.free_work),
        }
    }

    /// Refuses a file of `size` bytes that asks for more than it may.
    ///
    /// # Errors
    /// The first of memory and work that is too much.
    pub fn check(&self, size: u64, asked: Demand) -> Result<(), Excess> {
        let allowed = self.allowed(size);
        for (what, value, limit) in
            [(Excess::MEMORY, asked.bytes, allowed.bytes), (Excess::WORK, asked.work, allowed.work)]
        {
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

/// Most bytes of values that are there at once.
///
/// A step reads and writes values; a value is there from the step that writes it until the last that reads it, and
/// those that are `kept` from the beginning, or from the step that writes them, until the end. Values that are neither written nor kept count for nothing.
#[must_use]
pub fn most_at_once(
    steps: &[(Vec<usize>, Vec<usize>)],
    kept: &[usize],
    bytes: impl Fn(usize) -> u64,
) -> u64 {
    let mut last_use: HashMap<usize, usize> = HashMap::new();
    let mut written: HashSet<usize> = HashSet::new();
    for (step, (reads, writes)) in steps.iter().enumerate() {
        last_use.extend(reads.iter().chain(writes).map(|&value| (value, step)));
        written.extend(writes);
    }
    let kept: HashSet<usize> = kept.iter().copied().collect();
    let mut ends: HashMap<usize, Vec<usize>> = HashMap::new();
    for &value in written.difference(&kept) {
        if let Some(&step) = last_use.get(&value) {
            ends.entry(step).or_default().push(value);
        }
    }
    let sum = |values: &mut dyn Iterator<Item = usize>| {
        values.fold(0u64, |sum, value| sum.saturating_add(bytes(value)))
    };
    let mut present = sum(&mut kept.difference(&written).copied());
    let mut most = present;
    for (step, (_, writes)) in steps.iter().enumerate() {
        present = present.saturating_add(sum(&mut writes.iter().copied()));
        most = most.max(present);
        let ended = ends.get(&step).map_or(&[][..], Vec::as_slice);
        present = present.saturating_sub(sum(&mut ended.iter().copied()));
    }
    most
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn values_are_there_until_the_last_step_that_reads_them() {
        let most = |steps: &[(&[usize], &[usize])], kept: &[usize]| {
            let steps: Vec<_> = steps.iter().map(|(r, w)| (r.to_vec(), w.to_vec())).collect();
            most_at_once(&steps, kept, |value| 10u64.pow(value as u32))
        };
        assert_eq!(most(&[], &[]), 0);
        assert_eq!(most(&[], &[2]), 100);
        // In a row: an input, and one value after the other.
        assert_eq!(most(&[(&[0], &[1]), (&[1], &[2]), (&[2], &[3])], &[0, 3]), 1101);
        // The first one is read again at the end.
        assert_eq!(most(&[(&[0], &[1]), (&[1], &[2]), (&[2, 1], &[3])], &[0, 3]), 1111);
        // Nobody reads it.
        assert_eq!(most(&[(&[0], &[3]), (&[0], &[1])], &[0, 1]), 1001);
        // Twice, and constants.
        assert_eq!(most(&[(&[0, 0, 5], &[1]), (&[1, 1], &[2])], &[0, 2]), 111);
    }

    #[test]
    fn what_a_file_may_ask_for_grows_with_it_and_its_inputs() {
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
