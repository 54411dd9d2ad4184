//! `xnn to-circle` and `xnn to-tflite`: a model in the other of the two formats.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use xnn_delegate::{Dialect, to_circle, to_tflite};

use crate::source::{about, open_model};
use crate::{files, output};

#[derive(clap::Args)]
pub struct Args {
    /// TFLite or Circle model; told apart by content
    model: PathBuf,
    /// File to write, replaced if it exists
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

/// Writes the model in `dialect`; one that has that dialect already is written anew.
pub fn run(args: &Args, dialect: Dialect, out: &mut dyn Write) -> Result<()> {
    let path = args.model.as_path();
    let model = open_model(path)?;
    let write = match dialect {
        Dialect::Tflite => to_tflite,
        Dialect::Circle => to_circle,
    };
    let file = write(&model).map_err(|error| about(path, error))?;
    files::write_atomic(&args.output, &file)?;
    let size = output::bytes(file.len() as u64);
    writeln!(out, "{}: {dialect} model, {size}", args.output.display())?;
    Ok(())
}
