//! `cargo xtask cross`: builds and tests for other processors and systems.

mod compare;
mod count;
mod extras;
mod suites;
mod targets;
mod toolchain;

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use clap::Subcommand;

use crate::{metadata, vendor, venv};
use targets::{SYSTEM, TARGETS, Target};

#[derive(clap::Args)]
#[command(after_help = format!("Examples:\n  \
    cargo xtask cross aarch64\n  \
    cargo xtask cross aarch64 test --quick\n  \
    cargo xtask cross aarch64 test --cpu cortex-a72 --only operator_suite\n  \
    cargo xtask cross aarch64 compare --cpu cortex-a72\n  \
    cargo xtask cross aarch64 count --models mobilenet_v1_1.0_224_fp32\n  \
    eval \"$(cargo xtask cross aarch64 env)\"; cargo test -p xnn-lower\n  \
    eval \"$(cargo xtask cross x86_64-unknown-linux-gnu env)\"; cargo xtask wheel\n\n\
Targets:\n{}", listing()))]
pub struct Args {
    /// Target, or the beginning of its name
    target: String,
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Subcommand)]
enum Action {
    /// Build programs and libraries (the default)
    Build(BuildArgs),
    /// Run tests in an emulator
    Test(suites::Args),
    /// Compare outputs of models with those of this machine
    Compare(compare::Args),
    /// Count the instructions that a run of a model executes, beside LiteRT's
    Count(count::Args),
    /// Print the variables for which Cargo builds and tests for the target
    Env,
}

#[derive(clap::Args)]
struct BuildArgs {
    /// Profile of the workspace
    #[arg(long, default_value = "release")]
    profile: String,
    /// Packages to build [default: those that make programs and libraries]
    #[arg(short, long = "package", value_name = "PACKAGE")]
    packages: Vec<String>,
}

/// Models, processors and the build of `xnn` for `compare` and `count`.
#[derive(clap::Args)]
struct Subjects {
    /// `.tflite` files, or names of shared models [compare: all models of 8 bits; count: a list of small ones]
    #[arg(long, num_args = 1.., value_delimiter = ',')]
    models: Vec<PathBuf>,
    /// Processors to emulate [default: those of tests]
    #[arg(long = "cpu", value_name = "NAME", value_delimiter = ',')]
    processors: Vec<String>,
    /// Profile of the workspace to build `xnn` with
    #[arg(long, default_value = "release")]
    profile: String,
}

/// A line for each target.
fn listing() -> String {
    let line = |target: &Target| format!("  {}", target.triple);
    TARGETS.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Sets the target's toolchain up and builds, tests or counts.
pub fn run(root: &Path, args: &Args) -> Result<()> {
    let target = targets::named(&args.target)?;
    toolchain::check(target.build_tools)?;
    match &args.action {
        None => build(&Cross::new(root, target)?, "release", &[]).map(drop),
        Some(Action::Build(args)) => {
            build(&Cross::new(root, target)?, &args.profile, &args.packages).map(drop)
        }
        Some(Action::Test(args)) => suites::run(root, target, args),
        Some(Action::Compare(args)) => compare::run(root, target, args),
        Some(Action::Count(args)) => count::run(root, target, args),
        Some(Action::Env) => {
            for (name, value) in Cross::new(root, target)?.variables() {
                println!("export {name}={}", quoted(&value.to_string_lossy()));
            }
            Ok(())
        }
    }
}

/// A value for the shell.
fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\'', "'\\''"))
}

/// The workspace and a target whose toolchain is set up.
struct Cross<'a> {
    root: &'a Path,
    target: &'static Target,
    /// The folder with the target's headers and libraries, if they are not the machine's.
    system: Option<PathBuf>,
    /// The folder with the standard library, if the toolchain has none for the target.
    sysroot: Option<PathBuf>,
    /// Whether the target is this machine's, with another C library.
    is_host: bool,
}

impl<'a> Cross<'a> {
    /// Fetches what is missing.
    fn new(root: &'a Path, target: &'static Target) -> Result<Self> {
        let system = toolchain::system(root, target)?;
        let sysroot = toolchain::standard_library(root, target, system.as_deref())?;
        vendor::run(root, &vendor::Args::default())?;
        let is_host = metadata::host()? == target.triple;
        Ok(Self { root, target, system, sysroot, is_host })
    }

    /// Cargo's command `name` for the target.
    fn cargo(&self, name: &str) -> Command {
        let mut command = Command::new(env!("CARGO"));
        command.arg(name).current_dir(self.root).envs(self.variables());
        command
    }

    /// The folder of programs and libraries of a profile.
    fn folder(&self, profile: &str) -> PathBuf {
        let mut folder = venv::target(self.root);
        if !self.is_host {
            folder.push(self.target.triple);
        }
        folder.join(folder_of(profile))
    }

    /// Builds `xnn` and returns the program.
    fn xnn(&self, profile: &str) -> Result<PathBuf> {
        let folder = build(self, profile, &["xnn-cli".to_owned()])?;
        if self.target.runner == [extras::WINE] {
            extras::library_for_wine(self.target, &folder)?;
        }
        Ok(folder.join(format!("xnn{}", self.target.suffix)))
    }

    /// Variables with which Cargo builds and runs programs for the target.
    fn variables(&self) -> Vec<(String, OsString)> {
        let system = self.system.as_deref();
        let mut variables = environment(self.target, system);
        let mut set = |name: String, value: OsString| variables.push((name, value));
        // For this machine's own target, other chores find what they build where it always is.
        if !self.is_host {
            set("CARGO_BUILD_TARGET".into(), self.target.triple.into());
        }
        if !self.target.runner.is_empty() {
            let runner = self.target.runner.join(" ");
            set(for_cargo(self.target, "RUNNER"), runner.clone().into());
            // For tests that start programs of the workspace.
            set("XNN_TEST_RUNNER".into(), runner.into());
        }
        let mut flags: Vec<OsString> =
            rustflags(self.target, system).into_iter().map(Into::into).collect();
        if let Some(sysroot) = &self.sysroot {
            let mut flag = OsString::from("--sysroot=");
            flag.push(sysroot);
            flags.push(flag);
        }
        if !flags.is_empty() {
            set(for_cargo(self.target, "RUSTFLAGS"), flags.join(" ".as_ref()));
        }
        for (name, value) in self.target.runner_environment {
            set((*name).into(), value.into());
        }
        variables
    }
}

/// Variables for compilers and the linker. What the caller has set takes precedence.
fn environment(target: &Target, system: Option<&Path>) -> Vec<(String, OsString)> {
    let linker = (for_cargo(target, "LINKER"), target.linker.to_owned());
    let others = target.environment.iter();
    let others = others.map(|(name, value)| ((*name).to_owned(), resolve(value, system)));
    [linker]
        .into_iter()
        .chain(others)
        .map(|(name, value)| {
            let value = env::var_os(&name).unwrap_or_else(|| value.into());
            (name, value)
        })
        .collect()
}

/// Flags for rustc.
fn rustflags(target: &Target, system: Option<&Path>) -> Vec<String> {
    target.rustflags.iter().map(|flag| resolve(flag, system)).collect()
}

/// Replaces the placeholder for the folder with the target's headers and libraries.
fn resolve(value: &str, system: Option<&Path>) -> String {
    system.map_or_else(|| value.into(), |folder| value.replace(SYSTEM, &folder.to_string_lossy()))
}

/// The name of Cargo's variable for a setting of the target.
fn for_cargo(target: &Target, setting: &str) -> String {
    format!("CARGO_TARGET_{}_{setting}", target.triple.to_uppercase().replace(['-', '.'], "_"))
}

/// The name of Cargo's folder for a profile.
fn folder_of(profile: &str) -> &str {
    if matches!(profile, "dev" | "test") { "debug" } else { profile }
}

/// Builds packages and returns the folder of programs and libraries.
fn build(cross: &Cross<'_>, profile: &str, packages: &[String]) -> Result<PathBuf> {
    let products: Vec<String> = cross.target.products.iter().map(|&name| name.into()).collect();
    let packages = if packages.is_empty() { &products } else { packages };
    let mut command = cross.cargo("build");
    command.args(["--profile", profile]);
    for package in packages {
        command.args(["--package", package]);
    }
    if *packages == products {
        for example in cross.target.examples {
            command.args(["--example", example]);
        }
    }
    venv::run(&mut command)?;
    let folder = cross.folder(profile);
    eprintln!("{} is in {}", packages.join(", "), folder.display());
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_name_the_target_as_cargo_does() -> Result<()> {
        let target = targets::named("aarch64-unknown-linux-gnu")?;
        let sysroot = Some(PathBuf::from("/sysroot"));
        let root = Path::new("/");
        let cross = Cross { root, target, system: None, sysroot, is_host: false };
        let variables = cross.variables();
        let value = |name: &str| {
            let found = variables.iter().find(|(one, _)| one == name);
            found.map(|(_, value)| value.to_string_lossy().into_owned())
        };
        let of =
            |setting: &str| value(&format!("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_{setting}"));
        assert_eq!(value("CARGO_BUILD_TARGET").as_deref(), Some(target.triple));
        assert_eq!(of("RUNNER").as_deref(), Some("qemu-aarch64"));
        assert_eq!(of("RUSTFLAGS").as_deref(), Some("--sysroot=/sysroot"));
        assert!(of("LINKER").is_some());
        Ok(())
    }

    #[test]
    fn values_are_quoted_for_the_shell() {
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }
}
