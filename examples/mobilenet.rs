//! Classifies an image: `cargo run --release --example mobilenet -- MODEL IMAGE [LABELS]`
//!
//! MODEL is a MobileNet or another classifier, fp32 or 8-bit, as `.tflite`, `.circle` or `.xnn` file.
//! Its metadata has the normalization of pixels and the names of the classes. LABELS replaces these
//! names, with one on each line.

#![allow(clippy::print_stdout, reason = "a program")]

use std::fs;

use anyhow::{Context, Result, anyhow, bail};
use xnn_delegate::Runner;
use xnn_delegate::classes::{Classes, fit_names};
use xnn_delegate::images::{self, ImageInput};
use xnn_delegate::metadata::Description;

fn main() -> Result<()> {
    env_logger::init();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (model, image, labels) = match arguments.as_slice() {
        [model, image] => (model, image, None),
        [model, image, labels] => (model, image, Some(labels)),
        _ => bail!("usage: mobilenet MODEL IMAGE [LABELS]"),
    };
    let mut runner = Runner::open(model)?;
    let ([input], [output]) = (runner.inputs(), runner.outputs()) else {
        bail!("{model}: a classifier has one input and one output");
    };
    let (input, count) =
        (ImageInput::new(input).context(model.clone())?, output.dims.iter().product());

    // Normalization and classes from the metadata, or the usual ones without metadata.
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

    // Writes the resized and normalized image to the input's memory.
    let pixels = images::decode(image)?;
    input.write(&pixels, &normalization, runner.input_bytes_mut(0)?);
    runner.run()?;

    let values = runner.output_reals(0)?;
    let scores = classes.scores(values, 0.05).values;
    for (class, score) in classes.top(&scores, 5) {
        println!("{score:8.4}  {}", classes.name(class));
    }
    Ok(())
}
