//! Steady-state latency beside LiteRT's, in turns: `cargo xtask bench` sets up and starts it.
//!
//! Usage: `litert PYTHON REPORT ROUNDS MODEL...`, where PYTHON has LiteRT, and REPORT without
//! extension names the files to write.
//!
//! Each round runs one model for a short time here and for the same time in LiteRT's process, while the
//! other sleeps; so whatever else the machine does meets both alike, and a ratio says more than two
//! times do.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line program")]

mod peer;

use std::env;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use tempfile::tempdir;
use xnn_delegate::{PartitionOptions, Runner, SessionOptions, build};

use peer::{
    Host, LiteRt, MEASURED, WARM_UP, about, in_turns, median, ratio, run_for, set_inputs, write,
};

const THREADS: [usize; 2] = [1, 2];

fn main() -> Result<()> {
    // `cargo bench` adds an argument of its own.
    let arguments: Vec<String> = env::args().skip(1).filter(|one| one != "--bench").collect();
    let [python, report, rounds, models @ ..] = arguments.as_slice() else {
        bail!("usage: litert PYTHON REPORT ROUNDS MODEL...; `cargo xtask bench` does it");
    };
    let rounds = rounds.parse().context("ROUNDS is no number")?;
    let mut results = Vec::new();
    let mut version = String::new();
    for model in models {
        for threads in THREADS {
            let mut litert = LiteRt::start(python, model, threads, None)?;
            version = litert.version()?;
            let result = compare(model, threads, &mut litert, rounds)?;
            litert.stop()?;
            let name = Path::new(model).file_stem().unwrap_or_default().to_string_lossy();
            eprintln!("{name}, {threads} threads: {:.3}", result.ratio);
            results.push((name.into_owned(), threads, result));
        }
    }
    let host = Host::new()?;
    write(&format!("{report}.json"), &to_json(&host, &version, rounds, &results))?;
    let markdown = to_markdown(&host, &version, rounds, &results);
    print!("{markdown}");
    write(&format!("{report}.md"), &markdown)
}

/// Of one model with one number of threads.
struct Comparison {
    /// Median of the rounds' ratios of medians; below 1 where this project is faster.
    ratio: f64,
    ours: Times,
    theirs: Times,
}

/// Of all rounds, in milliseconds.
struct Times {
    median: f64,
    min: f64,
    runs: usize,
}

impl Times {
    fn new(rounds: &[Vec<f64>]) -> Self {
        let micros = rounds.concat();
        let min = micros.iter().copied().fold(f64::INFINITY, f64::min);
        Self { median: median(&micros) / 1e3, min: min / 1e3, runs: micros.len() }
    }
}

fn compare(model: &str, threads: usize, litert: &mut LiteRt, rounds: usize) -> Result<Comparison> {
    let options = SessionOptions { threads, ..SessionOptions::default() };
    let mut runner = Runner::open(model, &PartitionOptions::default(), &options)
        .map_err(|error| about(model, &error))?;
    let folder = tempdir()?;
    set_inputs(&mut runner, litert, &folder.path().to_string_lossy())?;
    let times = in_turns(
        &mut (runner, litert),
        &[&|(runner, _), time| run_for(runner, time), &|(_, litert), time| {
            litert.run_for("litert", time)
        }],
        rounds,
    )?;
    let [ours, theirs] = times.as_slice() else { bail!("two sides") };
    Ok(Comparison {
        ratio: ratio(ours, theirs),
        ours: Times::new(ours),
        theirs: Times::new(theirs),
    })
}

type Results = [(String, usize, Comparison)];

fn to_json(host: &Host, litert: &str, rounds: usize, results: &Results) -> String {
    let times =
        |times: &Times| json!({"median_ms": times.median, "min_ms": times.min, "runs": times.runs});
    let results: Vec<Value> = results
        .iter()
        .map(|(model, threads, result)| {
            json!({
                "model": model,
                "threads": threads,
                "ratio": result.ratio,
                "ours": times(&result.ours),
                "litert": times(&result.theirs),
            })
        })
        .collect();
    let report = json!({
        "cpu": host.cpu,
        "cores": host.cores,
        "version": build::VERSION,
        "xnnpack": build::XNNPACK_REVISION,
        "litert": litert,
        "rounds": rounds,
        "results": results,
    });
    format!("{report:#}\n")
}

fn to_markdown(host: &Host, litert: &str, rounds: usize, results: &Results) -> String {
    let mut rows = String::new();
    for (model, threads, result) in results {
        let Comparison { ratio, ours, theirs } = result;
        rows += &format!(
            "| {model} | {threads} | {:.3} | {:.3} | {:.3} | {:.3} | **{ratio:.3}** |\n",
            ours.median, theirs.median, ours.min, theirs.min,
        );
    }
    format!(
        "# Latency beside LiteRT\n\n\
         Written by `cargo xtask bench`. Steady-state times of one inference in milliseconds; \
         a ratio below 1 means that this project is faster.\n\
         Both run in turns on the same machine, {rounds} rounds of {} ms each after {} ms of warm-up; \
         the ratio is the median of the rounds' ratios of medians.\n\n\
         - CPU: {}, {} cores\n\
         - this project: {}, XNNPACK {}\n\
         - LiteRT: {litert}, with its XNNPACK delegate\n\n\
         | model | threads | median | LiteRT median | minimum | LiteRT minimum | ratio |\n\
         |---|--:|--:|--:|--:|--:|--:|\n\
         {rows}",
        MEASURED.as_millis(),
        WARM_UP.as_millis(),
        host.cpu,
        host.cores,
        build::VERSION,
        build::XNNPACK_REVISION,
    )
}
