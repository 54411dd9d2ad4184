//! `cargo xtask test`: set-up where it is missing, then every test.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::vendor;

/// Choices for `cargo xtask test`.
#[derive(clap::Args)]
pub struct Args {
    /// Arguments for `cargo test` instead of `--workspace`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    cargo: Vec<String>,
}

/// Fetches XNNPACK's sources if need be and runs the tests.
pub fn run(root: &Path, args: &Args) -> Result<()> {
    vendor::run(root, &vendor::Args::default())?;
    let selection: &[String] =
        if args.cargo.is_empty() { &["--workspace".into()] } else { &args.cargo };
    cargo(root, "test", selection)
}

/// Runs a cargo command in the workspace and waits for it.
pub fn cargo(root: &Path, command: &str, args: &[String]) -> Result<()> {
    let status = Command::new(env!("CARGO"))
        .arg(command)
        .args(args)
        .current_dir(root)
        .status()
        .with_context(|| format!("cannot start cargo {command}"))?;
    ensure!(status.success(), "cargo {command} failed ({status})");
    Ok(())
}
