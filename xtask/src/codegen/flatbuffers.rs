//! Rust modules for the schemas in `schemas/`.
//!
//! The compiler is the one whose version equals the `flatbuffers` runtime's:
//! built from source by the crate `flatc-fork` (feature `codegen`; needs cmake
//! and a C++ compiler), or the program that the environment variable `FLATC`
//! names.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Context, Result, bail, ensure};
use sha2::{Digest, Sha256};

/// The version of flatc that the committed code comes from.
const FLATC_VERSION: &str = "25.12.19";

/// Schema (without `.fbs`) and the module made from it.
const MODULES: [(&str, &str); 6] = [
    ("circle", "crates/xnn-model/src/generated/circle.rs"),
    ("executorch_program", "crates/xnn-pte/src/generated/executorch_program.rs"),
    ("tflite", "crates/xnn-model/src/generated/tflite.rs"),
    ("tflite_metadata", "crates/xnn-model/src/generated/metadata.rs"),
    ("xnn_extension", "crates/xnn-format/src/generated/xnn_extension.rs"),
    ("xnn_graph", "crates/xnn-format/src/generated/xnn_graph.rs"),
];

/// Regenerates every module and `schemas/SHA256SUMS` under the workspace
/// `root`, or, with `check`, compares them with what is committed.
pub fn run(root: &Path, check: bool) -> Result<()> {
    let flatc = flatc()?;
    let mut sums = String::new();
    let mut stale = Vec::new();
    for (schema, module) in MODULES {
        let source = root.join("schemas").join(schema).with_extension("fbs");
        let digest = sha256(&source)?;
        writeln!(sums, "{digest}  {schema}.fbs")?;
        let code = generate(&flatc, &source, &digest)?;
        put(&root.join(module), &code, check, &mut stale)?;
    }
    put(&root.join("schemas/SHA256SUMS"), &sums, check, &mut stale)?;
    ensure!(
        stale.is_empty(),
        "not what the schemas say: {}; run `cargo xtask codegen`",
        stale.join(", ")
    );
    Ok(())
}

/// The module for one schema, stamped with compiler version and digest.
fn generate(flatc: &Path, schema: &Path, digest: &str) -> Result<String> {
    let out = tempfile::tempdir()?;
    let run = Command::new(flatc)
        .args(["--rust", "-o"])
        .arg(out.path())
        .arg(schema)
        .output()
        .with_context(|| format!("cannot run {}", flatc.display()))?;
    ensure!(
        run.status.success(),
        "flatc refuses {}: {}{}",
        schema.display(),
        String::from_utf8_lossy(&run.stdout),
        String::from_utf8_lossy(&run.stderr)
    );
    let stem = schema.file_stem().and_then(|s| s.to_str()).context("schema without a name")?;
    let code = fs::read_to_string(out.path().join(format!("{stem}_generated.rs")))?;
    Ok(format!("// flatc {FLATC_VERSION}, schemas/{stem}.fbs sha256 {digest}\n{code}"))
}

/// Writes `text`, or notes the path as stale when checking.
fn put(path: &Path, text: &str, check: bool, stale: &mut Vec<String>) -> Result<()> {
    if !check {
        return fs::write(path, text).with_context(|| format!("cannot write {}", path.display()));
    }
    if fs::read_to_string(path).ok().as_deref() != Some(text) {
        stale.push(path.display().to_string());
    }
    Ok(())
}

fn flatc() -> Result<PathBuf> {
    let path = match env::var_os("FLATC") {
        Some(path) => path.into(),
        None => built_flatc()?,
    };
    let output = Command::new(&path)
        .arg("--version")
        .output()
        .with_context(|| format!("cannot run {}", path.display()))?;
    let version = String::from_utf8_lossy(&output.stdout);
    ensure!(
        version.trim() == format!("flatc version {FLATC_VERSION}"),
        "{} is {:?}, but version {FLATC_VERSION} is needed",
        path.display(),
        version.trim()
    );
    Ok(path)
}

#[cfg(feature = "codegen")]
fn built_flatc() -> Result<PathBuf> {
    Ok(flatc_fork::flatc().to_path_buf())
}

#[cfg(not(feature = "codegen"))]
fn built_flatc() -> Result<PathBuf> {
    bail!("no flatc: run with `--features codegen`, or set FLATC to a flatc {FLATC_VERSION}")
}

fn sha256(path: &Path) -> Result<String> {
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut hex = String::new();
    for byte in Sha256::digest(bytes) {
        write!(hex, "{byte:02x}")?;
    }
    Ok(hex)
}
