//! `xnn to-circle` and `xnn to-tflite`: write a model in the other format.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use xnn_delegate::model::{Dialect, to_circle, to_tflite};

use crate::files::Target;
use crate::source::{about, open_model};

#[derive(clap::Args)]
pub struct Args {
    /// TFLite or Circle model, detected by content
    model: PathBuf,
    /// Output file, replaced if it exists; - for standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

/// Writes the model in `dialect`, even if that is its dialect already.
pub fn run(args: &Args, dialect: Dialect, out: &mut dyn Write) -> Result<()> {
    let path = args.model.as_path();
    let target = Target::new(&args.output, &[path])?;
    let model = open_model(path)?;
    let write = match dialect {
        Dialect::Tflite => to_tflite,
        Dialect::Circle => to_circle,
    };
    let file = write(&model).map_err(|error| about(path, error))?;
    target.write(&file, format!(", {dialect} model"), out)
}
