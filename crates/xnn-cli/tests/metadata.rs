//! Metadata of models: written, shown, extracted and used.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use support::{FP32, INT8, model, refusal, stdout, text, xnn};
use tempfile::{TempDir, tempdir};
use xnn_model::metadata::AssociatedFiles;
use xnn_model::{Dialect, Model, write};

/// The demo model with this metadata and these files, as `folder/NAME`.
fn described(folder: &TempDir, name: &str, metadata: &Value, files: &[&str]) -> PathBuf {
    let (original, target) = (model(FP32), folder.path().join(name));
    let json = write_file(folder, "metadata.json", metadata.to_string());
    let mut args = vec!["metadata", "add", text(&original), "--json", text(&json)];
    let files: Vec<PathBuf> = files.iter().map(|file| folder.path().join(file)).collect();
    for file in &files {
        args.extend(["--file", text(file)]);
    }
    stdout(args.into_iter().chain(["-o", text(&target)]));
    target
}

fn write_file(folder: &TempDir, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.path().join(name);
    fs::write(&path, content).unwrap();
    path
}

/// Metadata of a model with one input and one output.
fn metadata(input: Value, output: Value) -> Value {
    json!({ "subgraph_metadata": [{
        "input_tensor_metadata": [input],
        "output_tensor_metadata": [output],
    }] })
}

fn normalization(mean: f64, std: f64) -> Value {
    json!({ "name": "image", "process_units": [{
        "options_type": "NormalizationOptions",
        "options": { "mean": [mean], "std": [std] },
    }] })
}

fn sample() -> PathBuf {
    model("samples/07_digit_7.png")
}

/// Scores and names that `classify` shows for the sample.
fn classes(path: &Path, flags: &[&str]) -> Vec<(String, String)> {
    let image = sample();
    let args = ["classify", text(path), text(&image)];
    let shown = stdout(args.into_iter().chain(flags.iter().copied()));
    let lines = shown.lines().filter(|line| line.starts_with("  "));
    let class = |line: &str| {
        let (score, rest) = line.split_once('%').unwrap();
        let name = rest.trim_start_matches(|c: char| !c.is_alphanumeric());
        (score.trim().to_owned(), name.to_owned())
    };
    lines.map(class).collect()
}

fn names(path: &Path, flags: &[&str]) -> Vec<String> {
    classes(path, flags).into_iter().map(|(_, name)| name).collect()
}

#[test]
fn labels_travel_with_the_model() {
    let folder = tempdir().unwrap();
    let [tflite, circle, blob] =
        ["d.tflite", "d.circle", "d.xnn"].map(|name| folder.path().join(name));
    for original in [model(FP32), model(INT8)] {
        let labels = model("labels.txt");
        let args = ["metadata", "add", text(&original), "--labels", text(&labels)];
        stdout(args.into_iter().chain(["-o", text(&tflite)]));
        stdout(["to-circle", text(&tflite), "-o", text(&circle)]);
        stdout(["convert", text(&circle), "-o", text(&blob)]);
        for path in [&tflite, &circle, &blob] {
            assert_eq!(names(path, &["--top", "1"]), ["seven"], "{}", path.display());
            let out = folder.path().join("out");
            stdout(["metadata", text(path), "--extract", text(&out)]);
            let extracted = fs::read(out.join("labels.txt")).unwrap();
            assert_eq!(extracted, fs::read(&labels).unwrap());
            let shown = stdout(["inspect", text(path)]);
            assert!(shown.contains("TENSOR_AXIS_LABELS"), "{shown}");
            assert!(shown.contains("associated file"), "{shown}");
        }
        // Adding a file's own metadata to it again writes an identical file.
        let again = folder.path().join("again.tflite");
        stdout(["metadata", "add", text(&tflite), "-o", text(&again)]);
        assert_eq!(fs::read(&again).unwrap(), fs::read(&tflite).unwrap());
    }
}

#[test]
fn flags_override_the_metadata() {
    let folder = tempdir().unwrap();
    let labels = json!({ "name": "a.txt", "type": "TENSOR_AXIS_LABELS" });
    let german = json!({ "name": "b.txt", "type": "TENSOR_AXIS_LABELS", "locale": "de" });
    let output = json!({ "associated_files": [labels, german] });
    let lines = |letter: &str| (0..10).map(|n| format!("{letter}{n}\n")).collect::<String>();
    write_file(&folder, "a.txt", lines("a"));
    write_file(&folder, "b.txt", lines("b"));
    let other = write_file(&folder, "c.txt", lines("c"));
    let said = metadata(normalization(127.5, 127.5), output);
    let path = described(&folder, "d.tflite", &said, &["a.txt", "b.txt"]);
    let first = |flags: &[&str]| names(&path, flags)[0].clone();
    assert_eq!([first(&[]), first(&["--locale", "de-AT"])], ["a7", "b7"]);
    assert_eq!(first(&["--labels", text(&other)]), "c7");
    assert_eq!(first(&["--no-metadata"]), "class 7");

    let wrong = metadata(normalization(0.0, 1.0), json!({}));
    let wrong = described(&folder, "wrong.tflite", &wrong, &[]);
    let right = classes(&model(FP32), &[]);
    assert_ne!(classes(&wrong, &[]), right);
    assert_eq!(classes(&wrong, &["--mean", "127.5", "--std", "127.5"]), right);
    assert_eq!(classes(&wrong, &["--no-metadata"]), right);
    assert_eq!(classes(&model(FP32), &["--mean", "0", "--std", "1"]), classes(&wrong, &[]));
    assert_ne!(classes(&wrong, &["--color", "grayscale", "--top", "10"]), right);
}

#[test]
fn scores_are_calibrated_and_cut_off() {
    let folder = tempdir().unwrap();
    let threshold = json!({ "options_type": "ScoreThresholdingOptions",
        "options": { "global_score_threshold": 0.5 } });
    let output = json!({ "process_units": [threshold] });
    let said = metadata(normalization(127.5, 127.5), output);
    let path = described(&folder, "cut.tflite", &said, &[]);
    assert_eq!(names(&path, &[]), ["class 7"]);
    assert_eq!(names(&path, &["--threshold", "0"]).len(), 5);

    // Class 7 gets half of its logistic, class 3 always 0.9, the others 0.25.
    let mut lines = [""; 10];
    (lines[3], lines[7]) = ("1.8,0,0", "1,0,0");
    write_file(&folder, "calibration.csv", lines.join("\n") + "\n");
    let calibration = json!({ "options_type": "ScoreCalibrationOptions",
        "options": { "score_transformation": "LOG", "default_score": 0.25 } });
    let file = json!({ "name": "calibration.csv", "type": "TENSOR_AXIS_SCORE_CALIBRATION" });
    let output = json!({ "process_units": [calibration], "associated_files": [file] });
    let said = metadata(normalization(127.5, 127.5), output);
    let path = described(&folder, "calibrated.tflite", &said, &["calibration.csv"]);
    let found = classes(&path, &["--top", "3"]);
    let found: Vec<(&str, &str)> = found.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    assert_eq!(found, [("90.00", "class 3"), ("50.00", "class 7"), ("25.00", "class 0")]);
}

#[test]
fn json_comes_out_as_it_goes_in() {
    let folder = tempdir().unwrap();
    let mut said = metadata(normalization(127.5, 0.1), json!({ "name": "probability" }));
    let path = described(&folder, "d.tflite", &said, &[]);
    let shown: Value = serde_json::from_str(&stdout(["metadata", text(&path), "--json"])).unwrap();
    said["min_parser_version"] = "1.0.0".into();
    assert_eq!(shown, said);
    let inspected = stdout(["inspect", text(&path), "--json"]);
    let inspected: Value = serde_json::from_str(&inspected).unwrap();
    assert_eq!(inspected["described"]["metadata"], said);
}

#[test]
fn metadata_that_does_not_fit_is_not_written() {
    let folder = tempdir().unwrap();
    let original = model(FP32);
    let target = folder.path().join("out.tflite");
    let add = |json: &str, flags: &[&str]| {
        let json = write_file(&folder, "m.json", json);
        let args = ["metadata", "add", text(&original), "--json", text(&json)];
        let line =
            refusal(args.into_iter().chain(flags.iter().copied()).chain(["-o", text(&target)]));
        assert!(!target.exists());
        line
    };
    let one = metadata(json!({}), json!({})).to_string();
    let short = write_file(&folder, "short.txt", "a\nb\n");
    let two_inputs = json!({ "subgraph_metadata": [{ "input_tensor_metadata": [{}, {}] }] });
    let unpacked = json!({ "associated_files": [{ "name": "gone.txt" }] });
    for (json, flags, expected) in [
        ("{", &[][..], "m.json: EOF"),
        (r#"{"nmae": ""}"#, &[], "unknown field `nmae`"),
        (&one, &["--labels", text(&short)], "\"short.txt\" has 2 labels, which match no dimension"),
        (&two_inputs.to_string(), &[], "describes 2 inputs of subgraph 0, which has 1"),
        (&unpacked.to_string(), &[], "refers to the file \"gone.txt\", which the model"),
        (&metadata(normalization(0.0, 0.0), json!({})).to_string(), &[], "input 0 (\"image\")"),
        ("{}", &["--labels", text(&short)], "describes no output"),
        (&one, &["--labels", "no/such/file"], "no/such/file"),
    ] {
        let line = add(json, flags);
        assert!(line.contains(expected), "{json}: {line}");
    }
}

#[test]
fn damaged_metadata_keeps_nothing_from_running() {
    let folder = tempdir().unwrap();
    let mut damaged = Model::open(model(FP32)).unwrap();
    let data = vec![0, 0, 0, 0, b'M', b'0', b'0', b'2', 0, 0, 0, 0];
    damaged.metadata =
        vec![xnn_model::Metadata { name: "TFLITE_METADATA".into(), data: data.into() }];
    let path = write_file(&folder, "damaged.tflite", write::to_tflite(&damaged).unwrap());
    let line = refusal(["metadata", text(&path)]);
    assert!(line.starts_with(text(&path)) && line.contains("M002"), "{line}");
    let image = sample();
    for args in [vec!["inspect", text(&path)], vec!["classify", text(&path), text(&image)]] {
        let output = xnn(&args);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{args:?}: {said}");
        assert!(said.starts_with("warning: ") && said.contains("M002"), "{args:?}: {said}");
    }
    stdout(["run", text(&path)]);
    let line = refusal(["metadata", text(&model(FP32))]);
    assert!(line.ends_with("it has no metadata; add some with xnn metadata add"), "{line}");
}

#[test]
fn nothing_is_written_outside_of_the_folder() {
    let folder = tempdir().unwrap();
    let out = folder.path().join("out");
    for name in ["../evil.txt", "/tmp/evil.txt", "a/b.txt", "..", "c:evil"] {
        let mut hostile = Model::open(model(FP32)).unwrap();
        let files = [("good.txt", &b"good"[..]), (name, b"evil")];
        let files = AssociatedFiles::pack(files).unwrap();
        hostile.set_metadata(&Default::default(), files);
        assert_eq!(hostile.dialect, Dialect::Tflite);
        let path = write_file(&folder, "hostile.tflite", write::to_tflite(&hostile).unwrap());
        let line = refusal(["metadata", text(&path), "--extract", text(&out)]);
        assert!(line.contains(&format!("{name:?}: expected a file name")), "{line}");
        assert!(!out.exists() && !folder.path().join("evil.txt").exists());
        stdout(["metadata", text(&path)]);
    }
}

#[test]
fn signatures_name_inputs_and_outputs() {
    let path = model(FP32);
    let shown: Value = serde_json::from_str(&stdout(["inspect", text(&path), "--json"])).unwrap();
    let signature = &shown["signatures"][0];
    let (key, input) =
        (signature["key"].as_str().unwrap(), signature["inputs"][0].as_str().unwrap());
    let output = signature["outputs"][0].as_str().unwrap();
    let folder = tempdir().unwrap();
    let elements = write_file(&folder, "x.bin", vec![0; 48 * 48 * 3 * 4]);
    let given = format!("{input}={}", elements.display());
    let table = stdout(["run", text(&path), "--signature", key, "--input", &given]);
    assert!(table.contains(&format!("input 0 ({input})")), "{table}");
    assert!(table.contains(&format!("output 0 ({output})")), "{table}");

    let line = refusal(["run", text(&path), "--signature", "nobody"]);
    assert!(line.contains(&format!("no signature \"nobody\"; the model has {key:?}")), "{line}");
    let given = format!("nothing={}", elements.display());
    let line = refusal(["run", text(&path), "--signature", key, "--input", &given]);
    assert!(line.contains(&format!("the inputs are: 0 ({input})")), "{line}");
    let blob = support::converted(&path, folder.path());
    let line = refusal(["run", text(&blob), "--signature", key]);
    assert!(line.contains("a blob has no signatures"), "{line}");
}

#[test]
fn a_real_classifier_needs_no_flags() {
    let (Some(models), Some(images)) =
        (xnn_testing::shared_dir("models"), xnn_testing::shared_dir("images"))
    else {
        return;
    };
    let path = models.join("mobilenet_v2_1.0_224_int8_ptq.tflite");
    let image = images.join("grace_hopper.bmp");
    let shown = stdout(["classify", text(&path), text(&image), "--top", "1"]);
    assert!(shown.trim_end().ends_with(" military uniform"), "{shown}");
}
