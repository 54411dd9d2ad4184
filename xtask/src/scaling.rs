//! `cargo xtask scaling`: how models would use more processors than this machine has.
//!
//! A pool that computes alone measures every item of every operator, and simulates how threads would share them
//! (`crates/xnnpack-sys/csrc/threads/simulated.c`).

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::bench::find_models;
use crate::{vendor, venv};

const MODELS: &[&str] = &[
    "mobilenet_v1_1.0_224_int8_perchannel",
    "mobilenet_v1_1.0_224_fp16",
    "mobilenet_v2_1.0_224_fp32",
    "mobilenet_v2_1.0_224_quant",
    "deeplabv3_257_fp32",
    "pose_cpm_fp32",
];

/// Processes for each number of threads, and runs of each. The system interrupts some.
const PROCESSES: usize = 5;
const RUNS: &str = "30";

/// Choices for `cargo xtask scaling`.
#[derive(clap::Args)]
pub struct Args {
    /// `.tflite` files, or names of shared models [default: six of them]
    #[arg(long, num_args = 1.., value_delimiter = ',')]
    models: Vec<PathBuf>,
    /// Numbers of threads
    #[arg(long, num_args = 1.., value_delimiter = ',', default_values_t = [2, 4, 8, 16])]
    threads: Vec<u32>,
}

/// Report of a process: sums of nanoseconds, of all operators that use the pool.
#[derive(Clone, Copy, Deserialize)]
struct Totals {
    /// One thread's time.
    inside_ns: f64,
    /// The time of several threads.
    simulated_ns: f64,
    /// One thread's time for operators of one item.
    alone_ns: f64,
    /// One thread's time for operators of fewer items than threads.
    few_ns: f64,
}

/// Prints a table.
pub fn run(root: &Path, args: &Args) -> Result<()> {
    vendor::run(root, &vendor::Args::default())?;
    let models = find_models(root, &args.models, MODELS)?;
    let folder = venv::target(root).join("simulated");
    let build = ["build", "--release", "--package", "xnn-cli"];
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(build).current_dir(root).env("CARGO_TARGET_DIR", &folder);
    venv::run(cargo.env("XNNPACK_SYS_SIMULATE_THREADS", "1"))?;
    let xnn = folder.join("release/xnn");
    let columns: String =
        args.threads.iter().map(|threads| format!(" {threads} threads |")).collect();
    println!("| model |{columns} one item | few items |");
    println!("|---|{}", "--:|".repeat(args.threads.len() + 2));
    for model in models {
        let mut row = String::new();
        let mut last = None;
        for &threads in &args.threads {
            let totals = typical(&xnn, &model, threads)?;
            row += &format!(" {:.2} |", totals.speed_up());
            last = Some(totals);
        }
        let Some(last) = last else { continue };
        println!(
            "| {} |{row} {:.0} % | {:.0} % |",
            model.file_stem().unwrap_or_default().display(),
            100.0 * last.alone_ns / last.inside_ns,
            100.0 * last.few_ns / last.inside_ns,
        );
    }
    Ok(())
}

impl Totals {
    fn speed_up(&self) -> f64 {
        self.inside_ns / self.simulated_ns
    }
}

/// The totals with the median of speed-ups.
fn typical(xnn: &Path, model: &Path, threads: u32) -> Result<Totals> {
    let processes = (0..PROCESSES).map(|_| totals(xnn, model, threads));
    let mut all = processes.collect::<Result<Vec<_>>>()?;
    all.sort_by(|a, b| a.speed_up().total_cmp(&b.speed_up()));
    Ok(all[PROCESSES / 2])
}

fn totals(xnn: &Path, model: &Path, threads: u32) -> Result<Totals> {
    // The simulated pool takes the place of one with two threads.
    let mut command = Command::new(xnn);
    command.arg("bench").arg(model).args(["--threads", "2", "--json", "--runs", RUNS]);
    command.env("XNN_SIMULATED_THREADS", threads.to_string());
    let output = command.output().with_context(|| format!("cannot start {}", xnn.display()))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?} failed: {errors}");
    let line = errors.lines().rev().find(|line| line.starts_with('{'));
    let line = line.with_context(|| format!("{command:?} computes on one thread"))?;
    serde_json::from_str(line).with_context(|| format!("cannot read {line}"))
}
