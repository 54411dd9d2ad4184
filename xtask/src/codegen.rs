//! Regenerates the committed code, or checks that it is what would be generated.

#[cfg(feature = "bindings")]
mod bindings;
mod flatbuffers;

use std::env;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

#[derive(clap::Args)]
pub struct Args {
    /// Change nothing; fail if a committed file differs
    #[arg(long)]
    check: bool,
    /// Only the bindings of XNNPACK
    #[arg(long, conflicts_with = "schemas")]
    bindings: bool,
    /// Only the modules of the flatbuffer schemas
    #[arg(long)]
    schemas: bool,
}

/// Regenerates or checks what `args` asks for; everything by default.
pub fn run(root: &Path, args: &Args) -> Result<()> {
    if let Some(feature) = missing_feature(args) {
        return run_with(feature);
    }
    #[cfg(feature = "bindings")]
    if !args.schemas {
        bindings::run(root, args.check)?;
    }
    if !args.bindings {
        flatbuffers::run(root, args.check)?;
    }
    Ok(())
}

/// The generators are heavy to build, so the other chores are built without them.
fn missing_feature(args: &Args) -> Option<&'static str> {
    let needs_flatc = !args.bindings && env::var_os("FLATC").is_none();
    if needs_flatc && !cfg!(feature = "codegen") {
        Some("codegen")
    } else if !args.schemas && !cfg!(feature = "bindings") {
        Some("bindings")
    } else {
        None
    }
}

/// Runs the same command in a build that has the feature.
fn run_with(feature: &str) -> Result<()> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["run", "--package", "xtask", "--features", feature, "--"])
        .args(env::args_os().skip(1))
        .status()
        .context("cannot run cargo")?;
    ensure!(status.success(), "code generation failed");
    Ok(())
}
