//! Files that commands write, whole or not at all.

use std::fmt::Display;
use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::output;
use crate::source::about;

/// What stands for standard input or output in the place of a file's name.
pub const STANDARD: &str = "-";

/// Where a command writes the one file that it makes.
pub enum Target {
    File(PathBuf),
    /// For `-`, and for the name by which the system has it.
    StandardOutput,
}

impl Target {
    /// Refuses, before the work is done, what could not be written, and the `sources` of the new file.
    pub fn new(path: &Path, sources: &[&Path]) -> Result<Self> {
        if path == Path::new(STANDARD) || path == Path::new("/dev/stdout") {
            return Self::standard_output();
        }
        if sources.iter().any(|source| is_same_file(source, path)) {
            return Err(about(path, "would be overwritten by what is made of it; name another"));
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
            let folder = folder.display();
            return Err(about(path, format!("cannot be written: there is no folder {folder}")));
        }
        if path.is_dir() {
            return Err(about(path, "cannot be written: it is a folder; name a file in it"));
        }
        Ok(Self::File(path.to_owned()))
    }

    fn standard_output() -> Result<Self> {
        if io::stdout().is_terminal() {
            return Err(about("standard output".as_ref(), "a terminal; send it to a file or pipe"));
        }
        Ok(Self::StandardOutput)
    }

    /// Writes `bytes`, and says so: where they went, `what` they are. To `out`, unless the bytes go there.
    pub fn write(&self, bytes: &[u8], what: impl Display, out: &mut dyn Write) -> Result<()> {
        let size = output::bytes(bytes.len() as u64);
        match self {
            Self::File(path) => {
                write_atomic(path, bytes)?;
                writeln!(out, "{}: {size}{what}", path.display())?;
            }
            Self::StandardOutput => {
                out.write_all(bytes)?;
                // Where standard error is gone, the file is still worth having.
                let _ = writeln!(io::stderr(), "standard output: {size}{what}");
            }
        }
        Ok(())
    }
}

/// Writes `bytes` to `path`: under a temporary name first, then renamed.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<()> {
    xnn_format::write_atomic(path, bytes)
        .map_err(|error| about(path, format!("cannot be written: {error}")))
}

fn is_same_file(a: &Path, b: &Path) -> bool {
    matches!((fs::canonicalize(a), fs::canonicalize(b)), (Ok(a), Ok(b)) if a == b)
}
