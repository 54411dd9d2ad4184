//! `cargo xtask cross TARGET count`: instructions that a run of a model executes, counted in an emulator.

mod litert;
mod plugin;
mod report;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use anyhow::{Context, Result, ensure};

use super::targets::{Counter, Processor, Target, When};
use super::{Cross, Subjects, toolchain};
use crate::bench::find_models;
use crate::venv;
use litert::LiteRt;
use plugin::Plugin;
use report::{Report, Row};

/// Counted where no model is given.
const MODELS: [&str; 19] = [
    "mobilenet_v1_1.0_224_fp32",
    "mobilenet_v1_1.0_224_int8_perchannel",
    "mobilenet_v1_1.0_224_quant",
    "mobilenet_v2_1.0_224_fp32",
    "mobilenet_v2_1.0_224_int8_ptq",
    "mobilenet_v2_1.0_224_quant",
    "mobilenet_v2_1.0_224_dynamic_range",
    "mobilenet_v3_small_1.0_224_int8_rand",
    "mobilenet_v3_small_1.0_224_dynamic_range_rand",
    "mobilenet_edgetpu_1.0_224_uint8",
    "face_landmark",
    "resnet8_cifar_fp32",
    "resnet8_cifar_int8",
    "kws_dscnn_fp32",
    "kws_dscnn_int8",
    "person_detect_int8",
    "modern/dw7x7_f32",
    "modern/dw7x7_int8",
    "modern/edgenext_xs_dyn8",
];

/// Runs that are counted, after warm-up. They hardly differ.
const RUNS: usize = 2;

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    subjects: Subjects,
    /// Count this project's instructions alone
    #[arg(long)]
    no_litert: bool,
    /// Folder to write `arm.md` and `arm.json` to
    #[arg(long, value_name = "DIR", default_value = "docs/benchmarks")]
    report: PathBuf,
}

/// Counts with an emulator on each processor of this machine, and writes the report after each row.
pub fn run(root: &Path, target: &'static Target, args: &Args) -> Result<()> {
    let counter = target.counter.as_ref().with_context(|| {
        format!("no emulator that counts instructions is known for {}", target.triple)
    })?;
    toolchain::check(target.run_tools)?;
    let models = find_models(root, &args.subjects.models, &MODELS)?;
    let processors = target.processors(&args.subjects.processors, When::Full)?;
    ensure!(!processors.is_empty(), "{} has no processors to emulate", target.triple);
    let folder = venv::target(root).join("cross");
    let plugin = Plugin::new(&std::path::absolute(folder.join("count"))?, counter)?;
    let litert = if args.no_litert { None } else { Some(LiteRt::new(&folder, &counter.peer)?) };
    let cross = Cross::new(root, target)?;
    let xnn = cross.xnn(&args.subjects.profile)?;

    let mut report = Report::new(&cross, &plugin, litert.as_ref(), &processors);
    let out = root.join(&args.report);
    fs::create_dir_all(&out)?;
    let emulator = Emulator { counter, plugin: &plugin };
    let count = |(model, processor): (&PathBuf, &'static Processor)| {
        let ours = emulator
            .count(processor, |options| ours(target, counter.emulator, &xnn, options, model));
        let theirs = litert.as_ref().map(|litert| {
            emulator
                .count(processor, |options| litert.command(counter.emulator, options, model, RUNS))
        });
        Row::new(model, processor, ours, theirs)
    };
    let jobs: Vec<_> = models
        .iter()
        .flat_map(|model| processors.iter().map(move |&processor| (model, processor)))
        .collect();
    let emulators = thread::available_parallelism()?.get();
    in_order(&jobs, emulators, count, |row| {
        println!("{row}");
        report.push(row);
        report.write(&out)
    })?;
    println!("{} is written", out.join(report::TEXT).display());
    Ok(())
}

/// Calls `work` with each job on `threads` threads, and `done` with the results in the order of the jobs. After an error of `done`,
/// the jobs that have begun are the last.
fn in_order<J: Copy + Sync, R: Send>(
    jobs: &[J],
    threads: usize,
    work: impl Fn(J) -> R + Sync,
    mut done: impl FnMut(R) -> Result<()>,
) -> Result<()> {
    let next = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::channel();
    let (next, work) = (&next, &work);
    thread::scope(|scope| {
        for sender in vec![sender; threads] {
            scope.spawn(move || {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(&job) = jobs.get(index) else { break };
                    if sender.send((index, work(job))).is_err() {
                        break;
                    }
                }
            });
        }
        let mut early = BTreeMap::new();
        let mut expected = 0;
        for (index, result) in receiver {
            early.insert(index, result);
            while let Some(result) = early.remove(&expected) {
                done(result)?;
                expected += 1;
            }
        }
        Ok(())
    })
}

/// The emulator and its plugin.
struct Emulator<'a> {
    counter: &'a Counter,
    plugin: &'a Plugin,
}

impl Emulator<'_> {
    /// Returns the instructions of a run, of a program that `command` starts with options for the emulator.
    fn count(
        &self,
        processor: &Processor,
        command: impl FnOnce(&[String]) -> Command,
    ) -> Result<u64> {
        let folder = tempfile::tempdir()?;
        let out = folder.path().join("readings");
        let options = ["-plugin".to_owned(), self.plugin.option(&out)];
        let mut command = command(&options);
        command.envs(processor.environment.iter().copied()).stdin(Stdio::null());
        let output =
            command.output().with_context(|| format!("cannot start {}", self.counter.emulator))?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{}: {}", output.status, last_line(&errors));
        self.plugin.read(&out, RUNS)
    }
}

fn last_line(text: &str) -> &str {
    text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("no message")
}

/// The command that runs a model in this project's program.
fn ours(target: &Target, emulator: &str, xnn: &Path, options: &[String], model: &Path) -> Command {
    let mut command = Command::new(emulator);
    command
        .args(options)
        .arg(xnn)
        .arg("bench")
        .arg(model)
        .args(["--threads", "1", "--json", "--runs"])
        .arg(RUNS.to_string())
        .envs(target.runner_environment.iter().copied());
    command
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::time::Duration;

    use anyhow::bail;

    use super::*;

    #[test]
    fn results_come_in_the_order_of_jobs() {
        // Earlier jobs take longer.
        let jobs: Vec<u64> = (0..20).collect();
        for threads in [1, 3] {
            let mut results = Vec::new();
            let work = |job| {
                thread::sleep(Duration::from_millis(20 - job));
                job * 2
            };
            let done = |result| {
                results.push(result);
                Ok(())
            };
            in_order(&jobs, threads, work, done).unwrap();
            assert_eq!(results, (0..20).map(|job| job * 2).collect::<Vec<_>>());
        }
    }

    #[test]
    fn an_error_ends_the_work() {
        let begun = AtomicUsize::new(0);
        let work = |job: u64| {
            begun.fetch_add(1, Ordering::Relaxed);
            thread::sleep(Duration::from_millis(5));
            job
        };
        let jobs: Vec<u64> = (0..50).collect();
        let done = |job| if job == 1 { bail!("the disk is full") } else { Ok(()) };
        assert!(in_order(&jobs, 2, work, done).is_err());
        assert!(begun.into_inner() < 50);
    }
}
