//! Finds objects in a photo: `cargo run --release --example ssd_detect -- MODEL IMAGE LABELS OUT.png`
//!
//! MODEL is an SSD that ends in `TFLite_Detection_PostProcess`, such as SSD MobileNet v1 on COCO;
//! LABELS has the name of a class on each line. XNNPACK runs the network; a reference kernel selects
//! the boxes. OUT.png is the photo with the boxes.

#![allow(clippy::print_stdout, reason = "a program")]

use std::fs;

use anyhow::{Context, Result, bail};
use image::{Rgb, RgbImage};
use xnn_delegate::Runner;
use xnn_delegate::images::{self, ImageInput};

/// Boxes below this score are not shown.
const LEAST_SCORE: f32 = 0.5;

/// Colors of boxes, used in turn.
const COLORS: [Rgb<u8>; 5] = [
    Rgb([255, 64, 64]),
    Rgb([64, 220, 64]),
    Rgb([80, 140, 255]),
    Rgb([255, 210, 0]),
    Rgb([255, 0, 220]),
];

fn main() -> Result<()> {
    env_logger::init();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [model, image, labels, drawing] = arguments.as_slice() else {
        bail!("usage: ssd_detect MODEL IMAGE LABELS OUT.png");
    };
    let mut runner = Runner::open(model)?;
    println!("{}", runner.coverage());

    let [input] = runner.inputs() else { bail!("{model}: a detector has one input") };
    let input = ImageInput::new(input).context(model.clone())?;
    let pixels = images::decode(image)?;
    input.write(&pixels, &input.usual_normalization(), runner.input_bytes_mut(0)?);
    runner.run()?;

    // Boxes are ymin, xmin, ymax, xmax as fractions of the image, sorted by score.
    let output = |index: usize| runner.output_reals(index);
    let (boxes, classes, scores, count) = (output(0)?, output(1)?, output(2)?, output(3)?);
    let count = count.first().map_or(0, |&count| count as usize);
    let names = fs::read_to_string(labels).with_context(|| labels.clone())?;
    let names: Vec<&str> = names.lines().collect();

    let mut picture = pixels.into_rgb8();
    let found = boxes.as_chunks::<4>().0.iter().zip(&classes).zip(&scores).take(count);
    let found = found.filter(|(_, score)| **score >= LEAST_SCORE);
    for (((corners, &class), score), (number, color)) in
        found.zip(COLORS.into_iter().cycle().enumerate())
    {
        let name = names.get(class as usize).copied().unwrap_or("?");
        let [top, left, bottom, right] = corners.map(|part| part.clamp(0.0, 1.0));
        println!(
            "{number}: {name:<12} {score:.2}  x {left:.2}..{right:.2}  y {top:.2}..{bottom:.2}"
        );
        frame(&mut picture, [top, left, bottom, right], color);
    }
    picture.save(drawing).with_context(|| drawing.clone())?;
    println!("{drawing}");
    Ok(())
}

/// Draws the border of a box, whose corners are fractions of the picture.
fn frame(picture: &mut RgbImage, [top, left, bottom, right]: [f32; 4], color: Rgb<u8>) {
    let (width, height) = picture.dimensions();
    let thickness = (width.max(height) / 200).max(2);
    let at = |part: f32, length: u32| (part * length.saturating_sub(1) as f32) as u32;
    let (x0, x1) = (at(left, width), at(right, width));
    let (y0, y1) = (at(top, height), at(bottom, height));
    for y in y0..=y1 {
        for x in x0..=x1 {
            let to_border = (x - x0).min(x1 - x).min(y - y0).min(y1 - y);
            if to_border < thickness {
                picture.put_pixel(x, y, color);
            }
        }
    }
}
