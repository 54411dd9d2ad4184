//! The `xnn` program: converts, runs, explains, inspects and measures models.
//!
//! A library, so that its man pages and completions can be generated (`examples/manual.rs`).

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

use clap::{CommandFactory, Parser};
use log::LevelFilter;

use crate::args::Args;

/// Describes the command line.
#[must_use]
pub fn command() -> clap::Command {
    Args::command()
}

/// Runs the program with the arguments of this process.
pub fn main() -> ExitCode {
    let args = Args::parse();
    start_log(args.verbose);
    let mut out = BufWriter::new(io::stdout().lock());
    let result = commands::run(&args.command, &mut out);
    // Results before an error are written before it.
    let flushed = out.flush();
    // The buffer is empty or cannot be written, so that a second attempt on drop is useless.
    let _ = out.into_parts();
    match result.and_then(|()| Ok(flushed?)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            let place = if error.is::<io::Error>() { "standard output: " } else { "" };
            // Without standard error, the exit code is the only report.
            let error = output::plain_lines(&format!("{place}{error}"));
            let _ = writeln!(io::stderr(), "error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Whether the reader of standard output (`head`, a pager) has closed it.
///
/// Only errors of standard output are bare [`io::Error`]s: errors about files carry names.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
}

/// Starts the log at the level of `-v`, otherwise that of `RUST_LOG`, otherwise warnings.
fn start_log(verbose: u8) {
    let mut log = env_logger::Builder::new();
    match verbose {
        0 => log.parse_env(env_logger::Env::default().default_filter_or("warn")),
        1 => log.filter_level(LevelFilter::Info),
        _ => log.filter_level(LevelFilter::Debug),
    };
    log.format(|out, record| {
        let level = match record.level() {
            log::Level::Warn => "warning".to_owned(),
            level => level.to_string().to_lowercase(),
        };
        writeln!(out, "{level}: {}", output::plain_lines(&record.args().to_string()))
    })
    .init();
}
