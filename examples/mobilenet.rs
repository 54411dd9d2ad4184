//! Classifies an image: `cargo run --release --example mobilenet -- MODEL IMAGE LABELS`
//! (a classifier of RGB images in [-1, 1], fp32 or 8-bit; labels: one a line)

#![allow(clippy::print_stdout, reason = "a program")]

use anyhow::{Context, Result, bail};
use image::imageops::FilterType;
use xnn_delegate::{Datatype, Quantization, Session, SessionOptions, TensorInfo, open};

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [model, image, labels] = arguments.as_slice() else {
        bail!("usage: mobilenet MODEL IMAGE LABELS");
    };
    let mut session = Session::new(&open(model)?, &SessionOptions::default())?;
    let ([input], [output]) = (session.inputs(), session.outputs()) else {
        bail!("{model}: a classifier has one input and one output");
    };
    let (input, output) = (input.clone(), output.clone());
    let &[1, height, width, 3] = input.dims.as_slice() else { bail!("{model}: no RGB input") };

    let image = image::open(image).with_context(|| image.clone())?;
    let image = image.resize_exact(width as u32, height as u32, FilterType::Triangle).into_rgb8();
    let pixels = image.iter().map(|&pixel| f32::from(pixel) / 127.5 - 1.0);
    let (scale, zero_point) = quantization(&input);
    let quantized = pixels.clone().map(|real| (real / scale).round() + zero_point);
    match input.datatype {
        Datatype::F32 => copy(session.input_as_mut(0)?, pixels),
        Datatype::QInt8 => copy(session.input_as_mut(0)?, quantized.map(|q| q as i8)),
        Datatype::QUint8 => copy(session.input_as_mut(0)?, quantized.map(|q| q as u8)),
        other => bail!("{model}: inputs of type {} are not supported", other.name()),
    }
    session.run()?;

    let (scale, zero_point) = quantization(&output);
    let real = |q: f32| (q - zero_point) * scale;
    let scores: Vec<f32> = match output.datatype {
        Datatype::F32 => session.output_as(0)?.to_vec(),
        Datatype::QInt8 => session.output_as::<i8>(0)?.iter().map(|&q| real(q.into())).collect(),
        Datatype::QUint8 => session.output_as::<u8>(0)?.iter().map(|&q| real(q.into())).collect(),
        other => bail!("{model}: outputs of type {} are not supported", other.name()),
    };
    let labels = std::fs::read_to_string(labels).with_context(|| labels.clone())?;
    let mut ranking: Vec<(f32, &str)> = scores.into_iter().zip(labels.lines()).collect();
    ranking.sort_by(|a, b| b.0.total_cmp(&a.0));
    ranking.iter().take(5).for_each(|(score, label)| println!("{score:8.4}  {label}"));
    Ok(())
}

fn quantization(tensor: &TensorInfo) -> (f32, f32) {
    let Quantization::PerTensor { scale, zero_point } = tensor.quantization else {
        return (1.0, 0.0);
    };
    (scale, zero_point as f32)
}

fn copy<T>(elements: &mut [T], values: impl Iterator<Item = T>) {
    elements.iter_mut().zip(values).for_each(|(element, value)| *element = value);
}
