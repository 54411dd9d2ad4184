//! Number of delegated operators of a model.

use std::fmt;

/// Number of delegated operators of a model, and of its partitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coverage {
    /// Operators that run on XNNPACK.
    pub delegated: usize,
    /// All operators; for a blob, its nodes.
    pub operators: usize,
    /// XNNPACK graphs that hold the delegated operators.
    pub partitions: usize,
    /// Further operators that may be delegated during a run, when their shapes are known.
    pub deferred: usize,
}

impl Coverage {
    /// Whether all operators run on XNNPACK.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.delegated == self.operators
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { delegated, operators, partitions, deferred } = self;
        let s = if *partitions == 1 { "" } else { "s" };
        write!(
            f,
            "{delegated} of {operators} operators run on XNNPACK, in {partitions} partition{s}"
        )?;
        match deferred {
            0 => Ok(()),
            1 => write!(f, ", and 1 more when its shape is known"),
            _ => write!(f, ", and {deferred} more when their shapes are known"),
        }
    }
}
