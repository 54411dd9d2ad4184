//! Opens models and blobs. Every error names the file.

use std::fmt::Display;
use std::io::{self, Read, Write};
use std::path::Path;

use anyhow::{Result, anyhow};
use xnn_delegate::metadata::Description;
use xnn_delegate::{
    Error, Model, ModelLimits, PartitionOptions, Runner, RunnerBuilder, RunnerOptions,
};
use xnn_format::ErrorKind;
use xnn_model::Excess;

use crate::output::plain;

/// Opens a model or blob to run it.
pub fn open_runner(path: &Path, options: &RunnerOptions) -> Result<Runner> {
    Runner::builder(path).options(options.clone()).build().map_err(|error| in_file(path, &error))
}

/// Opens a model to run one of its signatures.
pub fn open_signature(path: &Path, key: &str, options: &RunnerOptions) -> Result<Runner> {
    if xnn_delegate::blob::is_blob(path).map_err(|error| in_file(path, &error))? {
        return Err(about(
            path,
            format!("a blob has no signatures, but --signature is {key:?}; remove the option"),
        ));
    }
    let model = open_model_with(path, &options.limits)?;
    RunnerBuilder::from_model(&model)
        .signature(key)
        .options(options.clone())
        .build()
        .map_err(|error| in_file(path, &error))
}

/// Prints a note to standard error unless all operators run on XNNPACK.
pub fn note_coverage(runner: &Runner) {
    let coverage = runner.coverage();
    if !coverage.is_whole() {
        note(format!(
            "{coverage}; reference kernels run the others (xnn explain lists the reasons)"
        ));
    }
}

/// Prints a note about the results to standard error.
pub fn note(what: impl Display) {
    // Results are complete even if standard error is closed.
    let _ = writeln!(io::stderr(), "note: {}", plain(&what.to_string()));
}

/// Opens a model.
pub fn open_model(path: &Path) -> Result<Model> {
    open_model_with(path, &ModelLimits::default())
}

/// Opens a model with limits.
pub fn open_model_with(path: &Path, limits: &ModelLimits) -> Result<Model> {
    Model::open_with(path, limits).map_err(|error| in_file(path, &error.into()))
}

/// Opens a model or blob to run it, and its description.
pub fn open_described(
    path: &Path,
    options: &RunnerOptions,
) -> Result<(Runner, Option<Description>)> {
    if xnn_delegate::blob::is_blob(path).map_err(|error| in_file(path, &error))? {
        return Ok((open_runner(path, options)?, or_warn(path, Description::open(path))));
    }
    let model = open_model_with(path, &options.limits)?;
    let runner = RunnerBuilder::from_model(&model)
        .options(options.clone())
        .build()
        .map_err(|error| in_file(path, &error))?;
    Ok((runner, or_warn(path, Description::of_model(&model))))
}

/// Returns a description, or logs a warning that it is damaged, because the model can run without it.
pub fn or_warn(path: &Path, described: Result<Option<Description>, Error>) -> Option<Description> {
    described.unwrap_or_else(|error| {
        log::warn!("{}", in_file(path, &error));
        None
    })
}

/// Whether a file begins like an ExecuTorch program.
pub fn is_executorch_program(path: &Path) -> Result<bool> {
    let mut start = Vec::new();
    let file = xnn_file::open(path).and_then(|file| file.take(8).read_to_end(&mut start));
    file.map_err(|error| about(path, error))?;
    Ok(xnn_pte::is_program(&start))
}

/// Reads a file that the user names, up to the limit for associated files.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    let most = ModelLimits::default().max_associated_bytes;
    xnn_file::read_at_most(path, most).map_err(|error| about(path, error))
}

/// Reads a text file as [`read`].
pub fn read_text(path: &Path) -> Result<String> {
    String::from_utf8(read(path)?).map_err(|_| about(path, "not valid UTF-8"))
}

/// Returns the error with the file's name, unless it has it already, and with advice.
pub fn in_file(path: &Path, error: &Error) -> anyhow::Error {
    let what = match advice(error) {
        Some(advice) => format!("{error}; {advice}"),
        None => error.to_string(),
    };
    let named = match error {
        Error::Model(error) => error.place().path.is_some(),
        Error::Format(error) => error.place().path.is_some(),
        Error::Io { .. } => true,
        _ => false,
    };
    if named { anyhow!("{what}") } else { about(path, what) }
}

/// Advice on how to fix an error.
fn advice(error: &Error) -> Option<&'static str> {
    if error.is_out_of_memory() {
        return Some("free memory, or raise the limit of this process (ulimit -v)");
    }
    if let Some(advice) = error.limit().and_then(option_for) {
        return Some(advice);
    }
    match error {
        Error::Model(error) => match error.kind() {
            xnn_model::ErrorKind::Identifier(found) => command_for(found),
            _ => None,
        },
        Error::Format(error) => match error.kind() {
            ErrorKind::Identifier(found) => command_for(found.as_bytes()),
            ErrorKind::MissingConstant(_) => {
                Some("write it with its constants by xnn extract, from the ExecuTorch program")
            }
            ErrorKind::Incompatible(_) => {
                Some("convert without --compat, or remove these operators from the model")
            }
            _ => None,
        },
        _ => None,
    }
}

/// Option that raises a limit.
fn option_for(what: &str) -> Option<&'static str> {
    match what {
        Excess::MEMORY => Some("if you trust the file, raise the limit with --max-memory"),
        Excess::WORK => Some("if you trust the file, raise the limit with --max-work"),
        _ => None,
    }
}

/// Command for a file with this identifier, if another file was expected.
fn command_for(identifier: &[u8]) -> Option<&'static str> {
    match identifier {
        [b'E', b'T', ..] => Some("extract the graphs of an ExecuTorch program with xnn extract"),
        b"XH00" | b"XN00" | b"XN01" => Some("the file is a blob already; pass the model"),
        b"TFL3" | b"CIR0" => Some("to pack the weights of a model, use xnn convert --pack"),
        _ => None,
    }
}

/// Warns of options that do not apply to blobs, which are partitioned and optimized already.
pub fn note_without_effect(path: &Path, partition: &PartitionOptions) {
    if *partition != PartitionOptions::default()
        && xnn_delegate::blob::is_blob(path).unwrap_or(false)
    {
        log::warn!(
            "{}: options for partitioning and optimization do not apply to a blob; pass them to xnn convert",
            path.display()
        );
    }
}

/// An error about a file.
pub fn about(path: &Path, what: impl Display) -> anyhow::Error {
    anyhow!("{}: {what}", path.display())
}

/// The file's name without folders.
pub fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}
