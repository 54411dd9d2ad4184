//! Things that a test needs and that may be absent, such as test data beside the repository.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// Prints that a test, or a part of it, is skipped, and why.
///
/// # Panics
///
/// If the environment variable `CI` is `true`: CI skips no test.
#[allow(clippy::print_stderr, reason = "a skipped test must be visible")]
pub fn skip(reason: impl Display) {
    let is_ci = env::var("CI").is_ok_and(|value| value == "true");
    assert!(!is_ci, "{reason}, and CI skips no test");
    eprintln!("SKIPPED: {reason}");
}

/// A folder of shared test data: `../shared/<name>` beside the workspace, or
/// under the folder that `XNN_SHARED` names.
///
/// Returns `None` and [`skip`]s where the folder is absent.
///
/// # Panics
///
/// If the folder is absent in CI.
#[must_use]
pub fn shared_dir(name: &str) -> Option<PathBuf> {
    let dir = shared_root().join(name);
    if dir.is_dir() {
        return Some(dir);
    }
    skip(format_args!("{} does not exist", dir.display()));
    None
}

/// All files below `dir` with one of these extensions, sorted by path.
///
/// # Panics
///
/// If a folder cannot be read.
#[must_use]
#[allow(clippy::panic, reason = "test support: a panic is a failed test")]
pub fn files_below(dir: &Path, extensions: &[&str]) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.unwrap_or_else(|e| panic!("{}: {e}", dir.display())).path();
        if path.is_dir() {
            found.extend(files_below(&path, extensions));
        } else if path.extension().is_some_and(|e| extensions.iter().any(|x| e == *x)) {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn shared_root() -> PathBuf {
    env::var_os("XNN_SHARED").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        PathBuf::from,
    )
}
