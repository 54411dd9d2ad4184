//! LiteRT in a process of its own, timed in turns with this project.

use std::io::{BufRead, BufReader, Lines, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

use anyhow::{Context, Result, anyhow, ensure};
use serde_json::Value;
use xnn_delegate::{Error, Runner};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tools/python/bench_litert.py");
/// Before each turn: the threads of the other side wait for work a moment before they sleep.
const PAUSE: Duration = Duration::from_millis(50);
/// What a side runs in each turn before its measured time: caches fill.
pub const WARM_UP: Duration = Duration::from_millis(20);
pub const MEASURED: Duration = Duration::from_millis(50);

/// The script's end of a comparison; its doc comment says what it answers.
pub struct LiteRt {
    process: Child,
    requests: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
    /// The script's first line.
    pub state: Value,
}

impl LiteRt {
    /// `library` is `libxnn_delegate.so`, where it takes part.
    pub fn start(python: &str, model: &str, threads: usize, library: Option<&str>) -> Result<Self> {
        let mut process = Command::new(python)
            .args([SCRIPT, "--model", model, "--threads", &threads.to_string()])
            .args(library.iter().flat_map(|library| ["--library", library]))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {python}"))?;
        let requests = process.stdin.take().context("no pipe")?;
        let answers = BufReader::new(process.stdout.take().context("no pipe")?).lines();
        let mut litert = Self { process, requests, answers, state: Value::Null };
        litert.state = litert.answer()?;
        Ok(litert)
    }

    pub fn ask(&mut self, request: &str) -> Result<Value> {
        writeln!(self.requests, "{request}")?;
        self.answer()
    }

    /// Microseconds of each run of a side; at least one.
    pub fn run_for(&mut self, side: &str, time: Duration) -> Result<Vec<f64>> {
        let times = self.ask(&format!("time {side} {}", time.as_millis()))?;
        let times = times.as_array().context("LiteRT gives no list")?;
        times.iter().map(|time| time.as_f64().context("LiteRT gives no number")).collect()
    }

    fn answer(&mut self) -> Result<Value> {
        let line = self.answers.next().context("LiteRT has ended")??;
        Ok(serde_json::from_str(&line)?)
    }

    /// LiteRT's version.
    pub fn version(&self) -> Result<String> {
        let version = self.state["version"].as_str().context("LiteRT says no version")?;
        Ok(version.to_owned())
    }

    /// Ends the process.
    pub fn stop(self) -> Result<()> {
        let Self { mut process, requests, .. } = self;
        drop(requests);
        let status = process.wait()?;
        ensure!(status.success(), "LiteRT's process failed ({status})");
        Ok(())
    }
}

/// Gets a duration and gives the microseconds of each run in it.
pub type Side<'a, T> = &'a dyn Fn(&mut T, Duration) -> Result<Vec<f64>>;

/// Runs all sides in turns, `rounds` times: of each side, the times of each round.
///
/// In every second round the order is the other way round.
pub fn in_turns<T>(
    context: &mut T,
    sides: &[Side<'_, T>],
    rounds: usize,
) -> Result<Vec<Vec<Vec<f64>>>> {
    let mut times = vec![Vec::with_capacity(rounds); sides.len()];
    for round in 0..rounds {
        for position in 0..sides.len() {
            let side = if round % 2 == 0 { position } else { sides.len() - 1 - position };
            thread::sleep(PAUSE);
            sides[side](context, WARM_UP)?;
            times[side].push(sides[side](context, MEASURED)?);
        }
    }
    Ok(times)
}

/// Median of the rounds' ratios of medians; below 1 where `ours` is faster.
pub fn ratio(ours: &[Vec<f64>], theirs: &[Vec<f64>]) -> f64 {
    let ratios = ours.iter().zip(theirs).map(|(ours, theirs)| median(ours) / median(theirs));
    median(&ratios.collect::<Vec<_>>())
}

/// The upper one of the two in the middle of an even number.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Microseconds of each run; at least one.
pub fn run_for(runner: &mut Runner, time: Duration) -> Result<Vec<f64>> {
    let mut times = Vec::new();
    let start = Instant::now();
    while start.elapsed() < time || times.is_empty() {
        let begin = Instant::now();
        runner.run()?;
        times.push(begin.elapsed().as_secs_f64() * 1e6);
    }
    Ok(times)
}

/// Sets the inputs that LiteRT has written to `folder`.
pub fn set_inputs(runner: &mut Runner, litert: &mut LiteRt, folder: &str) -> Result<()> {
    let shapes = litert.ask(&format!("inputs {folder}"))?;
    let shapes: Vec<Vec<usize>> = serde_json::from_value(shapes)?;
    let changed: Vec<(usize, &[usize])> = (shapes.iter().map(Vec::as_slice).enumerate())
        .filter(|(index, dims)| runner.inputs().get(*index).is_some_and(|one| one.dims != *dims))
        .collect();
    if !changed.is_empty() {
        runner.resize_inputs(&changed)?;
    }
    for index in 0..shapes.len() {
        let bytes = fs::read(format!("{folder}/in_{index}.bin"))?;
        let input = runner.input_mut(index);
        ensure!(input.len() == bytes.len(), "input {index} has another size here than in LiteRT");
        input.copy_from_slice(&bytes);
    }
    Ok(())
}

/// Where something was measured.
pub struct Host {
    pub cpu: String,
    pub cores: usize,
}

impl Host {
    pub fn new() -> Result<Self> {
        let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let name = info.lines().find_map(|line| line.strip_prefix("model name"));
        let cpu =
            name.map_or("unknown", |name| name.trim_start_matches([' ', '\t', ':'])).to_owned();
        Ok(Self { cpu, cores: thread::available_parallelism()?.get() })
    }
}

pub fn write(file: &str, text: &str) -> Result<()> {
    fs::write(file, text).with_context(|| format!("cannot write {file}"))
}

/// An error of this project, with what it is about.
pub fn about(model: &str, error: &Error) -> anyhow::Error {
    anyhow!("{model}: {error}")
}
