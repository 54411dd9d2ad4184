//! ExecuTorch programs: shown, taken apart, and run.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;
use support::{refusal, stdout, text};
use tempfile::tempdir;
use xnn_testing::{files_below, shared_dir};

/// The folders of cases by this version whose program is one delegate and nothing else, with inputs
/// of one shape.
fn single_delegates(version: &str) -> Vec<PathBuf> {
    let Some(interop) = shared_dir("interop") else { return Vec::new() };
    let programs = files_below(&interop.join(version), &["pte"]);
    let folders = programs.iter().map(|file| file.parent().unwrap().to_owned());
    let folders: Vec<PathBuf> = folders
        .filter(|folder| {
            let info = info(folder);
            let count = |key: &str| info[key].as_array().map_or(0, Vec::len);
            info["n_delegates"] == 1 && count("non_delegated") == 0 && count("sets") <= 1
        })
        .collect();
    assert!(folders.len() > 10, "{version}");
    folders
}

fn info(folder: &Path) -> Json {
    serde_json::from_slice(&fs::read(folder.join("info.json")).unwrap()).unwrap()
}

/// Outputs of a blob on the case's inputs, as `.npy` files.
fn run(blob: &Path, folder: &Path, out: &Path) -> Vec<Vec<u8>> {
    let call = &info(folder)["delegate_calls"][0];
    let args = call["args"].as_array().unwrap().iter().enumerate();
    let inputs: Vec<String> = args
        .map(|(index, file)| {
            format!("--input={index}={}", folder.join(file.as_str().unwrap()).display())
        })
        .collect();
    let fixed = ["run", text(blob), "--output-dir", text(out)];
    stdout(fixed.into_iter().chain(inputs.iter().map(String::as_str)));
    let outputs = 0..call["outs"].as_array().unwrap().len();
    outputs.map(|index| fs::read(out.join(format!("out_{index}.npy"))).unwrap()).collect()
}

#[track_caller]
fn extract(program: &Path, out: &Path) -> PathBuf {
    stdout(["extract", text(program), "-o", text(out)]);
    out.join("forward_delegate0.xnn")
}

/// The elements of a `.npy` file of version 1.
fn elements(npy: &[u8]) -> &[u8] {
    let length = u16::from_le_bytes([npy[8], npy[9]]);
    &npy[10 + usize::from(length)..]
}

#[test]
fn extracted_delegates_compute_what_executorch_computes() {
    for folder in single_delegates("et_0.5.0") {
        let out = tempdir().unwrap();
        let blob = extract(&folder.join("model.pte"), out.path());
        let outputs = run(&blob, &folder, out.path());
        let names = info(&folder)["delegate_calls"][0]["outs"].clone();
        for (output, name) in outputs.iter().zip(names.as_array().unwrap()) {
            let expected = fs::read(folder.join(name.as_str().unwrap())).unwrap();
            let (output, expected) = (elements(output), elements(&expected));
            // They were computed on x86-64; how far other processors may be from them `xnn-runtime/tests/interop.rs` knows.
            let is_same = output == expected
                || (cfg!(not(target_arch = "x86_64")) && output.len() == expected.len());
            assert!(is_same, "{}: {name}", folder.display());
        }
    }
}

#[test]
fn extracted_delegates_have_their_named_data() {
    for folder in single_delegates("et_1.5.1") {
        let inline = folder.join("payload_inline.xnn");
        // NumPy has no bf16.
        if !inline.exists() || folder.ends_with("linear_bf16") {
            continue;
        }
        let out = tempdir().unwrap();
        let blob = extract(&folder.join("model.pte"), out.path());
        let outputs = run(&blob, &folder, out.path());
        let expected = run(&inline, &folder, &out.path().join("inline"));
        assert!(outputs == expected, "{}", folder.display());
    }
}

#[test]
fn inspect_shows_methods_delegates_and_operators_outside() {
    let Some(interop) = shared_dir("interop") else { return };
    let program = interop.join("et_1.5.1/two_delegates_fp32/model.pte");
    let report: Json =
        serde_json::from_str(&stdout(["inspect", text(&program), "--json"])).unwrap();
    let method = &report["methods"][0];
    assert_eq!(method["name"], "forward");
    assert_eq!(method["inputs"][0]["shape"], serde_json::json!([2, 4]));
    assert_eq!(method["operators_outside"][0]["name"], "aten::cumsum.out");
    assert_eq!(method["operators_outside"][0]["calls"], 1);
    let [first, second] = method["delegates"].as_array().unwrap().as_slice() else {
        panic!("{method}")
    };
    for delegate in [first, second] {
        assert_eq!(delegate["backend"], "XnnpackBackend");
        assert_eq!(delegate["payload_bytes"], 720);
        assert_eq!(delegate["graph"]["nodes"], 1);
        assert_eq!(delegate["graph"]["named"].as_array().unwrap().len(), 2);
    }
    let shown = stdout(["inspect", text(&program)]);
    for expected in ["method forward", "XnnpackBackend", "aten::cumsum.out 1", "2, named: 2 (80 B)"]
    {
        assert!(shown.contains(expected), "{shown}");
    }
}

#[test]
fn extract_writes_one_file_for_each_delegate_and_nothing_else() {
    let Some(interop) = shared_dir("interop") else { return };
    let program = interop.join("et_0.5.0/two_delegates_fp32/model.pte");
    let out = tempdir().unwrap();
    let folder = out.path().join("new/folder");
    let shown = stdout(["extract", text(&program), "--output", text(&folder)]);
    let mut names: Vec<String> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["forward_delegate0.xnn", "forward_delegate1.xnn"]);
    assert_eq!(shown.lines().count(), 2);
    let blob = folder.join("forward_delegate1.xnn");
    let report: Json = serde_json::from_str(&stdout(["inspect", text(&blob), "--json"])).unwrap();
    assert_eq!(report["origin"]["source"], "model.pte");
    assert_eq!(report["origin"]["signature"], "forward");
}

#[test]
fn what_cannot_be_extracted_is_said_in_one_line() {
    let out = tempdir().unwrap();
    let folder = out.path().join("parts");
    let args = |file| ["extract", file, "-o", text(&folder)];
    let model = support::model(support::INT8);
    assert!(refusal(args(text(&model))).contains("found \"TFL3\""));
    assert!(refusal(args("no/such.pte")).starts_with("no/such.pte: "));
    let Some(interop) = shared_dir("interop") else { return };
    let program = fs::read(interop.join("et_1.5.1/linear_fp32/model.pte")).unwrap();
    let cut = out.path().join("cut.pte");
    for end in [7, 64, 1000, program.len() - 64] {
        fs::write(&cut, &program[..end]).unwrap();
        assert!(refusal(args(text(&cut))).starts_with(text(&cut)), "{end}");
    }
    assert!(!folder.exists());
}
