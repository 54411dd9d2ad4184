//! Steady-state latency beside LiteRT's, in turns: `cargo xtask bench` sets up and starts it.
//!
//! Usage: `litert PYTHON REPORT ROUNDS MODEL...`, where PYTHON has LiteRT, and REPORT without
//! extension names the files to write.
//!
//! Each round runs one model for a short time here and for the same time in LiteRT's process, while the
//! other sleeps; so whatever else the machine does meets both alike, and a ratio says more than two
//! times do.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line program")]

use std::io::{BufRead, BufReader, Lines, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use xnn_delegate::{Datatype, Session, SessionOptions, build, open};
use xnn_model::DType;
use xnn_testing::Random;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tools/python/bench_litert.py");
const THREADS: [usize; 2] = [1, 2];
/// Before each turn: the threads of the other side wait for work a moment before they sleep.
const PAUSE: Duration = Duration::from_millis(50);
/// What a side runs in each turn before its measured time: caches fill.
const WARM_UP: Duration = Duration::from_millis(20);
const MEASURED: Duration = Duration::from_millis(50);

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
            let mut litert = LiteRt::start(python, model, threads)?;
            let mut session = session(model, threads)?;
            let result = in_turns(&mut session, &mut litert, rounds)?;
            let name = Path::new(model).file_stem().unwrap_or_default().to_string_lossy();
            eprintln!("{name}, {threads} threads: {:.3}", result.ratio);
            results.push((name.into_owned(), threads, result));
            version = litert.stop()?;
        }
    }
    let host = Host { cpu: cpu(), cores: thread::available_parallelism()?.get(), litert: version };
    write(&format!("{report}.json"), &to_json(&host, rounds, &results))?;
    let markdown = to_markdown(&host, rounds, &results);
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

struct Host {
    cpu: String,
    cores: usize,
    litert: String,
}

fn in_turns(session: &mut Session, litert: &mut LiteRt, rounds: usize) -> Result<Comparison> {
    let (mut ours, mut theirs, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..rounds {
        let (a, b);
        if round % 2 == 0 {
            (a, b) = (turn(|time| run_for(session, time))?, turn(|time| litert.run_for(time))?);
        } else {
            (b, a) = (turn(|time| litert.run_for(time))?, turn(|time| run_for(session, time))?);
        }
        ratios.push(median(&a) / median(&b));
        ours.extend(a);
        theirs.extend(b);
    }
    Ok(Comparison { ratio: median(&ratios), ours: Times::new(&ours), theirs: Times::new(&theirs) })
}

/// One side's part of a round.
fn turn(mut run_for: impl FnMut(Duration) -> Result<Vec<f64>>) -> Result<Vec<f64>> {
    thread::sleep(PAUSE);
    run_for(WARM_UP)?;
    run_for(MEASURED)
}

fn session(model: &str, threads: usize) -> Result<Session> {
    let options = SessionOptions { threads, ..SessionOptions::default() };
    let mut session = Session::new(&open(model)?, &options)?;
    let mut random = Random::new(0);
    for index in 0..session.inputs().len() {
        let info = &session.inputs()[index];
        let count = info.dims.iter().product();
        let dtype = if info.datatype == Datatype::F32 { DType::F32 } else { DType::U8 };
        session.input_mut(index).copy_from_slice(&random.tensor(dtype, count));
    }
    session.run()?;
    Ok(session)
}

/// Microseconds of each run; at least one.
fn run_for(session: &mut Session, time: Duration) -> Result<Vec<f64>> {
    let mut times = Vec::new();
    let start = Instant::now();
    while start.elapsed() < time {
        let begin = Instant::now();
        session.run()?;
        times.push(begin.elapsed().as_secs_f64() * 1e6);
    }
    Ok(times)
}

/// LiteRT in a process of its own.
struct LiteRt {
    process: Child,
    requests: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
    version: String,
}

impl LiteRt {
    fn start(python: &str, model: &str, threads: usize) -> Result<Self> {
        let mut process = Command::new(python)
            .args([SCRIPT, "--model", model, "--threads", &threads.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {python}"))?;
        let requests = process.stdin.take().context("no pipe")?;
        let answers = BufReader::new(process.stdout.take().context("no pipe")?).lines();
        let mut litert = Self { process, requests, answers, version: String::new() };
        litert.version =
            litert.answer()?["version"].as_str().context("LiteRT says no version")?.to_owned();
        Ok(litert)
    }

    /// Microseconds of each run; at least one.
    fn run_for(&mut self, time: Duration) -> Result<Vec<f64>> {
        writeln!(self.requests, "{}", time.as_millis())?;
        let times = self.answer()?;
        let times = times.as_array().context("LiteRT gives no list")?;
        times.iter().map(|time| time.as_f64().context("LiteRT gives no number")).collect()
    }

    fn answer(&mut self) -> Result<Value> {
        let line = self.answers.next().context("LiteRT has ended")??;
        Ok(serde_json::from_str(&line)?)
    }

    /// Ends the process; returns LiteRT's version.
    fn stop(mut self) -> Result<String> {
        drop(self.requests);
        self.process.wait()?;
        Ok(self.version)
    }
}

impl Times {
    fn new(micros: &[f64]) -> Self {
        let min = micros.iter().copied().fold(f64::INFINITY, f64::min);
        Self { median: median(micros) / 1e3, min: min / 1e3, runs: micros.len() }
    }
}

/// The upper one of the two in the middle of an even number.
fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

type Results = [(String, usize, Comparison)];

fn to_json(host: &Host, rounds: usize, results: &Results) -> String {
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
        "litert": host.litert,
        "rounds": rounds,
        "results": results,
    });
    format!("{report:#}\n")
}

fn to_markdown(host: &Host, rounds: usize, results: &Results) -> String {
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
         - LiteRT: {}, with its XNNPACK delegate\n\n\
         | model | threads | median | LiteRT median | minimum | LiteRT minimum | ratio |\n\
         |---|--:|--:|--:|--:|--:|--:|\n\
         {rows}",
        MEASURED.as_millis(),
        WARM_UP.as_millis(),
        host.cpu,
        host.cores,
        build::VERSION,
        build::XNNPACK_REVISION,
        host.litert,
    )
}

/// The processor's name, where the system tells it.
fn cpu() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info.lines().find_map(|line| line.strip_prefix("model name"));
    name.map_or("unknown", |name| name.trim_start_matches([' ', '\t', ':'])).to_owned()
}

fn write(file: &str, text: &str) -> Result<()> {
    fs::write(file, text).with_context(|| format!("cannot write {file}"))
}
