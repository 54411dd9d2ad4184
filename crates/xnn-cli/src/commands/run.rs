//! `xnn run`: one run, outputs to `.npy` files.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde::Serialize;
use xnn_delegate::{Runner, TensorSpec};

use crate::args::Workload;
use crate::output::{self, Table, shape};
use crate::source::{
    about, file_name, in_file, note_coverage, note_without_effect, open_runner, open_signature,
};
use crate::tensors::{self, Inputs, label};

#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    xnn run mobilenet_v2.xnn --input 0=photo.npy --output-dir out\n  \
    xnn run mobilenet_v2.xnn --json | jq '.outputs[].shape'\n  \
    xnn run model.tflite --signature serving_default --input image=photo.npy\n  \
    xnn run mobilenet_v2.tflite --seed 7 --threads 2 --output-dir out")]
pub struct Args {
    #[command(flatten)]
    workload: Workload,
    #[command(flatten)]
    inputs: Inputs,
    /// Signature to run, which has its own names for inputs and outputs
    /// [default: the main subgraph]
    #[arg(long, value_name = "NAME")]
    signature: Option<String>,
    /// Fail if the run takes longer. It ends before the next reference kernel or
    /// partition; a fully delegated model is not interrupted
    #[arg(long, value_name = "SECONDS", value_parser = seconds, allow_negative_numbers = true)]
    timeout: Option<Duration>,
    /// Folder for out_0.npy, out_1.npy, ..., created if it does not exist. Without
    /// it, outputs are only summarized
    #[arg(long, value_name = "DIR")]
    output_dir: Option<PathBuf>,
    /// Write the result as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    model: String,
    inputs: Vec<Tensor>,
    outputs: Vec<Tensor>,
}

/// Summary of an input or output.
#[derive(Serialize)]
struct Tensor {
    name: String,
    #[serde(rename = "type")]
    dtype: String,
    shape: Vec<usize>,
    /// Smallest real number that an element stands for; absent if the type is not numeric.
    min: Option<f32>,
    max: Option<f32>,
    mean: Option<f32>,
    /// File that it was read from or written to.
    file: Option<String>,
    /// Seed of a random input.
    seed: Option<u64>,
}

pub fn run(args: &Args, out: &mut dyn Write) -> Result<()> {
    let path = args.workload.path.as_path();
    let options = args.workload.runner_options();
    note_without_effect(path, &options.partition);
    let mut runner = match &args.signature {
        Some(key) => open_signature(path, key, &options)?,
        None => open_runner(path, &options)?,
    };
    let sources = args.inputs.fill(path, &mut runner)?;
    match args.timeout {
        Some(timeout) => run_within(timeout, &mut runner, path)?,
        None => runner.run().map_err(|error| in_file(path, &error))?,
    }
    note_coverage(&runner);

    let inputs = sources.iter().enumerate().map(|(index, source)| {
        let spec = runner.inputs()[index].clone();
        let seed = source.is_none().then_some(args.inputs.seed);
        let file = source.map(|path| path.display().to_string());
        // Types without elements have no memory.
        let elements = runner.input_bytes_mut(index).unwrap_or_default();
        Tensor { seed, file, ..Tensor::new(&spec, elements) }
    });
    let inputs = inputs.collect();
    if let Some(folder) = &args.output_dir {
        fs::create_dir_all(folder)
            .map_err(|error| about(folder, format!("cannot be created: {error}")))?;
    }
    let outputs = runner.outputs().iter().enumerate().map(|(index, spec)| {
        let folder = args.output_dir.as_deref();
        let file =
            folder.map(|folder| tensors::write_output(&runner, index, folder)).transpose()?;
        let file = file.map(|path| path.display().to_string());
        anyhow::Ok(Tensor { file, ..Tensor::new(spec, runner.output_bytes(index)?) })
    });
    let outputs = outputs.collect::<Result<_>>()?;
    let report = Report { model: file_name(path), inputs, outputs };
    if args.json {
        output::write_json(out, &report)?;
    } else {
        report.write(out)?;
    }
    Ok(())
}

/// Runs, and fails if that takes longer than `timeout`.
fn run_within(timeout: Duration, runner: &mut Runner, path: &Path) -> Result<()> {
    let (flag, start) = (runner.cancel_flag(), Instant::now());
    let timer = flag.clone();
    thread::spawn(move || {
        thread::sleep(timeout);
        timer.raise();
    });
    match runner.run() {
        Err(error) if !flag.is_raised() => Err(in_file(path, &error)),
        Ok(()) if start.elapsed() <= timeout => Ok(()),
        // Cancelled, or finished too late.
        _ => Err(about(path, format!("not finished within {timeout:?} (--timeout)"))),
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "expected a number of seconds")?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

impl Tensor {
    fn new(spec: &TensorSpec, elements: &[u8]) -> Self {
        let reals = spec.each_real(elements).into_iter().flatten();
        let Summary { least, most, mean } = Summary::of(reals);
        Self {
            name: spec.name.clone(),
            dtype: spec.dtype.to_string(),
            shape: spec.dims.clone(),
            min: least,
            max: most,
            mean,
            file: None,
            seed: None,
        }
    }

    fn cells(&self, kind: &str, index: usize) -> [String; 7] {
        let number = |number: Option<f32>| number.map_or_else(String::new, |n| format!("{n:.4}"));
        let random = self.seed.map(|seed| format!("random, seed {seed}"));
        [
            format!("{kind} {}", label(index, &self.name)),
            self.dtype.clone(),
            shape(&self.shape),
            number(self.min),
            number(self.max),
            number(self.mean),
            self.file.clone().or(random).unwrap_or_default(),
        ]
    }
}

impl Report {
    fn write(&self, out: &mut dyn Write) -> Result<()> {
        let mut table = Table::new(["tensor", "type", "shape", "min>", "max>", "mean>", "file"]);
        for (kind, tensors) in [("input", &self.inputs), ("output", &self.outputs)] {
            for (index, tensor) in tensors.iter().enumerate() {
                table.row(tensor.cells(kind, index));
            }
        }
        Ok(table.write(out)?)
    }
}

/// Statistics of a tensor; `None` without elements.
#[derive(Debug, Default, PartialEq)]
struct Summary {
    least: Option<f32>,
    most: Option<f32>,
    mean: Option<f32>,
}

impl Summary {
    fn of(reals: impl Iterator<Item = f32>) -> Self {
        let (mut summary, mut sum, mut count) = (Self::default(), 0.0, 0u64);
        for real in reals {
            summary.least = Some(summary.least.map_or(real, |least| least.min(real)));
            summary.most = Some(summary.most.map_or(real, |most| most.max(real)));
            sum += f64::from(real);
            count += 1;
        }
        summary.mean = (count > 0).then(|| (sum / count as f64) as f32);
        summary
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensors_are_summarized() {
        let summary = |reals: &[f32]| Summary::of(reals.iter().copied());
        let some = |[least, most, mean]: [f32; 3]| Summary {
            least: Some(least),
            most: Some(most),
            mean: Some(mean),
        };
        assert_eq!(summary(&[2.0, -1.0, 5.0]), some([-1.0, 5.0, 2.0]));
        assert_eq!(summary(&[f32::NAN, 3.0]).least, Some(3.0));
        assert_eq!(summary(&[]), Summary::default());
    }
}
