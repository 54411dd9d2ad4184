//! Locates the sources: in a folder that the environment names, in the slot of a workspace, or in the package of this crate.

use std::env;
use std::path::{Path, PathBuf};

use crate::Result;

/// Folders of the five source trees.
pub struct Sources {
    pub xnnpack: PathBuf,
    pub pthreadpool: PathBuf,
    pub cpuinfo: PathBuf,
    pub fxdiv: PathBuf,
    pub fp16: PathBuf,
    /// `vendored`, or `checkout` where the environment names XNNPACK's folder.
    pub kind: &'static str,
}

struct Component {
    /// Folder in the slot.
    name: &'static str,
    /// The folder's name in upstream's own checkouts.
    upstream: &'static str,
    /// Variable that names another folder; the same as in upstream's CMake files.
    variable: &'static str,
    /// A file by which the folder is recognized.
    marker: &'static str,
}

const XNNPACK: Component = Component {
    name: "xnnpack",
    upstream: "XNNPACK",
    variable: "XNNPACK_SOURCE_DIR",
    marker: "include/xnnpack.h",
};
const PTHREADPOOL: Component = Component {
    name: "pthreadpool",
    upstream: "pthreadpool",
    variable: "PTHREADPOOL_SOURCE_DIR",
    marker: "include/pthreadpool.h",
};
const CPUINFO: Component = Component {
    name: "cpuinfo",
    upstream: "cpuinfo",
    variable: "CPUINFO_SOURCE_DIR",
    marker: "include/cpuinfo.h",
};
const FXDIV: Component = Component {
    name: "fxdiv",
    upstream: "FXdiv",
    variable: "FXDIV_SOURCE_DIR",
    marker: "include/fxdiv.h",
};
const FP16: Component = Component {
    name: "fp16",
    upstream: "FP16",
    variable: "FP16_SOURCE_DIR",
    marker: "include/fp16.h",
};

pub fn sources() -> Result<Sources> {
    for component in [XNNPACK, PTHREADPOOL, CPUINFO, FXDIV, FP16] {
        println!("cargo::rerun-if-env-changed={}", component.variable);
    }
    let checkout = env::var_os(XNNPACK.variable).map(PathBuf::from);
    let beside = checkout.as_deref().and_then(Path::parent);
    Ok(Sources {
        xnnpack: find(&XNNPACK, None)?,
        pthreadpool: find(&PTHREADPOOL, beside)?,
        cpuinfo: find(&CPUINFO, beside)?,
        fxdiv: find(&FXDIV, beside)?,
        fp16: find(&FP16, beside)?,
        kind: if checkout.is_some() { "checkout" } else { "vendored" },
    })
}

impl Sources {
    /// Has cargo build again when the sources change. A slot is filled as a whole, so that one file of each tree is watched; a
    /// checkout may be edited.
    pub fn watch(&self) {
        let rest = [
            (&PTHREADPOOL, &self.pthreadpool),
            (&CPUINFO, &self.cpuinfo),
            (&FXDIV, &self.fxdiv),
            (&FP16, &self.fp16),
        ];
        for (component, folder) in rest {
            watch(&folder.join(component.marker));
        }
        if self.kind == "checkout" {
            for part in ["CMakeLists.txt", "cmake", "include", "src"] {
                watch(&self.xnnpack.join(part));
            }
        } else {
            watch(&self.xnnpack.join(XNNPACK.marker));
        }
    }
}

fn watch(path: &Path) {
    println!("cargo::rerun-if-changed={}", path.display());
}

/// Returns the folder that the component's variable names, or one beside the XNNPACK checkout, or the one in the slot.
fn find(component: &Component, beside: Option<&Path>) -> Result<PathBuf> {
    if let Some(folder) = env::var_os(component.variable).map(PathBuf::from) {
        return if folder.join(component.marker).is_file() {
            Ok(folder.canonicalize()?)
        } else {
            Err(format!("{}={} has no {}", component.variable, folder.display(), component.marker)
                .into())
        };
    }
    let slot = slot()?;
    let beside = beside
        .into_iter()
        .flat_map(|parent| [parent.join(component.upstream), parent.join(component.name)]);
    beside
        .chain([slot.join(component.name)])
        .find(|folder| folder.join(component.marker).is_file())
        .ok_or_else(|| missing(component, &slot).into())
}

/// Folder of a published package that holds the sources, written by `cargo xtask package`.
const PACKAGED: &str = "vendor";

/// Returns the folder with the five source trees: the slot in a workspace, [`PACKAGED`] in a package.
fn slot() -> Result<PathBuf> {
    let manifest = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let slot = manifest.join("../../vendor/XNNPACK");
    // Only a workspace of this project has the file.
    if !slot.join("PIN").is_file() {
        return Ok(manifest.join(PACKAGED));
    }
    // Without `..` in it the path can be read in messages and debug information.
    Ok(slot.canonicalize().unwrap_or(slot))
}

/// One line, since cargo shows it between other output. In a git dependency the workspace is in cargo's folder.
fn missing(component: &Component, slot: &Path) -> String {
    let Component { name, .. } = component;
    let slot = slot.display();
    format!(
        "the sources of {name} are not in {slot}/{name}: run `cargo xtask vendor` in a checkout of xnn-delegate, and for a build \
         outside of it set {}=<checkout>/vendor/XNNPACK/xnnpack (other sources: README.md of xnnpack-sys)",
        XNNPACK.variable
    )
}
