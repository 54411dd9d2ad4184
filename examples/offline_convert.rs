//! Converts a model to a `.xnn` file: `cargo run --example offline_convert -- MODEL OUT`
//!
//! Prints how many operators are delegated, and why the others are not. A partially delegated model
//! becomes a model of the same format that holds blobs.

#![allow(clippy::print_stdout, reason = "a program")]

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use xnn_delegate::lower::Delegation;
use xnn_delegate::{ConvertOptions, Converted, Model, PartitionOptions, Source, convert};

fn main() -> Result<()> {
    env_logger::init();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [model_path, target] = arguments.as_slice() else {
        bail!("usage: offline_convert MODEL OUT");
    };
    let model = Model::open(model_path)?;
    let main = model.main().context("the model has no subgraph")?;
    let report = Delegation::new(main, &PartitionOptions::default())?.report();
    println!("{}", report.summary);
    for node in report.nodes.iter().filter(|node| node.partition.is_none()) {
        let reason = node.reason.as_ref().map(|reason| reason.message.as_str());
        println!("  {} {}: {}", node.index, node.op, reason.unwrap_or_default());
    }

    // The blob records the name and digest of its model.
    let source = Source::of_file(Path::new(model_path))?;
    let converted = convert(&model, &source, &ConvertOptions::default())
        .with_context(|| format!("{model_path}: cannot be converted"))?;
    fs::write(target, converted.bytes()).with_context(|| target.clone())?;
    let kind = match &converted {
        Converted::Whole(_) => "a blob",
        Converted::Partial(_) => "a model that holds blobs",
    };
    println!("{target}: {kind}, {} bytes", converted.bytes().len());
    Ok(())
}
