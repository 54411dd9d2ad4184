//! Bounds on what a graph may ask for.

use xnn_file::Amplification;

use crate::error::{ErrorKind, Result};

/// Most dimensions of a value, XNNPACK's `XNN_MAX_TENSOR_DIMS`.
pub const MAX_RANK: usize = 6;

/// Bounds that are enforced before a graph is believed.
///
/// The defaults let every graph through that is known to be used; lower them
/// for files from strangers on small machines.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GraphLimits {
    /// Nesting of tables. The deepest legal path (graph, value, union,
    /// tensor) has 4.
    pub max_depth: usize,
    /// Tables in the flatbuffer; a value or node takes two to four.
    pub max_tables: usize,
    /// Apparent bytes as a multiple of the flatbuffer's size: guards against
    /// tables that point many times at the same bytes.
    pub max_apparent_factor: usize,
    /// External values, the same bound as ExecuTorch's.
    pub max_externals: usize,
    /// Bytes of one value, and of the pointers into one image that windows over it need.
    pub max_value_bytes: usize,
    /// Bytes of the scales of all values together, as floats, those that values share counted for
    /// each. A flatbuffer, which may hold them, must stay under 2 GB.
    pub max_scale_bytes: usize,
    /// What a file may ask for by its size: memory for its values, and work of a run.
    pub amplification: Amplification,
}

impl Default for GraphLimits {
    fn default() -> Self {
        Self {
            max_depth: 8,
            max_tables: 200_000,
            max_apparent_factor: 16,
            max_externals: 4096,
            max_value_bytes: 1 << 34,
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

/// Refuses `value` above `limit`.
pub(crate) fn at_most(what: &'static str, value: usize, limit: usize) -> Result<()> {
    if value > limit {
        return Err(ErrorKind::Limit { what, value: value as u64, limit: limit as u64 }.into());
    }
    Ok(())
}
