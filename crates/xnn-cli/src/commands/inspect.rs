//! `xnn inspect`: shows the contents of a blob, a model or an ExecuTorch program.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use serde::Serialize;
use xnn_delegate::Model;
use xnn_delegate::blob::{Blob, CUSTOM_OPERATOR};
use xnn_delegate::lower::embedded_graph;
use xnn_delegate::metadata::Description;
use xnn_format::{PackedSection, ReadOptions, constants_digest};
use xnn_pte::PteProgram;

use crate::args::Allowance;
use crate::source::{about, in_file, is_executorch_program, note, open_model, or_warn};
use crate::{output, summary};

#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    xnn inspect mobilenet_v2.xnn\n  \
    xnn inspect mobilenet_v2.xnn --json | jq .sizes\n  \
    xnn inspect mobilenet_v2.tflite\n  \
    xnn inspect mobilenet_v2.pte")]
pub struct Args {
    /// .xnn file or other XN01 graph (shown in full); TFLite or Circle model or
    /// ExecuTorch program (summarized)
    #[arg(value_name = "BLOB|MODEL|PROGRAM")]
    path: PathBuf,
    /// Write the result as JSON
    #[arg(long)]
    json: bool,
    /// Check all packed weights of a .xnn file or of the blobs in a model, and fail if
    /// they are damaged or do not belong to the constants in the file
    #[arg(long)]
    verify: bool,
    #[command(flatten)]
    allowance: Allowance,
}

pub fn run(args: &Args, out: &mut dyn Write) -> Result<()> {
    let path = args.path.as_path();
    if xnn_delegate::blob::is_blob(path).map_err(|error| in_file(path, &error))? {
        let reading = ReadOptions { limits: args.allowance.graph_limits(), constants: None };
        let blob = Blob::open_with(path, &reading).map_err(|error| in_file(path, &error.into()))?;
        if args.verify {
            note_verified(path, verify(&blob).map_err(|what| about(path, what))?);
        }
        let described = or_warn(path, Description::of_graph(blob.graph()));
        let summary = summary::blob::Summary::new(&blob, described.as_ref());
        show(args, out, &summary, |out| summary.write(out))
    } else if is_executorch_program(path)? {
        let program = PteProgram::open(path).map_err(|error| anyhow!("{error}"))?;
        if args.verify {
            note_verified(path, 0);
        }
        let summary = summary::program::Summary::new(&program);
        show(args, out, &summary, |out| summary.write(out))
    } else {
        let model = open_model(path)?;
        if args.verify {
            note_verified(path, verify_model(&model).map_err(|what| about(path, what))?);
        }
        let described = or_warn(path, Description::of_model(&model));
        let summary = summary::model::Summary::new(&model, described.as_ref());
        show(args, out, &summary, |out| summary.write(out))
    }
}

/// Prints to standard error how many packed weights are intact.
fn note_verified(path: &Path, count: usize) {
    let what = match count {
        0 => "no packed weights to verify".to_owned(),
        1 => "the packed weights of 1 node are intact".to_owned(),
        _ => format!("the packed weights of {count} nodes are intact"),
    };
    note(format!("{}: {what}", path.display()));
}

/// Checks all blobs in a model as [`verify`].
fn verify_model(model: &Model) -> Result<usize, String> {
    let mut count = 0;
    for (subgraph, graph) in model.subgraphs.iter().enumerate() {
        for (index, operator) in graph.operators.iter().enumerate() {
            let Some(stored) = embedded_graph(&operator.op) else { continue };
            let blob = Blob::from_bytes(stored.clone()).map_err(|error| error.to_string());
            count += blob.and_then(|blob| verify(&blob)).map_err(|what| {
                format!("subgraph {subgraph}: operator {index} ({CUSTOM_OPERATOR}): {what}")
            })?;
        }
    }
    Ok(count)
}

/// Checks packed weights, and returns their number.
fn verify(blob: &Blob) -> Result<usize, String> {
    let (graph, constants) = (blob.graph_digest(), constants_digest(blob.graph()));
    for PackedSection { key, entries, .. } in blob.packed() {
        let processor = &key.processor;
        if key.graph != graph || key.constants != constants {
            return Err(format!("the weights packed for {processor} are for another graph"));
        }
        if let Some(entry) = entries.iter().find(|entry| !entry.is_intact()) {
            let node = entry.node;
            return Err(format!("the weights packed for node {node} on {processor} are damaged"));
        }
    }
    Ok(blob.packed().iter().map(|section| section.entries.len()).sum())
}

/// Writes JSON or text.
fn show(
    args: &Args,
    out: &mut dyn Write,
    summary: &impl Serialize,
    text: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<()> {
    if args.json {
        output::write_json(out, summary)?;
    } else {
        text(out)?;
    }
    Ok(())
}
