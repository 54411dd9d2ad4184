//! `xnn pack`: adds packed weights to a `.xnn` file.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use xnn_delegate::Error;
use xnn_delegate::blob::Blob;
use xnn_format::ReadOptions;

use crate::args::Allowance;
use crate::files::Target;
use crate::progress::Spinner;
use crate::source::{file_name, in_file};

#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    xnn pack mobilenet_v2.xnn -o mobilenet_v2.packed.xnn\n  \
    xnn pack mobilenet_v2.xnn -o mobilenet_v2.xnn")]
pub struct Args {
    /// .xnn file. Weights packed for other processors are kept
    blob: PathBuf,
    /// Output file, replaced if it exists; - for standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    allowance: Allowance,
}

pub fn run(args: &Args, out: &mut dyn Write) -> Result<()> {
    let path = args.blob.as_path();
    // The output may be the input, because it keeps everything in it.
    let target = Target::new(&args.output, &[])?;
    let spinner = Spinner::new(format!("packing {}", file_name(path)));
    let reading = ReadOptions { limits: args.allowance.graph_limits(), constants: None };
    let packed = Blob::open_with(path, &reading)
        .map_err(Error::from)
        .and_then(|blob| xnn_delegate::blob::pack(&blob))
        .map_err(|error| in_file(path, &error))?;
    drop(spinner);
    target.write(&packed, "", out)
}
