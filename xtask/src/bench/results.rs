//! Measurements, as written to `results.json`.

use std::collections::BTreeMap;
use std::fs;
use std::thread;

use anyhow::Result;
use serde::{Deserialize, Serialize};
use xnn_bench::{Facts, Memory, Runs, Start, median, quantile, ratio};

use super::sides::{REFERENCE, Side};

/// A session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Results {
    pub host: Host,
    /// Version of each side's runtime.
    pub versions: BTreeMap<String, String>,
    /// Turns of each side with each model.
    pub rounds: usize,
    /// Processes of each side with each model.
    pub starts: usize,
    /// Number of other threads that were busy during the session.
    #[serde(default)]
    pub busy: usize,
    /// Number of instances that ran at the same time, 0 if this was not measured.
    #[serde(default)]
    pub streams: usize,
    pub gemm: Vec<Gemm>,
    pub models: Vec<Model>,
}

/// Where it was measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    pub cpu: String,
    pub cores: usize,
}

/// The most that the processor multiplies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gemm {
    /// `fp32` or `int8`.
    pub kind: String,
    pub threads: usize,
    /// Multiplications and additions in a second, in 10^9: the best round's median.
    pub gops: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Model {
    pub name: String,
    /// Missing where this project does not run the model, or did not take part.
    pub facts: Option<Facts>,
    pub runs: Vec<Run>,
    pub failures: Vec<Failure>,
}

/// One side with one number of threads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    pub side: String,
    pub threads: usize,
    pub partitions: Option<u64>,
    /// Medians of the starts.
    pub load_ms: f64,
    pub first_ms: f64,
    /// Median of all runs in all rounds.
    pub median_ms: f64,
    pub p90_ms: f64,
    pub min_ms: f64,
    /// Processor time of a run, of all threads together: the mean of all turns.
    #[serde(default)]
    pub cpu_ms: Option<f64>,
    pub runs: usize,
    /// By number of instances in one process.
    pub memory: BTreeMap<usize, Memory>,
    /// Several instances at the same time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streams: Option<Streams>,
    /// Time with these threads by the same side's time with the fewest.
    pub scaling: Option<f64>,
    /// Processor time with these threads by that with the fewest.
    #[serde(default)]
    pub cpu_scaling: Option<f64>,
    /// By [`Metric::name`].
    pub ratios: BTreeMap<String, Ratio>,
}

/// Several instances that ran at the same time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Streams {
    /// Runs of all instances.
    pub runs_per_second: f64,
    /// Latencies of single runs.
    pub median_ms: f64,
    pub p90_ms: f64,
    /// Processor time of a run.
    #[serde(default)]
    pub cpu_ms: Option<f64>,
    /// Time of a run, by that of the reference with as many threads: below 1 where this side is faster.
    pub to_litert: Option<f64>,
}

/// A figure, compared with those of peers with as many threads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// The peer whose figure is best.
    pub best_peer: String,
    /// By peer: below 1 where this side is better.
    pub to: BTreeMap<String, f64>,
}

impl Ratio {
    pub fn to_best(&self) -> f64 {
        self.to(&self.best_peer).unwrap_or(f64::NAN)
    }

    /// `None` where the peer did not run the model.
    pub fn to(&self, peer: &str) -> Option<f64> {
        self.to.get(peer).copied()
    }

    pub fn to_litert(&self) -> Option<f64> {
        self.to(REFERENCE)
    }
}

/// A side that does not run a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    pub side: String,
    pub threads: usize,
    pub error: String,
}

/// A figure of a [`Run`]; less is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    Load,
    First,
    /// Load and first run.
    Start,
    Median,
    P90,
    /// Processor time.
    Cpu,
    Steady(usize),
    Peak(usize),
}

impl Metric {
    pub const ALL: [Self; 10] = [
        Self::Load,
        Self::First,
        Self::Start,
        Self::Median,
        Self::P90,
        Self::Cpu,
        Self::Steady(1),
        Self::Peak(1),
        Self::Steady(4),
        Self::Steady(8),
    ];

    pub fn name(self) -> String {
        match self {
            Self::Load => "load".into(),
            Self::First => "first".into(),
            Self::Start => "load+first".into(),
            Self::Median => "median".into(),
            Self::P90 => "p90".into(),
            Self::Cpu => "cpu".into(),
            Self::Steady(1) => "steady".into(),
            Self::Peak(1) => "peak".into(),
            Self::Steady(instances) => format!("steady x{instances}"),
            Self::Peak(instances) => format!("peak x{instances}"),
        }
    }

    pub fn of(self, run: &Run) -> Option<f64> {
        let memory = |instances| run.memory.get(&instances);
        match self {
            Self::Load => Some(run.load_ms),
            Self::First => Some(run.first_ms),
            Self::Start => Some(run.load_ms + run.first_ms),
            Self::Median => Some(run.median_ms),
            Self::P90 => Some(run.p90_ms),
            Self::Cpu => run.cpu_ms,
            Self::Steady(instances) => memory(instances).map(|memory| memory.steady as f64),
            Self::Peak(instances) => memory(instances).map(|memory| memory.peak as f64),
        }
    }
}

impl Run {
    pub fn ratio(&self, metric: Metric) -> Option<&Ratio> {
        self.ratios.get(&metric.name())
    }
}

impl Model {
    pub fn run(&self, side: &str, threads: usize) -> Option<&Run> {
        self.runs.iter().find(|run| run.side == side && run.threads == threads)
    }
}

impl Results {
    /// In ascending order.
    pub fn threads(&self) -> Vec<usize> {
        let runs = self.models.iter().flat_map(|model| &model.runs);
        let mut threads: Vec<usize> = runs.map(|run| run.threads).collect();
        threads.sort_unstable();
        threads.dedup();
        threads
    }
}

impl Host {
    pub fn new() -> Result<Self> {
        let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let name = info.lines().find_map(|line| line.strip_prefix("model name"));
        let cpu = name.map_or("unknown", |name| name.trim_start_matches([' ', '\t', ':']));
        Ok(Self { cpu: cpu.to_owned(), cores: thread::available_parallelism()?.get() })
    }
}

/// Measurements of one side with one number of threads.
#[derive(Clone, Debug)]
pub struct Samples {
    pub side: &'static Side,
    pub threads: usize,
    pub starts: Vec<Start>,
    /// Microseconds of the runs in each round.
    pub rounds: Vec<Vec<f64>>,
    pub cpu: Cpu,
    /// Microseconds of the runs of all streams in each round.
    pub streams: Vec<Vec<f64>>,
    pub streams_cpu: Cpu,
    /// Memory of several instances in one process, by their number.
    pub instances: BTreeMap<usize, Memory>,
}

/// Processor time of runs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cpu {
    us: f64,
    runs: usize,
}

impl Cpu {
    pub fn add(&mut self, runs: &Runs) {
        self.us += runs.cpu_us;
        self.runs += runs.us.len();
    }

    /// Milliseconds of a run, if there was one.
    fn ms(self) -> Option<f64> {
        (self.runs > 0).then(|| self.us / self.runs as f64 / 1e3)
    }
}

/// The figures of a model, compared with each other.
pub fn summarize(samples: &[Samples], streams: usize) -> Vec<Run> {
    let mut runs: Vec<Run> = samples.iter().map(figures).collect();
    for (run, one) in runs.iter_mut().zip(samples) {
        run.streams = throughput(one, samples, streams);
    }
    let fewest = samples.iter().map(|one| one.threads).min();
    for (run, one) in runs.iter_mut().zip(samples) {
        let alone =
            |other: &&Samples| other.side.name == one.side.name && Some(other.threads) == fewest;
        let alone = samples.iter().find(alone).filter(|other| other.threads != one.threads);
        run.scaling = alone.map(|alone| ratio(&one.rounds, &alone.rounds));
        run.cpu_scaling = alone.and_then(|alone| Some(one.cpu.ms()? / alone.cpu.ms()?));
    }
    let ratios: Vec<_> = (0..runs.len())
        .map(|at| {
            Metric::ALL
                .into_iter()
                .filter_map(|metric| Some((metric.name(), compare(samples, &runs, at, metric)?)))
                .collect()
        })
        .collect();
    for (run, ratios) in runs.iter_mut().zip(ratios) {
        run.ratios = ratios;
    }
    runs
}

fn figures(one: &Samples) -> Run {
    let of = |figure: fn(&Start) -> f64| median(&one.starts.iter().map(figure).collect::<Vec<_>>());
    let bytes = |figure: fn(&Start) -> f64| of(figure) as u64;
    let first = Memory {
        steady: bytes(|start| start.memory.steady as f64),
        peak: bytes(|start| start.memory.peak as f64),
    };
    let times = one.rounds.concat();
    Run {
        side: one.side.name.to_owned(),
        threads: one.threads,
        partitions: one.starts.first().and_then(|start| start.partitions),
        load_ms: of(|start| start.load_ms),
        first_ms: of(|start| start.first_ms),
        median_ms: median(&times) / 1e3,
        p90_ms: quantile(&times, 0.9) / 1e3,
        min_ms: quantile(&times, 0.0) / 1e3,
        cpu_ms: one.cpu.ms(),
        runs: times.len(),
        memory: one
            .instances
            .iter()
            .map(|(&count, &memory)| (count, memory))
            .chain([(1, first)])
            .collect(),
        streams: None,
        scaling: None,
        cpu_scaling: None,
        ratios: BTreeMap::new(),
    }
}

/// Figures of the streams, if these were measured.
fn throughput(one: &Samples, samples: &[Samples], streams: usize) -> Option<Streams> {
    let times = one.streams.concat();
    if times.is_empty() {
        return None;
    }
    let means = |samples: &Samples| -> Vec<Vec<f64>> {
        samples.streams.iter().map(|round| vec![mean(round)]).collect()
    };
    let reference = |other: &&Samples| {
        other.side.name == REFERENCE && other.threads == one.threads && !other.streams.is_empty()
    };
    Some(Streams {
        // Each stream runs without pause.
        runs_per_second: streams as f64 * 1e6 / mean(&times),
        median_ms: median(&times) / 1e3,
        p90_ms: quantile(&times, 0.9) / 1e3,
        cpu_ms: one.streams_cpu.ms(),
        to_litert: samples.iter().find(reference).map(|other| ratio(&means(one), &means(other))),
    })
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// A figure of the run `at` beside those of the peers with as many threads.
fn compare(samples: &[Samples], runs: &[Run], at: usize, metric: Metric) -> Option<Ratio> {
    let (sample, run) = (samples.get(at)?, runs.get(at)?);
    let ours = metric.of(run)?;
    let to = |other: &Samples, theirs: f64| match metric {
        // Other load of the machine in a round affected both sides.
        Metric::Median => ratio(&sample.rounds, &other.rounds),
        _ => ours / theirs,
    };
    let peers: Vec<(&Samples, f64)> = (samples.iter().zip(runs))
        .filter(|(other, _)| !other.side.is_ours() && other.threads == sample.threads)
        .filter_map(|(other, run)| Some((other, metric.of(run)?)))
        .collect();
    let (best, _) = peers.iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
    Some(Ratio {
        best_peer: best.side.name.to_owned(),
        to: peers.iter().map(|(peer, theirs)| (peer.side.name.into(), to(peer, *theirs))).collect(),
    })
}

/// Multiplications and additions in a second, in 10^9.
pub fn gops(macs: u64, ms: f64) -> f64 {
    2.0 * macs as f64 / (ms * 1e6)
}
