//! `cargo xtask sweep`: every operator, type and size as a model of one operator, or whole models, in turns with LiteRT, at
//! each level of instruction sets.
//!
//! Whole models hide an operator that has no good microkernel at some level, until a model with much of it shows up.

mod levels;
mod report;
mod sides;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;
use std::{env, fs};

use anyhow::{Context, Result, bail, ensure};
use xnn_bench::Peer;

use crate::bench::{Host, Package, find_models, quietly};
use crate::test::cargo;
use crate::{shared, vendor, venv};
use levels::{LEVELS, Level, Mask, NATIVE};
use report::{Failure, LevelResults, Model, Results, SLOWER};
use sides::{Sides, Times};

/// Further rounds of models that are slower in the first ones.
const MORE_ROUNDS: usize = 6;

/// Choices for `cargo xtask sweep`.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    cargo xtask sweep --quick\n  \
    cargo xtask sweep --report target/sweep.md\n  \
    cargo xtask sweep --operators CONV_2D TRANSPOSE_CONV --types fp32 int8 --rounds 9\n  \
    cargo xtask sweep --litert-mask FOLDER --levels sse41 avx2 --report target/sweep.md\n  \
    cargo xtask sweep --models mobilenet_v1_1.0_224_quant model.tflite --rounds 5 --threads 2\n\n\
The folder of --litert-mask has maskcpuid.so, or maskcpuid.c to compile: a library to preload, which answers\n\
the CPUID instructions that became UD2, without what the variable MASK (sse, avx, avx2, skx) takes away; and\n\
patch_cpuid.py, called with a shared library and the file to write, which makes UD2 of its CPUID instructions.")]
pub struct Args {
    /// Operators to measure, such as `CONV_2D` [default: all]
    #[arg(long, num_args = 1.., value_delimiter = ',', value_name = "NAME")]
    operators: Vec<String>,
    /// Types to measure: fp32, fp16 (weights), int8, uint8, dynamic (range), `fp32_to_int8` and so on [default: all]
    #[arg(long, num_args = 1.., value_delimiter = ',', value_name = "TYPE")]
    types: Vec<String>,
    /// Whole models instead: `.tflite` files, or names of shared models
    #[arg(long, num_args = 1.., value_delimiter = ',', conflicts_with_all = ["operators", "types", "quick"])]
    models: Vec<PathBuf>,
    /// Levels of instruction sets: sse41, avx, avx2, avx512, native [default: all if LiteRT can be masked, otherwise native]
    #[arg(long, num_args = 1.., value_delimiter = ',', value_name = "LEVEL", value_parser = Level::parse)]
    levels: Vec<&'static Level>,
    /// Turns of each side with each model
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    /// Threads of each side
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    threads: u16,
    /// The smallest model of each operator and type alone
    #[arg(long)]
    quick: bool,
    /// Folder of a tool that takes instruction sets from LiteRT [default: tools/cpu-mask beside the shared models, if it exists]
    #[arg(long, value_name = "FOLDER")]
    litert_mask: Option<PathBuf>,
    /// The program xnn [default: it is built]
    #[arg(long, value_name = "FILE")]
    xnn: Option<PathBuf>,
    /// Markdown file to write, and beside it one that ends in .json
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

/// Measures, prints and writes the report.
pub fn run(root: &Path, args: &Args) -> Result<()> {
    let here = env::current_dir()?;
    let target = venv::target(root).join("sweep");
    let python = Package::LiteRt.environment(root)?;
    let mask = mask_folder(root, args)
        .map(|folder| Mask::prepare(&here.join(folder), &python, &target))
        .transpose()?;
    let levels = chosen(&args.levels, mask.is_some())?;
    let xnn = match &args.xnn {
        Some(file) => here.join(file),
        None => build(root)?,
    };
    let models = if args.models.is_empty() {
        write_models(root, args, &python, &target.join("models"))?
    } else {
        find_models(root, &args.models, &[])?.into_iter().map(Model::whole).collect()
    };
    let mut results = Results {
        host: Host::new()?,
        xnn: version(&xnn)?,
        litert: String::new(),
        threads: args.threads,
        rounds: args.rounds.into(),
        more_rounds: MORE_ROUNDS,
        whole_models: !args.models.is_empty(),
        levels: Vec::new(),
    };
    for level in levels {
        let start = |models: &[&Model]| {
            let mut command = Command::new(&python);
            command.arg(root.join("tools/python/sweep_peer.py")).arg(args.threads.to_string());
            command.args(models.iter().map(|model| &model.file));
            if let Some(mask) = &mask {
                mask.apply(level, &mut command);
            }
            let litert = Peer::start(&mut command).context("LiteRT")?;
            Ok(Sides { xnn: &xnn, level, threads: args.threads, litert })
        };
        results.levels.push(sweep(level, &models, args.rounds.into(), start, &mut results.litert)?);
        // An interrupted session leaves the levels that are complete.
        if let Some(file) = &args.report {
            report::write(&here.join(file), &results)?;
        }
    }
    print!("{}", report::markdown(&results));
    Ok(())
}

fn mask_folder(root: &Path, args: &Args) -> Option<PathBuf> {
    let beside = || Some(shared::folder(root).join("tools/cpu-mask")).filter(|path| path.is_dir());
    args.litert_mask.clone().or_else(beside)
}

/// The levels that are asked for, or all that can be measured.
fn chosen(asked: &[&'static Level], has_mask: bool) -> Result<Vec<&'static Level>> {
    if let Some(level) = asked.iter().find(|level| !has_mask && level.mask.is_some()) {
        bail!("--levels {}: LiteRT needs --litert-mask for this level", level.name);
    }
    Ok(match (asked, has_mask) {
        ([], true) => LEVELS.iter().collect(),
        ([], false) => vec![&NATIVE],
        (asked, _) => asked.to_vec(),
    })
}

fn build(root: &Path) -> Result<PathBuf> {
    vendor::run(root, &vendor::Args::default())?;
    let arguments = ["--profile", "dist", "--quiet", "--package", "xnn-cli"];
    cargo(root, "build", &arguments.map(String::from))?;
    Ok(venv::target(root).join("dist/xnn"))
}

fn version(xnn: &Path) -> Result<String> {
    let said =
        quietly(Command::new(xnn).arg("--version")).with_context(|| xnn.display().to_string())?;
    Ok(String::from_utf8_lossy(&said).lines().collect::<Vec<_>>().join(", "))
}

/// Writes the models to a folder, and lists them.
fn write_models(root: &Path, args: &Args, python: &Path, folder: &Path) -> Result<Vec<Model>> {
    eprintln!("writing models to {}", folder.display());
    let mut command = Command::new(python);
    command.arg(root.join("tools/python/sweep_models.py")).arg("--out").arg(folder);
    for (option, names) in [("--operators", &args.operators), ("--types", &args.types)] {
        if !names.is_empty() {
            command.args([option, &names.join(",")]);
        }
    }
    command.args(args.quick.then_some("--quick"));
    venv::run(&mut command)?;
    let index = folder.join("index.json");
    let text = fs::read(&index).with_context(|| format!("cannot read {}", index.display()))?;
    let mut models: Vec<Model> = serde_json::from_slice(&text)?;
    ensure!(!models.is_empty(), "no operator has one of these types");
    for model in &mut models {
        model.file = folder.join(&model.name).with_added_extension("tflite");
    }
    Ok(models)
}

/// Measures the models at a level: all of them, and those that are slower again, in another process of LiteRT.
fn sweep<'a>(
    level: &Level,
    models: &[Model],
    rounds: usize,
    start: impl Fn(&[&Model]) -> Result<Sides<'a>>,
    litert: &mut String,
) -> Result<LevelResults> {
    let begin = Instant::now();
    let mut failures = Vec::new();
    let mut measured: Vec<(&Model, Times)> = Vec::new();
    let mut sides = start(&models.iter().collect::<Vec<_>>())?;
    sides.litert.version().clone_into(litert);
    for (at, model) in models.iter().enumerate() {
        let mut times = Times::default();
        let seconds = begin.elapsed().as_secs();
        eprint!("[{} {}/{}, {seconds} s] {model}: ", level.name, at + 1, models.len());
        match times.take(&mut sides, model, rounds) {
            Ok(()) => {
                eprintln!("{}", times.in_brief());
                measured.push((model, times));
            }
            Err(error) => {
                eprintln!("{error:#}");
                failures.push(Failure { model: model.clone(), error: format!("{error:#}") });
            }
        }
    }
    let mut slower: Vec<_> = measured.iter_mut().filter(|one| one.1.ratio() > SLOWER).collect();
    eprintln!("[{}] measuring {} slower ones again", level.name, slower.len());
    if !slower.is_empty() {
        sides = start(&slower.iter().map(|one| one.0).collect::<Vec<_>>())?;
    }
    for (model, times) in &mut slower {
        eprint!(
            "[{}, {} s] {model}: {:.2}, ",
            level.name,
            begin.elapsed().as_secs(),
            times.ratio()
        );
        match times.take(&mut sides, model, MORE_ROUNDS) {
            Ok(()) => eprintln!("{}", times.in_brief()),
            // The figures are those of the first rounds.
            Err(error) => eprintln!("{error:#}"),
        }
    }
    let timings = measured.iter().map(|(model, times)| times.timing(model));
    Ok(LevelResults { level: level.name.to_owned(), timings: timings.collect(), failures })
}
