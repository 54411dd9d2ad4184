//! `xnn classify`: classifies images.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Result, anyhow};
use serde::Serialize;
use xnn_delegate::TensorSpec;
use xnn_delegate::classes::{Classes, Scores, fit_names};
use xnn_delegate::images::{self, ImageInput, Normalization};
use xnn_delegate::metadata::Description;
use xnn_delegate::metadata::{ColorSpaceType, TensorMetadata};

use crate::args::Workload;
use crate::output::{self, bar, plain, shape};
use crate::source::{
    about, file_name, in_file, note, note_coverage, note_without_effect, open_described, read,
};
use crate::tensors::label;

/// Width of a probability bar in cells.
const BAR: usize = 24;

#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    xnn classify described.tflite photo.jpg\n  \
    xnn classify mobilenet_v2.tflite photo.jpg --labels imagenet_labels.txt\n  \
    xnn classify resnet8.tflite *.png --top 1 --mean 0 --std 1\n  \
    xnn classify described.tflite *.jpg --json | jq '.images[].classes[0].name'")]
pub struct Args {
    #[command(flatten)]
    workload: Workload,
    /// JPEG, PNG or BMP images
    #[arg(required = true, value_name = "IMAGE")]
    images: Vec<PathBuf>,
    /// File with the names of the classes, one on each line [default: the metadata]
    #[arg(long, value_name = "FILE")]
    labels: Option<PathBuf>,
    /// Number of classes to show for each image
    #[arg(long, value_name = "K", default_value_t = 5, allow_negative_numbers = true, value_parser = clap::value_parser!(u16).range(1..))]
    top: u16,
    /// Subtracted from the values of a pixel, 0..=255: one value, or one for
    /// each channel [default: from the metadata, otherwise from the input's
    /// quantization, otherwise 127.5]
    #[arg(long, value_name = "VALUE,..", value_delimiter = ',', value_parser = finite, allow_hyphen_values = true)]
    mean: Vec<f32>,
    /// Divisor of the difference [default: as for --mean]
    #[arg(long, value_name = "VALUE,..", value_delimiter = ',', value_parser = divisor, allow_hyphen_values = true)]
    std: Vec<f32>,
    /// Color space of the images [default: from the metadata, otherwise from
    /// the input's channels]
    #[arg(long, value_name = "SPACE")]
    color: Option<Color>,
    /// Language of the names in the metadata, such as en or en-US
    #[arg(long, value_name = "LOCALE", default_value = "")]
    locale: String,
    /// Hide classes below this score, 0 to 1 [default: from the metadata]
    #[arg(long, value_name = "SCORE", value_parser = score, allow_negative_numbers = true)]
    threshold: Option<f32>,
    /// Ignore the model's metadata
    #[arg(long)]
    no_metadata: bool,
    /// Write the result as JSON
    #[arg(long)]
    json: bool,
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

#[derive(Serialize)]
struct Report {
    model: String,
    images: Vec<Image>,
}

/// Classes of an image.
#[derive(Serialize)]
struct Image {
    image: String,
    ms: f64,
    /// Whether the scores are the softmax of the model's output.
    is_softmax: bool,
    /// Classes, sorted by score.
    classes: Vec<Class>,
}

#[derive(Serialize)]
struct Class {
    class: usize,
    name: String,
    score: f32,
}

pub fn run(args: &Args, out: &mut dyn Write) -> Result<()> {
    let path = args.workload.path.as_path();
    let options = args.workload.runner_options();
    note_without_effect(path, &options.partition);
    let (mut runner, described) = open_described(path, &options)?;
    let [input] = runner.inputs() else {
        let inputs = runner.inputs().len();
        return Err(about(path, format!("expected a classifier with 1 input, found {inputs}")));
    };
    let input = ImageInput::new(input).map_err(|error| about(path, error))?;
    let scores = scores(runner.outputs()).map_err(|what| about(path, what))?.clone();
    let described = described.filter(|_| !args.no_metadata);
    let (input, normalization) = pixels(args, input, described.as_ref())?;
    log::info!("real = (pixel - {:?}) / {:?}", normalization.mean, normalization.std);
    let classes = classes(args, described.as_ref(), scores.dims.iter().product())?;
    note_coverage(&runner);

    let mut see = |image: &Path| -> Result<Image> {
        let pixels = images::decode(image).map_err(|error| anyhow!("{error}"))?;
        input.write(&pixels, &normalization, runner.input_bytes_mut(0)?);
        let start = Instant::now();
        runner.run().map_err(|error| in_file(path, &error))?;
        let time = start.elapsed();
        let values = runner.output_reals(0).map_err(|error| in_file(path, &error))?;
        let tolerance = 0.01 + values.len() as f32 * step(&scores) / 2.0;
        let Scores { values, is_softmax } = classes.scores(values, tolerance);
        let top = classes.top(&values, usize::from(args.top)).into_iter();
        let class = |(class, score)| Class { class, name: classes.name(class), score };
        Ok(Image {
            image: image.display().to_string(),
            ms: time.as_secs_f64() * 1e3,
            is_softmax,
            classes: top.map(class).collect(),
        })
    };
    let mut report = Report { model: file_name(path), images: vec![] };
    // Results before an error are written.
    let seen = args.images.iter().try_for_each(|image| {
        let image = see(image)?;
        if image.is_softmax && report.images.is_empty() {
            note("the model's output is not probabilities; the scores are its softmax");
        }
        if !args.json {
            image.write(out)?;
        }
        report.images.push(image);
        Ok(())
    });
    if args.json {
        output::write_json(out, &report)?;
    }
    seen
}

impl Image {
    fn write(&self, out: &mut dyn Write) -> Result<()> {
        writeln!(out, "{} ({:.2} ms)", plain(&self.image), self.ms)?;
        for Class { name, score, .. } in &self.classes {
            writeln!(out, "  {:>6.2} % {} {}", score * 100.0, bar(*score, BAR), plain(name))?;
        }
        // The next image may take long.
        Ok(out.flush()?)
    }
}

/// The output, if there is one that holds a score for each class.
fn scores(outputs: &[TensorSpec]) -> Result<&TensorSpec, String> {
    let is_vector = |dims: &[usize]| dims.iter().filter(|&&dim| dim != 1).count() <= 1;
    match outputs {
        [scores] if is_vector(&scores.dims) => Ok(scores),
        others => {
            let outputs = others.iter().enumerate().map(|(index, spec)| {
                format!("{} of {}", label(index, &spec.name), shape(&spec.dims))
            });
            Err(format!(
                "expected one output with a score for each class, found {}; xnn run writes any outputs, \
                 and the examples ssd_detect and segment draw boxes and areas",
                outputs.collect::<Vec<_>>().join(", ")
            ))
        }
    }
}

/// Parses a finite number.
fn finite(text: &str) -> Result<f32, &'static str> {
    text.parse().ok().filter(|value: &f32| value.is_finite()).ok_or("expected a finite number")
}

fn score(text: &str) -> Result<f32, &'static str> {
    let value = finite(text).ok().filter(|value| (0.0..=1.0).contains(value));
    value.ok_or("expected a number from 0 to 1")
}

fn divisor(text: &str) -> Result<f32, String> {
    match text.parse::<f32>() {
        Ok(value) if value.is_normal() => Ok(value),
        _ => Err("expected a number other than zero".into()),
    }
}

/// Color space and normalization of the input: from the command line, otherwise from the metadata, otherwise the usual
/// ones.
fn pixels(
    args: &Args,
    input: ImageInput,
    described: Option<&Description>,
) -> Result<(ImageInput, Normalization)> {
    let path = args.workload.path.as_path();
    let said = described.and_then(|described| described.metadata.input(0));
    let space = said.and_then(TensorMetadata::image).map(|image| image.color_space);
    let input = match (args.color, space) {
        (Some(color), _) => input
            .in_color_space(color.space())
            .map_err(|error| about(path, format!("--color: {error}")))?,
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
    check(&normalization, input.channels()).map_err(|what| about(path, what))?;
    Ok((input, normalization))
}

/// Checks values of the command line against the number of channels.
fn check(normalization: &Normalization, channels: usize) -> Result<(), String> {
    for (flag, values) in [("--mean", &normalization.mean), ("--std", &normalization.std)] {
        if values.len() != 1 && values.len() != channels {
            return Err(format!(
                "{flag}: expected 1 or {channels} values for {channels} channels, found {}",
                values.len()
            ));
        }
    }
    Ok(())
}

/// Classes from the command line, otherwise from the metadata.
fn classes(args: &Args, described: Option<&Description>, count: usize) -> Result<Classes> {
    let path = args.workload.path.as_path();
    let said = described.map(|said| Classes::described(said, 0, count, &args.locale));
    let (mut classes, notes) = said.unwrap_or_default();
    if let Some(file) = &args.labels {
        let names = labels(&read(file)?);
        let names = names.and_then(|names| fit_names(names, count));
        let (names, remark) = names.map_err(|what| about(file, what))?;
        classes.names = names;
        if let Some(remark) = remark {
            note(remark);
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

/// Lines of a file, without a byte order mark.
fn labels(file: &[u8]) -> Result<Vec<String>, String> {
    let file = file.strip_prefix(b"\xef\xbb\xbf").unwrap_or(file);
    let text = str::from_utf8(file).map_err(|error| {
        let before = file.get(..error.valid_up_to()).unwrap_or_default();
        let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
        format!("line {line}: not valid UTF-8; save the file as UTF-8")
    })?;
    Ok(text.trim_end().lines().map(|line| line.trim().into()).collect())
}

/// Step of the output's quantization.
fn step(scores: &TensorSpec) -> f32 {
    scores.quantization.map_or(0.0, |(scale, _)| scale)
}
