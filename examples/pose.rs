//! Draws the skeleton of a person: `cargo run --release --example pose -- MODEL IMAGE OUT.png`
//!
//! MODEL is a MoveNet for one person, with an output `[1, 1, 17, 3]`: y and x as fractions of the
//! image, and a score, for each of COCO's 17 points of the body. XNNPACK runs most operators;
//! reference kernels gather the points.

#![allow(clippy::print_stdout, reason = "a program")]

use anyhow::{Context, Result, bail};
use image::{Rgb, RgbImage};
use xnn_delegate::Runner;
use xnn_delegate::images::{self, ImageInput};

/// Points below this score are not shown.
const LEAST_SCORE: f32 = 0.3;

/// COCO's points of the body, in the order of the output.
const POINTS: [&str; 17] = [
    "nose",
    "left eye",
    "right eye",
    "left ear",
    "right ear",
    "left shoulder",
    "right shoulder",
    "left elbow",
    "right elbow",
    "left wrist",
    "right wrist",
    "left hip",
    "right hip",
    "left knee",
    "right knee",
    "left ankle",
    "right ankle",
];

/// Pairs of points that a line joins.
const BONES: [(usize, usize); 18] = [
    (0, 1),
    (0, 2),
    (1, 3),
    (2, 4),
    (0, 5),
    (0, 6),
    (5, 6),
    (5, 7),
    (7, 9),
    (6, 8),
    (8, 10),
    (5, 11),
    (6, 12),
    (11, 12),
    (11, 13),
    (13, 15),
    (12, 14),
    (14, 16),
];

const BONE: Rgb<u8> = Rgb([64, 220, 64]);
const POINT: Rgb<u8> = Rgb([255, 64, 64]);

fn main() -> Result<()> {
    env_logger::init();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [model, image, drawing] = arguments.as_slice() else {
        bail!("usage: pose MODEL IMAGE OUT.png");
    };
    let mut runner = Runner::open(model)?;
    println!("{}", runner.coverage());

    let [input] = runner.inputs() else { bail!("{model}: MoveNet has one input") };
    let input = ImageInput::new(input).context(model.clone())?;
    let pixels = images::decode(image)?;
    input.write(&pixels, &input.usual_normalization(), runner.input_bytes_mut(0)?);
    runner.run()?;

    let output = runner.output_reals(0)?;
    if output.len() != 3 * POINTS.len() {
        bail!("{model}: expected an output of 17 x 3 elements, found {}", output.len());
    }
    let mut picture = pixels.into_rgb8();
    let (width, height) = picture.dimensions();
    let mut places = [None; POINTS.len()];
    for ((name, place), &[y, x, score]) in
        POINTS.iter().zip(&mut places).zip(output.as_chunks::<3>().0)
    {
        if score >= LEAST_SCORE {
            println!("{name:<14} {score:.2}  x {x:.2}  y {y:.2}");
            *place = Some([x * width as f32, y * height as f32]);
        }
    }
    let thickness = (width.max(height) / 250).max(1);
    for (from, to) in BONES {
        if let (Some(from), Some(to)) = (places[from], places[to]) {
            line(&mut picture, from, to, thickness, BONE);
        }
    }
    for point in places.into_iter().flatten() {
        line(&mut picture, point, point, 2 * thickness, POINT);
    }
    picture.save(drawing).with_context(|| drawing.clone())?;
    println!("{drawing}");
    Ok(())
}

/// Draws a line of squares with this radius. Pixels outside of the picture are skipped.
fn line(picture: &mut RgbImage, from: [f32; 2], to: [f32; 2], radius: u32, color: Rgb<u8>) {
    let [dx, dy] = [to[0] - from[0], to[1] - from[1]];
    let steps = dx.abs().max(dy.abs()).ceil().max(1.0) as u32;
    let radius = i64::from(radius);
    for step in 0..=steps {
        let part = step as f32 / steps as f32;
        let (x, y) = ((from[0] + part * dx) as i64, (from[1] + part * dy) as i64);
        for y in y - radius..=y + radius {
            for x in x - radius..=x + radius {
                if let (Ok(x), Ok(y)) = (u32::try_from(x), u32::try_from(y))
                    && let Some(pixel) = picture.get_pixel_mut_checked(x, y)
                {
                    *pixel = color;
                }
            }
        }
    }
}
