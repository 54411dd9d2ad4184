//! `cargo xtask partitions`: how models are cut up, beside LiteRT's delegate.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::{shared, vendor, venv};

/// Choices for `cargo xtask partitions`.
#[derive(clap::Args)]
pub struct Args {
    /// Folder of models [default: the shared ones]
    models: Option<PathBuf>,
    /// File to write [default: docs/partitions.md]
    #[arg(long, value_name = "FILE.md")]
    report: Option<PathBuf>,
}

/// Counts and writes the report; fails where we cut up more than LiteRT.
pub fn run(root: &Path, args: &Args) -> Result<()> {
    vendor::run(root, &vendor::Args::default())?;
    let tools = root.join("tools/python");
    let python = venv::python(root, "litert", &tools.join("requirements.txt"))?;
    venv::run(
        Command::new(env!("CARGO"))
            .args(["build", "--release", "--package", "xnn-cli"])
            .current_dir(root),
    )?;
    // Cargo starts the program in the package's folder.
    let here = std::env::current_dir()?;
    let or_default = |given: &Option<PathBuf>, default: PathBuf| match given {
        Some(path) => here.join(path),
        None => default,
    };
    let models = or_default(&args.models, shared::folder(root).join("models"));
    models.metadata().with_context(|| format!("cannot read {}", models.display()))?;
    venv::run(
        Command::new(&python)
            .arg(tools.join("partitions.py"))
            .arg("--xnn")
            .arg(venv::target(root).join("release/xnn"))
            .arg("--models")
            .arg(models)
            .arg("--report")
            .arg(or_default(&args.report, root.join("docs/partitions.md"))),
    )
}
