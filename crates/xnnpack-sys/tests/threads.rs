//! Tests that the thread pool computes each item once for several callers, also under
//! ThreadSanitizer.

#![allow(clippy::expect_used, reason = "tests")]

use std::path::{Path, PathBuf};
use std::process::Command;

mod support;

/// Number of loops that each caller runs with each of its pools.
const RUNS: &str = "3000";

/// The pool, and a program that tests it.
const POOL: &[&str] = &["csrc/threads/pool.c", "tests/threads/stress.c"];
/// The pool of systems without threads, and a program that tests it.
const SINGLE: &[&str] =
    &["csrc/threads/single.c", "csrc/threads/alone.c", "tests/threads/single.c"];

/// Builds a pool and its program. Returns `None` if the compiler cannot build with `flags`.
fn build(header: &Path, name: &str, files: &[&str], flags: &[&str]) -> Option<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let mut compiler = Command::new("cc");
    compiler
        .args(["-std=gnu11", "-O1", "-g", "-pthread", "-Wall", "-Wextra", "-Werror"])
        .arg("-Wno-unused-parameter")
        .args(flags)
        .arg("-I")
        .arg(header.parent()?)
        .arg("csrc/threads/pthreadpool.c")
        .args(files)
        .arg("-o")
        .arg(&program)
        .current_dir(here);
    compiler.status().is_ok_and(|status| status.success()).then_some(program)
}

fn run(program: &Path) {
    let output = Command::new(program).arg(RUNS).output().expect("the program starts");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {}\n{text}", program.display(), output.status);
}

#[test]
fn each_item_is_computed_once() {
    let Some(header) = support::vendored("pthreadpool/include/pthreadpool.h") else { return };
    run(&build(&header, "stress", POOL, &[]).expect("a C compiler builds the pool"));
}

/// Loops are split into several jobs, as those of more than 2^32 items are.
#[test]
fn there_are_no_data_races() {
    let Some(header) = support::vendored("pthreadpool/include/pthreadpool.h") else { return };
    match build(&header, "stress-tsan", POOL, &["-fsanitize=thread", "-DMAX_ITEMS=50"]) {
        Some(program) => run(&program),
        None => xnn_testing::skip("the C compiler has no ThreadSanitizer"),
    }
}

#[test]
fn systems_without_threads_compute_each_item_once() {
    let Some(header) = support::vendored("pthreadpool/include/pthreadpool.h") else { return };
    run(&build(&header, "single", SINGLE, &[]).expect("a C compiler builds the pool"));
}
