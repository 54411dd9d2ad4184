//! The contents of a release. A new program or library is a new row of [`PRODUCTS`].

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::{check_size, program_ending};
use crate::metadata::Metadata;
use crate::{capi, tflite_c};

/// Files of one package of the workspace.
pub struct Product {
    pub package: &'static str,
    pub built: &'static [Built],
    /// `(file in the repository, place in the archive)`; `@VERSION@` in it is replaced by the version.
    pub files: &'static [(&'static str, &'static str)],
    /// Installs further files into the archive's folder, for products that another chore makes.
    pub make: Option<fn(root: &Path, stage: &Path) -> Result<()>>,
}

/// A file that cargo builds.
pub struct Built {
    pub kind: Kind,
    /// Name without the platform's beginning and ending.
    pub name: &'static str,
    /// Place in the archive.
    pub place: &'static str,
    /// The largest size in bytes, without symbols.
    pub budget: u64,
}

#[derive(Clone, Copy, PartialEq)]
pub enum Kind {
    Program,
    /// Loaded by programs in other languages.
    Library,
}

const MIB: u64 = 1 << 20;

pub const PRODUCTS: &[Product] = &[
    Product {
        package: "xnn-cli",
        built: &[Built { kind: Kind::Program, name: "xnn", place: "bin", budget: 12 * MIB }],
        files: &[],
        make: None,
    },
    Product {
        package: "xnn-tflite-delegate",
        built: &[Built {
            kind: Kind::Library,
            name: "xnn_delegate",
            place: "lib",
            budget: 8 * MIB,
        }],
        files: &[],
        make: None,
    },
    Product { package: "xnn-capi", built: &[], files: &[], make: Some(capi::install_release) },
    Product {
        package: "xnn-tflite-c",
        built: &[],
        files: &[],
        make: Some(tflite_c::install_release),
    },
];

/// Files of the repository that every release contains.
pub const DOCUMENTS: [&str; 5] =
    ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT", "docs/delegate.md"];

impl Product {
    /// Whether the workspace has the package.
    pub fn exists_in(&self, metadata: &Metadata) -> bool {
        metadata.packages.iter().any(|package| package.name == self.package)
    }

    /// Whether a release for `target` has the product. Static programs cannot load libraries, and other chores build for
    /// `host` alone.
    pub fn runs_on(&self, target: &str, host: &str) -> bool {
        let is_program = self.built.iter().any(|one| one.kind == Kind::Program);
        (is_program || !target.contains("musl")) && (self.make.is_none() || target == host)
    }

    /// Copies the files from the repository and from cargo's folder to `stage`.
    pub fn install(
        &self,
        root: &Path,
        built: &Path,
        stage: &Path,
        target: &str,
        version: &str,
    ) -> Result<()> {
        for Built { kind, name, place, budget } in self.built {
            let name = match kind {
                Kind::Program => format!("{name}{}", program_ending(target)),
                Kind::Library if target.contains("windows") => format!("{name}.dll"),
                Kind::Library if target.contains("apple") => format!("lib{name}.dylib"),
                Kind::Library => format!("lib{name}.so"),
            };
            let file = stage.join(place).join(&name);
            copy(&built.join(&name), &file)?;
            check_size(&file, *budget)?;
        }
        for (from, to) in self.files {
            let (from, to) = (root.join(from), stage.join(to));
            copy(&from, &to)?;
            let text = fs::read_to_string(&to).with_context(|| from.display().to_string())?;
            fs::write(&to, text.replace("@VERSION@", version))?;
        }
        self.make.map_or(Ok(()), |make| make(root, stage))
    }
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to.parent().unwrap_or(to))?;
    fs::copy(from, to).with_context(|| format!("cannot copy {}", from.display()))?;
    Ok(())
}
