//! Links an installed library.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use crate::{Provenance, Result};

const USE_SYSTEM: &str = "XNNPACK_SYS_USE_SYSTEM";
const LIB_DIR: &str = "XNNPACK_SYS_LIB_DIR";

/// Libraries in link order, each with the names that builds of XNNPACK give it.
/// The microkernels are a library of their own in static builds by CMake, part of
/// XNNPACK in all others.
const LIBRARIES: [Library; 4] = [
    Library { names: &["XNNPACK"], required: true },
    Library { names: &["microkernels-prod", "xnnpack-microkernels-prod"], required: false },
    Library { names: &["pthreadpool"], required: true },
    Library { names: &["cpuinfo"], required: true },
];

struct Library {
    names: &'static [&'static str],
    required: bool,
}

/// Links the installed library if the environment asks for it.
pub fn link() -> Result<Option<Provenance>> {
    println!("cargo::rerun-if-env-changed={USE_SYSTEM}");
    println!("cargo::rerun-if-env-changed={LIB_DIR}");
    if !is_on(env::var_os(USE_SYSTEM)) {
        return Ok(None);
    }
    if cfg!(feature = "bindgen") {
        return Err(format!("the feature `bindgen` needs the headers: unset {USE_SYSTEM}").into());
    }
    match env::var_os(LIB_DIR).map(PathBuf::from) {
        Some(folder) => link_folder(&folder)?,
        None => {
            for library in ["XNNPACK", "pthreadpool"] {
                println!("cargo::rustc-link-lib=dylib={library}");
            }
        }
    }
    Ok(Some(Provenance {
        source: "system",
        instruction_sets: Vec::new(),
        left_out: Vec::new(),
        include: None,
    }))
}

/// Whether a variable turns something on.
pub fn is_on(value: Option<OsString>) -> bool {
    value.is_some_and(|value| !value.is_empty() && value != "0")
}

/// Links the libraries in `folder`: static ones if they exist, shared ones otherwise.
fn link_folder(folder: &Path) -> Result<()> {
    let folder = folder
        .canonicalize()
        .map_err(|error| format!("{LIB_DIR}={}: {error}", folder.display()))?;
    let files: Vec<OsString> = fs::read_dir(&folder)?
        .map(|entry| entry.map(|entry| entry.file_name()))
        .collect::<std::io::Result<_>>()?;
    let has = |file: String| files.iter().any(|name| *name == *file);

    println!("cargo::rerun-if-changed={}", folder.display());
    println!("cargo::rustc-link-search=native={}", folder.display());
    for library in &LIBRARIES {
        let found = library.names.iter().find_map(|name| {
            if has(format!("lib{name}.a")) {
                Some(("static", name))
            } else if has(format!("lib{name}.so")) || has(format!("lib{name}.dylib")) {
                Some(("dylib", name))
            } else {
                None
            }
        });
        match found {
            Some((kind, name)) => println!("cargo::rustc-link-lib={kind}={name}"),
            // A shared XNNPACK brings what it needs itself.
            None if !library.required || has("libXNNPACK.so".to_owned()) => {}
            None => {
                let name = library.names.join(" or ");
                return Err(format!("{LIB_DIR}={}: no lib{name} there", folder.display()).into());
            }
        }
    }
    Ok(())
}
