//! `cargo xtask fuzz`: random files against the readers, lowering, the runtime and the reference kernels.
//!
//! The targets in `fuzz/` are built with libFuzzer's instrumentation and AddressSanitizer, which watches XNNPACK and the C of
//! this project as well. Instrumentation is a matter of unstable flags; the stable compiler of this project takes them, too.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs};

use anyhow::{Context, Result, bail, ensure};

use crate::{vendor, venv};

/// A program in `fuzz/fuzz_targets`.
struct Target {
    name: &'static str,
    /// The format of its input, which names a folder of seeds and a dictionary; `None` where any bytes mean something.
    format: Option<&'static str>,
    /// The target's part of the time, in percent.
    share: u32,
    /// Whether it links XNNPACK, which takes minutes to build with instrumentation.
    runs: bool,
}

const TARGETS: [Target; 7] = [
    Target { name: "parse", format: Some("model"), share: 20, runs: false },
    Target { name: "lower", format: Some("model"), share: 20, runs: true },
    Target { name: "blob", format: Some("graph"), share: 15, runs: false },
    Target { name: "pte", format: Some("program"), share: 10, runs: false },
    Target { name: "run", format: Some("graph"), share: 15, runs: true },
    Target { name: "model", format: Some("model"), share: 15, runs: true },
    Target { name: "delegate", format: None, share: 5, runs: true },
];

/// Choices for `cargo xtask fuzz`.
#[derive(clap::Args)]
pub struct Args {
    /// Only these targets
    #[arg(value_name = "TARGET")]
    targets: Vec<String>,
    /// Minutes for all targets together
    #[arg(long, default_value_t = 10.0)]
    minutes: f64,
    /// Stop each target after this many executions, but not before it has run all seeds
    #[arg(long)]
    runs: Option<u64>,
    /// Leave AddressSanitizer out: targets that only read files run four times as often
    #[arg(long)]
    no_sanitizer: bool,
    /// Write the seeds anew, from the models of the tests, instead of fuzzing
    #[arg(long, conflicts_with_all = ["targets", "runs", "no_sanitizer"])]
    seeds: bool,
}

/// Bytes of the longest input; no seed is longer.
const MAX_BYTES: usize = 8192;

/// How one target ended.
struct Outcome {
    name: &'static str,
    executions: u64,
    time: Duration,
    /// Edges of the instrumented code that were reached.
    coverage: u64,
    corpus: u64,
    /// The largest resident size of the process, in MiB.
    peak: u64,
    /// The input that ended it.
    finding: Option<PathBuf>,
}

/// Builds the targets, runs them one after the other and prints a table.
pub fn run(root: &Path, args: &Args) -> Result<()> {
    vendor::run(root, &vendor::Args::default())?;
    let folder = root.join("fuzz");
    if args.seeds {
        return write_seeds(root, &folder);
    }
    let selected = select(&args.targets)?;
    let programs = build(root, &folder, &selected, !args.no_sanitizer)?;
    let shares: u32 = selected.iter().map(|target| target.share).sum();
    let mut outcomes = Vec::new();
    for target in selected {
        let seconds = args.minutes * 60.0 * f64::from(target.share) / f64::from(shares);
        let limits = [
            format!("-max_total_time={}", (seconds.ceil() as u64).max(1)),
            format!("-runs={}", args.runs.map_or(-1, |runs| runs as i64)),
        ];
        outcomes.push(fuzz(root, &folder, &programs, target, &limits)?);
    }
    println!("{}", table(&outcomes));
    let found: Vec<_> = outcomes.iter().filter_map(|outcome| outcome.finding.as_ref()).collect();
    ensure!(found.is_empty(), "{} targets ended with a finding: {found:?}", found.len());
    Ok(())
}

fn select(names: &[String]) -> Result<Vec<&'static Target>> {
    if names.is_empty() {
        return Ok(TARGETS.iter().collect());
    }
    let find = |name: &String| {
        TARGETS.iter().find(|target| target.name == name).with_context(|| {
            let known: Vec<_> = TARGETS.iter().map(|target| target.name).collect();
            format!("there is no target {name:?}; there are {}", known.join(", "))
        })
    };
    names.iter().map(find).collect()
}

/// Builds seeds without instrumentation, from the models of the operators' tests.
fn write_seeds(root: &Path, folder: &Path) -> Result<()> {
    let seeds = folder.join("seeds");
    if seeds.is_dir() {
        fs::remove_dir_all(&seeds).context("cannot remove the old seeds")?;
    }
    venv::run(
        Command::new(env!("CARGO"))
            .args(["run", "--release", "--quiet", "--bin", "seeds", "--"])
            .args([&root.join("tests/golden/operators"), &seeds])
            .env("CARGO_TARGET_DIR", venv::target(root).join("fuzz/plain"))
            .current_dir(folder),
    )
}

/// Counters for libFuzzer: flags that cargo-fuzz passes, too.
const RUST_FLAGS: &str = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares";
const C_FLAGS: &str = "-fsanitize=address -fno-omit-frame-pointer";

/// Builds the targets and returns the folder that they are in.
fn build(root: &Path, folder: &Path, targets: &[&Target], sanitized: bool) -> Result<PathBuf> {
    let triple = format!("{}-unknown-linux-gnu", env::consts::ARCH);
    let (name, sanitizer) =
        if sanitized { ("instrumented", " -Zsanitizer=address") } else { ("counted", "") };
    let built = venv::target(root).join("fuzz").join(name);
    let names = targets.iter().flat_map(|target| ["--bin", target.name]);
    let runs = targets.iter().any(|target| target.runs);
    let features: &[&str] = if runs { &[] } else { &["--no-default-features"] };
    venv::run(
        Command::new(env!("CARGO"))
            // A target of its own keeps the flags away from build scripts and macros.
            .args(["build", "--release", "--target", &triple])
            .args(features)
            .args(names)
            .env("CARGO_TARGET_DIR", &built)
            .env("RUSTC_BOOTSTRAP", "1")
            .env("RUSTFLAGS", format!("{RUST_FLAGS}{sanitizer}"))
            .env(
                format!("CFLAGS_{}", triple.replace('-', "_")),
                if sanitized { C_FLAGS } else { "" },
            )
            .current_dir(folder),
    )?;
    Ok(built.join(triple).join("release"))
}

/// Runs one target: its corpus grows in the folder of what is built, the seeds are read only.
fn fuzz(
    root: &Path,
    folder: &Path,
    programs: &Path,
    target: &Target,
    limits: &[String],
) -> Result<Outcome> {
    let work = venv::target(root).join("fuzz");
    let prefix = work.join("findings").join(format!("{}-", target.name));
    let (corpus, findings) = (work.join("corpus").join(target.name), work.join("findings"));
    for folder in [&corpus, &findings] {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    eprintln!("fuzzing {}", target.name);
    let start = Instant::now();
    let mut command = Command::new(programs.join(target.name));
    command.args(limits).arg(corpus);
    if let Some(format) = target.format {
        let dictionary = folder.join("dictionaries").join(format).with_extension("dict");
        command.arg(format!("-dict={}", dictionary.display()));
        command.arg(folder.join("seeds").join(format));
    }
    let output = command
        .arg(format!("-max_len={MAX_BYTES}"))
        .arg(format!("-artifact_prefix={}", prefix.display()))
        .args(["-print_final_stats=1", "-rss_limit_mb=4096", "-timeout=20"])
        .stdout(Stdio::null())
        .output()
        .with_context(|| format!("cannot start {}", target.name))?;
    let log = String::from_utf8_lossy(&output.stderr);
    let written = log.rsplit_once("Test unit written to ").map(|(_, behind)| behind);
    let finding = written.and_then(|behind| behind.lines().next()).map(PathBuf::from);
    if !output.status.success() {
        eprintln!("{log}");
        if finding.is_none() {
            bail!("{} failed without a finding ({})", target.name, output.status);
        }
    }
    Ok(Outcome {
        name: target.name,
        executions: number(&log, "stat::number_of_executed_units:"),
        time: start.elapsed(),
        coverage: number(&log, " cov: "),
        corpus: number(&log, " corp: "),
        peak: number(&log, "stat::peak_rss_mb:"),
        finding,
    })
}

/// Returns the number behind the last `label` in a log; 0 if the log does not contain one.
fn number(log: &str, label: &str) -> u64 {
    let Some((_, behind)) = log.rsplit_once(label) else { return 0 };
    let digits: String = behind.trim_start().chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap_or(0)
}

fn table(outcomes: &[Outcome]) -> String {
    let mut text = String::from(
        "| target | executions | seconds | edges reached | corpus | peak, MiB | findings |\n|---|---|---|---|---|---|---|\n",
    );
    for outcome in outcomes {
        let finding = outcome.finding.as_deref().map_or("none".into(), Path::to_string_lossy);
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "| `{}` | {} | {:.0} | {} | {} | {} | {finding} |",
            outcome.name,
            outcome.executions,
            outcome.time.as_secs_f64(),
            outcome.coverage,
            outcome.corpus,
            outcome.peak,
        );
    }
    let executions: u64 = outcomes.iter().map(|outcome| outcome.executions).sum();
    let _ = write!(text, "{executions} executions in all");
    text
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    const LOG: &str = "#8388608\tpulse  cov: 3200 ft: 9000 corp: 400/12Kb exec/s: 30000\n\
        #9000000\tDONE   cov: 3210 ft: 9100 corp: 405/12Kb lim: 4096 exec/s: 30000\n\
        stat::number_of_executed_units: 9000000\nstat::peak_rss_mb:              512\n";

    #[test]
    fn the_last_numbers_of_a_log_count() {
        assert_eq!(number(LOG, " cov: "), 3210);
        assert_eq!(number(LOG, " corp: "), 405);
        assert_eq!(number(LOG, "stat::number_of_executed_units:"), 9_000_000);
        assert_eq!(number(LOG, "stat::peak_rss_mb:"), 512);
        assert_eq!(number(LOG, "stat::new_units_added:"), 0);
    }

    #[test]
    fn targets_are_chosen_by_name() {
        assert_eq!(select(&[]).unwrap().len(), TARGETS.len());
        assert_eq!(select(&["pte".into()]).unwrap()[0].name, "pte");
        let error = select(&["ptr".into()]).err().unwrap().to_string();
        assert!(error.contains("\"ptr\"") && error.contains("parse"), "{error}");
    }
}
