//! Classifies an image: `cargo run --release --example mobilenet -- MODEL IMAGE [LABELS]`
//!
//! MODEL is a MobileNet or another classifier, fp32 or 8-bit, as `.tflite`, `.circle` or `.xnn` file;
//! its metadata says how pixels become numbers and what the classes are called. LABELS, where the
//! metadata has none, has the name of a class on each line.

#![allow(clippy::print_stdout, reason = "a program")]

use std::fs;

use anyhow::{Context, Result, anyhow, bail};
use xnn_delegate::images::{self, ImageInput};
use xnn_delegate::{Classes, Description, PartitionOptions, Runner, SessionOptions, fit_names};

fn main() -> Result<()> {
    env_logger::init();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (model, image, labels) = match arguments.as_slice() {
        [model, image] => (model, image, None),
        [model, image, labels] => (model, image, Some(labels)),
        _ => bail!("usage: mobilenet MODEL IMAGE [LABELS]"),
    };
    let (partition, session) = (PartitionOptions::default(), SessionOptions::default());
    let mut runner = Runner::open(model, &partition, &session)?;
    let ([input], [output]) = (runner.inputs(), runner.outputs()) else {
        bail!("{model}: a classifier has one input and one output");
    };
    let (input, count) =
        (ImageInput::new(input).context(model.clone())?, output.dims.iter().product());

    // What the model says of its pixels and classes, and what is usual where it says nothing.
    let described = Description::open(model)?.unwrap_or_default();
    let said = described.metadata.input(0).map(|said| input.described_normalization(said));
    let said = said.transpose().map_err(|error| anyhow!("{model}: {error}"))?.flatten();
    let normalization = said.unwrap_or_else(|| input.usual_normalization());
    let (mut classes, notes) = Classes::described(&described, 0, count, "en");
    notes.iter().for_each(|note| log::warn!("{model}: {note}"));
    if let Some(file) = labels {
        let names = fs::read_to_string(file).with_context(|| file.clone())?;
        let names = names.lines().map(str::to_owned).collect();
        (classes.names, _) = fit_names(names, count).map_err(|error| anyhow!("{file}: {error}"))?;
    }

    // Resized and normalized as the input wants it, straight into the session's memory.
    let pixels = images::decode(image)?;
    input.write(&pixels, &normalization, runner.input_mut(0));
    runner.run()?;

    let values = runner.output_reals(0).context("the output holds no numbers")?;
    let scores = classes.scores(values, 0.05).values;
    for (class, score) in classes.top(&scores, 5) {
        println!("{score:8.4}  {}", classes.name(class));
    }
    Ok(())
}
