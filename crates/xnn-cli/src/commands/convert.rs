//! `xnn convert`: a model becomes a self-contained `.xnn` file.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::ValueEnum;
use xnn_delegate::{Compat, ConvertOptions, Source};

use crate::args::Optimization;
use crate::progress::Spinner;
use crate::source::{about, file_name, in_file, open_model};
use crate::{files, output};

#[derive(clap::Args)]
#[command(after_help = "Example:\n  xnn convert mobilenet_v2.tflite -o mobilenet_v2.xnn")]
pub struct Args {
    /// TFLite or Circle model
    model: PathBuf,
    /// File to write, replaced if it exists [default: MODEL with the extension .xnn]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Use only what these readers know, too
    #[arg(long, value_name = "READERS")]
    compat: Option<Readers>,
    #[command(flatten)]
    optimization: Optimization,
}

/// Other programs that read XN01 graphs.
#[derive(Clone, Copy, ValueEnum)]
enum Readers {
    /// ExecuTorch's XNNPACK backend, 0.4 and later
    Executorch,
}

pub fn run(args: &Args, out: &mut dyn Write) -> Result<()> {
    let model_path = args.model.as_path();
    let target = args.output.clone().unwrap_or_else(|| model_path.with_extension("xnn"));
    let spinner = Spinner::new(format!("converting {}", file_name(model_path)));
    let model = open_model(model_path)?;
    if is_same_file(model_path, &target) {
        return Err(about(&target, "would be overwritten by its own conversion"));
    }
    let source = Source::of_file(model_path).map_err(|error| in_file(model_path, &error))?;
    let mut options = ConvertOptions::default();
    options.partition = args.optimization.partition_options();
    options.compat = match args.compat {
        Some(Readers::Executorch) => Compat::Executorch,
        None => Compat::Own,
    };
    let blob = xnn_delegate::convert(&model, &source, &options)
        .map_err(|error| in_file(model_path, &error))?;
    files::write_atomic(&target, &blob)?;
    drop(spinner);
    writeln!(out, "{}: {}", target.display(), output::bytes(blob.len() as u64))?;
    Ok(())
}

fn is_same_file(a: &Path, b: &Path) -> bool {
    matches!((fs::canonicalize(a), fs::canonicalize(b)), (Ok(a), Ok(b)) if a == b)
}
