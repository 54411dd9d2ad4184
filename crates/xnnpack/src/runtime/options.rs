//! Options of a runtime.

use std::sync::Arc;

use xnnpack_sys as sys;

use crate::subgraph::Subgraph;
use crate::threadpool::ThreadPool;
use crate::weights_cache::WeightsCache;
use crate::workspace::Workspace;

/// Whether fp32 nodes may compute in fp16.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fp16 {
    /// Never.
    #[default]
    Never,
    /// If the processor has fp16 arithmetic and all nodes support it.
    Hint,
    /// Always. Creating the runtime fails if a node does not support it; processors without fp16
    /// arithmetic emulate it slowly.
    Force,
}

/// Options of a [`Runtime`](crate::Runtime).
#[derive(Clone, Debug, Default)]
pub struct RuntimeOptions {
    /// Threads to use; `None` for the calling thread only.
    pub threadpool: Option<Arc<ThreadPool>>,
    /// Least number of threads to try. The first runs with a shape measure this number, its
    /// multiples by powers of two and all threads of the pool, for whole runs and for each operator,
    /// and the fastest are used. `None`: all threads are always used.
    ///
    /// Results are the same. With [`profiling`](Self::profiling) only whole runs are measured.
    pub fewest_threads: Option<usize>,
    /// Whether the first runs with a shape use [`fewest_threads`](Self::fewest_threads), and not all
    /// threads of the pool. This is faster for small graphs, because sleeping threads take longer to
    /// wake up than such a graph runs.
    pub fewest_first: bool,
    /// Memory for intermediate tensors; `None` for the runtime's own.
    pub workspace: Option<Workspace>,
    /// Cache through which runtimes share packed weights.
    pub weights_cache: Option<WeightsCache>,
    /// Measure the time of each operator.
    pub profiling: bool,
    /// Whether fp32 nodes compute in fp16.
    pub fp16: Fp16,
    /// Use sparse kernels for convolutions whose filters have many zeros.
    pub sparse: bool,
}

impl RuntimeOptions {
    /// XNNPACK's flags for a runtime of `subgraph`, without hints that would change results.
    pub(super) fn flags(&self, subgraph: &Subgraph) -> u32 {
        /// Flag internal to XNNPACK that disables the fusion of nodes.
        const NO_OPERATOR_FUSION: u32 = 0x8000_0000;

        let force_fp16 = self.fp16 == Fp16::Force;
        let hint_fp16 = self.fp16 == Fp16::Hint && subgraph.is_plain_f32();
        let sparse = self.sparse && subgraph.runs_channels_first();
        [
            (hint_fp16, sys::XNN_FLAG_HINT_FP16_INFERENCE),
            (force_fp16, sys::XNN_FLAG_FORCE_FP16_INFERENCE),
            (sparse, sys::XNN_FLAG_HINT_SPARSE_INFERENCE),
            (self.profiling, sys::XNN_FLAG_BASIC_PROFILING),
            (!subgraph.can_fuse(), NO_OPERATOR_FUSION),
        ]
        .into_iter()
        .filter_map(|(chosen, flag)| chosen.then_some(flag))
        .fold(0, |flags, flag| flags | flag)
    }
}
