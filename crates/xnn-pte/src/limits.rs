//! Limits for programs.

/// Limits that are enforced while a program is read.
///
/// The defaults accept all known production programs. Lower them for untrusted files on small
/// machines.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PteLimits {
    /// Nesting depth of tables. The deepest valid path (program, method, chain, instruction,
    /// arguments) has 5.
    pub max_depth: usize,
    /// Number of tables in the flatbuffer. A value or instruction takes two.
    pub max_tables: usize,
    /// Apparent size as a multiple of the flatbuffer's size. Guards against tables that reference
    /// the same bytes many times.
    pub max_apparent_factor: usize,
    /// Limits for the graphs in payloads.
    pub graph: xnn_format::GraphLimits,
}

impl Default for PteLimits {
    fn default() -> Self {
        Self {
            max_depth: 8,
            max_tables: 1_000_000,
            max_apparent_factor: 16,
            graph: xnn_format::GraphLimits::default(),
        }
    }
}

impl PteLimits {
    pub(crate) fn verifier(&self, size: usize) -> flatbuffers::VerifierOptions {
        flatbuffers::VerifierOptions {
            max_depth: self.max_depth,
            max_tables: self.max_tables,
            max_apparent_size: size.saturating_mul(self.max_apparent_factor),
            ignore_missing_null_terminator: false,
        }
    }
}
