//! `xnn explain`: which operators XNNPACK runs, and why it does not run others.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use serde::Serialize;
use xnn_delegate::{Delegation, Report};

use crate::args::Partitioning;
use crate::output;
use crate::progress::Spinner;
use crate::source::{about, file_name, in_file, open_model};

#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    xnn explain deeplabv3.tflite\n  \
    xnn explain deeplabv3.tflite --json | jq '.nodes[] | select(.reason)'")]
pub struct Args {
    /// TFLite or Circle model
    model: PathBuf,
    /// As JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    partitioning: Partitioning,
}

#[derive(Serialize)]
struct Explanation {
    model: String,
    #[serde(flatten)]
    report: Report,
}

pub fn run(args: &Args, out: &mut dyn Write) -> Result<()> {
    let path = args.model.as_path();
    let spinner = Spinner::new(format!("partitioning {}", file_name(path)));
    let model = open_model(path)?;
    let subgraph = model.main().ok_or_else(|| about(path, "it has no subgraph"))?;
    let delegation = Delegation::new(subgraph, &args.partitioning.options())
        .map_err(|error| in_file(path, &error))?;
    drop(spinner);
    if model.subgraphs.len() > 1 {
        log::info!("{}: the first of {} subgraphs", path.display(), model.subgraphs.len());
    }
    let report = delegation.report();
    if args.json {
        output::write_json(out, &Explanation { model: file_name(path), report })?;
    } else {
        write!(out, "{report}")?;
    }
    Ok(())
}
