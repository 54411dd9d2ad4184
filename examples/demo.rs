//! Converts the digits models, runs the `.xnn` files, and prints how they classify the samples:
//! `cargo run --release --example demo`

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use image::DynamicImage;
use image::imageops::FilterType;
use xnn_delegate::images::{self, ImageInput};
use xnn_delegate::{ConvertOptions, Model, Runner, Source, convert};

/// Width and height of a drawing in dots. A cell of the terminal shows two dots, one above the other.
const DRAWING: u32 = 16;
/// Cells of a probability bar.
const BAR: usize = 20;

fn main() -> Result<()> {
    env_logger::init();
    let mut out = io::stdout().lock();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (models, blobs) = (root.join("models"), root.join("target/demo"));
    fs::create_dir_all(&blobs).with_context(|| blobs.display().to_string())?;
    let labels = fs::read_to_string(models.join("labels.txt"))?;
    let labels: Vec<&str> = labels.lines().collect();

    let mut classifiers = Vec::new();
    for kind in ["fp32", "int8"] {
        let name = format!("digits_mobilenet_v2_{kind}");
        let blob = blobs.join(&name).with_extension("xnn");
        writeln!(out, "{}", convert_file(&models.join(&name).with_extension("tflite"), &blob)?)?;
        let start = Instant::now();
        classifiers.push(Classifier::open(kind, &blob)?);
        writeln!(out, "{kind}: loaded in {:.1} ms", start.elapsed().as_secs_f64() * 1e3)?;
    }
    writeln!(out)?;

    let samples = sorted_files(&models.join("samples"))?;
    let mut right = vec![0; classifiers.len()];
    for sample in &samples {
        let image = images::decode(sample)?;
        let mut text = vec![sample.file_name().unwrap_or_default().to_string_lossy().into_owned()];
        for (classifier, right) in classifiers.iter_mut().zip(&mut right) {
            let (probabilities, time) = classifier.classify(&image)?;
            let ranking = ranking(&probabilities);
            text.push(String::new());
            text.push(format!("{}, {:.0} us", classifier.kind, time.as_secs_f64() * 1e6));
            for &(class, probability) in ranking.iter().take(2) {
                let label = labels.get(class).copied().unwrap_or("?");
                text.push(format!("{label:<6} {} {:5.1} %", bar(probability), 100.0 * probability));
            }
            *right += usize::from(ranking.first().map(|best| best.0) == true_class(sample));
        }
        let mut text = text.into_iter();
        for row in drawing(&image) {
            writeln!(out, "{row}   {}", text.next().unwrap_or_default())?;
        }
        for line in text {
            writeln!(out, "{}{line}", " ".repeat(DRAWING as usize + 3))?;
        }
        writeln!(out)?;
    }
    for (classifier, right) in classifiers.iter().zip(right) {
        writeln!(out, "{}: {right} of {} samples right", classifier.kind, samples.len())?;
    }
    writeln!(out, "The .xnn files are in {}.", blobs.display())?;
    Ok(())
}

/// Writes the blob, and returns a line with its size and the time that it took.
fn convert_file(model_path: &Path, blob_path: &Path) -> Result<String> {
    let start = Instant::now();
    let model = Model::open(model_path)?;
    let blob = convert(&model, &Source::of_file(model_path)?, &ConvertOptions::default())?;
    let blob = blob.into_bytes();
    fs::write(blob_path, &blob).with_context(|| blob_path.display().to_string())?;
    let name = model_path.file_name().unwrap_or_default().to_string_lossy();
    let ms = start.elapsed().as_secs_f64() * 1e3;
    let size = blob.len() / 1000;
    Ok(format!("{name}: converted in {ms:.1} ms, the .xnn file has {size} kB"))
}

/// A runner with the input of an image classifier.
struct Classifier {
    kind: &'static str,
    runner: Runner,
    input: ImageInput,
}

impl Classifier {
    fn open(kind: &'static str, blob: &Path) -> Result<Self> {
        let runner = Runner::open(blob)?;
        let ([input], [_]) = (runner.inputs(), runner.outputs()) else {
            bail!("{}: a classifier has one input and one output", blob.display());
        };
        let input = ImageInput::new(input).with_context(|| blob.display().to_string())?;
        Ok(Self { kind, runner, input })
    }

    /// Returns probabilities, and the time of the inference alone.
    fn classify(&mut self, image: &DynamicImage) -> Result<(Vec<f32>, Duration)> {
        let normalization = self.input.usual_normalization();
        self.input.write(image, &normalization, self.runner.input_bytes_mut(0)?);
        let start = Instant::now();
        self.runner.run()?;
        let time = start.elapsed();
        Ok((self.runner.output_reals(0)?, time))
    }
}

fn sorted_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut files = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    files.sort();
    Ok(files)
}

/// Classes and their probabilities, sorted by probability.
fn ranking(probabilities: &[f32]) -> Vec<(usize, f32)> {
    let mut ranking: Vec<(usize, f32)> = probabilities.iter().copied().enumerate().collect();
    ranking.sort_by(|a, b| b.1.total_cmp(&a.1));
    ranking
}

/// Digit at the end of a sample's name.
fn true_class(sample: &Path) -> Option<usize> {
    sample.file_stem()?.to_str()?.rsplit('_').next()?.parse().ok()
}

fn bar(probability: f32) -> String {
    let cells = (probability.clamp(0.0, 1.0) * BAR as f32).round() as usize;
    format!("{:·<BAR$}", "█".repeat(cells))
}

/// Lines of half blocks, light where the image is light.
fn drawing(image: &DynamicImage) -> Vec<String> {
    let image = image.resize_exact(DRAWING, DRAWING, FilterType::Triangle).into_luma8();
    let is_light = |x: u32, y: u32| image.get_pixel(x, y).0[0] > 90;
    let cell = |x: u32, y: u32| match (is_light(x, y), is_light(x, y + 1)) {
        (false, false) => ' ',
        (true, false) => '▀',
        (false, true) => '▄',
        (true, true) => '█',
    };
    (0..DRAWING).step_by(2).map(|y| (0..DRAWING).map(|x| cell(x, y)).collect()).collect()
}
