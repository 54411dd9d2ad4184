//! Bounds on what a program may ask for.

/// Bounds that are enforced before a program is believed.
///
/// The defaults let every program through that is known to be used; lower them
/// for files from strangers on small machines.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PteLimits {
    /// Nesting of tables. The deepest legal path (program, method, chain,
    /// instruction, its arguments) has 5.
    pub max_depth: usize,
    /// Tables in the flatbuffer; a value or instruction takes two.
    pub max_tables: usize,
    /// Apparent bytes as a multiple of the flatbuffer's size: guards against
    /// tables that point many times at the same bytes.
    pub max_apparent_factor: usize,
    /// What the graphs in payloads may ask for.
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
