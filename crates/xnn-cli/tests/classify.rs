//! Models and arguments that `xnn classify` accepts, and those that it rejects.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use support::{FP32, INT8, json, model, refusal, stdout, text, xnn};
use tempfile::tempdir;
use xnn_model::{DType, Dialect, Op};
use xnn_testing::{GraphBuilder, ModelBuilder};

/// Functions of an image of these dimensions, one for each name.
fn functions(folder: &Path, dims: &[usize], names: &[&str]) -> PathBuf {
    let mut graph = GraphBuilder::new("main");
    let x = graph.input("x", DType::F32, dims);
    for name in names {
        let y = graph.tensor(name, DType::F32, dims);
        graph.op(Op::Tanh, &[x], &[y]).output(y);
    }
    let path = folder.join("model.tflite");
    fs::write(&path, ModelBuilder::new(Dialect::Tflite).subgraph(graph).build_file()).unwrap();
    path
}

#[test]
fn models_that_are_no_classifiers_are_refused() {
    let folder = tempdir().unwrap();
    let image = model("samples/03_digit_3.png");
    let areas = functions(folder.path(), &[1, 2, 2, 3], &["areas"]);
    let line = refusal(["classify", text(&areas), text(&image)]);
    assert!(line.starts_with(text(&areas)) && line.contains("0 (areas) of 1x2x2x3"), "{line}");
    assert!(line.contains("segment"), "{line}");
    let two = functions(folder.path(), &[1, 1, 1, 3], &["one", "two"]);
    let line = refusal(["classify", text(&two), text(&image)]);
    assert!(line.contains("0 (one) of 1x1x1x3, 1 (two) of 1x1x1x3"), "{line}");
    // Ones around the scores are no other dimension.
    let one = functions(folder.path(), &[1, 1, 1, 3], &["scores"]);
    assert!(stdout(["classify", text(&one), text(&image)]).contains("class 0"));
}

#[test]
fn marks_before_labels_are_no_part_of_them() {
    let folder = tempdir().unwrap();
    let labels = folder.path().join("labels.txt");
    let names = fs::read_to_string(model("labels.txt")).unwrap();
    fs::write(&labels, format!("\u{feff}{}", names.replace('\n', "\r\n"))).unwrap();
    let image = model("samples/00_digit_0.png");
    let model = model(INT8);
    let args = ["classify", text(&model), text(&image), "--labels", text(&labels), "--json"];
    let report = json(&args);
    assert_eq!(report["images"][0]["classes"][0]["name"], names.lines().next().unwrap());
    assert_eq!(report["images"][0]["classes"].as_array().unwrap().len(), 5);

    let described = folder.path().join("described.tflite");
    let add = ["metadata", "add", text(&model), "--labels", text(&labels), "-o", text(&described)];
    stdout(add);
    let report = json(&["classify", text(&described), text(&image), "--json"]);
    assert_eq!(report["images"][0]["classes"][0]["name"], names.lines().next().unwrap());

    fs::write(&labels, b"zero\n\xe9n\n").unwrap();
    let line = refusal(args);
    assert!(line.starts_with(text(&labels)) && line.contains("line 2: not valid UTF-8"), "{line}");
}

#[test]
fn numbers_that_mean_nothing_are_wrong_usage() {
    for args in [
        ["--threshold", "5"],
        ["--threshold", "nan"],
        ["--threshold", "-0.1"],
        ["--mean", "nan"],
        ["--mean", "1,inf"],
        ["--mean", "-1,-inf"],
    ] {
        let output = xnn([&["classify", text(&model(FP32)), "x.png"], &args[..]].concat());
        assert_eq!(output.status.code(), Some(2), "{args:?}");
    }
    let image = model("samples/03_digit_3.png");
    let shown = stdout(["classify", text(&model(FP32)), text(&image), "--threshold", "1"]);
    assert!(shown.lines().count() <= 2, "{shown}");
    let negative = ["--mean", "-1,-2,-3", "--std", "-2,-1,-1"];
    stdout([&["classify", text(&model(FP32)), text(&image)], &negative[..]].concat());
}
