//! `cargo xtask zoo`: every model beside LiteRT.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Context, Result, ensure};

use crate::test::cargo;
use crate::{vendor, venv};

/// Folders of models that are shared beside the checkout.
const FOLDERS: [&str; 2] = ["../shared/models", "../shared/models/random-weights"];

/// Choices for `cargo xtask zoo`.
#[derive(clap::Args)]
pub struct Args {
    /// `.tflite` files [default: the shared models]
    models: Vec<PathBuf>,
    /// Turns of each side; 0 measures no times
    #[arg(long, default_value_t = 10)]
    rounds: u32,
    /// File to write [default: docs/model-zoo.md]
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

/// Runs the models and writes the report.
pub fn run(root: &Path, args: &Args) -> Result<()> {
    vendor::run(root, &vendor::Args::default())?;
    let python = venv::python(root, "litert", &root.join("tools/python/requirements.txt"))?;
    let here = env::current_dir()?;
    let models = if args.models.is_empty() {
        shared_models(root)?
    } else {
        args.models.iter().map(|model| here.join(model)).collect()
    };
    cargo(root, "build", &["--release", "-p", "xnn-tflite-delegate"].map(String::from))?;
    let library = venv::target(root).join("release/libxnn_delegate.so");
    let report = match &args.report {
        Some(file) => here.join(file),
        None => root.join("docs/model-zoo.md"),
    };
    venv::run(
        Command::new(env!("CARGO"))
            .args(["bench", "--package", "xnn-delegate", "--bench", "zoo", "--"])
            .args([&python, &library, &report])
            .arg(args.rounds.to_string())
            .args(models)
            .current_dir(root),
    )
}

fn shared_models(root: &Path) -> Result<Vec<PathBuf>> {
    let mut models = Vec::new();
    for folder in FOLDERS {
        let folder = root.join(folder);
        let entries = fs::read_dir(&folder)
            .with_context(|| format!("cannot list {}; name models instead", folder.display()))?;
        for entry in entries {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "tflite") {
                models.push(path);
            }
        }
    }
    ensure!(!models.is_empty(), "no models in {}", FOLDERS.join(" and "));
    models.sort();
    Ok(models)
}
