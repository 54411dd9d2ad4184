//! `xnn classify`: names what images show.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Result, anyhow, bail};
use xnn_delegate::TensorSpec;
use xnn_delegate::images::{self, ImageInput, Normalization};

use crate::args::Workload;
use crate::output::bar;
use crate::source::{about, in_file, note_coverage, open_runner};

/// Width of a probability bar in cells.
const BAR: usize = 24;

#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    xnn classify mobilenet_v2.tflite photo.jpg --labels imagenet_labels.txt\n  \
    xnn classify resnet8.tflite *.png --top 1 --mean 0 --std 1")]
pub struct Args {
    #[command(flatten)]
    workload: Workload,
    /// JPEG, PNG or BMP images
    #[arg(required = true, value_name = "IMAGE")]
    images: Vec<PathBuf>,
    /// Names of the classes, one a line
    #[arg(long, value_name = "FILE")]
    labels: Option<PathBuf>,
    /// How many classes to show for each image
    #[arg(long, value_name = "K", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    top: u16,
    /// What is subtracted from each of a pixel's 0..=255: one value, or one for
    /// each channel [default: what the input's quantization suggests, else 127.5]
    #[arg(long, value_name = "VALUE,..", value_delimiter = ',', allow_negative_numbers = true)]
    mean: Vec<f32>,
    /// What the difference is divided by [default: as for --mean, 127.5]
    #[arg(long, value_name = "VALUE,..", value_delimiter = ',', value_parser = divisor)]
    std: Vec<f32>,
}

pub fn run(args: &Args, out: &mut dyn Write) -> Result<()> {
    let path = args.workload.path.as_path();
    let mut runner = open_runner(path, &args.workload.runner_options())?;
    let ([input], [scores, ..]) = (runner.inputs(), runner.outputs()) else {
        let inputs = runner.inputs().len();
        return Err(about(path, format!("a classifier has one input, not {inputs}")));
    };
    let scores = scores.clone();
    let input = ImageInput::new(input).map_err(|error| about(path, error))?;
    let normalization = normalization(args, &input);
    check(&normalization, input.channels())?;
    log::info!("real = (pixel - {:?}) / {:?}", normalization.mean, normalization.std);
    let names = Names::new(args.labels.as_deref(), scores.dims.iter().product())?;
    if let Some(note) = &names.note {
        writeln!(out, "note: {note}")?;
    }
    note_coverage(&runner);

    for (index, image) in args.images.iter().enumerate() {
        let pixels = images::decode(image).map_err(|error| anyhow!("{error}"))?;
        input.write(&pixels, &normalization, runner.input_mut(0));
        let start = Instant::now();
        runner.run().map_err(|error| in_file(path, &error))?;
        let time = start.elapsed();
        let values = runner.output_reals(0);
        let values = values.ok_or_else(|| about(path, "its first output holds no numbers"))?;
        let tolerance = 0.01 + values.len() as f32 * step(&scores) / 2.0;
        let (probabilities, is_softmax) = probabilities(values, tolerance);
        if is_softmax && index == 0 {
            writeln!(
                out,
                "note: the model's outputs are no probabilities; softmax made them some"
            )?;
        }
        writeln!(out, "{} ({:.2} ms)", image.display(), time.as_secs_f64() * 1e3)?;
        for (class, probability) in top(&probabilities, usize::from(args.top)) {
            let bar = bar(probability, BAR);
            writeln!(out, "  {:>6.2} % {bar} {}", probability * 100.0, names.of(class))?;
        }
    }
    Ok(())
}

fn divisor(text: &str) -> Result<f32, String> {
    match text.parse::<f32>() {
        Ok(value) if value.is_normal() => Ok(value),
        _ => Err("a number that is not zero is needed".into()),
    }
}

fn normalization(args: &Args, input: &ImageInput) -> Normalization {
    let Normalization { mean, std } = input.usual_normalization();
    let or = |given: &[f32], usual| if given.is_empty() { usual } else { given.to_vec() };
    Normalization { mean: or(&args.mean, mean), std: or(&args.std, std) }
}

/// Checks values of the command line against the number of channels.
fn check(normalization: &Normalization, channels: usize) -> Result<()> {
    for (flag, values) in [("--mean", &normalization.mean), ("--std", &normalization.std)] {
        if values.len() != 1 && values.len() != channels {
            bail!("{flag}: {} values for {channels} channels", values.len());
        }
    }
    Ok(())
}

/// The distance of two neighbouring outputs.
fn step(scores: &TensorSpec) -> f32 {
    scores.quantization.map_or(0.0, |(scale, _)| scale)
}

/// The values as they are if they can be probabilities, within `tolerance` of
/// a sum of 1; else their softmax, and `true`.
fn probabilities(values: Vec<f32>, tolerance: f32) -> (Vec<f32>, bool) {
    let in_range = values.iter().all(|value| (0.0..=1.0).contains(value));
    let sum: f32 = values.iter().sum();
    if in_range && (values.len() == 1 || (sum - 1.0).abs() <= tolerance) {
        return (values, false);
    }
    let most = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let exps: Vec<f32> = values.iter().map(|value| (value - most).exp()).collect();
    let sum: f32 = exps.iter().sum();
    (exps.into_iter().map(|exp| exp / sum).collect(), true)
}

/// The `count` largest, the first of equals first.
fn top(probabilities: &[f32], count: usize) -> Vec<(usize, f32)> {
    let mut classes: Vec<(usize, f32)> = probabilities.iter().copied().enumerate().collect();
    classes.sort_by(|a, b| b.1.total_cmp(&a.1));
    classes.truncate(count);
    classes
}

/// Names of classes.
#[derive(Debug, Default, PartialEq)]
struct Names {
    names: Vec<String>,
    /// What was done to make names and classes fit.
    note: Option<String>,
}

impl Names {
    fn new(file: Option<&Path>, classes: usize) -> Result<Self> {
        let Some(file) = file else { return Ok(Self::default()) };
        let text = fs::read_to_string(file).map_err(|error| about(file, error))?;
        let names: Vec<String> = text.trim_end().lines().map(|line| line.trim().into()).collect();
        Self::fit(names, classes).map_err(|error| about(file, error))
    }

    /// Adds or drops the background class where that makes names and classes fit.
    fn fit(mut names: Vec<String>, classes: usize) -> Result<Self, String> {
        let count = names.len();
        let note = if count == classes {
            None
        } else if count.checked_sub(1) == Some(classes) {
            names.remove(0);
            Some("without the first name: the model has no background class")
        } else if count + 1 == classes {
            names.insert(0, "background".into());
            Some("the model's first class has no name: taken for the background")
        } else {
            return Err(format!("{count} names do not fit {classes} classes"));
        };
        let note = note.map(|note| format!("{count} names for {classes} classes, {note}"));
        Ok(Self { names, note })
    }

    fn of(&self, class: usize) -> String {
        self.names.get(class).cloned().unwrap_or_else(|| format!("class {class}"))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn names_fit_with_or_without_background() {
        let names = |count: usize| (0..count).map(|n| n.to_string()).collect::<Vec<_>>();
        let same = Names::fit(names(3), 3).unwrap();
        assert_eq!((same.of(0), same.note.clone()), ("0".into(), None));
        let dropped = Names::fit(names(4), 3).unwrap();
        assert_eq!((dropped.of(0), dropped.note.is_some()), ("1".into(), true));
        let added = Names::fit(names(2), 3).unwrap();
        assert_eq!((added.of(0), added.of(1)), ("background".into(), "0".into()));
        assert!(Names::fit(names(1), 3).is_err());
        assert!(Names::fit(names(5), 3).is_err());
        assert_eq!(Names::default().of(7), "class 7");
    }

    #[test]
    fn probabilities_stay_and_others_become_some() {
        assert_eq!(probabilities(vec![0.25, 0.75], 0.0), (vec![0.25, 0.75], false));
        assert_eq!(probabilities(vec![0.25, 0.65], 0.2), (vec![0.25, 0.65], false));
        assert_eq!(probabilities(vec![0.9], 0.0), (vec![0.9], false));
        assert_eq!(probabilities(vec![1.0, 1.0], 0.1), (vec![0.5, 0.5], true));
        let (values, is_softmax) = probabilities(vec![-1.0, 2.0], 0.1);
        assert!(is_softmax && (values[1] - 0.952_574).abs() < 1e-5, "{values:?}");
    }

    #[test]
    fn the_largest_come_first() {
        assert_eq!(top(&[0.1, 0.6, 0.1, 0.2], 3), [(1, 0.6), (3, 0.2), (0, 0.1)]);
        assert_eq!(top(&[1.0], 5), [(0, 1.0)]);
    }
}
