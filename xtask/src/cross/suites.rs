//! `cargo xtask cross TARGET test`: builds test programs once, and runs them on each processor.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::targets::{Processor, Suite, Target, UNIT, When};
use super::{Cross, toolchain};

/// The package of the workspace's root.
const ROOT_PACKAGE: &str = "xnn-delegate";

#[derive(clap::Args)]
pub struct Args {
    /// Run a subset that takes a few minutes
    #[arg(long, conflicts_with = "all")]
    quick: bool,
    /// Run whole models, too, which takes minutes for each
    #[arg(long)]
    all: bool,
    /// Processors to emulate [default: all of the target's; quick: two of them]
    #[arg(long = "cpu", value_name = "NAME", value_delimiter = ',')]
    processors: Vec<String>,
    /// Run these test programs: names of packages or of Cargo's test targets
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,
    /// Build the test programs, but run none
    #[arg(long)]
    no_run: bool,
    /// Arguments for each test program, such as the name of a test
    #[arg(last = true)]
    arguments: Vec<String>,
}

impl Args {
    fn kind(&self) -> When {
        match (self.quick, self.all) {
            (true, _) => When::Quick,
            (false, false) => When::Full,
            (false, true) => When::All,
        }
    }

    /// Arguments of a test program.
    fn filter(&self, suite: &Suite) -> Vec<String> {
        let quick = if self.quick { suite.quick } else { &[] };
        quick.iter().map(|&name| name.to_owned()).chain(self.arguments.iter().cloned()).collect()
    }

    fn includes(&self, suite: &Suite) -> bool {
        let is_named = |name: &String| name == suite.package || name == suite.target;
        if self.only.is_empty() {
            suite.when <= self.kind()
        } else {
            self.only.iter().any(is_named)
        }
    }
}

/// Builds and runs the tests, and prints a line for each test program and processor.
pub fn run(root: &Path, target: &'static Target, args: &Args) -> Result<()> {
    let suites: Vec<&Suite> = target.suites.iter().filter(|one| args.includes(one)).collect();
    ensure!(!suites.is_empty(), "no test program of {} is called so", target.triple);
    let processors = target.processors_or_none(&args.processors, args.kind())?;
    if !args.no_run {
        toolchain::check(target.run_tools)?;
    }
    let cross = Cross::new(root, target)?;
    let programs = compile(&cross, &suites)?;
    if args.no_run {
        return Ok(());
    }
    let start = Instant::now();
    let mut failed = Vec::new();
    for processor in processors {
        let name = processor.map_or("", |one| one.name);
        if let Some(one) = processor {
            println!("{} ({})", one.name, one.about);
        }
        for suite in &suites {
            let program = programs
                .get(&(suite.package.to_owned(), suite.target.to_owned()))
                .with_context(|| format!("cargo built no tests {suite:?}"))?;
            if !run_one(&cross, suite, program, processor, args)? {
                failed.push(format!("{} {} {name}", suite.package, suite.target));
            }
        }
    }
    println!("{} seconds", start.elapsed().as_secs());
    ensure!(failed.is_empty(), "failed: {}", failed.join(", "));
    Ok(())
}

/// Test programs by package and test target.
type Programs = BTreeMap<(String, String), Program>;

struct Program {
    file: PathBuf,
    /// Folder of the package, in which Cargo runs tests.
    folder: PathBuf,
}

/// Builds the test programs in one call, so that packages are compiled for the same features.
fn compile(cross: &Cross<'_>, suites: &[&Suite]) -> Result<Programs> {
    let mut command = cross.cargo("test");
    command.args(["--no-run", "--message-format", "json-render-diagnostics"]);
    let packages: BTreeSet<_> = suites.iter().map(|suite| suite.package).collect();
    let targets: BTreeSet<_> = suites.iter().map(|suite| suite.target).collect();
    for package in packages {
        command.args(["--package", package]);
    }
    for name in targets {
        match name {
            UNIT => command.arg("--lib"),
            name => command.args(["--test", name]),
        };
    }
    let mut cargo = command.stdout(Stdio::piped()).spawn().context("cannot start cargo")?;
    let messages = BufReader::new(cargo.stdout.take().context("no pipe")?);
    let mut programs = Programs::new();
    for line in messages.lines() {
        if let Some((name, program)) = program(&line?, cross.root)? {
            programs.insert(name, program);
        }
    }
    ensure!(cargo.wait()?.success(), "cargo test --no-run failed");
    Ok(programs)
}

/// The parts of Cargo's messages that matter here.
#[derive(Deserialize)]
struct Message {
    executable: Option<PathBuf>,
    manifest_path: Option<PathBuf>,
    target: Option<BuiltTarget>,
    profile: Option<Profile>,
}

#[derive(Deserialize)]
struct BuiltTarget {
    name: String,
    kind: Vec<String>,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

/// The test program that a message of Cargo's is about, if any.
fn program(line: &str, root: &Path) -> Result<Option<((String, String), Program)>> {
    if !line.starts_with('{') {
        return Ok(None);
    }
    let message: Message = serde_json::from_str(line).context("a message of cargo's")?;
    let Message {
        executable: Some(file),
        manifest_path: Some(manifest),
        target: Some(target),
        profile: Some(Profile { test: true }),
    } = message
    else {
        return Ok(None);
    };
    let folder = manifest.parent().context("a manifest without a folder")?.to_path_buf();
    let package = match folder.file_name() {
        Some(name) if folder != root => name.to_string_lossy().into_owned(),
        _ => ROOT_PACKAGE.to_owned(),
    };
    let name = match target.kind.first().map(String::as_str) {
        Some("test") => target.name,
        Some("bin" | "example" | "bench") => return Ok(None),
        _ => UNIT.to_owned(),
    };
    Ok(Some(((package, name), Program { file, folder })))
}

/// Runs a test program and prints its result; its output only if it fails.
fn run_one(
    cross: &Cross<'_>,
    suite: &Suite,
    program: &Program,
    processor: Option<&Processor>,
    args: &Args,
) -> Result<bool> {
    let mut command = command(cross.target, &program.file, processor);
    command
        .args(args.filter(suite))
        .current_dir(&program.folder)
        .env("CARGO_MANIFEST_DIR", &program.folder)
        .envs(cross.variables())
        .stdin(Stdio::null());
    let start = Instant::now();
    let output = command.output().with_context(|| format!("cannot start {command:?}"))?;
    let seconds = start.elapsed().as_secs_f64();
    let text = String::from_utf8_lossy(&output.stdout);
    let result = Counts::read(&text);
    // A filter may leave a program without tests; the table does not.
    let ran = result.is_some_and(|counts| counts.passed > 0 || !args.arguments.is_empty());
    let is_passed = output.status.success() && ran;
    let verdict = if is_passed { "ok" } else { "FAILED" };
    let counts = result.map_or_else(|| output.status.to_string(), |counts| counts.to_string());
    let name = format!("{} {}", suite.package, suite.target);
    println!("  {name:<36} {verdict:<6} {counts}, {seconds:.1} s");
    if !is_passed {
        println!("{text}{}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(is_passed)
}

/// The command that runs a program of the target.
pub fn command(target: &Target, program: &Path, processor: Option<&Processor>) -> Command {
    let mut command = match target.runner {
        [] => Command::new(program),
        [runner, arguments @ ..] => {
            let mut command = Command::new(runner);
            command.args(arguments).arg(program);
            command
        }
    };
    command.envs(target.runner_environment.iter().copied());
    if let Some(processor) = processor {
        command.envs(processor.environment.iter().copied());
    }
    command
}

/// Numbers of tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Counts {
    passed: usize,
    failed: usize,
    ignored: usize,
}

impl Counts {
    /// Reads `test result: ok. 3 passed; 0 failed; 1 ignored; ...`, which a program that was aborted does not print.
    fn read(output: &str) -> Option<Self> {
        let line = output.lines().rev().find_map(|line| line.strip_prefix("test result: "))?;
        let number = |of: &str| {
            let mut parts = line.split(['.', ';']).map(str::trim);
            parts.find_map(|part| part.strip_suffix(of)?.trim().parse().ok())
        };
        Some(Self {
            passed: number("passed")?,
            failed: number("failed")?,
            ignored: number("ignored")?,
        })
    }
}

impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} passed", self.passed)?;
        for (number, what) in [(self.failed, "failed"), (self.ignored, "ignored")] {
            if number > 0 {
                write!(f, ", {number} {what}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn counts_are_read_from_the_last_result() {
        let text = "running 2 tests\ntest result: FAILED. 12 passed; 3 failed; 1 ignored; 0 measured; 0 filtered out\n";
        let counts = Counts::read(text).unwrap();
        assert_eq!(counts, Counts { passed: 12, failed: 3, ignored: 1 });
        assert_eq!(counts.to_string(), "12 passed, 3 failed, 1 ignored");
        assert_eq!(Counts::read("running 2 tests\nSegmentation fault"), None);
    }

    #[test]
    fn programs_are_found_in_cargos_messages() {
        let message = |manifest: &str, kind: &str, test: bool| {
            format!(
                r#"{{"reason":"compiler-artifact","manifest_path":"{manifest}","target":{{"name":"it","kind":["{kind}"]}},"profile":{{"test":{test}}},"executable":"/t/it-1"}}"#
            )
        };
        let name = |manifest, kind, test| {
            let found = program(&message(manifest, kind, test), Path::new("/w")).unwrap();
            found.map(|(name, _)| name)
        };
        let named = |package: &str, target: &str| Some((package.to_owned(), target.to_owned()));
        assert_eq!(name("/w/crates/a/Cargo.toml", "test", true), named("a", "it"));
        assert_eq!(name("/w/crates/a/Cargo.toml", "cdylib", true), named("a", UNIT));
        assert_eq!(name("/w/Cargo.toml", "lib", true), named(ROOT_PACKAGE, UNIT));
        assert_eq!(name("/w/crates/a/Cargo.toml", "bin", true), None);
        assert_eq!(name("/w/crates/a/Cargo.toml", "lib", false), None);
        assert!(
            program(r#"{"reason":"build-finished","success":true}"#, Path::new("/w"))
                .unwrap()
                .is_none()
        );
        assert!(program("{", Path::new("/w")).is_err());
    }

    #[test]
    fn quick_runs_are_a_part_of_full_ones() {
        let args = |quick, all, only: &[&str]| Args {
            quick,
            all,
            processors: vec![],
            only: only.iter().map(|name| (*name).to_owned()).collect(),
            no_run: false,
            arguments: vec![],
        };
        let target = super::super::targets::named("aarch64").unwrap();
        let count = |args: Args| target.suites.iter().filter(|suite| args.includes(suite)).count();
        let [quick, full, all] =
            [args(true, false, &[]), args(false, false, &[]), args(false, true, &[])].map(count);
        assert!(quick < full && full < all && all == target.suites.len());
        assert_eq!(count(args(true, false, &["operator_suite"])), 1);
        assert!(count(args(true, false, &["xnn-runtime"])) > 1);
    }
}
