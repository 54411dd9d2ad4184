//! This project's end of `cargo xtask bench` and `cargo xtask zoo`.

mod gemm;
mod model;

use std::io;
use std::path::PathBuf;

use anyhow::Result;
use clap::Parser;
use xnn_bench::serve;

use gemm::{Gemm, Kind};
use model::Model;

/// Opens a model, and answers requests for times on standard input
#[derive(Parser)]
struct Args {
    /// TFLite or Circle model, or blob
    #[arg(long, required_unless_present = "gemm")]
    model: Option<PathBuf>,
    /// In place of a model: one large fully connected layer
    #[arg(long, conflicts_with = "model")]
    gemm: Option<Kind>,
    /// Folder of inputs
    #[arg(long)]
    inputs: PathBuf,
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Name of the side in the requests
    #[arg(long, default_value = "xnn")]
    side: String,
}

fn main() -> Result<()> {
    let Args { model, gemm, inputs, threads, side } = Args::parse();
    let (requests, answers) = (io::stdin().lock(), io::stdout());
    match (model, gemm) {
        (Some(path), _) => serve(&Model { path, threads }, &side, &inputs, requests, answers),
        (None, kind) => {
            let gemm = Gemm { kind: kind.unwrap_or_default(), threads };
            serve(&gemm, &side, &inputs, requests, answers)
        }
    }
}
