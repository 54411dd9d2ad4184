//! Writes reports of what is delegated.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use xnn_lower::explain::Report;

use crate::error::{Error, Result};
use crate::options::Explain;

/// Writes a report for each graph that the delegate sees.
///
/// The first report is written to the file that the user names. Later ones (other subgraphs of a
/// model with control flow, other interpreters) are written next to it, with a number before the
/// extension.
pub(crate) struct Explainer {
    target: Explain,
    written: AtomicUsize,
}

impl Explainer {
    pub(crate) fn new(target: Explain) -> Self {
        Self { target, written: AtomicUsize::new(0) }
    }

    pub(crate) fn explain(&self, report: &Report) -> Result<()> {
        let number = self.written.fetch_add(1, Ordering::Relaxed);
        match &self.target {
            #[allow(clippy::print_stderr, reason = "the user asked for it")]
            Explain::Stderr => eprint!("{report}"),
            Explain::File(path) => {
                let path = numbered(path, number);
                write(&path, report).map_err(|error| Error::Explain { path, error })?;
            }
        }
        Ok(())
    }
}

fn write(path: &Path, report: &Report) -> std::io::Result<()> {
    let is_json = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
    let text = if is_json { serde_json::to_string_pretty(report)? } else { report.to_string() };
    fs::write(path, text)
}

/// Returns `report.json`, `report.1.json`, ...
fn numbered(path: &Path, number: usize) -> PathBuf {
    if number == 0 {
        return path.to_owned();
    }
    match path.extension() {
        Some(extension) => path.with_extension(format!("{number}.{}", extension.to_string_lossy())),
        None => path.with_extension(number.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_reports_are_numbered() {
        let name = |path: &str, number| numbered(Path::new(path), number);
        assert_eq!(name("out/report.json", 0), Path::new("out/report.json"));
        assert_eq!(name("out/report.json", 2), Path::new("out/report.2.json"));
        assert_eq!(name("report", 1), Path::new("report.1"));
    }
}
