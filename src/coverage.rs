//! Number of delegated operators of a model.

use std::fmt;

/// Number of delegated operators of a model, and of its partitions.
///
/// ```
/// use xnn_delegate::Runner;
///
/// # fn main() -> Result<(), xnn_delegate::Error> {
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/models/digits_mobilenet_v2_fp32.tflite");
/// let coverage = Runner::open(path)?.coverage();
/// assert!(coverage.is_whole() && coverage.partitions == 1);
/// println!("{coverage}"); // 65 of 65 operators run on XNNPACK, in 1 partition
/// # Ok(()) }
/// ```
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
