//! Classifies an image: `cargo run --release --example mobilenet -- MODEL IMAGE LABELS`
//!
//! MODEL is a MobileNet or any other classifier of RGB images in [-1, 1], fp32 or 8-bit, as
//! `.tflite`, `.circle` or `.xnn` file; LABELS is a text file with the name of a class on each line.

use anyhow::{Context, Result, bail};
use image::imageops::FilterType;
use xnn_delegate::{Datatype, Quantization, Session, SessionOptions, TensorInfo, open};

fn main() -> Result<()> {
    env_logger::init();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [model, image, labels] = arguments.as_slice() else {
        bail!("usage: mobilenet MODEL IMAGE LABELS");
    };
    let program = open(model)?;
    let mut session = Session::new(&program, &SessionOptions::default())?;
    let input = session.inputs().first().context("the model has no input")?.clone();
    let &[1, height, width, 3] = input.dims.as_slice() else {
        bail!("{model}: the input {:?} is no RGB image", input.dims);
    };

    let image = image::open(image).with_context(|| image.clone())?;
    let image = image.resize_exact(width as u32, height as u32, FilterType::Triangle).into_rgb8();
    let pixels = image.iter().map(|&pixel| f32::from(pixel) / 127.5 - 1.0);
    let (scale, zero_point) = scale(&input);
    let quantized = pixels.clone().map(|real| (real / scale).round() + zero_point);
    match input.datatype {
        Datatype::F32 => copy(session.input_as_mut(0)?, pixels),
        Datatype::QInt8 => copy(session.input_as_mut(0)?, quantized.map(|q| q as i8)),
        Datatype::QUint8 => copy(session.input_as_mut(0)?, quantized.map(|q| q as u8)),
        other => bail!("{model}: inputs of type {} are not supported", other.name()),
    }
    session.run()?;

    let output = session.outputs().first().context("the model has no output")?;
    let mut scores: Vec<f32> = match output.datatype {
        Datatype::F32 => session.output_as(0)?.to_vec(),
        Datatype::QInt8 => session.output_as::<i8>(0)?.iter().map(|&q| q.into()).collect(),
        Datatype::QUint8 => session.output_as::<u8>(0)?.iter().map(|&q| q.into()).collect(),
        other => bail!("{model}: outputs of type {} are not supported", other.name()),
    };
    let (scale, zero_point) = self::scale(output);
    scores.iter_mut().for_each(|score| *score = (*score - zero_point) * scale);
    let labels = std::fs::read_to_string(labels).with_context(|| labels.clone())?;
    let mut ranking: Vec<(f32, &str)> = scores.into_iter().zip(labels.lines()).collect();
    ranking.sort_by(|a, b| b.0.total_cmp(&a.0));
    ranking.iter().take(5).for_each(|(score, label)| println!("{score:8.4}  {label}"));
    Ok(())
}

/// Scale and zero point; those of a float tensor change nothing.
fn scale(tensor: &TensorInfo) -> (f32, f32) {
    match tensor.quantization {
        Quantization::PerTensor { scale, zero_point } => (scale, zero_point as f32),
        _ => (1.0, 0.0),
    }
}

fn copy<T>(elements: &mut [T], values: impl Iterator<Item = T>) {
    elements.iter_mut().zip(values).for_each(|(element, value)| *element = value);
}
