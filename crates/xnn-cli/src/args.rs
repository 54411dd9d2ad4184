//! The command line, and arguments that several commands share.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::LazyLock;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{ArgAction, Parser, Subcommand};
use xnn_delegate::lower::optimize::{self, SignedLayers};
use xnn_delegate::lower::{DynamicRange, UnknownName, operator_name};
use xnn_delegate::model::Amplification;
use xnn_delegate::{ModelLimits, PartitionOptions, RunnerOptions, SessionOptions, build};

use crate::commands::{
    bench, classify, convert, dialect, explain, extract, inspect, metadata, pack, run, verify,
};

/// What `--version` says.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    let (version, revision, schema) = (build::VERSION, build::XNNPACK_REVISION, build::XN01_SCHEMA);
    format!("{version}\nXNNPACK {revision}\nXN01 schema {schema}")
});

/// TFLite and Circle models on XNNPACK.
#[derive(Parser)]
#[command(name = "xnn", version, long_version = VERSION.as_str(), arg_required_else_help = true)]
pub struct Args {
    /// Say more about what is done, whatever RUST_LOG says (twice: still more)
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub verbose: u8,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    /// Convert a model to a self-contained .xnn file
    Convert(convert::Args),
    /// Write a TFLite model as a Circle file
    #[command(after_help = "Example:\n  xnn to-circle mobilenet_v2.tflite -o mobilenet_v2.circle")]
    ToCircle(dialect::Args),
    /// Write a Circle model as a TFLite file
    #[command(after_help = "Example:\n  xnn to-tflite mobilenet_v2.circle -o mobilenet_v2.tflite")]
    ToTflite(dialect::Args),
    /// Run a model or .xnn file once, on given or random inputs
    Run(run::Args),
    /// Say for each operator whether XNNPACK runs it, and why not
    Explain(explain::Args),
    /// Show what is in a model, .xnn file or ExecuTorch program
    Inspect(inspect::Args),
    /// Store weights packed for this processor in a .xnn file
    Pack(pack::Args),
    /// Show, extract or write what a model says of itself
    Metadata(metadata::Args),
    /// Write the XNNPACK delegates of an ExecuTorch program as .xnn files
    Extract(extract::Args),
    /// Measure load time, latency and memory
    Bench(bench::Args),
    /// Name what images show
    Classify(classify::Args),
    /// Compare XNNPACK with reference kernels, operator by operator
    Verify(verify::Args),
}

/// What is done to graphs before XNNPACK gets them.
#[derive(clap::Args)]
pub struct Optimization {
    /// Leave graphs as they were lowered
    #[arg(long)]
    no_optimize: bool,
    /// Leave out optimizations, by name (a,b); may be repeated
    #[arg(long, value_name = "PASS,..", value_delimiter = ',', value_parser = pass_names(), conflicts_with = "no_optimize")]
    disable_pass: Vec<String>,
    /// Compute uint8 layers on int8, for which processors have better instructions
    ///
    /// `exact` takes the layers whose weights int8 can hold, `approx` all: other weights are rounded.
    /// `auto` is `exact`, or `off` on processors where uint8 is as fast.
    #[arg(long, value_name = "HOW", default_value = "auto", value_parser = choice(SignedLayers::NAMES))]
    u8_as_s8: SignedLayers,
    /// How convolutions of floats with integer weights are computed
    ///
    /// `reference` gives what TFLite's reference kernels do, which quantize whole images when they arrive. `rows` is
    /// nearer to the model with float weights, and all other readers of .xnn files know it. `auto` is `reference` on
    /// processors where that is exact, else `rows`.
    #[arg(long, value_name = "HOW", default_value = "auto", value_parser = choice(DynamicRange::NAMES))]
    dynamic_range: DynamicRange,
}

/// One of these names.
fn choice<T, const N: usize>(names: [(&'static str, T); N]) -> impl TypedValueParser<Value = T>
where
    T: FromStr<Err = String> + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(names.map(|(name, _)| name)).try_map(|name| name.parse::<T>())
}

fn pass_names() -> PossibleValuesParser {
    optimize::PASSES
        .iter()
        .map(|pass| PossibleValue::new(pass.name).help(pass.about))
        .collect::<Vec<_>>()
        .into()
}

fn operator(name: &str) -> Result<String, UnknownName> {
    operator_name(name).map(str::to_owned)
}

/// What goes to XNNPACK.
#[derive(clap::Args)]
pub struct Partitioning {
    #[command(flatten)]
    optimization: Optimization,
    /// Leave operators to the reference kernels, by name (SOFTMAX,MEAN); may be repeated
    #[arg(long, value_name = "OPERATOR,..", value_delimiter = ',', value_parser = operator)]
    disable: Vec<String>,
    /// Leave partitions with fewer multiply-accumulates
    #[arg(long, value_name = "N", default_value_t = 0)]
    min_partition_macs: u64,
    /// Keep only so many partitions, the largest ones
    #[arg(long, value_name = "N")]
    max_partitions: Option<usize>,
    /// Keep partitions that spare less than moving their border costs
    #[arg(long)]
    keep_small: bool,
    #[command(flatten)]
    allowance: Allowance,
}

impl Partitioning {
    /// Options for partitioning.
    pub fn options(&self) -> PartitionOptions {
        let mut options = self.optimization.partition_options();
        options.disable.clone_from(&self.disable);
        options.min_partition_macs = self.min_partition_macs;
        options.max_partitions = self.max_partitions;
        options.keep_small = self.keep_small;
        options.limits.amplification = self.allowance.amplification();
        options
    }
}

/// What any file may ask for, however small it is.
#[derive(clap::Args)]
pub struct Allowance {
    /// Bytes of all tensors together that a file may ask for [default: 1 GiB, or 4096 times the size of file and inputs
    /// where that is more]
    #[arg(long, value_name = "N")]
    max_memory: Option<u64>,
    /// Multiplications of a run that a file may ask for [default: 2^37, or 2^22 for each byte of file and inputs where
    /// that is more]
    #[arg(long, value_name = "N")]
    max_work: Option<u64>,
}

impl Allowance {
    fn amplification(&self) -> Amplification {
        let mut amplification = Amplification::default();
        amplification.free_bytes = self.max_memory.unwrap_or(amplification.free_bytes);
        amplification.free_work = self.max_work.unwrap_or(amplification.free_work);
        amplification
    }

    /// Bounds for graphs that are read.
    pub fn graph_limits(&self) -> xnn_format::GraphLimits {
        let mut limits = xnn_format::GraphLimits::default();
        limits.amplification = self.amplification();
        limits
    }
}

/// What a model may ask for beside that.
#[derive(clap::Args)]
pub struct Bounds {
    /// Iterations of a WHILE operator after which a run is given up
    #[arg(long, value_name = "N")]
    max_iterations: Option<u64>,
    /// Bytes of a tensor above which a model is refused, or a run given up
    #[arg(long, value_name = "N")]
    max_tensor_bytes: Option<usize>,
}

impl Bounds {
    fn limits(&self) -> ModelLimits {
        let mut limits = ModelLimits::default();
        limits.max_loop_iterations = self.max_iterations.unwrap_or(limits.max_loop_iterations);
        limits.max_tensor_bytes = self.max_tensor_bytes.unwrap_or(limits.max_tensor_bytes);
        limits
    }
}

impl Optimization {
    /// Options for partitioning.
    fn partition_options(&self) -> PartitionOptions {
        let mut options = PartitionOptions::default();
        options.optimize.off = self.no_optimize;
        options.optimize.disable.clone_from(&self.disable_pass);
        options.optimize.signed_layers = self.u8_as_s8;
        options.dynamic_range = self.dynamic_range;
        options
    }
}

/// What to compute, and with how many threads.
#[derive(clap::Args)]
pub struct Workload {
    /// TFLite or Circle model, or .xnn file; told apart by content
    #[arg(value_name = "MODEL|BLOB")]
    pub path: PathBuf,
    /// Threads to compute with, but no more than there are processors
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: u16,
    /// Let threads sleep between runs instead of spinning for a while
    #[arg(long)]
    yield_workers: bool,
    #[command(flatten)]
    pub partitioning: Partitioning,
    #[command(flatten)]
    bounds: Bounds,
    /// Folder where packed weights are looked for, and kept for the next time
    #[arg(long, value_name = "DIR")]
    cache_dir: Option<PathBuf>,
}

impl Workload {
    /// Options to run with, without a profile.
    pub fn runner_options(&self) -> RunnerOptions {
        let mut options = RunnerOptions::default();
        options.partition = self.partitioning.options();
        options.session = self.session_options();
        options.limits = self.bounds.limits();
        options.limits.amplification = options.partition.limits.amplification;
        options.program.cache_dir.clone_from(&self.cache_dir);
        options
    }

    /// Options for a session, without a profile.
    pub fn session_options(&self) -> SessionOptions {
        let (threads, yield_workers) = (usize::from(self.threads), self.yield_workers);
        SessionOptions { threads, yield_workers, ..SessionOptions::default() }
    }
}
