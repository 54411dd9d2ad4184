//! Test data that lies beside the repository and is not part of it.

use std::path::{Path, PathBuf};
use std::{env, fs};

/// A folder of shared test data: `../shared/<name>` beside the workspace, or
/// under the folder that `XNN_SHARED` names.
///
/// Returns `None`, with a line saying that the test is skipped, where the
/// folder is absent.
///
/// # Panics
///
/// If the folder is absent and `CI` is `true`: there, nothing may be skipped.
#[must_use]
pub fn shared_dir(name: &str) -> Option<PathBuf> {
    let dir = shared_root().join(name);
    if dir.is_dir() {
        return Some(dir);
    }
    let ci = env::var("CI").is_ok_and(|v| v == "true");
    assert!(!ci, "{} is not there, and CI skips no test", dir.display());
    skipped(&dir);
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

#[allow(clippy::print_stderr, reason = "a skipped test must be visible")]
fn skipped(dir: &Path) {
    eprintln!("SKIPPED: {} is not there", dir.display());
}
