//! Measuring.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use tempfile::tempdir;
use xnn_bench::{Facts, Peer, Request, Runs, in_turns, median};

use super::conversion;
use super::results::{Cpu, Failure, Gemm, Model, Samples, gops, summarize};
use super::sides::{OURS, Side};
use super::tools::{Files, Tools};

/// Numbers of instances beside one whose memory is counted.
const INSTANCES: [usize; 2] = [4, 8];

/// Turns of several streams are longer by this factor, as they begin and end at different times.
const STREAMS_DURATION: u32 = 4;

/// How much is measured.
#[derive(Debug)]
pub struct Plan {
    pub sides: Vec<&'static Side>,
    /// In ascending order.
    pub threads: Vec<usize>,
    pub rounds: usize,
    /// With the fewest threads; with more, there is one.
    pub starts: usize,
    /// Number of instances that run at the same time; 0 for none.
    pub streams: usize,
}

/// A side with a number of threads: one row of the results, while it is made.
struct Entry {
    samples: Samples,
    peer: Option<Peer>,
    failure: Option<String>,
}

impl Entry {
    /// The value, or the failure that ends the entry.
    fn take<T>(&mut self, result: Result<T>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                self.failure.get_or_insert(format!("{error:#}"));
                self.peer = None;
                None
            }
        }
    }
}

/// Measures one model; the sides' versions are added to `versions`.
pub fn measure(
    path: &Path,
    plan: &Plan,
    tools: &Tools,
    versions: &mut BTreeMap<String, String>,
) -> Result<Model> {
    let folder = tempdir()?;
    let files = Files::new(path, folder.path());
    tools.draw_inputs(&files)?;
    let failures = conversion::prepare(&plan.sides, &files, tools);
    let mut entries = Vec::new();
    for &threads in &plan.threads {
        for &side in &plan.sides {
            let failure = failures.get(side.name).cloned();
            let samples = Samples {
                side,
                threads,
                starts: Vec::new(),
                rounds: Vec::new(),
                cpu: Cpu::default(),
                streams: Vec::new(),
                streams_cpu: Cpu::default(),
                instances: BTreeMap::new(),
            };
            entries.push(Entry { samples, peer: None, failure });
        }
    }
    let fewest = plan.threads.first();
    for round in 0..plan.starts.max(1) {
        for entry in entries.iter_mut().filter(|entry| entry.failure.is_none()) {
            if round > 0 && Some(&entry.samples.threads) != fewest {
                continue;
            }
            let started = start(entry, &files, tools);
            if let Some((peer, version)) = entry.take(started) {
                versions.insert(entry.samples.side.name.to_owned(), version);
                // The last one stays.
                entry.peer = Some(peer);
            }
        }
    }
    let rounds = time(&mut entries, plan.rounds, |peer, side, duration| peer.time(side, duration));
    for (at, rounds, cpu) in rounds {
        entries[at].samples.rounds = rounds;
        entries[at].samples.cpu = cpu;
    }
    let mut facts = None;
    for entry in &mut entries {
        let side = entry.samples.side.name;
        let Some(peer) = &mut entry.peer else { continue };
        // Threads have little to do with memory.
        let counts = fewest.filter(|&&few| few == entry.samples.threads);
        let memory: Result<Vec<_>> = counts
            .map_or(&[][..], |_| &INSTANCES)
            .iter()
            .map(|&count| Ok((count, peer.instances(side, count)?)))
            .collect();
        if side == OURS && facts.is_none() {
            facts = peer.ask::<Facts>(&Request::Facts).ok();
        }
        if let Some(memory) = entry.take(memory) {
            entry.samples.instances = memory.into_iter().collect();
        }
    }
    if plan.streams > 0 {
        let rounds = time(&mut entries, plan.rounds, |peer, side, duration| {
            peer.streams(side, plan.streams, duration * STREAMS_DURATION)
        });
        for (at, rounds, cpu) in rounds {
            entries[at].samples.streams = rounds;
            entries[at].samples.streams_cpu = cpu;
        }
    }
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let failures = entries.iter().filter_map(|entry| {
        let Samples { side, threads, .. } = entry.samples;
        let error = files.without_folders(entry.failure.as_deref()?);
        Some(Failure { side: side.name.to_owned(), threads, error })
    });
    let failures = failures.collect();
    let whole = entries.into_iter().filter(|entry| entry.failure.is_none());
    let samples: Vec<Samples> = whole.map(|entry| entry.samples).collect();
    Ok(Model { name, facts, runs: summarize(&samples, plan.streams), failures })
}

/// A process that has opened the model, and its runtime's version.
fn start(entry: &mut Entry, files: &Files, tools: &Tools) -> Result<(Peer, String)> {
    let Samples { side, threads, starts, .. } = &mut entry.samples;
    // The one before must not use memory and caches.
    entry.peer = None;
    files.read(side.form)?;
    let peer = Peer::start(&mut tools.peer(side, files, *threads)?)?;
    starts.push(peer.start_of(side.name)?.clone());
    let version = peer.version().to_owned();
    Ok((peer, version))
}

/// The rounds of each entry that has a process: its position, the microseconds of the runs in each round, and the processor time
/// of all its turns.
fn time(
    entries: &mut [Entry],
    rounds: usize,
    mut run: impl FnMut(&mut Peer, &str, Duration) -> Result<Runs>,
) -> Vec<(usize, Vec<Vec<f64>>, Cpu)> {
    let ready = entries.iter().enumerate().filter(|(_, one)| one.peer.is_some());
    let ready: Vec<(usize, usize)> = ready.map(|(at, one)| (at, one.samples.threads)).collect();
    let threads: Vec<usize> = ready.iter().map(|(_, threads)| *threads).collect();
    let mut cpu = vec![Cpu::default(); ready.len()];
    let times = in_turns(&threads, rounds, |turn, duration| {
        let (at, _) = ready.get(turn).context("no such side")?;
        let Entry { peer, samples, .. } = entries.get_mut(*at).context("no such side")?;
        let runs = run(peer.as_mut().context("it has ended")?, samples.side.name, duration)?;
        cpu[turn].add(&runs);
        Ok(runs.us)
    });
    let mut taken = Vec::new();
    for (((at, _), times), cpu) in ready.into_iter().zip(times).zip(cpu) {
        if let Some(times) = entries[at].take(times) {
            taken.push((at, times, cpu));
        }
    }
    taken
}

/// The most that this project's kernels multiply, with a large layer alone.
pub fn gemm(plan: &Plan, tools: &Tools) -> Result<Vec<Gemm>> {
    let folder = tempdir()?;
    let files = Files::new(Path::new(""), folder.path());
    files.write_no_inputs()?;
    let mut sides = Vec::new();
    for &threads in &plan.threads {
        for kind in ["fp32", "int8"] {
            let peer = Peer::start(&mut tools.gemm(kind, &files, threads))?;
            sides.push((kind, threads, peer));
        }
    }
    let threads: Vec<usize> = sides.iter().map(|(_, threads, _)| *threads).collect();
    let times = in_turns(&threads, plan.rounds, |at, duration| {
        let (kind, _, peer) = sides.get_mut(at).context("no such side")?;
        Ok(peer.time(kind, duration)?.us)
    });
    let mut gemm = Vec::new();
    for ((kind, threads, mut peer), rounds) in sides.into_iter().zip(times) {
        let best = rounds?.iter().map(|round| median(round)).fold(f64::INFINITY, f64::min);
        let macs = peer.ask::<Facts>(&Request::Facts)?.macs;
        let gops = gops(macs, best / 1e3);
        gemm.push(Gemm { kind: kind.to_owned(), threads, gops });
    }
    Ok(gemm)
}
