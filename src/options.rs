//! Options of runners.

use xnn_format::GraphLimits;
use xnn_lower::PartitionOptions;
use xnn_model::ModelLimits;
use xnn_runtime::{ProgramOptions, SessionOptions};

/// Options of a [`Runner`](crate::Runner), which [`RunnerBuilder`](crate::RunnerBuilder) sets one by one.
///
/// ```
/// use xnn_delegate::{Runner, RunnerOptions};
///
/// # fn main() -> Result<(), xnn_delegate::Error> {
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/models/digits_mobilenet_v2_fp32.tflite");
/// let mut options = RunnerOptions::default();
/// options.session.threads = 2;
/// options.partition.disable.push("SOFTMAX".to_owned());
/// let runner = Runner::builder(path).options(options).build()?;
/// assert!(!runner.coverage().is_whole());
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct RunnerOptions {
    /// Operators and partitions that are delegated. Does not apply to blobs.
    pub partition: PartitionOptions,
    /// Storage of packed weights.
    pub program: ProgramOptions,
    /// Threads and memory of XNNPACK.
    pub session: SessionOptions,
    /// Limits for files, tensors, loops and calls.
    pub limits: ModelLimits,
}

impl RunnerOptions {
    /// Options with these choices, and defaults for everything else.
    #[must_use]
    pub fn new(partition: PartitionOptions, session: SessionOptions) -> Self {
        Self { partition, session, ..Self::default() }
    }

    /// Limits for the graphs that XNNPACK runs.
    pub(crate) fn graph_limits(&self) -> GraphLimits {
        let mut limits = self.partition.limits.clone();
        limits.max_value_bytes = limits.max_value_bytes.min(self.limits.max_tensor_bytes);
        limits.amplification = self.limits.amplification;
        limits
    }
}
