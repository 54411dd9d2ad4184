//! `xnn classify`: names what images show.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Result, anyhow, bail};
use xnn_delegate::images::{self, ImageInput, Normalization};
use xnn_delegate::metadata::{ColorSpaceType, TensorMetadata};
use xnn_delegate::{Classes, Description, Scores, TensorSpec, fit_names};

use crate::args::Workload;
use crate::output::bar;
use crate::source::{about, in_file, note_coverage, open_described};

/// Width of a probability bar in cells.
const BAR: usize = 24;

#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    xnn classify described.tflite photo.jpg\n  \
    xnn classify mobilenet_v2.tflite photo.jpg --labels imagenet_labels.txt\n  \
    xnn classify resnet8.tflite *.png --top 1 --mean 0 --std 1")]
pub struct Args {
    #[command(flatten)]
    workload: Workload,
    /// JPEG, PNG or BMP images
    #[arg(required = true, value_name = "IMAGE")]
    images: Vec<PathBuf>,
    /// Names of the classes, one a line [default: those in the metadata]
    #[arg(long, value_name = "FILE")]
    labels: Option<PathBuf>,
    /// How many classes to show for each image
    #[arg(long, value_name = "K", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    top: u16,
    /// What is subtracted from each of a pixel's 0..=255: one value, or one for
    /// each channel [default: what the metadata says, else what the input's
    /// quantization suggests, else 127.5]
    #[arg(long, value_name = "VALUE,..", value_delimiter = ',', allow_negative_numbers = true)]
    mean: Vec<f32>,
    /// What the difference is divided by [default: as for --mean, 127.5]
    #[arg(long, value_name = "VALUE,..", value_delimiter = ',', value_parser = divisor)]
    std: Vec<f32>,
    /// Give the model colours or shades [default: what the metadata says, else
    /// what the input's channels suggest]
    #[arg(long, value_name = "SPACE")]
    color: Option<Color>,
    /// Language of the names in the metadata, as en or en-US
    #[arg(long, value_name = "LOCALE", default_value = "")]
    locale: String,
    /// Leave out classes below this score, 0 to 1 [default: what the metadata says]
    #[arg(long, value_name = "SCORE")]
    threshold: Option<f32>,
    /// Take nothing from the model's metadata
    #[arg(long)]
    no_metadata: bool,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Color {
    Rgb,
    Grayscale,
}

impl Color {
    fn space(self) -> ColorSpaceType {
        match self {
            Self::Rgb => ColorSpaceType::Rgb,
            Self::Grayscale => ColorSpaceType::Grayscale,
        }
    }
}

pub fn run(args: &Args, out: &mut dyn Write) -> Result<()> {
    let path = args.workload.path.as_path();
    let (mut runner, described) = open_described(path, &args.workload.runner_options())?;
    let ([input], [scores, ..]) = (runner.inputs(), runner.outputs()) else {
        let inputs = runner.inputs().len();
        return Err(about(path, format!("a classifier has one input, not {inputs}")));
    };
    let scores = scores.clone();
    let input = ImageInput::new(input).map_err(|error| about(path, error))?;
    let described = described.filter(|_| !args.no_metadata);
    let (input, normalization) = pixels(args, input, described.as_ref())?;
    log::info!("real = (pixel - {:?}) / {:?}", normalization.mean, normalization.std);
    let classes = classes(args, described.as_ref(), scores.dims.iter().product(), out)?;
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
        let Scores { values, is_softmax } = classes.scores(values, tolerance);
        if is_softmax && index == 0 {
            writeln!(
                out,
                "note: the model's outputs are no probabilities; softmax made them some"
            )?;
        }
        writeln!(out, "{} ({:.2} ms)", image.display(), time.as_secs_f64() * 1e3)?;
        for (class, score) in classes.top(&values, usize::from(args.top)) {
            let bar = bar(score, BAR);
            writeln!(out, "  {:>6.2} % {bar} {}", score * 100.0, classes.name(class))?;
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

/// The input in its colour space, and how its numbers are made: as the command line says, else
/// the metadata, else as is usual.
fn pixels(
    args: &Args,
    input: ImageInput,
    described: Option<&Description>,
) -> Result<(ImageInput, Normalization)> {
    let path = args.workload.path.as_path();
    let said = described.and_then(|described| described.metadata.input(0));
    let space = said.and_then(TensorMetadata::image).map(|image| image.color_space);
    let input = match (args.color, space) {
        (Some(color), _) => {
            input.in_color_space(color.space()).map_err(|error| anyhow!("--color: {error}"))?
        }
        (None, Some(space)) => input.clone().in_color_space(space).unwrap_or_else(|error| {
            log::warn!("{}: metadata: {error}", path.display());
            input
        }),
        (None, None) => input,
    };
    let said = said.map(|said| input.described_normalization(said)).transpose();
    let said = said.unwrap_or_else(|error| {
        log::warn!("{}: metadata: normalization: {error}", path.display());
        None
    });
    let Normalization { mean, std } = said.flatten().unwrap_or_else(|| input.usual_normalization());
    let or = |given: &[f32], usual| if given.is_empty() { usual } else { given.to_vec() };
    let normalization = Normalization { mean: or(&args.mean, mean), std: or(&args.std, std) };
    check(&normalization, input.channels())?;
    Ok((input, normalization))
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

/// What outputs mean: as the command line says, else the metadata.
fn classes(
    args: &Args,
    described: Option<&Description>,
    count: usize,
    out: &mut dyn Write,
) -> Result<Classes> {
    let path = args.workload.path.as_path();
    let said = described.map(|said| Classes::described(said, 0, count, &args.locale));
    let (mut classes, notes) = said.unwrap_or_default();
    if let Some(file) = &args.labels {
        let text = fs::read_to_string(file).map_err(|error| about(file, error))?;
        let names = text.trim_end().lines().map(|line| line.trim().into()).collect();
        let (names, note) = fit_names(names, count).map_err(|error| about(file, error))?;
        classes.names = names;
        if let Some(note) = note {
            writeln!(out, "note: {note}")?;
        }
    } else {
        for note in notes {
            log::warn!("{}: metadata: {note}", path.display());
        }
    }
    if args.threshold.is_some() {
        classes.threshold = args.threshold;
    }
    Ok(classes)
}

/// The distance of two neighbouring outputs.
fn step(scores: &TensorSpec) -> f32 {
    scores.quantization.map_or(0.0, |(scale, _)| scale)
}
