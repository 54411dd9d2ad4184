//! Watches workers, and starts another one where one died.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;
use std::{env, fs, thread};

use xnn_delegate::model::Amplification;

use crate::{Seed, worker};

/// After which a mutant counts as a hang, on a machine that does other things too.
const PATIENCE: Duration = Duration::from_secs(60);
/// Address space of a worker in kB, where `ulimit` knows it: far above what the limits of the readers
/// let a graph ask for, far below what a damaged number can.
const ADDRESS_SPACE_KB: u64 = 4 << 20;
/// How much a worker's memory may grow once it has seen a third of its mutants, in kB.
const GROWTH_KB: u64 = 64 << 10;

/// Outcomes of all mutants.
#[derive(Default)]
struct Report {
    outcomes: BTreeMap<String, usize>,
    /// Messages without a place, digits taken out.
    graph: BTreeMap<String, usize>,
    /// Mutants that killed or stopped a worker.
    fatal: Vec<String>,
    slowest: (u64, String),
    /// Most memory that a mutant took in addition to its worker's, and this mutant.
    largest_kb: (u64, String),
    /// Resident memory after each mutant of the present worker.
    memory_kb: Vec<u64>,
}

/// Tries mutants `0..count`.
pub fn run(seeds: &[Seed], count: usize) {
    let mut report = Report::default();
    let mut next = 0;
    while next < count {
        next = report.watch(seeds, next, count);
    }
    report.print(count);
    assert!(report.fatal.is_empty(), "{} workers died", report.fatal.len());
    let allowed = Amplification::default().free_bytes >> 10;
    assert!(report.largest_kb.0 <= 2 * allowed, "{:?}", report.largest_kb);
    assert!(report.graph.keys().all(|message| is_about_all(message)), "{:#?}", report.graph);
}

/// Messages that need no node or value: they are about the graph as a whole.
fn is_about_all(message: &str) -> bool {
    let parts = ["lists of values and nodes", "external", "output", "limit of"];
    parts.iter().any(|part| message.contains(part))
}

impl Report {
    /// Follows one worker to the end or its death; the next mutant to try.
    fn watch(&mut self, seeds: &[Seed], first: usize, count: usize) -> usize {
        let mut worker = start(first, count);
        let lines = lines(&mut worker);
        let mut present = None;
        let mut next = first;
        self.memory_kb.clear();
        let death = loop {
            let line = match lines.recv_timeout(PATIENCE) {
                Ok(line) => line,
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    worker.kill().unwrap();
                    break Some("hang".to_owned());
                }
                Err(mpsc::RecvTimeoutError::Disconnected) => break None,
            };
            if let Some(what) = line.strip_prefix("begin ") {
                present = Some(what.to_owned());
            } else if let Some(end) = line.strip_prefix("end ") {
                self.count(end, present.take());
                next += 1;
            }
        };
        let status = worker.wait().unwrap();
        if next < count {
            let what = present.unwrap_or_default();
            let file = save(seeds, next);
            let death = death.unwrap_or_else(|| status.to_string());
            self.fatal.push(format!("{death}: mutant {what}: {}", file.display()));
            next += 1;
        } else {
            assert!(status.success(), "{status}");
        }
        self.check_growth();
        next
    }

    fn count(&mut self, end: &str, what: Option<String>) {
        let mut words = end.splitn(5, ' ');
        let outcome = words.next().unwrap().to_owned();
        let mut number = || words.next().unwrap().parse::<u64>().unwrap();
        let (time, memory, taken) = (number(), number(), number());
        let reason = words.next().unwrap_or_default();
        if !reason.is_empty() {
            let message = reason.chars().filter(|c| !c.is_ascii_digit()).collect();
            *self.graph.entry(message).or_default() += 1;
        }
        *self.outcomes.entry(outcome).or_default() += 1;
        self.memory_kb.push(memory);
        let what = what.unwrap_or_default();
        if taken > self.largest_kb.0 {
            self.largest_kb = (taken, what.clone());
        }
        if time > self.slowest.0 {
            self.slowest = (time, what);
        }
    }

    fn check_growth(&self) {
        let warm = self.memory_kb.get(self.memory_kb.len() / 3);
        if let (Some(&warm), Some(&last)) = (warm, self.memory_kb.last()) {
            assert!(last < warm + GROWTH_KB, "memory grew from {warm} kB to {last} kB");
        }
    }

    fn print(&self, count: usize) {
        println!("{count} mutants: {:?}", self.outcomes);
        println!("without a place: {:#?}", self.graph);
        println!("memory at the end {:?} kB", self.memory_kb.last());
        println!("largest {} kB: {}", self.largest_kb.0, self.largest_kb.1);
        println!("slowest {} ms: {}", self.slowest.0, self.slowest.1);
        for fatal in &self.fatal {
            println!("FATAL {fatal}");
        }
    }
}

fn start(first: usize, count: usize) -> Child {
    let program = env::current_exe().unwrap();
    let mut command = match cfg!(unix) {
        true => {
            let mut shell = Command::new("sh");
            let script = format!("ulimit -v {ADDRESS_SPACE_KB}; ulimit -c 0; exec \"$0\" \"$@\"");
            shell.arg("-c").arg(script).arg(program);
            shell
        }
        false => Command::new(program),
    };
    command
        .args(["--exact", "mutants_end_in_an_error_or_a_result", "--nocapture"])
        .env(worker::RANGE, format!("{first}..{count}"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

fn lines(worker: &mut Child) -> Receiver<String> {
    let out = worker.stdout.take().unwrap();
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(out).lines() {
            if line.is_err() || sender.send(line.unwrap()).is_err() {
                return;
            }
        }
    });
    receiver
}

/// Keeps a mutant for whoever looks into its crash.
fn save(seeds: &[Seed], number: usize) -> PathBuf {
    let (seed, bytes, _) = Seed::mutant(seeds, number);
    let extension = seed.path.extension().unwrap().to_str().unwrap();
    let file =
        PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("mutant-{number}.{extension}"));
    fs::write(&file, bytes).unwrap();
    file
}
