//! What chooses microkernels compiles for processors that this one is not.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[path = "../build/own.rs"]
#[allow(dead_code, reason = "build scripts need more of it")]
mod own;
mod support;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use support::vendored;

const INCLUDED: [&str; 6] = [
    "xnnpack/include",
    "xnnpack/src",
    "pthreadpool/include",
    "cpuinfo/include",
    "fxdiv/include",
    "fp16/include",
];
/// The instruction sets that `csrc` asks for, each with those before it.
const SETS: [&str; 5] = ["AVX512F", "AVX512VNNI", "AVX512VBMI", "AVX512VNNIGFNI", "OWN_AMX"];

#[test]
fn choices_compile_without_instruction_sets() {
    for known in 0..=SETS.len() {
        let Some(objects) = compiled(known) else { return };
        if known == 0 {
            everything_is_there(&objects);
        }
    }
}

/// What runs on any processor, compiled as for one that has the first `known` of the sets; `None` without sources.
fn compiled(known: usize) -> Option<Vec<PathBuf>> {
    let mut build = cc::Build::new();
    build.target(&target()).host(&target()).opt_level(0).warnings(false).cargo_metadata(false);
    build.std("c11").define("XNN_LOG_LEVEL", "0");
    build.out_dir(Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("choices-{known}")));
    for folder in INCLUDED {
        build.include(vendored(folder)?);
    }
    for (at, set) in SETS.iter().enumerate() {
        build.define(&format!("XNN_ENABLE_{set}"), if at < known { "1" } else { "0" });
    }
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let everywhere = own::SOURCES.iter().filter(|source| source.isas.is_empty());
    match build.files(everywhere.map(|source| here.join(source.file))).try_compile_intermediates() {
        Ok(objects) => Some(objects),
        Err(error) => panic!("with {:?}: {error}", &SETS[..known]),
    }
}

/// Asserts that objects which know no instruction set have all that they call, and all that XNNPACK's files do.
fn everything_is_there(objects: &[PathBuf]) {
    let names = |which: &str| -> BTreeSet<String> {
        let nm = Command::new("nm").arg("--format=just-symbols").arg(which).args(objects).output();
        let text = String::from_utf8(nm.unwrap().stdout).unwrap();
        text.lines().filter(|name| name.starts_with("xnnpack_sys_")).map(str::to_owned).collect()
    };
    let (defined, undefined) = (names("--defined-only"), names("--undefined-only"));
    assert!(!defined.is_empty());
    let hooks = || own::HOOKS.iter().flat_map(|hook| hook.calls).map(|(_, instead)| *instead);
    // What is undefined among these is XNNPACK's own function by another name.
    for name in hooks().filter(|name| name.starts_with("xnnpack_sys_")) {
        assert!(defined.contains(name) || undefined.contains(name), "{name} is nowhere");
    }
    for name in &undefined {
        let is_xnnpacks = hooks().any(|hooked| hooked == name);
        assert!(defined.contains(name) || is_xnnpacks, "{name} is called and nowhere defined");
    }
}

/// This machine's: the compiler's own.
fn target() -> String {
    format!("{}-unknown-linux-gnu", std::env::consts::ARCH)
}
