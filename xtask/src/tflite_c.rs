//! `cargo xtask tflite-c`: the drop-in `libtensorflowlite_c.so`, and clients from registries that run on it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::{build, shared, vendor, venv, wheels};

/// The crate of the library, and its clients.
const CRATE: &str = "crates/xnn-tflite-c";
const CLIENTS: &str = "crates/xnn-tflite-c/tests/clients";

/// The interpreter of which every value is compared.
const LITERT: &str = "ai-edge-litert-2.3.0";
/// A Python client that loads the library by its path.
const EDGEFIRST: &str = "edgefirst-tflite-0.10.3";
/// The npm package that contains TFLite's own library for Linux.
const REAL: &str = "tfjs-tflite-node@0.0.2";
/// The Rust client, and the crate that contains the headers it needs.
const CRATES: &str = "tflitec = \"=0.7.0\"\nedgefirst-tflite-sys = \"=0.10.3\"\n";

/// Libraries that Rust's standard library needs.
const LIBRARIES: [&str; 6] = ["-lgcc_s", "-lutil", "-lrt", "-lpthread", "-lm", "-ldl"];

/// Models for the ctypes client: types, open dimensions, partial delegation, state, strings, several signatures. Those of
/// the first part run in CI.
const QUICK: &[&str] = &[
    "mobilenet_v1_0.25_224_quant",
    "digits_tinycnn_int8",
    "kws_dscnn_int8",
    "keyword_scrambled_svdf",
    "microwakeword_okay_nabu",
    "mobilenet_v2_0.35_96_embedder",
    "small/litert__js__packages__core__testdata__multi_signature_model",
    "small/litert__test__testdata__gather_string",
    "small/litert__test__testdata__reverse_signature_model",
    "small/mediapipe__test_two_signature_keys_model",
    "small/tflite__converter__testdata__multi_signatures.bin",
    "small/tflite__testdata__string_input_model_with_signature.bin",
];
const OTHERS: &[&str] = &[
    "audio_speech_commands",
    "blazeface_front_fp16",
    "digits_mobilenet_v2_0.35_48_int8",
    "face_landmark",
    "mnist_lstm_int8",
    "mobilenet_v1_0.25_224_fp32",
    "mobilenet_v2_1.0_224_dynamic_range",
    "mobilenet_v2_1.0_224_int8_ptq",
    "ssd_mobilenet_v1_coco_quant",
];
/// Models that TFLite's own library, which is older, runs as well.
const OLD: &[&str] = &[
    "mobilenet_v1_0.25_224_fp32",
    "mobilenet_v1_0.25_224_quant",
    "kws_dscnn_fp32",
    "kws_dscnn_int8",
    "keyword_scrambled_svdf",
];
/// Models that the Rust client classifies a photo with.
const CLASSIFIERS: &[&str] = &[
    "mobilenet_v1_1.0_224_fp32",
    "mobilenet_v1_1.0_224_quant",
    "mobilenet_v2_1.0_224_fp32",
    "mobilenet_v2_1.0_224_int8_ptq",
];
/// A model with a custom operator that this project has no kernel for.
const CUSTOM: &str = "small/litert__test__testdata__custom_sinh.bin";

/// Choices for `cargo xtask tflite-c`.
#[derive(clap::Args)]
pub struct Args {
    /// Only the ctypes client and small models, without an optimized build: what CI runs
    #[arg(long)]
    quick: bool,
    /// Use an unoptimized library
    #[arg(long)]
    debug: bool,
}

/// Builds the library, checks its symbols, and runs the clients.
pub fn run(root: &Path, args: &Args) -> Result<()> {
    vendor::run(root, &vendor::Args::default())?;
    let models = shared::folder(root).join("models");
    ensure!(models.is_dir(), "{} is not there", models.display());
    let library = link(root, args.quick || args.debug)?;
    println!("== symbols of {}", library.display());
    check_symbols(root, &library)?;
    println!("== ctypes, compared with {LITERT}");
    let python = wheels::environment(root, LITERT)?;
    let all: &[&[&str]] = if args.quick { &[QUICK] } else { &[QUICK, OTHERS] };
    let mut client = Command::new(&python);
    client.arg(root.join(CLIENTS).join("client.py")).arg(&library);
    client.args(all.concat().iter().map(|name| model(&models, name)));
    client.arg("--calls").arg("--custom").arg(model(&models, CUSTOM));
    client.arg("--endless").arg(root.join(CLIENTS).join("endless.tflite"));
    venv::run(&mut client)?;
    if args.quick {
        return Ok(());
    }
    let folder = venv::target(root).join("tflite-c");
    println!("== TFLite's own library, from {REAL}");
    real(root, &folder, &python, &models, &library)?;
    println!("== tflitec");
    let program = tflitec(root, &folder, &library)?;
    let cases = folder.join("cases");
    let mut classify = Command::new(&python);
    classify.arg(root.join(CLIENTS).join("tflitec.py")).arg(program);
    classify.env("LD_LIBRARY_PATH", library.parent().unwrap_or(root));
    classify.arg(shared::folder(root).join("images/grace_hopper.bmp")).arg(&cases);
    venv::run(classify.args(CLASSIFIERS.iter().map(|name| model(&models, name))))?;
    println!("== {EDGEFIRST}");
    let requirements = root.join(CRATE).join("tests/requirements").join(EDGEFIRST);
    let python = venv::python(root, EDGEFIRST, &requirements.with_added_extension("txt"))?;
    let script = root.join(CLIENTS).join("edgefirst.py");
    venv::run(Command::new(python).arg(script).arg(&library).arg(&cases))
}

fn model(models: &Path, name: &str) -> PathBuf {
    models.join(name).with_added_extension("tflite")
}

/// Builds the optimized library and installs it into `prefix`.
pub fn install_release(root: &Path, prefix: &Path) -> Result<()> {
    let built = link(root, false)?;
    let folder = prefix.join("lib");
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let library = folder.join("libtensorflowlite_c.so");
    fs::copy(&built, &library).with_context(|| built.display().to_string())?;
    venv::run(Command::new("strip").arg("--strip-unneeded").arg(&library))
}

/// Links the library with the version of TFLite's symbols. Cargo's own shared library has none, because its linker script
/// cannot be combined with one that names a version.
fn link(root: &Path, is_debug: bool) -> Result<PathBuf> {
    let built = build::build(root, !is_debug, &["xnn-tflite-c"])?;
    let folder = built.join("tflite-c");
    fs::create_dir_all(&folder)?;
    let library = folder.join("libtensorflowlite_c.so");
    let mut link = Command::new("cc");
    link.args([
        "-shared",
        "-Wl,--gc-sections",
        "-Wl,-z,nodelete",
        "-Wl,-z,relro,-z,now",
        "-Wl,--no-undefined",
    ]);
    link.arg("-Wl,-soname,libtensorflowlite_c.so");
    link.arg(format!("-Wl,--version-script={}", root.join(CRATE).join("exports.map").display()));
    link.arg("-Wl,--whole-archive")
        .arg(built.join("libtensorflowlite_c.a"))
        .arg("-Wl,--no-whole-archive");
    venv::run(link.args(LIBRARIES).arg("-o").arg(&library))?;
    Ok(library)
}

/// Compares the exported symbols with the document.
fn check_symbols(root: &Path, library: &Path) -> Result<()> {
    let nm = Command::new("nm").args(["-D", "--defined-only"]).arg(library).output()?;
    ensure!(nm.status.success(), "nm failed");
    let symbols = String::from_utf8(nm.stdout)?;
    let names = symbols.lines().filter_map(|line| line.split_whitespace().last());
    let versioned = names.filter(|name| *name != "VERS_1.0");
    let exported: Option<BTreeSet<&str>> =
        versioned.map(|name| name.strip_suffix("@@VERS_1.0")).collect();
    let exported = exported.context("a symbol has no version")?;
    let document = fs::read_to_string(root.join("docs/tflite-c-api.md"))?;
    let rows = document.lines().filter_map(|line| line.strip_prefix("| ")?.split('|').next());
    let names = rows.flat_map(|row| row.split([',', ' ', '`']));
    let documented: BTreeSet<&str> = names.filter(|name| name.starts_with("TfLite")).collect();
    let differences: Vec<_> = exported.symmetric_difference(&documented).collect();
    ensure!(differences.is_empty(), "docs/tflite-c-api.md and the symbols differ: {differences:?}");
    println!("ok    \t{} functions, no other symbols", exported.len());
    Ok(())
}

/// Runs the ctypes client on TFLite's own library, and a program that was linked to that on ours.
fn real(root: &Path, folder: &Path, python: &Path, models: &Path, library: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    let theirs = folder.join("package/cc_deps/linux_amd64");
    if !theirs.is_dir() {
        venv::run(Command::new("npm").current_dir(folder).args(["pack", "--silent", REAL]))?;
        let archive = format!("{}.tgz", REAL.replace('@', "-"));
        venv::run(Command::new("tar").current_dir(folder).args(["-xzf", &archive]))?;
    }
    let mut client = Command::new(python);
    client.arg(root.join(CLIENTS).join("client.py")).arg(theirs.join("libtensorflowlite_c.so"));
    client.arg("--only-functions-it-has").args(OLD.iter().map(|name| model(models, name)));
    client.arg("--calls").arg("--custom").arg(model(models, CUSTOM));
    venv::run(&mut client)?;
    let program = folder.join("program");
    let mut compile = Command::new("cc");
    compile.arg(root.join(CLIENTS).join("program.c")).arg("-o").arg(&program);
    venv::run(compile.arg("-L").arg(&theirs).args([
        "-ltensorflowlite_c",
        "-lm",
        "-ldl",
        "-lpthread",
    ]))?;
    for home in [Some(theirs.as_path()), library.parent()] {
        let home = home.context("the library has no folder")?;
        let mut run = Command::new(&program);
        let output = run.env("LD_LIBRARY_PATH", home).arg(model(models, OLD[0])).output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.success() && !said.contains("version information"),
            "a program that is linked to TFLite's library fails with {}: {said}",
            home.display()
        );
        print!("ok    \ta linked program: {}", String::from_utf8_lossy(&output.stdout));
    }
    Ok(())
}

/// Runs the tests of `tflitec`, and builds the program that uses it.
fn tflitec(root: &Path, folder: &Path, library: &Path) -> Result<PathBuf> {
    let project = folder.join("tflitec");
    fs::create_dir_all(project.join("src"))?;
    // A workspace of its own.
    let manifest = "[workspace]\n[package]\nname = \"client\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[dependencies]\n";
    fs::write(project.join("Cargo.toml"), format!("{manifest}{CRATES}"))?;
    fs::copy(root.join(CLIENTS).join("tflitec.rs"), project.join("src/main.rs"))?;
    let metadata = Command::new(env!("CARGO"))
        .current_dir(&project)
        .args(["metadata", "--format-version", "1"])
        .output()?;
    ensure!(metadata.status.success(), "{}", String::from_utf8_lossy(&metadata.stderr));
    let metadata: Value = serde_json::from_slice(&metadata.stdout)?;
    let source = |name: &str| -> Result<PathBuf> {
        let mut packages = metadata["packages"].as_array().into_iter().flatten();
        let package = packages.find(|package| package["name"] == name).context(name.to_owned())?;
        let manifest = package["manifest_path"].as_str().context("a manifest")?;
        Ok(Path::new(manifest).parent().context("a folder")?.to_owned())
    };
    let headers = folder.join("headers");
    copy(&source("edgefirst-tflite-sys")?.join("tensorflow"), &headers.join("tensorflow"))?;
    let forwarding = headers.join("tensorflow/lite/c/c_api.h");
    fs::create_dir_all(forwarding.parent().context("a folder")?)?;
    fs::write(forwarding, "#include \"tensorflow/lite/core/c/c_api.h\"\n")?;
    let own = folder.join("tflitec-source");
    copy(&source("tflitec")?, &own)?;
    let cargo = |folder: &Path, arguments: &[&str]| {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.current_dir(folder).args(arguments);
        cargo.env("TFLITEC_PREBUILT_PATH", library).env("TFLITEC_HEADER_DIR", &headers);
        cargo.env("CARGO_TARGET_DIR", folder.join("target"));
        venv::run(cargo.env("LD_LIBRARY_PATH", library.parent().unwrap_or(root)))
    };
    let manifest = own.join("Cargo.toml");
    let text = fs::read_to_string(&manifest)?;
    if !text.contains("[workspace]") {
        fs::write(&manifest, format!("{text}\n[workspace]\n"))?;
    }
    cargo(&own, &["test", "--lib"])
        .context("the tests of tflitec fail; building it needs libclang")?;
    cargo(&project, &["build", "--release"])?;
    Ok(project.join("target/release/client"))
}

/// Copies a folder with everything in it.
fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).with_context(|| from.display().to_string())? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        match entry.file_type()? {
            kind if kind.is_dir() => copy(&entry.path(), &target)?,
            kind if kind.is_file() => {
                fs::copy(entry.path(), &target)?;
            }
            _ => bail!("{} is not a file or folder", entry.path().display()),
        }
    }
    Ok(())
}
