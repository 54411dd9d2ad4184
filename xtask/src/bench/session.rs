//! Measuring.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use tempfile::tempdir;
use xnn_bench::{Facts, Peer, Request, in_turns, median};

use super::conversion;
use super::results::{Failure, Gemm, Model, Samples, gops, summarize};
use super::sides::{OURS, Side};
use super::tools::{Files, Tools};

/// Numbers of instances beside one whose memory is counted.
const INSTANCES: [usize; 2] = [4, 8];

/// How much is measured.
#[derive(Debug)]
pub struct Plan {
    pub sides: Vec<&'static Side>,
    /// In ascending order.
    pub threads: Vec<usize>,
    pub rounds: usize,
    /// With the fewest threads; with more, there is one.
    pub starts: usize,
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
            let (starts, rounds, instances) = (Vec::new(), Vec::new(), BTreeMap::new());
            let samples = Samples { side, threads, starts, rounds, instances };
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
    time(&mut entries, plan.rounds);
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
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let failures = entries.iter().filter_map(|entry| {
        let Samples { side, threads, .. } = entry.samples;
        let error = files.without_folders(entry.failure.as_deref()?);
        Some(Failure { side: side.name.to_owned(), threads, error })
    });
    let failures = failures.collect();
    let whole = entries.into_iter().filter(|entry| entry.failure.is_none());
    let samples: Vec<Samples> = whole.map(|entry| entry.samples).collect();
    Ok(Model { name, facts, runs: summarize(&samples), failures })
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

/// The rounds.
fn time(entries: &mut [Entry], rounds: usize) {
    let mut ready: Vec<&mut Entry> = entries.iter_mut().filter(|one| one.peer.is_some()).collect();
    let threads: Vec<usize> = ready.iter().map(|one| one.samples.threads).collect();
    let times = in_turns(&threads, rounds, |at, duration| {
        let Entry { peer, samples, .. } = ready.get_mut(at).context("no such side")?;
        peer.as_mut().context("it has ended")?.time(samples.side.name, duration)
    });
    for (entry, times) in ready.into_iter().zip(times) {
        if let Some(times) = entry.take(times) {
            entry.samples.rounds = times;
        }
    }
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
        peer.time(kind, duration)
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
