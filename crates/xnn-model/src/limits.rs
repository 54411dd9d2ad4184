//! Bounds on what a model file may ask for.

use xnn_file::Amplification;

/// Bounds that a reader enforces before it believes a file.
///
/// The defaults let every model through that is known to be used; lower them
/// for files from strangers on small machines.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelLimits {
    /// Nesting of tables. The deepest legal path (sparsity metadata) has 6.
    pub max_depth: usize,
    /// Tables in the file, operators and tensors included.
    pub max_tables: usize,
    /// Apparent bytes as a multiple of the file's size: guards against tables
    /// that point many times at the same bytes.
    pub max_apparent_factor: usize,
    /// Dimensions of one tensor.
    pub max_rank: usize,
    /// Bytes of one tensor.
    pub max_tensor_bytes: usize,
    /// Iterations of one WHILE operator.
    pub max_loop_iterations: u64,
    /// Nesting of CALL, IF and WHILE.
    pub max_call_depth: usize,
    /// What a subgraph may ask for by its size: memory for its tensors, and work of a run.
    pub amplification: Amplification,
    /// Files in the archive behind the model.
    pub max_associated_files: usize,
    /// Bytes of one such file, unpacked.
    pub max_associated_bytes: u64,
    /// Bytes of all such files that are read together, unpacked.
    pub max_associated_total: u64,
}

impl Default for ModelLimits {
    fn default() -> Self {
        Self {
            max_depth: 16,
            max_tables: 1_000_000,
            max_apparent_factor: 4,
            max_rank: 32,
            max_tensor_bytes: 1 << 34,
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
    /// What the flatbuffer verifier may do with a file of `len` bytes.
    pub(crate) fn verifier(&self, len: usize) -> flatbuffers::VerifierOptions {
        flatbuffers::VerifierOptions {
            max_depth: self.max_depth,
            max_tables: self.max_tables,
            max_apparent_size: len.saturating_mul(self.max_apparent_factor).saturating_add(1 << 16),
            ignore_missing_null_terminator: false,
        }
    }
}
