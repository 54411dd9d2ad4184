//! Limits for graphs.

use xnn_file::Amplification;

use crate::error::{ErrorKind, Result};

/// Maximum rank of a value, XNNPACK's `XNN_MAX_TENSOR_DIMS`.
pub const MAX_RANK: usize = 6;

/// Limits that are enforced while a graph is read and checked.
///
/// The defaults accept all known production graphs. Lower them for untrusted files on small
/// machines.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GraphLimits {
    /// Nesting depth of tables. The deepest valid path (graph, value, union, tensor) has 4.
    pub max_depth: usize,
    /// Number of tables in the flatbuffer. A value or node takes two to four.
    pub max_tables: usize,
    /// Apparent size as a multiple of the flatbuffer's size. Guards against tables that reference
    /// the same bytes many times.
    pub max_apparent_factor: usize,
    /// Number of external values; ExecuTorch has the same limit.
    pub max_externals: usize,
    /// Size in bytes of one value, and of the indirection pointers of one node.
    pub max_value_bytes: usize,
    /// Total size in bytes of the scales of all values as fp32; shared scales count for each value.
    /// The scales are stored in the flatbuffer, which must stay below 2 GB.
    pub max_scale_bytes: usize,
    /// Memory for values and work per run, in proportion to the size of the file.
    pub amplification: Amplification,
}

impl Default for GraphLimits {
    fn default() -> Self {
        Self {
            max_depth: 8,
            max_tables: 200_000,
            max_apparent_factor: 16,
            max_externals: 4096,
            // 16 GiB, or what 32 bits can address.
            max_value_bytes: 1usize.checked_shl(34).unwrap_or(isize::MAX.cast_unsigned()),
            max_scale_bytes: 1 << 30,
            amplification: Amplification::default(),
        }
    }
}

impl GraphLimits {
    pub(crate) fn verifier(&self, size: usize) -> flatbuffers::VerifierOptions {
        flatbuffers::VerifierOptions {
            max_depth: self.max_depth,
            max_tables: self.max_tables,
            max_apparent_size: size.saturating_mul(self.max_apparent_factor),
            ignore_missing_null_terminator: false,
        }
    }
}

/// Refuses a `value` above the `limit`.
pub(crate) fn at_most(what: &'static str, value: usize, limit: usize) -> Result<()> {
    if value > limit {
        return Err(ErrorKind::Limit { what, value: value as u64, limit: limit as u64 }.into());
    }
    Ok(())
}
