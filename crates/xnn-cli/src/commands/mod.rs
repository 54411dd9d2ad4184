//! One module for each command.

pub mod bench;
pub mod classify;
pub mod convert;
pub mod dialect;
pub mod explain;
pub mod extract;
pub mod inspect;
pub mod metadata;
pub mod pack;
pub mod run;
pub mod verify;

use std::io::Write;

use anyhow::Result;
use xnn_delegate::model::Dialect;

use crate::args::Command;

/// Runs a command, which writes its results to `out`.
pub fn run(command: &Command, out: &mut dyn Write) -> Result<()> {
    match command {
        Command::Convert(args) => convert::run(args, out),
        Command::ToCircle(args) => dialect::run(args, Dialect::Circle, out),
        Command::ToTflite(args) => dialect::run(args, Dialect::Tflite, out),
        Command::Run(args) => run::run(args, out),
        Command::Explain(args) => explain::run(args, out),
        Command::Inspect(args) => inspect::run(args, out),
        Command::Pack(args) => pack::run(args, out),
        Command::Metadata(args) => metadata::run(args, out),
        Command::Extract(args) => extract::run(args, out),
        Command::Bench(args) => bench::run(args, out),
        Command::Classify(args) => classify::run(args, out),
        Command::Verify(args) => verify::run(args, out),
    }
}
