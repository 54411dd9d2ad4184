//! Limits for model files.

use xnn_file::Amplification;

/// Limits that are enforced while a model is read and run.
///
/// The defaults accept all known production models. Lower them for untrusted files on small
/// machines.
///
/// ```no_run
/// use xnn_model::{Model, ModelLimits};
///
/// # fn main() -> Result<(), xnn_model::Error> {
/// let mut limits = ModelLimits::default();
/// limits.max_tensor_bytes = 64 << 20;
/// let model = Model::open_with("untrusted.tflite", &limits)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelLimits {
    /// Nesting depth of tables. The deepest valid path (sparsity metadata) has 6.
    pub max_depth: usize,
    /// Number of tables in the file, operators and tensors included.
    pub max_tables: usize,
    /// Apparent size as a multiple of the file's size. Guards against tables that reference the
    /// same bytes many times.
    pub max_apparent_factor: usize,
    /// Rank of one tensor.
    pub max_rank: usize,
    /// Size of one tensor in bytes.
    pub max_tensor_bytes: usize,
    /// Number of iterations of one WHILE operator.
    pub max_loop_iterations: u64,
    /// Nesting depth of CALL, IF and WHILE.
    pub max_call_depth: usize,
    /// Memory for tensors and work per run of a subgraph, in proportion to its size.
    pub amplification: Amplification,
    /// Number of associated files.
    pub max_associated_files: usize,
    /// Unpacked size of one associated file in bytes.
    pub max_associated_bytes: u64,
    /// Total unpacked size in bytes of associated files that are read together.
    pub max_associated_total: u64,
}

impl Default for ModelLimits {
    fn default() -> Self {
        Self {
            max_depth: 16,
            max_tables: 1_000_000,
            max_apparent_factor: 4,
            max_rank: 32,
            // 16 GiB, or what 32 bits can address.
            max_tensor_bytes: 1usize.checked_shl(34).unwrap_or(isize::MAX.cast_unsigned()),
            max_loop_iterations: 10_000_000,
            max_call_depth: 16,
            amplification: Amplification::default(),
            max_associated_files: 1000,
            max_associated_bytes: 1 << 28,
            max_associated_total: 1 << 30,
        }
    }
}

impl ModelLimits {
    /// Options of the flatbuffer verifier for a file of `len` bytes.
    pub(crate) fn verifier(&self, len: usize) -> flatbuffers::VerifierOptions {
        flatbuffers::VerifierOptions {
            max_depth: self.max_depth,
            max_tables: self.max_tables,
            max_apparent_size: len.saturating_mul(self.max_apparent_factor).saturating_add(1 << 16),
            ignore_missing_null_terminator: false,
        }
    }
}
