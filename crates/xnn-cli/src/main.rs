//! The `xnn` program: converts, runs, explains, inspects and measures models on XNNPACK.

#![forbid(unsafe_code)]

mod args;
mod commands;
mod files;
mod npy;
mod output;
mod progress;
mod source;
mod summary;
mod tensors;

use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use clap::Parser;

use crate::args::Args;

fn main() -> ExitCode {
    let args = Args::parse();
    start_log(args.verbose);
    let mut out = BufWriter::new(io::stdout().lock());
    let result = commands::run(&args.command, &mut out).and_then(|()| Ok(out.flush()?));
    // Its buffer is empty, or cannot be written: no second attempt on drop.
    let _ = out.into_parts();
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            let place = if error.is::<io::Error>() { "standard output: " } else { "" };
            // Where standard error is gone, the exit code has to do.
            let error = output::plain_lines(&format!("{place}{error}"));
            let _ = writeln!(io::stderr(), "error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Whether whoever read our output (`head`, a pager) has seen enough.
///
/// Only standard output's errors are bare [`io::Error`]s: those about files carry their names.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
}

fn start_log(verbose: u8) {
    let level = match verbose {
        0 => "warn",
        1 => "info",
        _ => "debug",
    };
    let environment = env_logger::Env::default().default_filter_or(level);
    env_logger::Builder::from_env(environment)
        .format(|out, record| {
            let level = match record.level() {
                log::Level::Warn => "warning".to_owned(),
                level => level.to_string().to_lowercase(),
            };
            writeln!(out, "{level}: {}", output::plain_lines(&record.args().to_string()))
        })
        .init();
}
