//! XNNPACK's sources in the slot of this checkout.

#![allow(clippy::print_stdout, reason = "tests")]

use std::env;
use std::path::{Path, PathBuf};

/// Returns a file or folder in the slot. Without sources tests are skipped, except in CI.
pub fn vendored(path: &str) -> Option<PathBuf> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vendor/XNNPACK").join(path);
    if file.exists() {
        return Some(file);
    }
    assert!(
        env::var_os("CI").is_none_or(|ci| ci != "true"),
        "no {}: run `cargo xtask vendor`",
        file.display()
    );
    println!("SKIPPED: no {}", file.display());
    None
}
