//! Builds that chores make libraries and packages from.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::test::cargo;
use crate::venv;

/// Builds packages of the workspace and returns the folder of programs and libraries.
///
/// An optimized build is that of releases. The other one is of the whole workspace with its tests, whose dependencies have
/// further features: after `cargo test --workspace`, hardly anything is left to compile.
pub fn build(root: &Path, optimized: bool, packages: &[&str]) -> Result<PathBuf> {
    let (folder, mut arguments) = match optimized {
        true => ("dist", vec!["--profile", "dist"]),
        false => ("debug", vec!["--workspace", "--all-targets"]),
    };
    if optimized {
        arguments.extend(packages.iter().flat_map(|name| ["--package", name]));
    }
    cargo(root, "build", &arguments.into_iter().map(String::from).collect::<Vec<_>>())?;
    Ok(venv::target(root).join(folder))
}
