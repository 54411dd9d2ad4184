//! `cargo xtask bench`: latency beside LiteRT's.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::{vendor, venv};

/// Measured where no model is given; in the folder of models that is shared beside the checkout.
const MODELS: [&str; 7] = [
    "mobilenet_v1_1.0_224_fp32",
    "mobilenet_v1_1.0_224_int8_perchannel",
    "mobilenet_v1_1.0_224_quant",
    "mobilenet_v2_1.0_224_fp32",
    "mobilenet_v2_1.0_224_int8_perchannel",
    "mobilenet_v2_1.0_224_int8_ptq",
    "mobilenet_v2_1.0_224_quant",
];
const FOLDER: &str = "../shared/models";

/// Choices for `cargo xtask bench`.
#[derive(clap::Args)]
pub struct Args {
    /// `.tflite` files [default: MobileNets of the shared models]
    models: Vec<PathBuf>,
    /// Turns of each side
    #[arg(long, default_value_t = 20)]
    rounds: u32,
    /// Files to write, without `.md` and `.json` [default: docs/benchmarks/mobilenet]
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

/// Measures the models at 1 and 2 threads and writes the report.
pub fn run(root: &Path, args: &Args) -> Result<()> {
    vendor::run(root, &vendor::Args::default())?;
    let python = venv::python(root, "litert", &root.join("tools/python/requirements.txt"))?;
    let models: Vec<PathBuf> = if args.models.is_empty() {
        MODELS.iter().map(|name| root.join(FOLDER).join(format!("{name}.tflite"))).collect()
    } else {
        args.models.clone()
    };
    for model in &models {
        model.metadata().with_context(|| format!("cannot read {}", model.display()))?;
    }
    // Cargo starts the program in the package's folder.
    let here = std::env::current_dir()?;
    let report = match &args.report {
        Some(file) => here.join(file),
        None => root.join("docs/benchmarks/mobilenet"),
    };
    fs::create_dir_all(report.parent().unwrap_or(root))?;
    venv::run(
        Command::new(env!("CARGO"))
            .args(["bench", "--package", "xnn-delegate", "--bench", "litert", "--"])
            .args([&python, &report])
            .arg(args.rounds.to_string())
            .args(models.iter().map(|model| here.join(model)))
            .current_dir(root),
    )
}
