//! Finds or compiles XNNPACK and tells cargo how to link it. Uses no network.

#![allow(clippy::print_stdout, reason = "a build script talks to cargo on its standard output")]

#[cfg(feature = "bindgen")]
mod bindings;
mod cmake;
mod compile;
mod edits;
mod identifier;
mod isa;
mod locate;
mod own;
mod platform;
mod system;

use std::env;
use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

/// The cfg that is set if `csrc` is part of the library.
const OWN: &str = "xnnpack_sys_own";

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Origin of the library, for `DEP_XNNPACK_*` and for `xnnpack_sys::build`.
struct Provenance {
    /// `vendored`, `checkout`, `system`, or `none` if nothing is linked.
    source: &'static str,
    /// Names of the instruction sets that have their own microkernels; empty if unknown.
    instruction_sets: Vec<&'static str>,
    /// Names of the instruction sets that the C compiler cannot build.
    left_out: Vec<&'static str>,
    /// Folder of `xnnpack.h`, if there is one.
    include: Option<PathBuf>,
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // `cargo::error` shows the message without the script's whole output around it.
            for line in error.to_string().lines() {
                println!("cargo::error={line}");
            }
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    println!("cargo::rerun-if-changed=build");
    println!("cargo::rerun-if-changed=csrc");
    println!("cargo::rerun-if-env-changed=DOCS_RS");
    println!("cargo::rustc-check-cfg=cfg({OWN})");
    let provenance = if env::var_os("DOCS_RS").is_some() {
        nothing()
    } else if let Some(provenance) = system::link()? {
        provenance
    } else {
        from_sources()?
    };
    report(&provenance)
}

/// Documentation needs the declarations only.
fn nothing() -> Provenance {
    Provenance { source: "none", instruction_sets: Vec::new(), left_out: Vec::new(), include: None }
}

fn from_sources() -> Result<Provenance> {
    let sources = locate::sources()?;
    sources.watch();
    let include = sources.xnnpack.join("include");
    #[cfg(feature = "bindgen")]
    std::fs::write(
        out_dir()?.join("bindings.rs"),
        bindings::generate(&include, &sources.pthreadpool.join("include"))?,
    )?;
    let selection = compile::library(&sources)?;
    println!("cargo::rustc-cfg={OWN}");
    Ok(Provenance {
        source: sources.kind,
        instruction_sets: selection.enabled.iter().map(|isa| isa.name).collect(),
        left_out: selection.left_out.iter().map(|isa| isa.name).collect(),
        include: Some(include),
    })
}

fn report(provenance: &Provenance) -> Result<()> {
    // The version is `<our own>+<commit of XNNPACK>`.
    let version = env::var("CARGO_PKG_VERSION")?;
    let revision = match (provenance.source, version.split_once('+')) {
        ("vendored", Some((_, revision))) => revision,
        _ => "unknown",
    };
    let facts = [
        ("REVISION", revision.to_owned()),
        ("SOURCE", provenance.source.to_owned()),
        ("INSTRUCTION_SETS", provenance.instruction_sets.join(" ")),
        ("LEFT_OUT", provenance.left_out.join(" ")),
    ];
    for (name, value) in facts {
        println!("cargo::metadata={name}={value}");
        println!("cargo::rustc-env=XNNPACK_{name}={value}");
    }
    if let Some(include) = &provenance.include {
        println!("cargo::metadata=INCLUDE={}", include.display());
    }
    Ok(())
}

fn out_dir() -> Result<PathBuf> {
    Ok(PathBuf::from(env::var("OUT_DIR")?))
}
