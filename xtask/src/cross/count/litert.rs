//! LiteRT for ARM: Debian's Python, and wheels from PyPI, in a folder that the emulator takes for the system's root.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::apt::{self, Apt};
use crate::cross::targets::Peer;
use crate::venv;

const SCRIPT: &str = include_str!("litert.py");
const REQUIREMENTS: &str = include_str!("requirements.txt");

/// Debian's suite, whose Python the wheels are for.
const SUITE: &str = "bookworm";
const PYTHON: &str = "3.11";
/// Python and the libraries that it and the wheels load.
const PACKAGES: &str = "
python3.11-minimal libpython3.11-minimal libpython3.11-stdlib
libc6 libgcc-s1 libstdc++6 zlib1g libexpat1 libffi8 libssl3 libbz2-1.0 liblzma5 libuuid1 libcrypt1
";

/// LiteRT counts the processors of the machine; the emulator would show it the file of the real one.
const CPUINFO: &str = "\
processor\t: 0
BogoMIPS\t: 100.00
Features\t: fp asimd evtstrm aes pmull sha1 sha2 crc32 cpuid
CPU implementer\t: 0x41
CPU architecture: 8
CPU variant\t: 0x0
CPU part\t: 0xd08
CPU revision\t: 3

";

/// Python with LiteRT.
pub struct LiteRt {
    root: PathBuf,
    script: PathBuf,
}

impl LiteRt {
    /// Fetches what is missing into `folder`.
    pub fn new(folder: &Path, peer: &Peer) -> Result<Self> {
        let folder = std::path::absolute(folder.join(format!("debian-{}", peer.architecture)))?;
        let root = folder.join("root");
        // Written last: it says that the folder is complete.
        let stamp = folder.join("complete");
        let wanted = format!("{SUITE}\n{PACKAGES}{REQUIREMENTS}{CPUINFO}");
        if fs::read_to_string(&stamp).ok().as_deref() != Some(&wanted) {
            if folder.exists() {
                fs::remove_dir_all(&folder)?;
            }
            fs::create_dir_all(&root)?;
            system(&folder, &root, peer)?;
            wheels(&folder, &root, peer)?;
            fs::create_dir_all(root.join("proc"))?;
            fs::write(root.join("proc/cpuinfo"), CPUINFO)?;
            fs::write(&stamp, wanted)?;
        }
        let script = folder.join("litert.py");
        fs::write(&script, SCRIPT)?;
        Ok(Self { root, script })
    }

    /// The version that the report names.
    pub fn version() -> String {
        let line = REQUIREMENTS.lines().find_map(|line| line.strip_prefix("ai-edge-litert=="));
        line.unwrap_or("of any version").to_owned()
    }

    /// The command that runs a model, in an emulator with some options.
    pub fn command(
        &self,
        emulator: &str,
        options: &[String],
        model: &Path,
        runs: usize,
    ) -> Command {
        let mut command = Command::new(emulator);
        command
            .args(options)
            .arg(self.root.join("usr/bin").join(format!("python{PYTHON}")))
            .arg(&self.script)
            .arg(model)
            .arg(runs.to_string())
            .env("QEMU_LD_PREFIX", &self.root)
            .env("PYTHONHOME", self.root.join("usr"))
            .env("PYTHONPATH", self.root.join("wheels"))
            .env("PYTHONDONTWRITEBYTECODE", "1");
        command
    }
}

/// Debian's packages, unpacked.
fn system(folder: &Path, root: &Path, peer: &Peer) -> Result<()> {
    let lines = [format!("deb [arch={}] {{}} {SUITE} main", peer.architecture)];
    let mut apt = Apt::new_for(&folder.join("apt"), &lines, peer.architecture)?;
    apt.options.push("-qq".into());
    let packages = packages(PACKAGES);
    eprintln!("fetching Python {PYTHON} for {}", peer.architecture);
    let files = apt.download(&packages, &folder.join("packages"))?;
    apt::extract(&files, root)
}

/// Names of packages, separated by spaces and lines.
fn packages(list: &str) -> Vec<String> {
    list.split_whitespace().map(str::to_owned).collect()
}

/// PyPI's wheels, unpacked by the machine's pip.
fn wheels(folder: &Path, root: &Path, peer: &Peer) -> Result<()> {
    let requirements = folder.join("requirements.txt");
    fs::write(&requirements, REQUIREMENTS)?;
    let mut options = vec!["--implementation", "cp", "--python-version", PYTHON];
    options.extend(peer.wheels.iter().flat_map(|platform| ["--platform", platform]));
    let requirements = requirements.to_str().context("not valid UTF-8")?;
    options.extend(["--requirement", requirements]);
    venv::unpack(&options, &root.join("wheels")).context("cannot install LiteRT's wheel")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_packages_has_python_and_its_libraries() {
        let packages = packages(PACKAGES);
        for name in [&format!("python{PYTHON}-minimal"), "libc6", "libstdc++6", "zlib1g"] {
            assert!(packages.iter().any(|package| package == name), "{name}");
        }
        let mut unique = packages.clone();
        unique.sort();
        unique.dedup();
        assert_eq!(unique.len(), packages.len());
        assert!(packages.iter().all(|name| name.bytes().all(|byte| byte.is_ascii_graphic())));
    }

    #[test]
    fn the_report_names_the_pinned_version() {
        assert!(LiteRt::version().starts_with(|digit: char| digit.is_ascii_digit()));
    }
}
