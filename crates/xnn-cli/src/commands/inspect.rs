//! `xnn inspect`: what is in a blob, a model file or an ExecuTorch program.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::{Result, anyhow};
use serde::Serialize;
use xnn_delegate::{Blob, Description};
use xnn_pte::Program;

use crate::source::{in_file, is_executorch_program, open_model, or_warn};
use crate::{output, summary};

#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    xnn inspect mobilenet_v2.xnn\n  \
    xnn inspect mobilenet_v2.xnn --json | jq .sizes\n  \
    xnn inspect mobilenet_v2.tflite\n  \
    xnn inspect mobilenet_v2.pte")]
pub struct Args {
    /// .xnn file or other XN01 graph: all of it; TFLite or Circle model,
    /// ExecuTorch program: a summary
    #[arg(value_name = "BLOB|MODEL|PROGRAM")]
    path: PathBuf,
    /// As JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args, out: &mut dyn Write) -> Result<()> {
    let path = args.path.as_path();
    if xnn_delegate::is_blob(path).map_err(|error| in_file(path, &error))? {
        let blob = Blob::open(path).map_err(|error| in_file(path, &error.into()))?;
        let described = or_warn(path, Description::of_graph(blob.graph()));
        let summary = summary::blob::Summary::new(&blob, described.as_ref());
        show(args, out, &summary, |out| summary.write(out))
    } else if is_executorch_program(path)? {
        let program = Program::open(path).map_err(|error| anyhow!("{error}"))?;
        let summary = summary::program::Summary::new(&program);
        show(args, out, &summary, |out| summary.write(out))
    } else {
        let model = open_model(path)?;
        let described = or_warn(path, Description::of_model(&model));
        let summary = summary::model::Summary::new(&model, described.as_ref());
        show(args, out, &summary, |out| summary.write(out))
    }
}

/// As JSON or as text, whichever is asked for.
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
