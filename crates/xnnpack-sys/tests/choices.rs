//! The code that chooses microkernels for x86-64 compiles for compilers without any instruction set, and with some of them.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

#[path = "../build/edits/mod.rs"]
#[allow(dead_code, unreachable_pub, reason = "a part of the build script")]
mod edits;
#[path = "../build/own.rs"]
#[allow(dead_code, unreachable_pub, reason = "a part of the build script")]
mod own;
mod support;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use edits::{Edited, Files, TOPICS};
use support::vendored;

const INCLUDED: [&str; 4] =
    ["pthreadpool/include", "cpuinfo/include", "fxdiv/include", "fp16/include"];
/// The compiler of this machine needs no options for it.
const TARGET: &str = "x86_64-unknown-linux-gnu";
/// The instruction sets that `csrc` tests for, each with those before it.
const SETS: [&str; 7] =
    ["AVXVNNI", "AVX512F", "AVX512SKX", "AVX512VNNI", "AVX512VBMI", "AVX512VNNIGFNI", "OWN_AMX"];
/// Instruction sets that every compiler has, and options for files that need them.
const OLD: [(&str, &[&str]); 3] =
    [("sse41", &["-msse4.1"]), ("avx", &["-mavx"]), ("avx2", &["-mavx2", "-mfma", "-mf16c"])];
/// Where the files are that call functions of `csrc`, and the headers that they include.
const CALLERS: [&str; 6] = [
    "src/configs/",
    "src/operators/",
    "src/operator-run.c",
    "src/runtime.c",
    "src/subgraph/",
    "src/xnnpack/",
];

#[test]
fn choices_compile_without_instruction_sets() {
    for known in 0..=SETS.len() {
        let Some(edited) = edited(known) else { return };
        let mut objects = compiled(known, &edited, &[], own_sources(&[]));
        if known == 0 {
            for (isa, flags) in OLD {
                objects.extend(compiled(known, &edited, flags, own_sources(&[isa])));
            }
            objects.extend(compiled(known, &edited, &[], callers(&edited)));
            everything_is_defined(&objects);
        }
    }
}

/// XNNPACK's sources with the edits of [`CALLERS`]; `None` without sources.
fn edited(known: usize) -> Option<Edited> {
    let copies = folder(known).join("edited");
    let edits = TOPICS.into_iter().flatten().filter(|edit| match edit.files {
        Files::These(files) => files.iter().all(|file| is_caller(file)),
        Files::X86Microkernels => false,
    });
    Some(Edited::write(&vendored("xnnpack")?, copies, &[], edits).unwrap())
}

fn folder(known: usize) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("choices-{known}"))
}

fn is_caller(file: &str) -> bool {
    CALLERS.iter().any(|prefix| file.starts_with(prefix))
}

/// The sources of this crate that need these instruction sets.
fn own_sources(isas: &[&str]) -> Vec<PathBuf> {
    let sources = own::SOURCES.iter().filter(|source| source.isas == isas);
    let files = sources.map(|source| source.file);
    let limit = isas.is_empty().then_some("csrc/cpuinfo/isa_limit.c");
    files.chain(limit).map(|file| Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).collect()
}

/// The changed copies of XNNPACK's sources.
fn callers(edited: &Edited) -> Vec<PathBuf> {
    let files: BTreeSet<&str> = TOPICS
        .into_iter()
        .flatten()
        .filter_map(|edit| match edit.files {
            Files::These(files) => Some(files),
            Files::X86Microkernels => None,
        })
        .flatten()
        .copied()
        .filter(|file| is_caller(file) && file.ends_with(".c"))
        .collect();
    files.into_iter().map(|file| edited.path(file)).collect()
}

/// Compiles files as for a compiler that has the first `known` of the sets.
fn compiled(known: usize, edited: &Edited, flags: &[&str], files: Vec<PathBuf>) -> Vec<PathBuf> {
    let mut build = cc::Build::new();
    build.target(TARGET).host(TARGET).opt_level(0).warnings(false).cargo_metadata(false);
    build.std("gnu11").flags(flags).define("XNN_LOG_LEVEL", "0").out_dir(folder(known));
    build.include(vendored("xnnpack/include").unwrap()).includes(edited.headers());
    build.include(Path::new(env!("CARGO_MANIFEST_DIR")).join("csrc"));
    build.includes(INCLUDED.map(|folder| vendored(folder).unwrap()));
    build.define("XNN_ENABLE_CPUINFO", "1").define("XNN_ENABLE_GEMM_M_SPECIALIZATION", "1");
    for (at, set) in SETS.iter().enumerate() {
        build.define(&format!("XNN_ENABLE_{set}"), if at < known { "1" } else { "0" });
    }
    match build.files(files).try_compile_intermediates() {
        Ok(objects) => objects,
        Err(error) => panic!("with {:?}: {error}", &SETS[..known]),
    }
}

/// Asserts that objects which know no instruction set define every function of this crate that they call.
fn everything_is_defined(objects: &[PathBuf]) {
    let names = |which: &str| -> BTreeSet<String> {
        let nm = Command::new("nm").arg("--format=just-symbols").arg(which).args(objects).output();
        let text = String::from_utf8(nm.unwrap().stdout).unwrap();
        text.lines().filter(|name| name.starts_with("xnnpack_sys_")).map(str::to_owned).collect()
    };
    let (defined, called) = (names("--defined-only"), names("--undefined-only"));
    assert!(!called.is_empty());
    for name in &called {
        assert!(defined.contains(name), "{name} is called, but not defined");
    }
}
