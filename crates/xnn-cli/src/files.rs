//! Output files, which are written atomically.

use std::fmt::Display;
use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::output;
use crate::source::about;

/// Name of standard input or output in place of a file.
pub const STANDARD: &str = "-";

/// Destination of the file that a command writes.
pub enum Target {
    File(PathBuf),
    /// For `-` and `/dev/stdout`.
    StandardOutput,
}

impl Target {
    /// Checks, before the work is done, that the file can be written and is not one of the `sources`.
    pub fn new(path: &Path, sources: &[&Path]) -> Result<Self> {
        if path == Path::new(STANDARD) || path == Path::new("/dev/stdout") {
            return Self::standard_output();
        }
        if sources.iter().any(|source| is_same_file(source, path)) {
            return Err(about(path, "the output would overwrite its input; choose another file"));
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
            let folder = folder.display();
            return Err(about(
                path,
                format!("cannot be written: the folder {folder} does not exist"),
            ));
        }
        if path.is_dir() {
            return Err(about(path, "cannot be written: it is a folder; choose a file in it"));
        }
        Ok(Self::File(path.to_owned()))
    }

    fn standard_output() -> Result<Self> {
        if io::stdout().is_terminal() {
            return Err(about(
                "standard output".as_ref(),
                "it is a terminal; redirect it to a file or a pipe",
            ));
        }
        Ok(Self::StandardOutput)
    }

    /// Writes `bytes`, and prints their destination, size and a description, to `out` or, if the bytes are written there, to
    /// standard error.
    pub fn write(&self, bytes: &[u8], what: impl Display, out: &mut dyn Write) -> Result<()> {
        let size = output::bytes(bytes.len() as u64);
        match self {
            Self::File(path) => {
                write_atomic(path, bytes)?;
                writeln!(out, "{}: {size}{what}", path.display())?;
            }
            Self::StandardOutput => {
                out.write_all(bytes)?;
                // The file is complete even if standard error is closed.
                let _ = writeln!(io::stderr(), "standard output: {size}{what}");
            }
        }
        Ok(())
    }
}

/// Writes `bytes` to `path` atomically: to a temporary file, which is then renamed.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<()> {
    xnn_format::write_atomic(path, bytes)
        .map_err(|error| about(path, format!("cannot be written: {error}")))
}

fn is_same_file(a: &Path, b: &Path) -> bool {
    matches!((fs::canonicalize(a), fs::canonicalize(b)), (Ok(a), Ok(b)) if a == b)
}
