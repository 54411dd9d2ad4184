//! Classifies an image: `cargo run --release --example mobilenet -- MODEL IMAGE LABELS`
//!
//! MODEL is a MobileNet or another classifier, fp32 or 8-bit, as `.tflite`, `.circle` or `.xnn` file;
//! LABELS has the name of a class on each line.

#![allow(clippy::print_stdout, reason = "a program")]

use std::fs;

use anyhow::{Context, Result, bail};
use xnn_delegate::images::{self, ImageInput};
use xnn_delegate::{Datatype, Quantization, Session, SessionOptions, open};

fn main() -> Result<()> {
    env_logger::init();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [model, image, labels] = arguments.as_slice() else {
        bail!("usage: mobilenet MODEL IMAGE LABELS");
    };
    let mut session = Session::new(&open(model)?, &SessionOptions::default())?;
    let ([input], [output]) = (session.inputs(), session.outputs()) else {
        bail!("{model}: a classifier has one input and one output");
    };
    let (input, output) = (ImageInput::new(input).context(model.clone())?, output.clone());

    // Resized and normalized as the input wants it, straight into the session's memory.
    let pixels = images::decode(image)?;
    input.write(&pixels, &input.usual_normalization(), session.input_mut(0));
    session.run()?;

    let scores: Vec<f32> = match output.datatype {
        Datatype::F32 => session.output_as(0)?.to_vec(),
        Datatype::QInt8 => session.output_as::<i8>(0)?.iter().map(|&q| q.into()).collect(),
        Datatype::QUint8 => session.output_as::<u8>(0)?.iter().map(|&q| q.into()).collect(),
        other => bail!("{model}: outputs of type {} are not supported", other.name()),
    };
    let (scale, zero_point) = match output.quantization {
        Quantization::PerTensor { scale, zero_point } => (scale, zero_point as f32),
        _ => (1.0, 0.0),
    };
    let names = fs::read_to_string(labels).with_context(|| labels.clone())?;
    let mut ranking: Vec<(f32, &str)> = scores.into_iter().zip(names.lines()).collect();
    ranking.sort_by(|a, b| b.0.total_cmp(&a.0));
    for (score, name) in ranking.into_iter().take(5) {
        println!("{:8.4}  {name}", (score - zero_point) * scale);
    }
    Ok(())
}
