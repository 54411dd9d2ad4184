//! Chores of the repository. `cargo xtask help` lists them.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line program")]

mod apt;
mod bench;
mod build;
mod capi;
mod codegen;
mod cross;
mod demo;
mod dist;
mod features;
mod fuzz;
mod golden;
mod metadata;
mod notices;
mod package;
mod partitions;
mod scaling;
mod shared;
mod sweep;
mod test;
mod tflite_c;
mod vendor;
mod venv;
mod wheel;
mod wheels;
mod zoo;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Chores of the repository")]
struct Args {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Fetch the sources of XNNPACK into vendor/XNNPACK
    Vendor(vendor::Args),
    /// Convert the demo models, run the blobs, show what they see
    Demo,
    /// Run every test
    Test(test::Args),
    /// Ask LiteRT for what the tests expect, or test many random operators against it
    Golden(golden::Args),
    /// Measure latency in turns with LiteRT
    Bench(bench::Args),
    /// Measure every operator, type and size in turns with LiteRT, at each level of instruction sets
    Sweep(sweep::Args),
    /// Simulate runs with more threads than this machine has processors
    Scaling(scaling::Args),
    /// Count partitions beside LiteRT's
    Partitions(partitions::Args),
    /// Build the Python package as a wheel in dist, and test it
    Wheel(wheel::Args),
    /// Run the delegate in the interpreters that PyPI has
    Wheels(wheels::Args),
    /// Run clients of TFLite's C API on this project's libtensorflowlite_c.so
    #[command(name = "tflite-c")]
    TfliteC(tflite_c::Args),
    /// Compare every model with LiteRT: partitions, distances, latency
    Zoo(zoo::Args),
    /// Run random files against the readers, the runtime and the kernels, under AddressSanitizer
    Fuzz(fuzz::Args),
    /// Pack every crate, and build and run a new project from the packages
    Package(package::Args),
    /// Check every crate with each of its features alone
    Features(features::Args),
    /// Build and test for other processors and systems
    Cross(cross::Args),
    /// Write the archive and the Debian package for this platform
    Dist(dist::Args),
    /// Make, install and test the C library
    Capi(capi::Args),
    /// Regenerate the committed code
    Codegen(codegen::Args),
}

fn main() -> ExitCode {
    match run(Args::parse().chore) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(chore: Chore) -> Result<()> {
    let root = workspace_root()?;
    match chore {
        Chore::Vendor(args) => vendor::run(&root, &args),
        Chore::Demo => demo::run(&root),
        Chore::Test(args) => test::run(&root, &args),
        Chore::Golden(args) => golden::run(&root, &args),
        Chore::Bench(args) => bench::run(&root, &args),
        Chore::Sweep(args) => sweep::run(&root, &args),
        Chore::Scaling(args) => scaling::run(&root, &args),
        Chore::Partitions(args) => partitions::run(&root, &args),
        Chore::Wheel(args) => wheel::run(&root, &args),
        Chore::Wheels(args) => wheels::run(&root, &args),
        Chore::TfliteC(args) => tflite_c::run(&root, &args),
        Chore::Zoo(args) => zoo::run(&root, &args),
        Chore::Fuzz(args) => fuzz::run(&root, &args),
        Chore::Package(args) => package::run(&root, &args),
        Chore::Features(args) => features::run(&root, &args),
        Chore::Cross(args) => cross::run(&root, &args),
        Chore::Dist(args) => dist::run(&root, &args),
        Chore::Capi(args) => capi::run(&root, &args),
        Chore::Codegen(args) => codegen::run(&root, &args),
    }
}

fn workspace_root() -> Result<PathBuf> {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .map(Path::to_path_buf)
        .context("xtask is not in a workspace")
}
