//! Colors each pixel of a photo by its class: `cargo run --release --example segment -- MODEL IMAGE OUT.png [LABELS]`
//!
//! For each pixel of a coarser grid, MODEL computes scores of classes (DeepLab), the class itself
//! (quantized DeepLab), or the probability of a person (selfie segmenter). Class 0 is the
//! background. LABELS has the name of a class on each line.

#![allow(clippy::print_stdout, reason = "a program")]

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result, bail};
use image::Rgb;
use xnn_delegate::Runner;
use xnn_delegate::images::{self, ImageInput};

/// Probability from which a pixel belongs to the foreground, for models without classes.
const LEAST_PROBABILITY: f32 = 0.5;

/// Colors of classes, used in turn.
const COLORS: [[u8; 3]; 6] =
    [[255, 64, 64], [64, 220, 64], [80, 140, 255], [255, 210, 0], [255, 0, 220], [0, 220, 220]];

fn main() -> Result<()> {
    env_logger::init();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (model, image, painting, labels) = match arguments.as_slice() {
        [model, image, painting] => (model, image, painting, None),
        [model, image, painting, labels] => (model, image, painting, Some(labels)),
        _ => bail!("usage: segment MODEL IMAGE OUT.png [LABELS]"),
    };
    let mut runner = Runner::open(model)?;
    println!("{}", runner.coverage());

    let [input] = runner.inputs() else { bail!("{model}: a segmenter has one input") };
    let input = ImageInput::new(input).context(model.clone())?;
    let pixels = images::decode(image)?;
    input.write(&pixels, &input.usual_normalization(), runner.input_bytes_mut(0)?);
    runner.run()?;

    let values = runner.output_reals(0)?;
    let output = runner.outputs().first().with_context(|| format!("{model}: no output"))?;
    let (width, classes): (_, Vec<usize>) = match *output.dims.as_slice() {
        [1, _, width, 1] => {
            (width, values.iter().map(|&p| usize::from(p >= LEAST_PROBABILITY)).collect())
        }
        [1, _, width, classes @ (2..)] => (width, values.chunks(classes).map(largest).collect()),
        [1, _, width] => (width, values.iter().map(|&class| class as usize).collect()),
        ref other => bail!(
            "{model}: expected an output [1, height, width] or [1, height, width, classes], found {other:?}"
        ),
    };
    let names = labels.map(|file| fs::read_to_string(file).with_context(|| file.clone()));
    let names = names.transpose()?.unwrap_or_default();
    let names: Vec<&str> = names.lines().collect();
    let mut counts = BTreeMap::new();
    classes.iter().for_each(|class| *counts.entry(*class).or_insert(0) += 1);
    for (class, count) in counts {
        let percent = 100.0 * f64::from(count) / classes.len() as f64;
        println!("{percent:5.1} %  {}", names.get(class).map_or(class.to_string(), |&n| n.into()));
    }

    let mut picture = pixels.into_rgb8();
    let height = classes.len() / width.max(1);
    let (wide, high) = (picture.width() as usize, picture.height() as usize);
    for (x, y, pixel) in picture.enumerate_pixels_mut() {
        let (column, row) = (x as usize * width / wide, y as usize * height / high);
        if let Some(class @ 1..) = classes.get(row * width + column) {
            let [red, green, blue] = COLORS[(class - 1) % COLORS.len()];
            let mix = |old: u8, new: u8| old.midpoint(new);
            let Rgb([r, g, b]) = *pixel;
            *pixel = Rgb([mix(r, red), mix(g, green), mix(b, blue)]);
        }
    }
    picture.save(painting).with_context(|| painting.clone())?;
    println!("{painting}");
    Ok(())
}

/// Position of the largest score; of equal scores, the first.
fn largest(scores: &[f32]) -> usize {
    let first = (0, f32::NEG_INFINITY);
    let better = |best: (usize, f32), (index, &score): (usize, &f32)| {
        if score > best.1 { (index, score) } else { best }
    };
    scores.iter().enumerate().fold(first, better).0
}
