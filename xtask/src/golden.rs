//! `cargo xtask golden`: asks LiteRT for what the tests expect.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::{shared, vendor, venv};

/// Choices for `cargo xtask golden`.
#[derive(clap::Args)]
pub struct Args {
    /// Change nothing; draw that many single-operator cases, and test them
    #[arg(long, value_name = "COUNT")]
    operators: Option<u32>,
    /// Give the cases NaN, infinities, largest floats, denormals and negative zeros
    #[arg(long, requires = "operators")]
    special: bool,
    /// Seed of the cases
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

/// Writes `tests/golden/operators`, `tests/golden/kernels` and, where the shared models are, `tests/golden/models`; or tests
/// more operators than the former has.
pub fn run(root: &Path, args: &Args) -> Result<()> {
    vendor::run(root, &vendor::Args::default())?;
    let tools = root.join("tools/python");
    let python = venv::python(root, "litert", &tools.join("requirements.txt"))?;
    let script = |name: &str| {
        let mut command = Command::new(&python);
        command.arg(tools.join(name)).current_dir(root);
        command
    };
    let draw = |name: &str, folder: &Path| -> Result<Command> {
        empty(folder)?;
        let mut command = script(name);
        command.args(["--seed", &args.seed.to_string(), "--out"]).arg(folder);
        Ok(command)
    };
    let goldens = root.join("tests/golden");
    let work = venv::target(root).join("golden");

    if let Some(count) = args.operators {
        let cases = work.join("operators");
        let special = args.special.then_some("--special");
        venv::run(draw("opcases.py", &cases)?.args(["--count", &count.to_string()]).args(special))?;
        return test(root, "operators", "XNN_OPERATOR_CASES", &cases);
    }
    venv::run(&mut draw("opcases.py", &goldens.join("operators"))?)?;
    venv::run(&mut draw("kernel_cases.py", &goldens.join("kernels"))?)?;

    let shared = shared::folder(root);
    ensure!(shared.is_dir(), "{} does not exist: the models' goldens stay", shared.display());
    let inputs = work.join("models");
    empty(&inputs)?;
    test(root, "accuracy", "XNN_GOLDEN_INPUTS", &inputs)?;
    let models = goldens.join("models");
    empty(&models)?;
    venv::run(script("golden_models.py").arg("--inputs").arg(inputs).arg("--out").arg(models))
}

/// Runs a test of the façade with a folder in its environment.
fn test(root: &Path, name: &str, variable: &str, folder: &Path) -> Result<()> {
    venv::run(
        Command::new(env!("CARGO"))
            .args(["test", "--release", "--package", "xnn-delegate", "--test", name])
            .args(["--", "--nocapture"])
            .env(variable, folder)
            .current_dir(root),
    )
}

/// An empty folder, whatever was there.
fn empty(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())
}
