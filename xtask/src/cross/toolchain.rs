//! Set-up of a target: programs of the machine, and Rust's standard library.

use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use super::extras::Place;
use super::targets::{Source, System, Target, Tool};
use crate::apt::{self, Apt};
use crate::venv;

/// Debian's suites with packages `rust-src`: several versions are in the backports.
const SUITES: [&str; 4] = ["trixie-backports", "sid", "trixie", "bookworm"];

/// Checks that the programs exist; the error names the packages that have them.
pub fn check(tools: &[Tool]) -> Result<()> {
    let is_there = |tool: &&Tool| is_program(tool.program);
    let missing: Vec<_> = tools.iter().filter(|tool| !is_there(tool)).copied().collect();
    if missing.is_empty() {
        return Ok(());
    }
    bail!("{}", what_to_install(&missing))
}

fn what_to_install(missing: &[Tool]) -> String {
    let list = |of: fn(&Tool) -> &str| {
        let mut names: Vec<_> = missing.iter().map(of).collect();
        names.dedup();
        names
    };
    format!(
        "cannot find {}; on Debian, run: apt-get install {}",
        list(|tool| tool.program).join(", "),
        list(|tool| tool.package).join(" ")
    )
}

fn is_program(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(name).is_file())
}

/// Returns the folder with the target's headers and libraries, which are fetched if it does not exist, or `None` if the machine has them.
pub fn system(root: &Path, target: &Target) -> Result<Option<PathBuf>> {
    let Some(System { source, links }) = &target.system else { return Ok(None) };
    let parent = std::path::absolute(venv::target(root).join("cross"))?;
    let version = match source {
        Source::Debian { suite, .. } => (*suite).to_owned(),
        Source::PyPi { requirement, .. } => requirement.replace("==", "-"),
    };
    let folder = parent.join(format!("{}-{version}", target.triple));
    if folder.is_dir() {
        return Ok(Some(folder));
    }
    fs::create_dir_all(&parent)?;
    let work = tempfile::Builder::new().prefix(".fetch-").tempdir_in(&parent)?;
    let fresh = work.path().join("system");
    match source {
        Source::Debian { suite, packages } => unpack_debian(work.path(), suite, packages, &fresh)?,
        Source::PyPi { requirement, parts } => {
            unpack_wheel(work.path(), requirement, parts, &fresh)?;
        }
    }
    for (link, destination) in *links {
        let link = fresh.join(link);
        fs::create_dir_all(link.parent().context("a link without a folder")?)?;
        symlink(destination, link)?;
    }
    fs::rename(fresh, &folder)?;
    Ok(Some(folder))
}

/// Unpacks packages of a suite into the folder `to`.
fn unpack_debian(work: &Path, suite: &str, packages: &[&str], to: &Path) -> Result<()> {
    let apt = Apt::new(&work.join("apt"), &[format!("deb {{}} {suite} main")])?;
    eprintln!("fetching {}", packages.join(", "));
    let packages: Vec<_> = packages.iter().map(|&name| name.to_owned()).collect();
    apt::extract(&apt.download(&packages, &work.join("packages"))?, to)?;
    make_links_relative(to, to)
}

/// Unpacks parts of a package of PyPI into the folder `to`.
fn unpack_wheel(work: &Path, requirement: &str, parts: &[(&str, &str)], to: &Path) -> Result<()> {
    eprintln!("fetching {requirement}");
    let unpacked = work.join("wheel");
    venv::unpack(&["--no-deps", requirement], &unpacked)?;
    for (from, place) in parts {
        let place = to.join(place);
        fs::create_dir_all(place.parent().context("a part without a folder")?)?;
        let from = unpacked.join(from);
        fs::rename(&from, &place).with_context(|| from.display().to_string())?;
    }
    Ok(())
}

/// Changes links to `/PATH` in `folder` to lead to `PATH` in `root`, which the folder is in.
fn make_links_relative(root: &Path, folder: &Path) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_symlink() {
            if let Ok(inside) = fs::read_link(&path)?.strip_prefix("/") {
                let depth = path.strip_prefix(root)?.components().count() - 1;
                fs::remove_file(&path)?;
                symlink(PathBuf::from("../".repeat(depth)).join(inside), &path)?;
            }
        } else if path.is_dir() {
            make_links_relative(root, &path)?;
        }
    }
    Ok(())
}

/// Returns the folder that `--sysroot` needs, or `None` if the toolchain has the target's standard library.
///
/// The library is built once for each version of Rust from the sources in the toolchain (`rustup component add rust-src`) or
/// in Debian's package `rust-src` of that version.
pub fn standard_library(
    root: &Path,
    target: &Target,
    system: Option<&Path>,
) -> Result<Option<PathBuf>> {
    if has_library(&rustc(&["--print", "target-libdir", "--target", target.triple])?) {
        return Ok(None);
    }
    let version = release(&rustc(&["-vV"])?)?;
    let folder = venv::target(root).join("cross").join(format!("rust-{version}"));
    let folder = std::path::absolute(folder)?;
    let sysroot = folder.join(target.triple);
    let libraries = sysroot.join("lib/rustlib").join(target.triple).join("lib");
    if !has_library(&libraries) {
        let sources = sources(&folder, &version).with_context(|| {
            format!(
                "Rust {version} has no standard library for {0}, and its sources are not available; \
                 run: rustup target add {0}",
                target.triple
            )
        })?;
        build(&folder, target, system, &sources, &libraries)?;
    }
    Ok(Some(sysroot))
}

/// Whether the folder has a standard library.
fn has_library(folder: &Path) -> bool {
    let is_std = |name: &OsStr| {
        name.to_str().is_some_and(|name| name.starts_with("libstd-") && name.ends_with(".rlib"))
    };
    fs::read_dir(folder)
        .is_ok_and(|mut files| files.any(|file| file.is_ok_and(|file| is_std(&file.file_name()))))
}

/// The compiler that cargo uses, too.
pub fn rustc_command() -> Command {
    Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
}

/// Runs rustc and returns the path that it prints.
fn rustc(arguments: &[&str]) -> Result<PathBuf> {
    let output = rustc_command().args(arguments).output().context("cannot start rustc")?;
    ensure!(output.status.success(), "rustc {}: {}", arguments.join(" "), output.status);
    Ok(PathBuf::from(String::from_utf8(output.stdout)?.trim_end()))
}

/// The version in what `rustc -vV` prints.
fn release(verbose: &Path) -> Result<String> {
    let text = verbose.to_str().context("rustc -vV: not valid UTF-8")?;
    text.lines()
        .find_map(|line| line.strip_prefix("release: "))
        .map(str::to_owned)
        .context("rustc -vV prints no release")
}

/// The folder `library` of Rust's sources.
fn sources(folder: &Path, version: &str) -> Result<PathBuf> {
    let installed = rustc(&["--print", "sysroot"])?.join("lib/rustlib/src/rust");
    if installed.join("library/Cargo.lock").is_file() {
        return Ok(installed.join("library"));
    }
    let fetched = folder.join("src");
    if !fetched.join("library/Cargo.lock").is_file() {
        fetch(folder, version, &fetched)?;
    }
    Ok(fetched.join("library"))
}

/// Fetches Debian's package of the sources.
fn fetch(folder: &Path, version: &str, to: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    let work = tempfile::Builder::new().prefix(".fetch-").tempdir_in(folder)?;
    let lines = SUITES.map(|suite| format!("deb {{}} {suite} main"));
    let apt = Apt::new(&work.path().join("apt"), &lines)?;
    let versions = apt.versions("rust-src")?;
    let Some(package) = of_release(&versions, version) else {
        bail!(
            "Debian has no package rust-src of version {version}; it has {}",
            versions.join(", ")
        );
    };
    eprintln!("fetching rust-src {package}");
    let files = apt.download(&[format!("rust-src={package}")], &work.path().join("packages"))?;
    let fresh = work.path().join("src");
    for file in &files {
        unpack_library(file, &fresh).with_context(|| file.display().to_string())?;
    }
    ensure!(fresh.join("library/Cargo.lock").is_file(), "rust-src has no library/Cargo.lock");
    fs::rename(fresh, to)?;
    Ok(())
}

/// The package's version of a release: `1.95.0+dfsg1-2~bpo13+1` of 1.95.0.
fn of_release<'a>(versions: &'a [String], release: &str) -> Option<&'a String> {
    versions.iter().find(|version| {
        let rest = version.strip_prefix(release);
        rest.is_some_and(|rest| rest.starts_with(['+', '-', '~']))
    })
}

/// Unpacks `usr/src/rustc-VERSION/library` of a package: a tenth of it.
fn unpack_library(package: &Path, to: &Path) -> Result<()> {
    let mut dpkg = Command::new("dpkg-deb")
        .arg("--fsys-tarfile")
        .arg(package)
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start dpkg-deb")?;
    let tar = dpkg.stdout.take().context("no pipe")?;
    unpack(tar, to)?;
    ensure!(dpkg.wait()?.success(), "dpkg-deb failed");
    Ok(())
}

fn unpack(tar: impl Read, to: &Path) -> Result<()> {
    for entry in tar::Archive::new(tar).entries()? {
        let mut entry = entry?;
        let Some(path) = in_library(&entry.path()?) else { continue };
        let path = to.join(path);
        if entry.header().entry_type().is_dir() {
            fs::create_dir_all(path)?;
        } else if entry.header().entry_type().is_file() {
            fs::create_dir_all(path.parent().context("a file without a folder")?)?;
            entry.unpack(&path).with_context(|| path.display().to_string())?;
        }
    }
    Ok(())
}

/// The path from `library` on, of an entry `./usr/src/rustc-VERSION/library/...`.
fn in_library(path: &Path) -> Option<PathBuf> {
    let parts: Vec<_> = path
        .components()
        .filter(|part| *part != Component::CurDir)
        .map(|part| match part {
            Component::Normal(name) => Some(name),
            _ => None,
        })
        .collect::<Option<_>>()?;
    match parts.as_slice() {
        [usr, src, _, library, ..] if *usr == "usr" && *src == "src" && *library == "library" => {
            Some(parts[3..].iter().collect())
        }
        _ => None,
    }
}

/// Builds the standard library with Cargo's `-Z build-std`, and moves it to the place where rustc looks for it.
fn build(
    folder: &Path,
    target: &Target,
    system: Option<&Path>,
    sources: &Path,
    libraries: &Path,
) -> Result<()> {
    eprintln!("building Rust's standard library for {}", target.triple);
    let work = tempfile::Builder::new().prefix(".build-").tempdir_in(folder)?;
    let at = |path: &str| work.path().join(path);
    fs::create_dir(at("src"))?;
    fs::write(at("src/lib.rs"), "")?;
    // The workspace that the folder lies in is not this package's.
    let manifest = "[package]\nname = \"sysroot\"\nedition = \"2024\"\n\n[workspace]\n\n\
                    [profile.release]\npanic = \"unwind\"\n";
    fs::write(at("Cargo.toml"), manifest)?;
    let mut command = Command::new(env!("CARGO"));
    command
        .args(["build", "--release", "--quiet", "--target", target.triple])
        .arg("-Zbuild-std=std,panic_abort,panic_unwind,proc_macro,test")
        .current_dir(work.path())
        .env("CARGO_TARGET_DIR", at("target"))
        .env("CARGO_ENCODED_RUSTFLAGS", super::rustflags(target, system).join("\x1f"))
        // `-Z` without a nightly toolchain, sources in another place than rustup's, and other names than those of crates that
        // programs depend on in the same version.
        .env("RUSTC_BOOTSTRAP", "1")
        .env("__CARGO_TESTS_ONLY_SRC_ROOT", sources)
        .env("__CARGO_DEFAULT_LIB_METADATA", "xtask-cross");
    for (name, value) in super::environment(target, system) {
        command.env(name, value);
    }
    venv::run(&mut command)?;

    let built = at("target").join(target.triple).join("release/deps");
    let fresh = at("lib");
    fs::create_dir(&fresh)?;
    for file in fs::read_dir(&built)? {
        let path = file?.path();
        let kept = path.extension().is_some_and(|kind| kind == "rlib" || kind == "rmeta");
        if let (true, Some(name)) = (kept, path.file_name()) {
            fs::copy(&path, fresh.join(name))?;
        }
    }
    ensure!(has_library(&fresh), "cargo built no libstd in {}", built.display());
    (target.extras)(&Place { target, sources, libraries: &fresh })?;
    fs::create_dir_all(libraries.parent().context("a folder without a parent")?)?;
    fs::rename(fresh, libraries)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn the_error_names_each_package_once() {
        let tool = |program, package| Tool { program, package };
        let missing = [tool("x-gcc", "gcc-x"), tool("x-ar", "gcc-x"), tool("qemu-x", "qemu-user")];
        assert_eq!(
            what_to_install(&missing),
            "cannot find x-gcc, x-ar, qemu-x; on Debian, run: apt-get install gcc-x qemu-user"
        );
        assert!(check(&[tool("sh", "dash")]).is_ok());
        assert!(check(&[tool("no-such-program", "nothing")]).is_err());
    }

    #[test]
    fn links_stay_in_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        fs::create_dir_all(at("usr/lib")).unwrap();
        fs::create_dir(at("lib")).unwrap();
        fs::write(at("lib/libc.so.6"), "content").unwrap();
        symlink("/lib/libc.so.6", at("usr/lib/libc.so")).unwrap();
        symlink("libc.so.6", at("lib/libc.so")).unwrap();
        make_links_relative(folder.path(), folder.path()).unwrap();
        assert_eq!(fs::read_link(at("usr/lib/libc.so")).unwrap(), Path::new("../../lib/libc.so.6"));
        assert_eq!(fs::read_to_string(at("usr/lib/libc.so")).unwrap(), "content");
        assert_eq!(fs::read_link(at("lib/libc.so")).unwrap(), Path::new("libc.so.6"));
    }

    #[test]
    fn a_package_of_the_very_release_is_chosen() {
        let versions = ["1.95.10+dfsg1-1", "1.96.0-1", "1.95.1+dfsg1-2~bpo13+1"].map(String::from);
        assert_eq!(of_release(&versions, "1.95.1"), Some(&versions[2]));
        assert_eq!(of_release(&versions, "1.96.0"), Some(&versions[1]));
        assert_eq!(of_release(&versions, "1.95.0"), None);
        assert_eq!(of_release(&versions, "1.9"), None);
    }

    #[test]
    fn the_release_is_read_from_the_verbose_version() {
        let text = "rustc 1.95.0 (59807616e 2026-04-14)\nbinary: rustc\nrelease: 1.95.0\n";
        assert_eq!(release(Path::new(text)).unwrap(), "1.95.0");
        assert!(release(Path::new("clang 19")).is_err());
    }

    #[test]
    fn entries_outside_the_library_are_left_out() {
        let inside = |path| in_library(Path::new(path));
        let std = inside("./usr/src/rustc-1.95.0/library/std/src/lib.rs");
        assert_eq!(std, Some("library/std/src/lib.rs".into()));
        assert_eq!(inside("./usr/src/rustc-1.95.0/compiler/a.rs"), None);
        assert_eq!(inside("./usr/src/rustc-1.95.0/library/../../a.rs"), None);
        assert_eq!(inside("/usr/src/rustc-1.95.0/library/a.rs"), None);
    }
}
