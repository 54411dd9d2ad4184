//! Python environments for the chores that need one.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Context, Result, ensure};

/// The Python of the environment `target/venvs/<name>`, which has the packages that the file
/// `requirements` lists. It is made where it is missing or was made for other requirements.
///
/// `PYTHON` in the environment names the interpreter to make it with, `python3` by default.
pub fn python(root: &Path, name: &str, requirements: &Path) -> Result<PathBuf> {
    install(root, name, requirements, &[])
}

/// [`python`] with packages of gigabytes, whose archives are not kept.
pub fn large(root: &Path, name: &str, requirements: &Path) -> Result<PathBuf> {
    install(root, name, requirements, &["--no-cache-dir"])
}

fn install(root: &Path, name: &str, requirements: &Path, options: &[&str]) -> Result<PathBuf> {
    let wanted = fs::read_to_string(requirements)
        .with_context(|| format!("cannot read {}", requirements.display()))?;
    let folder = target(root).join("venvs").join(name);
    let python = folder.join("bin/python");
    // Written last: it says that the environment is complete.
    let stamp = folder.join("requirements.installed");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(python);
    }
    eprintln!("installing {} into {}", requirements.display(), folder.display());
    let clear = ["-m", "venv", "--clear"].map(OsStr::new).into_iter();
    run(Command::new(base()).args(clear.chain([folder.as_os_str()])))
        .context("cannot make a Python environment; on Debian it needs the package python3-venv")?;
    run(Command::new(&python)
        .args(PIP_INSTALL)
        .args(options)
        .arg("--requirement")
        .arg(requirements))?;
    fs::write(&stamp, wanted)?;
    Ok(python)
}

/// The beginning of Python's arguments that install packages.
pub const PIP_INSTALL: [&str; 5] =
    ["-m", "pip", "install", "--disable-pip-version-check", "--quiet"];

/// The interpreter that environments are made with.
fn base() -> OsString {
    env::var_os("PYTHON").unwrap_or_else(|| "python3".into())
}

/// Unpacks wheels into a folder, with pip's options and requirements, for another machine or as a source of files.
pub fn unpack(options: &[&str], folder: &Path) -> Result<()> {
    let mut pip = Command::new(base());
    run(pip.args(PIP_INSTALL).args(options).arg("--only-binary=:all:").arg("--target").arg(folder))
}

/// Cargo's folder for what is built.
pub fn target(root: &Path) -> PathBuf {
    root.join(env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

/// Runs a command and waits for its success.
pub fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot start {command:?}"))?;
    ensure!(status.success(), "{command:?} failed ({status})");
    Ok(())
}
