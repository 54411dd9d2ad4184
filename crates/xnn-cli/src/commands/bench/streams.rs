//! `xnn bench --streams`: throughput of several sessions at the same time.

use std::io::Write;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use serde::Serialize;
use xnn_delegate::{Coverage, Runner};

use super::statistics::{
    cpu_ms_since, cpu_time, median, ms, peak_rss_mb, quantile, unit, write_figures,
};
use crate::args::Workload;
use crate::output::{self, plain};
use crate::progress::Spinner;
use crate::source::{about, file_name, in_file, open_runner};
use crate::tensors::Inputs;

/// Duration of the runs before the measured ones, in each stream.
const WARM_UP: Duration = Duration::from_millis(150);
/// Duration of the measured runs by default. Streams begin and end them together.
const MEASURED: Duration = Duration::from_secs(2);

#[derive(Serialize)]
struct Throughput {
    model: String,
    /// Sessions that run at the same time.
    streams: usize,
    /// Threads of each session: at most the requested number, as far as there are processors and enough work.
    threads: usize,
    /// Operators of the model; nodes of a blob.
    operators: usize,
    /// Operators that run on XNNPACK.
    delegated: usize,
    partitions: usize,
    /// Operators that may be delegated during a run, when their shapes are known.
    deferred: usize,
    /// Runs of all streams together.
    runs: usize,
    runs_per_second: f64,
    /// Latencies of single runs, over all streams.
    min_ms: f64,
    median_ms: f64,
    p90_ms: f64,
    p99_ms: f64,
    /// Processor time of a run, of all threads together; absent if the system does not report it.
    cpu_ms: Option<f64>,
    /// Peak memory of the process; absent if the system does not report it.
    peak_rss_mb: Option<f64>,
}

/// Measures `count` streams with `runs` runs each, or for a default duration, and writes the result.
pub fn run(
    workload: &Workload,
    count: usize,
    runs: Option<u32>,
    as_json: bool,
    out: &mut dyn Write,
) -> Result<()> {
    let spinner = Spinner::new(format!("measuring {}", file_name(&workload.path)));
    let throughput = measure(workload, count, runs)?;
    drop(spinner);
    if as_json {
        return Ok(output::write_json(out, &throughput)?);
    }
    let Throughput { operators, delegated, partitions, deferred, .. } = throughput;
    let [streams, threads, runs] =
        [(throughput.streams, "stream"), (throughput.threads, "thread"), (throughput.runs, "run")]
            .map(|(n, noun)| output::count(n, noun));
    writeln!(out, "{}, {streams}, {threads} each, {runs}", plain(&throughput.model))?;
    writeln!(out, "{}", Coverage { operators, delegated, partitions, deferred })?;
    let (of_ms, unit) = unit(throughput.median_ms);
    let figures = [
        ("throughput", Some(throughput.runs_per_second), "runs per second"),
        ("minimum", Some(throughput.min_ms * of_ms), unit),
        ("median", Some(throughput.median_ms * of_ms), unit),
        ("90th percentile", Some(throughput.p90_ms * of_ms), unit),
        ("99th percentile", Some(throughput.p99_ms * of_ms), unit),
        ("processor time", throughput.cpu_ms.map(|ms| ms * of_ms), unit),
        ("peak memory", throughput.peak_rss_mb, "MB"),
    ];
    write_figures(out, &figures)?;
    Ok(())
}

fn measure(workload: &Workload, count: usize, runs: Option<u32>) -> Result<Throughput> {
    let path = workload.path.as_path();
    let first = open_runner(path, &workload.runner_options())?;
    let coverage = first.coverage();
    let mut runners = vec![first];
    while runners.len() < count {
        let fork = runners[0].fork().map_err(|error| in_file(path, &error))?;
        runners.push(fork);
    }
    for runner in &mut runners {
        Inputs::default().fill(path, runner)?;
    }
    let barrier = Barrier::new(count);
    let cpu_before = cpu_time();
    let streams = thread::scope(|scope| {
        let start = |runner| scope.spawn(|| stream(runner, runs, &barrier));
        let started: Vec<_> = runners.iter_mut().map(start).collect();
        let joined = started.into_iter().map(|stream| {
            stream.join().map_err(|_| about(path, "a stream ended without a result"))
        });
        joined.collect::<Result<Vec<_>>>()
    })?;
    let mut times = Vec::new();
    let (mut runs_per_second, mut all_runs) = (0.0, 0);
    for stream in streams {
        let stream = stream.map_err(|error| in_file(path, &error))?;
        runs_per_second += stream.times.len() as f64 / stream.elapsed.as_secs_f64();
        all_runs += stream.times.len() + stream.warm_up;
        times.extend(stream.times);
    }
    let cpu_ms = cpu_ms_since(cpu_before, all_runs);
    times.sort_unstable();
    let threads = runners.first().map(Runner::threads);
    Ok(Throughput {
        model: file_name(path),
        streams: count,
        threads: threads.ok_or_else(|| anyhow!("no streams"))?,
        operators: coverage.operators,
        delegated: coverage.delegated,
        partitions: coverage.partitions,
        deferred: coverage.deferred,
        runs: times.len(),
        runs_per_second,
        min_ms: ms(quantile(&times, 0.0)),
        median_ms: median(&times),
        p90_ms: ms(quantile(&times, 0.9)),
        p99_ms: ms(quantile(&times, 0.99)),
        cpu_ms,
        peak_rss_mb: peak_rss_mb(),
    })
}

/// Runs of a stream.
struct Stream {
    warm_up: usize,
    times: Vec<Duration>,
    /// Time of all measured runs.
    elapsed: Duration,
}

/// Runs for the warm-up and, when all streams are ready, the measured runs.
fn stream(
    runner: &mut Runner,
    runs: Option<u32>,
    barrier: &Barrier,
) -> Result<Stream, xnn_delegate::Error> {
    // A stream that fails takes part in the barrier, so that the others do not wait for it.
    let warm = repeat(runner, |_, elapsed| elapsed >= WARM_UP);
    barrier.wait();
    let warm_up = warm?.len();
    let begin = Instant::now();
    let times = repeat(runner, |count, elapsed| match runs {
        Some(runs) => count >= runs as usize,
        None => elapsed >= MEASURED,
    })?;
    Ok(Stream { warm_up, times, elapsed: begin.elapsed() })
}

/// Runs at least once, until `is_over` returns true for the number of runs and their time.
fn repeat(
    runner: &mut Runner,
    is_over: impl Fn(usize, Duration) -> bool,
) -> Result<Vec<Duration>, xnn_delegate::Error> {
    let begin = Instant::now();
    let mut times = Vec::new();
    while times.is_empty() || !is_over(times.len(), begin.elapsed()) {
        let start = Instant::now();
        runner.run()?;
        times.push(start.elapsed());
    }
    Ok(times)
}
