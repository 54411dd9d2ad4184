//! `cargo xtask bench`: this project and its peers in one session.

mod busy;
mod conversion;
mod plots;
mod results;
mod session;
mod sides;
mod tables;
#[cfg(test)]
mod tests;
mod tools;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use busy::Busy;

use crate::{shared, vendor};
pub use results::Host;
use results::{Metric, Model, Results};
use session::Plan;
use sides::SIDES;
pub use sides::{Package, Side};
pub use tables::{Table, columns, geometric_mean, number};
pub use tools::{Files, Tools, quietly};

/// Measured where no model is given.
const MODELS: [&str; 18] = [
    "mobilenet_v1_1.0_224_fp32",
    "mobilenet_v1_1.0_224_fp16",
    "mobilenet_v1_1.0_224_int8_perchannel",
    "mobilenet_v1_1.0_224_quant",
    "mobilenet_v2_1.0_224_fp32",
    "mobilenet_v2_1.0_224_int8_ptq",
    "mobilenet_v2_1.0_224_quant",
    "mobilenet_v2_1.0_224_dynamic_range",
    "mobilenet_v3_small_1.0_224_fp32_rand",
    "mobilenet_v3_small_1.0_224_int8_rand",
    "mobilenet_v3_small_1.0_224_dynamic_range_rand",
    "mobilenet_edgetpu_1.0_224_uint8",
    "ssd_mobilenet_v1_coco_quant",
    "deeplabv3_257_fp32",
    "bert_L4H256_seq128_fp32_rand",
    "resnet8_cifar_fp32",
    "resnet8_cifar_int8",
    "yamnet_audio",
];
/// Measured with `--quick`.
const QUICK: [&str; 3] =
    ["mobilenet_v1_1.0_224_fp32", "mobilenet_v1_1.0_224_quant", "resnet8_cifar_int8"];
/// Choices for `cargo xtask bench`.
#[derive(clap::Args)]
#[command(after_help = format!("Examples:\n  \
    cargo xtask bench\n  \
    cargo xtask bench --quick --report target/quick\n  \
    cargo xtask bench --models mobilenet_v2_1.0_224_fp32 my.tflite --threads 1,2,4 --sides xnn,litert\n  \
    cargo xtask bench --sides all\n  \
    cargo xtask bench --busy 4 --threads 2 --sides xnn,xnn-in-litert,litert --report target/busy\n  \
    cargo xtask bench --streams 2 --threads 2 --sides xnn,xnn-in-litert,litert --report target/streams\n  \
    cargo xtask bench --render\n\n\
Sides (docs/benchmarks/README.md):\n{}", listing()))]
pub struct Args {
    #[arg(long, num_args = 1.., value_delimiter = ',', help = format!(
        "`.tflite` files, or names of shared models [default: {} of them]",
        MODELS.len(),
    ))]
    models: Vec<PathBuf>,
    /// Turns of each side with each model [default: 10; quick: 3]
    #[arg(long)]
    rounds: Option<usize>,
    /// Processes of each side with each model, for load and first run [default: 5; quick: 1]
    #[arg(long)]
    starts: Option<usize>,
    /// Numbers of threads [default: 1 and all cores]
    #[arg(long, value_delimiter = ',')]
    threads: Vec<usize>,
    /// Sides to compare; `all` for every side [default: sides that need no large packages or slow
    /// conversions]
    #[arg(long, value_delimiter = ',')]
    sides: Vec<String>,
    /// Measure while this number of other threads is busy, to simulate a machine with other load
    #[arg(long, value_name = "THREADS", default_value_t = 0)]
    busy: usize,
    /// Measure throughput, too: run this number of instances in one process at the same time
    #[arg(long, value_name = "S", default_value_t = 0)]
    streams: usize,
    /// Three models, few rounds: shows that it works
    #[arg(long)]
    quick: bool,
    /// Folder to write to [default: docs/benchmarks; with --quick: target/bench]
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,
    /// Measure nothing; make tables and plots of the `results.json` that is there
    #[arg(long)]
    render: bool,
}

/// A line for each side.
fn listing() -> String {
    let line = |side: &Side| {
        let on_request = if side.on_request { " (only on request)" } else { "" };
        format!("  {:<18}{}{on_request}", side.name, side.about)
    };
    SIDES.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Measures and writes `results.json`, `results.md` and plots.
pub fn run(root: &Path, args: &Args) -> Result<()> {
    let folder = match &args.report {
        Some(folder) => folder.clone(),
        None if args.quick => crate::venv::target(root).join("bench"),
        None => root.join("docs/benchmarks"),
    };
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let json = folder.join("results.json");
    let results = if args.render {
        let text = fs::read(&json).with_context(|| format!("cannot read {}", json.display()))?;
        serde_json::from_slice(&text).with_context(|| json.display().to_string())?
    } else {
        let results = measure(root, args)?;
        write(&json, &format!("{}\n", serde_json::to_string_pretty(&results)?))?;
        results
    };
    write(&folder.join("results.md"), &tables::markdown(&results))?;
    plots::write(&results, &folder)?;
    eprintln!("written to {}", folder.display());
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

fn measure(root: &Path, args: &Args) -> Result<Results> {
    let plan = plan(args)?;
    let by_default: &[&str] = if args.quick { &QUICK } else { &MODELS };
    let models = find_models(root, &args.models, by_default)?;
    vendor::run(root, &vendor::Args::default())?;
    let tools = Tools::new(root, &plan.sides)?;
    let _busy = Busy::start(args.busy);
    let begin = Instant::now();
    eprintln!("multiplying matrices");
    let mut results = Results {
        host: Host::new()?,
        versions: BTreeMap::new(),
        rounds: plan.rounds,
        starts: plan.starts,
        busy: args.busy,
        streams: args.streams,
        gemm: session::gemm(&plan, &tools)?,
        models: Vec::new(),
    };
    for (at, path) in models.iter().enumerate() {
        let seconds = begin.elapsed().as_secs();
        eprint!("[{}/{}, {seconds} s] {}: ", at + 1, models.len(), path.display());
        match session::measure(path, &plan, &tools, &mut results.versions) {
            Ok(model) => {
                eprintln!("{}", in_brief(&model));
                results.models.push(model);
            }
            Err(error) => eprintln!("left out: {error:#}"),
        }
    }
    ensure!(!results.models.is_empty(), "no model was measured");
    eprintln!("multiplying matrices again");
    for (peak, later) in results.gemm.iter_mut().zip(session::gemm(&plan, &tools)?) {
        peak.gops = peak.gops.max(later.gops);
    }
    eprintln!("measured in {} s", begin.elapsed().as_secs());
    Ok(results)
}

/// This project's latency, compared.
fn in_brief(model: &Model) -> String {
    let ours = model.runs.iter().filter(|run| run.side == "xnn");
    let ratios = ours.filter_map(|run| {
        let ratio = run.ratio(Metric::Median)?;
        Some(format!("{:.2} of {} x{}", ratio.to_best(), ratio.best_peer, run.threads))
    });
    let ratios: Vec<String> = ratios.collect();
    format!("{} runs, {} failures; {}", model.runs.len(), model.failures.len(), ratios.join(", "))
}

fn plan(args: &Args) -> Result<Plan> {
    let mut threads = args.threads.clone();
    if threads.is_empty() {
        threads = vec![1, thread::available_parallelism()?.get()];
    }
    threads.sort_unstable();
    threads.dedup();
    ensure!(!threads.contains(&0), "--threads 0: at least one computes");
    let by_default = |long, quick| if args.quick { quick } else { long };
    let rounds = args.rounds.unwrap_or(by_default(10, 3));
    ensure!(rounds > 0, "--rounds 0: nothing would be measured");
    Ok(Plan {
        sides: Side::chosen(&args.sides)?,
        threads,
        rounds,
        starts: args.starts.unwrap_or(by_default(5, 1)).max(1),
        streams: args.streams,
    })
}

/// The files that are asked for, or those with the names in `by_default`.
pub fn find_models(root: &Path, asked: &[PathBuf], by_default: &[&str]) -> Result<Vec<PathBuf>> {
    if asked.is_empty() {
        by_default.iter().map(|name| find(root, Path::new(name))).collect()
    } else {
        asked.iter().map(|name| find(root, name)).collect()
    }
}

fn find(root: &Path, name: &Path) -> Result<PathBuf> {
    if name.is_file() {
        return Ok(std::path::absolute(name)?);
    }
    let [models, random_weights] = shared::model_folders(root);
    let folders = [models, random_weights, root.join("models")];
    let named = |folder: &PathBuf| folder.join(name.with_added_extension("tflite"));
    folders.iter().map(named).find(|path| path.is_file()).with_context(|| {
        format!("{} is not a file, and not a model in {}", name.display(), shared::list(&folders))
    })
}
