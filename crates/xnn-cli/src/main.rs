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
use log::LevelFilter;

use crate::args::Args;

fn main() -> ExitCode {
    let args = Args::parse();
    start_log(args.verbose);
    let mut out = BufWriter::new(io::stdout().lock());
    let result = commands::run(&args.command, &mut out);
    // What was found before an error is shown before it.
    let flushed = out.flush();
    // Its buffer is empty, or cannot be written: no second attempt on drop.
    let _ = out.into_parts();
    match result.and_then(|()| Ok(flushed?)) {
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

/// What `-v` asks for; without it what `RUST_LOG` does, else warnings.
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
