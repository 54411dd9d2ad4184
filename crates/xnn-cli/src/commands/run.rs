//! `xnn run`: one run, outputs to `.npy` files.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use anyhow::Result;
use xnn_delegate::TensorSpec;

use crate::args::Workload;
use crate::output::{Table, shape};
use crate::source::{about, in_file, note_coverage, open_runner, open_signature};
use crate::tensors::{self, InputFile, fill_inputs, label};

#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    xnn run mobilenet_v2.xnn --input 0=photo.npy --output-dir out\n  \
    xnn run model.tflite --signature serving_default --input image=photo.npy\n  \
    xnn run mobilenet_v2.tflite --random-seed 7 --threads 2 --output-dir out")]
pub struct Args {
    #[command(flatten)]
    workload: Workload,
    /// What an input is read from: a .npy file, which also gives dimensions that
    /// the model leaves open, or a file of the bare elements; inputs without a
    /// file are random
    #[arg(long = "input", value_name = "NAME|INDEX=FILE")]
    inputs: Vec<InputFile>,
    /// Entry point of the model, which has its own names for inputs and outputs
    /// [default: the main subgraph]
    #[arg(long, value_name = "NAME")]
    signature: Option<String>,
    /// Seed of random inputs
    #[arg(long, value_name = "N", default_value_t = 0)]
    random_seed: u64,
    /// Give up a run after this time. What runs on XNNPACK whole is not
    /// interrupted
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    timeout: Option<Duration>,
    /// Folder for out_0.npy, out_1.npy, ..., made if it is not there; without
    /// it outputs are only summed up
    #[arg(long, value_name = "DIR")]
    output_dir: Option<PathBuf>,
}

pub fn run(args: &Args, out: &mut dyn Write) -> Result<()> {
    let path = args.workload.path.as_path();
    let options = args.workload.runner_options();
    let mut runner = match &args.signature {
        Some(key) => open_signature(path, key, &options)?,
        None => open_runner(path, &options)?,
    };
    let sources = fill_inputs(&mut runner, &args.inputs, args.random_seed)?;
    if let Some(timeout) = args.timeout {
        let flag = runner.cancel_flag();
        thread::spawn(move || {
            thread::sleep(timeout);
            flag.raise();
        });
    }
    runner.run().map_err(|error| in_file(path, &error))?;
    note_coverage(&runner);

    let mut table = Table::new(["tensor", "type", "shape", "min>", "max>", "mean>", "file"]);
    for (index, source) in sources.iter().enumerate() {
        let elements = runner.input_mut(index).to_vec();
        let file = source.map_or_else(
            || format!("random, seed {}", args.random_seed),
            |path| path.display().to_string(),
        );
        let spec = &runner.inputs()[index];
        table.row(row("input", index, spec, &elements, file));
    }
    if let Some(folder) = &args.output_dir {
        fs::create_dir_all(folder)
            .map_err(|error| about(folder, format!("cannot be made: {error}")))?;
    }
    for (index, spec) in runner.outputs().iter().enumerate() {
        let file = match &args.output_dir {
            Some(folder) => tensors::write_output(&runner, index, folder)?.display().to_string(),
            None => String::new(),
        };
        table.row(row("output", index, spec, runner.output(index), file));
    }
    Ok(table.write(out)?)
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "expected a number of seconds")?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

fn row(kind: &str, index: usize, spec: &TensorSpec, elements: &[u8], file: String) -> [String; 7] {
    let reals = spec.reals(elements).unwrap_or_default();
    let least = reals.iter().copied().reduce(f32::min);
    let most = reals.iter().copied().reduce(f32::max);
    let sum: f64 = reals.iter().copied().map(f64::from).sum();
    let mean = (!reals.is_empty()).then(|| (sum / reals.len() as f64) as f32);
    let number = |number: Option<f32>| number.map_or_else(String::new, |n| format!("{n:.4}"));
    [
        format!("{kind} {}", label(index, spec)),
        spec.dtype.to_string(),
        shape(&spec.dims),
        number(least),
        number(most),
        number(mean),
        file,
    ]
}
