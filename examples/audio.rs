//! Classifies a sound: `cargo run --release --example audio -- MODEL SOUND.wav LABELS`
//!
//! MODEL reads a window of samples at 16 kHz and computes a score for each class, such as YAMNet or
//! the speech commands model. LABELS has the name of a class on each line. The sound is cut into
//! windows that overlap by half, and their scores are averaged.

#![allow(clippy::print_stdout, reason = "a program")]

use std::fs;

use anyhow::{Context, Result, bail, ensure};
use hound::{SampleFormat, WavReader};
use xnn_delegate::Runner;

const SAMPLES_PER_SECOND: u32 = 16_000;
const SHOWN: usize = 5;

fn main() -> Result<()> {
    env_logger::init();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [model, sound, labels] = arguments.as_slice() else {
        bail!("usage: audio MODEL SOUND.wav LABELS");
    };
    let mut runner = Runner::open(model)?;
    println!("{}", runner.coverage());
    let labels = fs::read_to_string(labels).with_context(|| labels.clone())?;
    let labels: Vec<&str> = labels.lines().collect();

    let length = runner.input_as_mut::<f32>(0)?.len();
    ensure!(length > 1, "{model}: expected an input of samples, found one element");
    let mut samples = samples(sound)?;
    if samples.len() < length {
        samples.resize(length, 0.0);
    }
    let mut sums: Vec<f32> = Vec::new();
    let windows = || samples.windows(length).step_by(length / 2);
    for window in windows() {
        runner.input_as_mut(0)?.copy_from_slice(window);
        runner.run()?;
        let scores = runner.output_reals(0)?;
        sums.resize(scores.len(), 0.0);
        sums.iter_mut().zip(scores).for_each(|(sum, score)| *sum += score);
    }
    let count = windows().count() as f32;
    let mut ranking: Vec<(usize, f32)> = sums.iter().map(|sum| sum / count).enumerate().collect();
    ranking.sort_by(|a, b| b.1.total_cmp(&a.1));
    for (class, score) in ranking.into_iter().take(SHOWN) {
        println!(
            "{score:.3}  {}",
            labels.get(class).map_or(class.to_string(), |&name| name.into())
        );
    }
    Ok(())
}

/// Samples of the sound's first channel, from -1 to 1.
fn samples(path: &str) -> Result<Vec<f32>> {
    let mut reader = WavReader::open(path).with_context(|| path.to_owned())?;
    let spec = reader.spec();
    ensure!(
        spec.sample_rate == SAMPLES_PER_SECOND,
        "{path}: expected {SAMPLES_PER_SECOND} samples per second, found {}",
        spec.sample_rate
    );
    let samples: Result<Vec<f32>, _> = match spec.sample_format {
        SampleFormat::Float => reader.samples::<f32>().collect(),
        SampleFormat::Int => {
            let largest = f32::powi(2.0, i32::from(spec.bits_per_sample) - 1);
            reader.samples::<i32>().map(|one| one.map(|one| one as f32 / largest)).collect()
        }
    };
    let samples = samples.with_context(|| path.to_owned())?;
    Ok(samples.into_iter().step_by(usize::from(spec.channels.max(1))).collect())
}
