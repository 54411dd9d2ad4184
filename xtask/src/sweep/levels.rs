//! Levels of instruction sets, for this project and for LiteRT.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::bench::quietly;
use crate::venv;

/// The library of LiteRT's package that detects the processor.
const DETECTING: &str = "libpywrap_litert_common.so";

/// The newest instruction sets that both sides may use.
#[derive(Debug, PartialEq, Eq)]
pub struct Level {
    /// This project's name of it (`docs/decisions/040-instruction-set-limit.md`).
    pub name: &'static str,
    /// The variable `MASK` of the tool that takes instruction sets from LiteRT; `None`: none are taken away.
    pub mask: Option<&'static str>,
}

/// Everything that the machine has.
pub const NATIVE: Level = Level { name: "native", mask: None };

/// From the oldest on.
pub const LEVELS: [Level; 5] = [
    Level { name: "sse41", mask: Some("sse") },
    Level { name: "avx", mask: Some("avx") },
    Level { name: "avx2", mask: Some("avx2") },
    Level { name: "avx512", mask: Some("skx") },
    NATIVE,
];

impl Level {
    /// The level of this name.
    pub fn parse(name: &str) -> Result<&'static Self> {
        LEVELS.iter().find(|level| level.name == name).with_context(|| {
            let names = LEVELS.each_ref().map(|level| level.name);
            format!("there is no level {name:?}; there are {}", names.join(", "))
        })
    }

    /// Takes instruction sets from this project's program.
    pub fn limit(&self, xnn: &mut Command) {
        match self.mask {
            Some(_) => xnn.env("XNN_MAX_ISA", self.name),
            None => xnn.env_remove("XNN_MAX_ISA"),
        };
    }
}

/// LiteRT without some instruction sets.
#[derive(Debug)]
pub struct Mask {
    /// To be preloaded.
    library: PathBuf,
    /// Folder with a copy of LiteRT's package that the library can answer.
    packages: PathBuf,
}

impl Mask {
    /// Compiles the tool in `folder` if need be, and patches a copy of the package that `python` imports.
    pub fn prepare(folder: &Path, python: &Path, target: &Path) -> Result<Self> {
        fs::create_dir_all(target)?;
        let mut library = folder.join("maskcpuid.so");
        if !library.exists() {
            library = target.join("maskcpuid.so");
            let mut cc = Command::new("cc");
            cc.args(["-O1", "-shared", "-fPIC", "-o"]).arg(&library);
            quietly(cc.arg(folder.join("maskcpuid.c")).arg("-ldl"))
                .with_context(|| format!("cannot make maskcpuid.so of {}", folder.display()))?;
        }
        let packages = target.join("litert");
        let patched = packages.join("ai_edge_litert").join(DETECTING);
        // Written last.
        let stamp = packages.join("patched");
        if !stamp.exists() {
            eprintln!("patching LiteRT's package in {}", packages.display());
            fs::create_dir_all(&packages)?;
            let find = "import importlib.util as u; print(u.find_spec('ai_edge_litert').submodule_search_locations[0])";
            let found = quietly(Command::new(python).args(["-c", find]))?;
            let package = PathBuf::from(String::from_utf8(found)?.trim());
            venv::run(Command::new("cp").arg("-r").arg(&package).arg(&packages))?;
            let mut patch = Command::new(python);
            patch.arg(folder.join("patch_cpuid.py")).arg(package.join(DETECTING)).arg(patched);
            quietly(&mut patch).context("patch_cpuid.py")?;
            fs::write(&stamp, "")?;
        }
        Ok(Self { library, packages })
    }

    /// Takes instruction sets from LiteRT in a Python process.
    pub fn apply(&self, level: &Level, python: &mut Command) {
        if let Some(mask) = level.mask {
            python.env("LD_PRELOAD", &self.library).env("MASK", mask);
            python.env("PYTHONPATH", &self.packages);
        }
    }
}
