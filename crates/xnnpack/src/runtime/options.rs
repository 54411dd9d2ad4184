//! Choices for a runtime.

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
    /// Where the processor has fp16 arithmetic and all nodes allow it.
    Hint,
    /// Always; fails where it is not possible, and emulates slowly where the processor lacks it.
    Force,
}

/// Choices for a [`Runtime`](crate::Runtime).
#[derive(Clone, Debug, Default)]
pub struct RuntimeOptions {
    /// Threads to use; the caller's alone without a pool.
    pub threadpool: Option<Arc<ThreadPool>>,
    /// Find out in the first runs with a shape whether the pool's threads are faster than the caller's alone, in all and at each
    /// operator, and leave them out where they are not. Results are the same. With [`profiling`](Self::profiling) it is only
    /// found out in all.
    pub tries_alone: bool,
    /// Memory for intermediate tensors; the runtime's own if none is given.
    pub workspace: Option<Workspace>,
    /// Packed weights to share.
    pub weights_cache: Option<WeightsCache>,
    /// Take the time of each operator.
    pub profiling: bool,
    /// Arithmetic of fp32 nodes.
    pub fp16: Fp16,
    /// Use sparse kernels for convolutions whose filters have many zeros.
    pub sparse: bool,
    /// Let the thread pool's workers sleep after each run, whatever computed last.
    pub yield_workers: bool,
}

impl RuntimeOptions {
    /// XNNPACK's flags for a runtime of `subgraph`, without hints that it would follow wrongly.
    pub(super) fn flags(&self, subgraph: &Subgraph) -> u32 {
        /// Internal to XNNPACK: keep nodes apart.
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
