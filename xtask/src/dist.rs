//! `cargo xtask dist`: the archive and the Debian package that people install, built with the profile `dist`.

mod archive;
mod deb;
mod products;
mod sbom;

use std::env::consts::EXE_SUFFIX;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use sha2::{Digest, Sha256};

use crate::metadata::{self, Metadata};
use crate::test::cargo;
use crate::{notices, vendor, venv};
use products::{DOCUMENTS, PRODUCTS, Product};

/// Name of the project in file names.
const NAME: &str = "xnn-delegate";

/// Choices for `cargo xtask dist`.
#[derive(clap::Args)]
pub struct Args {
    /// Platform, such as x86_64-unknown-linux-musl [default: this machine's]
    #[arg(long)]
    target: Option<String>,
}

/// A release for one platform.
struct Release<'a> {
    metadata: &'a Metadata,
    version: &'a str,
    target: &'a str,
    /// Packages of the workspace that it contains.
    packages: Vec<&'static str>,
    /// The packages that cargo builds for it.
    built: Vec<&'static str>,
}

/// Writes `xnn-delegate-VERSION-TARGET.tar.gz`, the Debian package where `dpkg-deb` is installed, the SBOM and `SHA256SUMS` to `target/archives`.
pub fn run(root: &Path, args: &Args) -> Result<()> {
    vendor::run(root, &vendor::Args::default())?;
    let host = metadata::host()?;
    let target = args.target.as_deref().unwrap_or(&host);
    let metadata = Metadata::read(root, target)?;
    let products: Vec<&Product> = PRODUCTS
        .iter()
        .filter(|one| one.exists_in(&metadata) && one.runs_on(target, &host))
        .collect();
    let packages: Vec<&str> = products.iter().map(|one| one.package).collect();
    let built =
        products.iter().filter(|one| !one.built.is_empty()).map(|one| one.package).collect();
    let facade = metadata.published().find(|package| package.name == NAME);
    let version = facade.context("no package xnn-delegate")?.version.as_str();
    let release = Release { metadata: &metadata, version, target, packages, built };

    let built = build(root, &release, args.target.is_some())?;
    let out = venv::target(root).join("archives");
    let name = format!("{NAME}-{version}-{target}");
    let stage = out.join(&name);
    if stage.exists() {
        fs::remove_dir_all(&stage)?;
    }
    for product in products {
        product.install(root, &built, &stage, target, version)?;
    }
    // Man pages and completions are the same on every platform. The profile is that of the programs, whose build of XNNPACK it shares.
    let manual =
        ["--quiet", "--profile", "dist", "--package", "xnn-cli", "--example", "manual", "--"];
    let manual = manual.map(String::from);
    cargo(root, "run", &[manual.as_slice(), &[stage.display().to_string()]].concat())?;
    let documents = stage.join("share/doc").join(NAME);
    for document in DOCUMENTS {
        install(&root.join(document), &documents)?;
    }
    if let Some(file) = notices::standard_library()? {
        install(&file, &documents)?;
    }
    let title = format!("Third-party code in {NAME} {version} for {target}");
    fs::write(
        documents.join("THIRD-PARTY-LICENSES.txt"),
        notices::text(root, &metadata, &release.packages, &title)?,
    )?;
    let sbom = sbom::json(root, &release)?;
    fs::write(documents.join("sbom.cdx.json"), &sbom)?;

    let mut files = vec![archive::write(&stage, &out)?];
    files.extend(deb::write(&stage, &out, &release)?);
    let file = out.join(format!("{name}.cdx.json"));
    fs::write(&file, &sbom)?;
    files.push(file);
    fs::write(out.join(format!("{name}.sha256")), checksums(&files)?)?;
    for file in &files {
        println!("{:>9} bytes  {}", file.metadata()?.len(), file.display());
    }
    Ok(())
}

/// Builds the packages and returns the folder of programs and libraries.
fn build(root: &Path, release: &Release<'_>, has_target: bool) -> Result<PathBuf> {
    let mut arguments: Vec<String> = ["--profile", "dist", "--locked"].map(String::from).into();
    for package in &release.built {
        arguments.extend(["--package".into(), (*package).into()]);
    }
    let mut built = venv::target(root);
    if has_target {
        arguments.extend(["--target".into(), release.target.into()]);
        built.push(release.target);
    }
    cargo(root, "build", &arguments)?;
    Ok(built.join("dist"))
}

/// Lines that `sha256sum --check` reads.
fn checksums(files: &[PathBuf]) -> Result<String> {
    let mut lines = String::new();
    for file in files {
        let digest = Sha256::digest(fs::read(file)?);
        let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        lines += &format!("{digest}  {name}\n");
    }
    Ok(lines)
}

/// Copies a file into a folder.
fn install(file: &Path, folder: &Path) -> Result<()> {
    let name = file.file_name().with_context(|| file.display().to_string())?;
    fs::create_dir_all(folder)?;
    fs::copy(file, folder.join(name)).with_context(|| file.display().to_string())?;
    Ok(())
}

/// Ending of programs' names on `target`.
fn program_ending(target: &str) -> &'static str {
    if target.contains("windows") { ".exe" } else { EXE_SUFFIX }
}

/// Fails if a file has grown over its budget.
fn check_size(file: &Path, budget: u64) -> Result<()> {
    let size = file.metadata().with_context(|| file.display().to_string())?.len();
    println!("{size:>9} bytes  {}", file.display());
    ensure!(
        size <= budget,
        "{} exceeds its budget of {budget} bytes (xtask/src/dist/products.rs)",
        file.display()
    );
    Ok(())
}
