//! `cargo xtask capi`: makes, installs and tests the C library.

mod install;
mod tests;

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};

use crate::build::build;
use crate::{vendor, venv};

/// Choices for `cargo xtask capi`.
#[derive(clap::Args)]
pub struct Args {
    /// Optimize as for releases, and install without debug information
    #[arg(long)]
    release: bool,
    /// Folder to install into [default: target/capi/debug or target/capi/dist]
    #[arg(long, value_name = "DIR")]
    prefix: Option<PathBuf>,
    /// Install only; do not compile and run tests and examples
    #[arg(long, conflicts_with_all = ["valgrind", "asan"])]
    no_test: bool,
    /// Also run the tests under valgrind
    #[arg(long)]
    valgrind: bool,
    /// Also run the tests with AddressSanitizer in them, which finds leaks and misused memory of the C side
    #[arg(long)]
    asan: bool,
}

/// Builds `libxnn.a`, links `libxnn.so` from it, installs both with headers, pkg-config and CMake files, and compiles and
/// runs the tests and examples against what is installed.
pub fn run(root: &Path, args: &Args) -> Result<()> {
    ensure!(cfg!(target_os = "linux"), "cargo xtask capi supports Linux only");
    vendor::run(root, &vendor::Args::default())?;
    let target = venv::target(root);
    let prefix = match &args.prefix {
        // Cargo starts the program in the folder of the user.
        Some(prefix) => std::env::current_dir()?.join(prefix),
        None => target.join("capi").join(if args.release { "dist" } else { "debug" }),
    };
    install(root, &prefix, args.release)?;
    println!("installed into {}", prefix.display());
    if args.no_test {
        return Ok(());
    }
    let modes = tests::Modes { valgrind: args.valgrind, asan: args.asan };
    tests::test(root, &prefix, &target.join("capi/tests"), &modes)
}

/// Builds the optimized libraries and installs them into `prefix`.
pub fn install_release(root: &Path, prefix: &Path) -> Result<()> {
    install(root, prefix, true)
}

fn install(root: &Path, prefix: &Path, release: bool) -> Result<()> {
    let archive = build(root, release, &["xnn-capi"])?.join("libxnn.a");
    install::install(root, &archive, prefix, release)
}
