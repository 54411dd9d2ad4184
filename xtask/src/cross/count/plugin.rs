//! The plugin of the emulator that counts instructions, and its output.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::cross::targets::Counter;
use crate::venv;

const SOURCE: &str = include_str!("plugin.c");

/// Runs may differ by so much: reading a file or growing memory within one of them.
const SPREAD: f64 = 0.02;

/// An emulator and its plugin.
pub struct Plugin {
    file: PathBuf,
    /// Number of the system call that reads the clock.
    clock: u32,
    /// The emulator's version, for the report.
    pub version: String,
}

impl Plugin {
    /// Compiles the plugin for the installed emulator.
    pub fn new(folder: &Path, counter: &Counter) -> Result<Self> {
        let output = Command::new(counter.emulator).arg("--version").output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let (version, major) = version(&text)
            .with_context(|| format!("{} --version: unexpected {text:?}", counter.emulator))?;
        fs::create_dir_all(folder)?;
        let source = folder.join("plugin.c");
        fs::write(&source, SOURCE)?;
        let file = folder.join("libcount.so");
        venv::run(
            Command::new("cc")
                .args([
                    "-O2",
                    "-std=c11",
                    "-D_DEFAULT_SOURCE",
                    "-Wall",
                    "-Werror",
                    "-shared",
                    "-fPIC",
                ])
                .arg(format!("-DPLUGIN_VERSION={}", interface(major)))
                .arg("-o")
                .args([&file, &source]),
        )
        .context("cannot compile the plugin that counts instructions")?;
        Ok(Self { file, clock: counter.clock, version })
    }

    /// The emulator's option that loads the plugin, which will write to `out`.
    pub fn option(&self, out: &Path) -> String {
        format!("{},out={},clock={}", self.file.display(), out.display(), self.clock)
    }

    /// Returns the instructions of a run from what the plugin wrote.
    pub fn read(&self, out: &Path, runs: usize) -> Result<u64> {
        let text = fs::read_to_string(out).context("the plugin of the emulator wrote nothing")?;
        let readings: Vec<u64> = text
            .lines()
            .map(|line| line.parse().with_context(|| format!("expected a count, found {line}")))
            .collect::<Result<_>>()?;
        instructions(&readings, runs)
    }
}

/// The version in `qemu-aarch64 version 7.2.22 (Debian ...)`, and its first number.
fn version(text: &str) -> Option<(String, u32)> {
    let version = text.lines().next()?.split_once("version ")?.1.split_whitespace().next()?;
    let major = version.split('.').next()?.parse().ok()?;
    Some((version.to_owned(), major))
}

/// The interface of plugins: QEMU 9 and later accept version 2, earlier ones version 1.
fn interface(major: u32) -> u32 {
    if major < 9 { 1 } else { 2 }
}

/// Returns the instructions of one of the last `runs` runs, around each of which the program read the clock.
///
/// Between runs hardly anything is executed, so the largest of the last differences are the runs.
fn instructions(readings: &[u64], runs: usize) -> Result<u64> {
    let differences: Vec<u64> =
        readings.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect();
    // The measured runs, what is between them, and what follows the last one.
    let last = &differences[differences.len().saturating_sub(2 * runs + 2)..];
    let mut largest = last.to_vec();
    largest.sort_unstable();
    largest.reverse();
    largest.truncate(runs);
    let (Some(&most), Some(&least)) = (largest.first(), largest.last()) else {
        bail!("the program did not read the clock");
    };
    ensure!(largest.len() == runs, "expected {runs} runs, found {}", largest.len());
    ensure!(
        (most - least) as f64 <= SPREAD * most as f64,
        "runs of {least} to {most} instructions differ by more than {} %",
        SPREAD * 100.0
    );
    Ok(least)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn the_emulators_version_selects_the_interface() {
        let text = "qemu-aarch64 version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18+b3)\nCopyright\n";
        assert_eq!(version(text), Some(("7.2.22".into(), 7)));
        assert_eq!(version("qemu-aarch64 version 10.0.2\n"), Some(("10.0.2".into(), 10)));
        assert_eq!(version("bash"), None);
        assert_eq!([7, 8, 9, 10].map(interface), [1, 1, 2, 2]);
    }

    #[test]
    fn runs_are_the_largest_differences_at_the_end() {
        // Start, first run, warm-up, two measured runs, the end.
        let readings = [0, 900, 5000, 5010, 6015, 6020, 7021, 7030];
        assert_eq!(instructions(&readings, 2).unwrap(), 1001);
    }

    #[test]
    fn runs_that_differ_are_an_error() {
        let error = instructions(&[0, 10, 1010, 1020, 1520, 1530], 2).unwrap_err().to_string();
        assert!(error.contains("differ"), "{error}");
        assert!(instructions(&[], 2).is_err());
        assert!(instructions(&[5], 1).is_err());
        assert!(instructions(&[5, 6], 2).is_err());
    }
}
