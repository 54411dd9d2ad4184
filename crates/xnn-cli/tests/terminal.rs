//! Text that reaches standard output and standard error, and text that must not.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod support;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;
use support::{FP32, INT8, converted, model, program, stdout, text, xnn};
use tempfile::tempdir;
use xnn_model::op::CustomOptions;
use xnn_model::{DType, Dialect, Op};
use xnn_testing::{GraphBuilder, ModelBuilder};

/// Colours a terminal, ends the line, turns the direction of text.
const HOSTILE: &str = "a\u{1b}[31m\nb\r\u{202e}c";

#[track_caller]
fn assert_harmless(shown: &[u8]) -> String {
    let shown = String::from_utf8(shown.to_vec()).unwrap();
    let obeyed = |c: char| c != '\n' && (c.is_control() || c == '\u{202e}');
    assert!(!shown.contains(obeyed), "{shown:?}");
    assert!(!shown.lines().any(|line| line.starts_with('b')), "{shown}");
    shown
}

/// A function of an image, its tensors and subgraph named by whoever wishes terminals ill.
fn hostile(folder: &Path) -> PathBuf {
    let mut graph = GraphBuilder::new(HOSTILE);
    let x = graph.input(HOSTILE, DType::F32, &[1, 1, 1, 3]);
    let y = graph.tensor(HOSTILE, DType::F32, &[1, 1, 1, 3]);
    graph.op(Op::Tanh, &[x], &[y]).output(y);
    let model = ModelBuilder::new(Dialect::Tflite).subgraph(graph);
    let path = folder.join("hostile.tflite");
    fs::write(&path, model.signature(HOSTILE, 0, &[(HOSTILE, x)], &[(HOSTILE, y)]).build_file())
        .unwrap();
    path
}

/// An operator of that name.
fn custom(folder: &Path) -> PathBuf {
    let mut graph = GraphBuilder::new("main");
    let x = graph.input("x", DType::F32, &[4]);
    let y = graph.tensor("y", DType::F32, &[4]);
    let custom = CustomOptions { code: HOSTILE.into(), ..CustomOptions::default() };
    graph.op(Op::Custom(custom), &[x], &[y]).output(y);
    let path = folder.join("custom.tflite");
    fs::write(&path, ModelBuilder::new(Dialect::Tflite).subgraph(graph).build_file()).unwrap();
    path
}

#[test]
fn terminals_obey_no_names() {
    let folder = tempdir().unwrap();
    let path = hostile(folder.path());
    let blob = folder.path().join("hostile.xnn");
    stdout(["convert", text(&path), "-o", text(&blob)]);
    for args in [
        &["run", text(&path)][..],
        &["run", text(&blob)],
        &["verify", text(&path)],
        &["inspect", text(&path)],
        &["inspect", text(&blob)],
        &["bench", text(&blob), "--runs", "1", "--profile"],
        &["explain", text(&path)],
        &["run", text(&path), "--input", "foo=x"],
        &["run", text(&path), "--input", "0=none"],
        &["run", text(&path), "--signature", "none"],
        &["classify", text(&path), "none"],
    ] {
        let output = xnn(args);
        assert_harmless(&output.stdout);
        let errors = assert_harmless(&output.stderr);
        assert!(errors.lines().count() <= 1, "{args:?}: {errors}");
    }
    let custom = custom(folder.path());
    for command in ["explain", "inspect", "run", "verify", "convert"] {
        let output = xnn([command, text(&custom)]);
        assert_harmless(&output.stdout);
        let errors = assert_harmless(&output.stderr);
        assert!(errors.contains("u{1b}") || output.status.success(), "{command}: {errors}");
    }

    let shown = stdout(["inspect", text(&path)]);
    assert!(shown.contains("a\\u{1b}[31m\\nb\\r\\u{202e}c"), "{shown}");

    let labels = folder.path().join("labels.txt");
    fs::write(&labels, "\u{1b}[31mone\ntwo\u{7}\n\u{202e}three\n").unwrap();
    let image = model("samples/03_digit_3.png");
    let shown = stdout(["classify", text(&path), text(&image), "--labels", text(&labels)]);
    assert!(assert_harmless(shown.as_bytes()).contains("\\u{1b}[31mone"), "{shown}");
}

#[test]
fn what_was_found_before_an_error_is_shown() {
    let good = model("samples/03_digit_3.png");
    let path = model(INT8);
    let seen = |args: &[&str]| -> Output {
        let output = xnn([&["classify", text(&path), text(&good), "none.png"], args].concat());
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{errors}");
        assert!(errors.contains("error: none.png: "), "{errors}");
        output
    };
    let shown = String::from_utf8(seen(&[]).stdout).unwrap();
    assert!(shown.starts_with(text(&good)) && shown.lines().count() == 6, "{shown}");
    let report: Value = serde_json::from_slice(&seen(&["--json"]).stdout).unwrap();
    assert_eq!(report["images"][0]["classes"][0]["class"], 3);
}

#[test]
fn a_dash_is_standard_output() {
    let folder = tempdir().unwrap();
    let path = model(FP32);
    let file = fs::read(converted(&path, folder.path())).unwrap();
    let described = folder.path().join("described.tflite");
    stdout(["metadata", "add", text(&path), "-o", text(&described)]);
    let described = fs::read(described).unwrap();
    for (args, expected) in [
        (&["convert", text(&path), "-o", "-"][..], &file),
        (&["convert", text(&path), "-o", "/dev/stdout"], &file),
        (&["metadata", "add", text(&path), "-o", "-"], &described),
    ] {
        let output = program().current_dir(folder.path()).args(args).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.stdout == *expected, "{args:?}: {errors}");
        assert!(errors.starts_with("standard output: ") && errors.lines().count() == 1, "{errors}");
        assert!(!folder.path().join("-").exists());
    }
}

#[test]
fn a_dash_is_standard_input() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("x.bin");
    fs::write(&file, vec![3; 48 * 48 * 3]).unwrap();
    let out = |name: &str| folder.path().join(name);
    let run = |input: &str, out: &Path| {
        let args = ["run", text(&model(INT8)), "--input", input, "--output-dir", text(out)]
            .map(str::to_owned);
        let output = program().args(args).stdin(File::open(&file).unwrap()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        fs::read(out.join("out_0.npy")).unwrap()
    };
    assert_eq!(run("0=-", &out("a")), run(&format!("0={}", text(&file)), &out("b")));
}

#[test]
fn runs_have_json() {
    let folder = tempdir().unwrap();
    let out = text(folder.path());
    let report =
        support::json(&["run", text(&model(FP32)), "--json", "--seed", "7", "--output-dir", out]);
    assert_eq!(report["model"], FP32);
    let (input, output) = (&report["inputs"][0], &report["outputs"][0]);
    assert_eq!((&input["seed"], &input["file"]), (&7.into(), &Value::Null));
    assert_eq!(input["type"], "f32");
    assert_eq!(output["shape"], serde_json::json!([1, 10]));
    assert_eq!(output["file"], text(&folder.path().join("out_0.npy")));
    assert!(output["max"].as_f64().unwrap() <= 1.0);
}

#[test]
fn more_is_said_whatever_the_environment_says() {
    let explain = |level: &str, flag: &[&str]| {
        let args = [&["explain", text(&model(FP32))], flag].concat().join(" ");
        let output = program().env("RUST_LOG", level).args(args.split(' ')).output().unwrap();
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(explain("error", &["-vv"]).contains("debug: "));
    assert!(!explain("debug", &["-v"]).contains("debug: "));
    assert!(explain("debug", &[]).contains("debug: "));
}
