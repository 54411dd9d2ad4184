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

/// Output of `--version`.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    let (version, revision, schema) = (build::VERSION, build::XNNPACK_REVISION, build::XN01_SCHEMA);
    format!("{version}\nXNNPACK {revision}\nXN01 schema {schema}")
});

/// Output of `--version --verbose` after that of `--version`.
pub fn processor_details() -> Result<String, xnn_delegate::Error> {
    let limit = match build::isa_limit()? {
        None => "none (environment variable XNN_MAX_ISA)".to_owned(),
        Some(level) => format!("{level} (environment variable XNN_MAX_ISA)"),
    };
    let levels: Vec<_> = build::isa_levels().collect();
    let (processor, built, levels) =
        (build::processor(), build::instruction_sets(), levels.join(" "));
    Ok(format!(
        "processor as used: {processor}\nlimit: {limit}\nlimits: {levels}\nmicrokernels: {built}\n"
    ))
}

/// Runs TFLite and Circle models on XNNPACK, and converts them to .xnn files.
#[derive(Parser)]
#[command(name = "xnn", version, long_version = VERSION.as_str(), arg_required_else_help = true,
    after_help = "Examples:\n  \
    xnn run mobilenet_v2.tflite --input 0=photo.npy --output-dir out\n  \
    xnn convert mobilenet_v2.tflite -o mobilenet_v2.xnn\n  \
    xnn explain mobilenet_v2.tflite\n  \
    xnn --version --verbose    # also the instruction sets that XNNPACK uses\n\n\
Environment:\n  \
    XNN_MAX_ISA  the newest instruction set to use, such as avx2; see xnn --version --verbose\n  \
    RUST_LOG     what to log\n\n\
Exit codes:\n  \
    0  success\n  \
    1  a file or a run has an error, or xnn verify finds a deviation above the tolerance\n  \
    2  the command line is wrong")]
pub struct Args {
    /// Log more, regardless of RUST_LOG (-vv: debug messages)
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
    /// List for each operator whether it is delegated, and why not
    Explain(explain::Args),
    /// Show the contents of a model, .xnn file or ExecuTorch program
    Inspect(inspect::Args),
    /// Add weights packed for this processor to a .xnn file
    Pack(pack::Args),
    /// Show, extract or write the metadata of a model
    Metadata(metadata::Args),
    /// Extract the XNNPACK graphs of an ExecuTorch program as .xnn files
    Extract(extract::Args),
    /// Measure load time, latency and memory
    Bench(bench::Args),
    /// Classify images
    Classify(classify::Args),
    /// Compare XNNPACK with the reference kernels, operator by operator
    Verify(verify::Args),
}

/// Optimization of lowered graphs.
#[derive(clap::Args)]
pub struct Optimization {
    /// Do not optimize lowered graphs
    #[arg(long)]
    no_optimize: bool,
    /// Passes to skip, separated by commas; may be repeated
    #[arg(long, value_name = "PASS,..", value_delimiter = ',', value_parser = pass_names(), conflicts_with = "no_optimize")]
    disable_pass: Vec<String>,
    /// Compute uint8 layers as int8 layers, for which processors have faster instructions
    ///
    /// `exact` converts the layers whose weights fit into int8. `approx` converts all layers, and rounds weights that do not
    /// fit. `auto` is `exact`, or `off` on processors where uint8 is as fast.
    #[arg(long, value_name = "HOW", default_value = "auto", value_parser = choice(SignedLayers::NAMES))]
    u8_as_s8: SignedLayers,
    /// Quantization of activations in convolutions with 8-bit weights and fp32 activations
    ///
    /// `reference` quantizes whole images, and computes the results of TFLite's reference kernels. `rows` is closer to the
    /// model with fp32 weights, and all readers of .xnn files support it. `auto` is `reference` on processors where that is
    /// exact, otherwise `rows`.
    #[arg(long, value_name = "HOW", default_value = "auto", value_parser = choice(DynamicRange::NAMES))]
    dynamic_range: DynamicRange,
}

/// Parser for one of these names.
fn choice<T, const N: usize>(names: [(&'static str, T); N]) -> impl TypedValueParser<Value = T>
where
    T: FromStr<Err = String> + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(names.map(|(name, _)| name)).try_map(|name| name.parse::<T>())
}

fn pass_names() -> PossibleValuesParser {
    optimize::optimizations()
        .map(|(name, about)| PossibleValue::new(name).help(about))
        .collect::<Vec<_>>()
        .into()
}

fn operator(name: &str) -> Result<String, UnknownName> {
    operator_name(name).map(str::to_owned)
}

/// Choice of the delegated operators.
#[derive(clap::Args)]
pub struct Partitioning {
    #[command(flatten)]
    optimization: Optimization,
    /// Operators that are not delegated (SOFTMAX,MEAN); may be repeated
    #[arg(long, value_name = "OPERATOR,..", value_delimiter = ',', value_parser = operator)]
    disable: Vec<String>,
    /// Do not delegate partitions with fewer multiply-accumulates
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true)]
    min_partition_macs: u64,
    /// Delegate at most this number of partitions, the largest ones
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    max_partitions: Option<usize>,
    /// Delegate partitions even if they save less time than their boundary copies cost
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

/// Limits for memory and work that a file may request, whatever its size.
#[derive(clap::Args)]
pub struct Allowance {
    /// Limit for the bytes of all tensors together [default: 1 GiB, or 4096 times the size of file and inputs if that is
    /// more]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    max_memory: Option<u64>,
    /// Limit for the multiplications of a run [default: 2^37, or 2^22 for each byte of file and inputs if that is more]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    max_work: Option<u64>,
}

impl Allowance {
    fn amplification(&self) -> Amplification {
        let mut amplification = Amplification::default();
        amplification.free_bytes = self.max_memory.unwrap_or(amplification.free_bytes);
        amplification.free_work = self.max_work.unwrap_or(amplification.free_work);
        amplification
    }

    /// Limits for graphs that are read.
    pub fn graph_limits(&self) -> xnn_format::GraphLimits {
        let mut limits = xnn_format::GraphLimits::default();
        limits.amplification = self.amplification();
        limits
    }
}

/// Further limits for models.
#[derive(clap::Args)]
pub struct Bounds {
    /// Abort a run after this number of iterations of a WHILE operator
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    max_iterations: Option<u64>,
    /// Limit for the bytes of one tensor
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
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

/// The model to run, and how.
#[derive(clap::Args)]
pub struct Workload {
    /// TFLite or Circle model, or .xnn file, detected by content
    #[arg(value_name = "MODEL|BLOB")]
    pub path: PathBuf,
    /// Number of threads, at most the number of processors
    #[arg(long, value_name = "N", default_value_t = 1, allow_negative_numbers = true, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: u16,
    #[command(flatten)]
    pub partitioning: Partitioning,
    #[command(flatten)]
    bounds: Bounds,
    /// Folder in which packed weights are stored for later starts
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
        SessionOptions { threads: usize::from(self.threads), ..SessionOptions::default() }
    }
}
