//! `cargo xtask package`: packs every crate as a registry would get it, and builds and runs a new project from the packages alone.

mod sources;

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use flate2::read::GzDecoder;

use crate::metadata::{self, Metadata};
use crate::test::cargo;
use crate::{vendor, venv};

/// The largest package that crates.io accepts.
const LIMIT: u64 = 10 << 20;
/// Folder of `xnnpack-sys` with the sources that its package holds.
const SOURCES: &str = "crates/xnnpack-sys/vendor";
/// A program that a user of the packages would write.
const PROGRAM: &str = include_str!("package/program.rs");
/// The model that it runs.
const MODEL: &str = "models/digits_mobilenet_v2_fp32.tflite";

/// Choices for `cargo xtask package`.
#[derive(clap::Args)]
pub struct Args {
    /// Only write the packages; do not build a project from them
    #[arg(long)]
    no_verify: bool,
}

/// Writes the packages to `target/package` and checks them.
pub fn run(root: &Path, args: &Args) -> Result<()> {
    vendor::run(root, &vendor::Args::default())?;
    sources::write(&root.join("vendor/XNNPACK"), &root.join(SOURCES))?;
    let metadata = Metadata::read(root, &metadata::host()?)?;
    // The sources are not tracked, which cargo counts as a change. The check below builds all packages together, which takes one
    // build of XNNPACK instead of one for each package.
    let mut arguments: Vec<String> =
        ["--quiet", "--allow-dirty", "--no-verify"].map(String::from).into();
    for package in metadata.published() {
        arguments.extend(["--package".into(), package.name.clone()]);
    }
    cargo(root, "package", &arguments)?;

    let folder = venv::target(root).join("package");
    let mut packages = Vec::new();
    for package in metadata.published() {
        let file = folder.join(package.file_name());
        let size = file.metadata().with_context(|| file.display().to_string())?.len();
        println!("{:>9} bytes  {}", size, package.file_name());
        ensure!(size <= LIMIT, "{} exceeds the limit of {LIMIT} bytes", file.display());
        packages.push((package.name.as_str(), file));
    }
    if !args.no_verify {
        verify(root, &packages)?;
    }
    Ok(())
}

/// Unpacks the packages into a folder outside the repository, checks each of them, and runs [`PROGRAM`] with them.
fn verify(root: &Path, packages: &[(&str, PathBuf)]) -> Result<()> {
    let project = tempfile::tempdir()?;
    let mut manifest = String::from(
        "[workspace]\nresolver = \"3\"\nmembers = [\"crates/*/*\"]\n\n\
         [package]\nname = \"program\"\nedition = \"2024\"\n\n\
         [dependencies]\nxnn-delegate = \"0.1\"\n\n[patch.crates-io]\n",
    );
    for (name, file) in packages {
        // A package has one folder, which is named after its version.
        let folder = project.path().join("crates").join(name);
        fs::create_dir_all(&folder)?;
        tar::Archive::new(GzDecoder::new(File::open(file)?)).unpack(&folder)?;
        let top = fs::read_dir(&folder)?.next().context("an empty package")??.path();
        writeln!(manifest, "{name} = {{ path = {:?} }}", top.display().to_string())?;
    }
    fs::write(project.path().join("Cargo.toml"), manifest)?;
    fs::create_dir(project.path().join("src"))?;
    fs::write(project.path().join("src/main.rs"), PROGRAM)?;
    // The versions of other crates that this repository is tested with.
    fs::copy(root.join("Cargo.lock"), project.path().join("Cargo.lock"))?;

    let target = venv::target(root).join("package-project");
    let cargo = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO"));
        command.args(arguments).current_dir(project.path()).env("CARGO_TARGET_DIR", &target);
        command
    };
    venv::run(&mut cargo(&["check", "--quiet", "--workspace"]))?;
    venv::run(cargo(&["run", "--quiet", "--"]).arg(root.join(MODEL)))
}
