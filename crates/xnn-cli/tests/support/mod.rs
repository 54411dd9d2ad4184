//! Runs the program, as a person does.

#![allow(dead_code, reason = "each test file uses some")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// The program, with a clean environment and nothing to read.
///
/// `XNN_TEST_RUNNER` names an emulator for programs of another processor; `cargo xtask cross` sets it.
pub fn program() -> Command {
    let program = env!("CARGO_BIN_EXE_xnn");
    let runner = env::var("XNN_TEST_RUNNER").unwrap_or_default();
    let mut words = runner.split_whitespace();
    let mut command = match words.next() {
        Some(runner) => {
            let mut command = Command::new(runner);
            command.args(words).arg(program);
            command
        }
        None => Command::new(program),
    };
    command.stdin(Stdio::null()).env_remove("RUST_LOG");
    command
}

pub fn xnn<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Output {
    program().args(args).output().expect("the program starts")
}

/// Runs the program, which must succeed, and returns its standard output.
#[track_caller]
pub fn stdout<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> String {
    let output = xnn(args);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {errors}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

/// The one line that it says about bad input.
#[track_caller]
pub fn refusal<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> String {
    let args: Vec<_> = args.into_iter().map(|arg| arg.as_ref().to_owned()).collect();
    let output = xnn(&args);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{args:?}: {}: {errors}", output.status);
    assert_eq!(errors.lines().count(), 1, "{args:?}: {errors}");
    let line = errors.trim_end().strip_prefix("error: ");
    assert!(!errors.contains("panicked"), "{args:?}: {errors}");
    line.unwrap_or_else(|| panic!("{args:?}: {errors}")).to_owned()
}

/// A file of the repository's folder `models/`.
pub fn model(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models").join(name)
}

pub const FP32: &str = "digits_mobilenet_v2_fp32.tflite";
pub const INT8: &str = "digits_mobilenet_v2_int8.tflite";

pub fn text(path: &Path) -> &str {
    path.to_str().expect("paths of tests are UTF-8")
}

/// Converts a model into `folder`.
#[track_caller]
pub fn converted(model: &Path, folder: &Path) -> PathBuf {
    let blob = folder.join(model.file_name().unwrap()).with_extension("xnn");
    stdout(["convert", text(model), "-o", text(&blob)]);
    blob
}

/// Standard output of a command, read as JSON.
pub fn json(args: &[&str]) -> Value {
    serde_json::from_str(&stdout(args)).unwrap()
}
