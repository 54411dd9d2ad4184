//! What chooses microkernels compiles for processors that this one is not.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod support;

use std::path::Path;

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
const SETS: [&str; 4] = ["AVX512F", "AVX512VNNI", "AVX512VBMI", "AVX512VNNIGFNI"];

#[test]
fn choices_compile_without_instruction_sets() {
    for known in 0..=SETS.len() {
        let mut build = cc::Build::new();
        build.target(&target()).host(&target()).opt_level(0).warnings(false).cargo_metadata(false);
        build.define("XNN_LOG_LEVEL", "0");
        build.out_dir(Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("choices-{known}")));
        for folder in INCLUDED {
            let Some(folder) = vendored(folder) else { return };
            build.include(folder);
        }
        for (at, set) in SETS.iter().enumerate() {
            build.define(&format!("XNN_ENABLE_{set}"), if at < known { "1" } else { "0" });
        }
        let csrc = Path::new(env!("CARGO_MANIFEST_DIR")).join("csrc");
        let files = ["choices.c", "narrow_gemm.c", "tile_order.c"].map(|file| csrc.join(file));
        if let Err(error) = build.files(files).try_compile_intermediates() {
            panic!("with {:?}: {error}", &SETS[..known]);
        }
    }
}

/// This machine's: the compiler's own.
fn target() -> String {
    format!("{}-unknown-linux-gnu", std::env::consts::ARCH)
}
