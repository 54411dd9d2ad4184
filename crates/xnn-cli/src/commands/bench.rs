//! `xnn bench`: measures load time, latency, memory, throughput, and time per operator.

mod statistics;
mod streams;

use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde::Serialize;
use xnn_delegate::{Coverage, Error, Runner};

use crate::args::Workload;
use crate::output::{self, Table, plain};
use crate::progress::Spinner;
use crate::source::{about, file_name, in_file, note_without_effect, open_runner};
use crate::tensors::Inputs;
use statistics::{cpu_ms_since, cpu_time, median, ms, peak_rss_mb, quantile, unit, write_figures};

/// Smallest number and duration of the runs before the measured ones.
const WARM_UP: (usize, Duration) = (3, Duration::from_millis(150));
/// Smallest number and duration of the measured runs by default.
const MEASURED: (usize, Duration) = (50, Duration::from_millis(500));
/// Time after which no further run starts.
const PATIENCE: Duration = Duration::from_secs(12);
/// Runs with the profiler on.
const PROFILED: usize = 20;

#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    xnn bench mobilenet_v2.xnn --threads 2\n  \
    xnn bench mobilenet_v2.tflite --runs 200 --profile\n  \
    xnn bench mobilenet_v2.tflite --streams 4 --threads 2\n  \
    xnn bench mobilenet_v2.xnn --json | jq .median_ms")]
pub struct Args {
    #[command(flatten)]
    workload: Workload,
    /// Number of measured runs [default: at least 50, for at least half a second and at most 12 seconds]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..))]
    runs: Option<u32>,
    /// Measure throughput: run this number of sessions at the same time, which share weights and have --threads threads each
    #[arg(long, value_name = "S", allow_negative_numbers = true, value_parser = clap::value_parser!(u16).range(1..=1024))]
    streams: Option<u16>,
    /// Measure the time of each operator, in separate runs
    #[arg(long, conflicts_with = "streams")]
    profile: bool,
    /// Write the result as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Measurement {
    model: String,
    /// Threads that compute: at most the requested number, as far as there are processors and enough work.
    threads: usize,
    /// Operators of the model; nodes of a blob.
    operators: usize,
    /// Operators that run on XNNPACK.
    delegated: usize,
    partitions: usize,
    /// Operators that may be delegated during a run, when their shapes are known.
    deferred: usize,
    runs: usize,
    /// Opening the file and creating a session.
    load_ms: f64,
    first_ms: f64,
    min_ms: f64,
    median_ms: f64,
    p90_ms: f64,
    /// Processor time of a run, of all threads together; absent if the system does not report it.
    cpu_ms: Option<f64>,
    /// Size of the arena of intermediate tensors between partitions and reference kernels; absent if the model is fully
    /// delegated.
    #[serde(skip_serializing_if = "Option::is_none")]
    arena_bytes: Option<usize>,
    /// Size of these tensors without an arena.
    #[serde(skip_serializing_if = "Option::is_none")]
    tensor_bytes: Option<usize>,
    /// Peak memory of the process; absent if the system does not report it.
    peak_rss_mb: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    profile: Option<Vec<OperatorTime>>,
}

/// Mean time of an operator in the profiled runs.
#[derive(Serialize)]
struct OperatorTime {
    operator: String,
    /// Index of the graph's node, if known.
    node: Option<usize>,
    /// The model's operator that the node came from.
    origin: Option<String>,
    mean_us: f64,
}

pub fn run(args: &Args, out: &mut dyn Write) -> Result<()> {
    let path = args.workload.path.as_path();
    note_without_effect(path, &args.workload.partitioning.options());
    if let Some(count) = args.streams {
        return streams::run(&args.workload, usize::from(count), args.runs, args.json, out);
    }
    let spinner = Spinner::new(format!("measuring {}", file_name(path)));
    let measurement = measure(args, path)?;
    drop(spinner);
    if args.json {
        output::write_json(out, &measurement)?;
        return Ok(());
    }
    let Measurement { model, threads, runs, .. } = &measurement;
    let Measurement { operators, delegated, partitions, deferred, .. } = measurement;
    let asked = usize::from(args.workload.threads);
    let of = if *threads < asked { format!(" (of {asked} requested)") } else { String::new() };
    let [threads, runs] =
        [(*threads, "thread"), (*runs, "run")].map(|(n, noun)| output::count(n, noun));
    writeln!(out, "{}, {threads}{of}, {runs}", plain(model))?;
    writeln!(out, "{}", Coverage { operators, delegated, partitions, deferred })?;
    let (of_ms, unit) = unit(measurement.median_ms);
    let figures = [
        ("load", Some(measurement.load_ms), "ms"),
        ("first run", Some(measurement.first_ms * of_ms), unit),
        ("minimum", Some(measurement.min_ms * of_ms), unit),
        ("median", Some(measurement.median_ms * of_ms), unit),
        ("90th percentile", Some(measurement.p90_ms * of_ms), unit),
        ("processor time", measurement.cpu_ms.map(|ms| ms * of_ms), unit),
        ("peak memory", measurement.peak_rss_mb, "MB"),
    ];
    write_figures(out, &figures)?;
    if let Some(profile) = &measurement.profile {
        writeln!(out)?;
        write_profile(profile, out)?;
    }
    Ok(())
}

fn measure(args: &Args, path: &Path) -> Result<Measurement> {
    let options = args.workload.runner_options();
    let start = Instant::now();
    let mut runner = open_runner(path, &options)?;
    let load = start.elapsed();
    let coverage = runner.coverage();
    if args.profile && runner.program().is_none() {
        return Err(about(path, format!("{coverage}; --profile needs a fully delegated model")));
    }

    Inputs::default().fill(path, &mut runner)?;
    let mut time_run = || -> Result<Duration> {
        let start = Instant::now();
        runner.run().map_err(|error| in_file(path, &error))?;
        Ok(start.elapsed())
    };
    let first = time_run()?;
    repeat(WARM_UP, PATIENCE / 4, &mut time_run)?;
    let cpu_before = cpu_time();
    let mut times = match args.runs {
        Some(runs) => (0..runs).map(|_| time_run()).collect::<Result<Vec<_>>>()?,
        None => repeat(MEASURED, PATIENCE, &mut time_run)?,
    };
    let cpu_ms = cpu_ms_since(cpu_before, times.len());
    times.sort_unstable();
    let memory = runner.memory();

    Ok(Measurement {
        model: file_name(path),
        threads: runner.threads(),
        operators: coverage.operators,
        delegated: coverage.delegated,
        partitions: coverage.partitions,
        deferred: coverage.deferred,
        runs: times.len(),
        load_ms: ms(load),
        first_ms: ms(first),
        min_ms: ms(quantile(&times, 0.0)),
        median_ms: median(&times),
        p90_ms: ms(quantile(&times, 0.9)),
        cpu_ms,
        arena_bytes: memory.map(|memory| memory.arena_bytes),
        tensor_bytes: memory.map(|memory| memory.tensor_bytes),
        peak_rss_mb: peak_rss_mb(),
        profile: args.profile.then(|| profile(&args.workload)).transpose()?,
    })
}

/// Runs at least `least` times and for `least` long, but not longer than `most`.
fn repeat(
    least: (usize, Duration),
    most: Duration,
    run: &mut impl FnMut() -> Result<Duration>,
) -> Result<Vec<Duration>> {
    let start = Instant::now();
    let mut times = Vec::new();
    loop {
        times.push(run()?);
        let elapsed = start.elapsed();
        if (times.len() >= least.0 && elapsed >= least.1) || elapsed >= most {
            return Ok(times);
        }
    }
}

/// Mean times of several runs in a separate session, because profiling takes time itself.
fn profile(workload: &Workload) -> Result<Vec<OperatorTime>> {
    let failed = |error: Error| in_file(&workload.path, &error);
    let mut options = workload.runner_options();
    options.session.profile = true;
    let mut runner = open_runner(&workload.path, &options)?;
    Inputs::default().fill(&workload.path, &mut runner)?;
    runner.run().map_err(failed)?;
    let timings = |runner: &Runner| runner.profile().unwrap_or_default();
    let mut sums: Vec<u64> = Vec::new();
    for _ in 0..PROFILED {
        runner.run().map_err(failed)?;
        let timings = timings(&runner);
        sums.resize(timings.len(), 0);
        for (sum, timing) in sums.iter_mut().zip(&timings) {
            *sum = sum.saturating_add(timing.micros);
        }
    }
    let graph = runner.program().map(|program| program.graph());
    let origin = |node: usize| graph.and_then(|graph| graph.node_name(graph.nodes.get(node)?));
    let operators = timings(&runner).into_iter().zip(sums).map(|(timing, sum)| OperatorTime {
        origin: timing.node.and_then(origin).map(str::to_owned),
        operator: timing.name,
        node: timing.node,
        mean_us: sum as f64 / PROFILED as f64,
    });
    Ok(operators.collect())
}

fn write_profile(profile: &[OperatorTime], out: &mut dyn Write) -> Result<()> {
    let total: f64 = profile.iter().map(|operator| operator.mean_us).sum();
    let percent = |us: f64| if total > 0.0 { 100.0 * us / total } else { 0.0 };
    let mut table = Table::new(["node>", "XNNPACK operator", "from", "us>", "%>"]);
    for operator in profile {
        table.row([
            operator.node.map_or_else(String::new, |node| node.to_string()),
            operator.operator.clone(),
            operator.origin.clone().unwrap_or_default(),
            format!("{:.1}", operator.mean_us),
            format!("{:.1}", percent(operator.mean_us)),
        ]);
    }
    table.row([String::new(), "all".into(), String::new(), format!("{total:.1}"), "100.0".into()]);
    table.write(out)?;
    if !profile.is_empty() && profile.iter().all(|operator| operator.node.is_none()) {
        let count = output::count(profile.len(), "operator");
        writeln!(out, "nodes are unknown: XNNPACK creates {count} for them, not one each")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_until_both_bounds_are_met_or_patience_ends() {
        let mut count = 0;
        let mut run = || {
            count += 1;
            Ok(Duration::ZERO)
        };
        let long = Duration::from_secs(60);
        assert!(repeat((5, Duration::ZERO), long, &mut run).is_ok_and(|times| times.len() == 5));
        assert!(repeat((5, long), Duration::ZERO, &mut run).is_ok_and(|times| times.len() == 1));
        assert_eq!(count, 6);
    }
}
