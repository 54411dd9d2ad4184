//! `cargo xtask demo`: set-up where it is missing, then the demo.

use std::path::Path;

use anyhow::Result;

use crate::{test, vendor};

/// Fetches XNNPACK's sources if need be, then converts the demo models, runs
/// the blobs and shows what they see.
pub fn run(root: &Path) -> Result<()> {
    vendor::run(root, &vendor::Args::default())?;
    test::cargo(root, "run", &["--release", "--example", "demo"].map(String::from))
}
