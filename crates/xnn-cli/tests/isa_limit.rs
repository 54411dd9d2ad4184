//! `XNN_MAX_ISA`, which takes instruction sets away.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use support::{FP32, INT8, model, program, text};
use tempfile::tempdir;
use xnn_testing::{files_below, shared_dir};

/// Runs the program with a value of the variable. It must succeed.
#[track_caller]
fn limited(level: &str, args: &[&str]) -> String {
    let output = program().env("XNN_MAX_ISA", level).args(args).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{level}: {errors}");
    String::from_utf8(output.stdout).unwrap() + &errors
}

/// The words of a line of `xnn --version --verbose`.
fn words(version: &str, line: &str) -> Vec<String> {
    let line = version.lines().find_map(|it| it.strip_prefix(line));
    line.unwrap_or_default().split_whitespace().map(str::to_owned).collect()
}

fn levels() -> Vec<String> {
    words(&limited("", &["--version", "--verbose"]), "limits:")
}

fn features(level: &str) -> Vec<String> {
    words(&limited(level, &["-v", "--version"]), "processor as used:")
}

/// The first output of a model or blob for random inputs.
fn output(level: &str, source: &Path) -> Vec<u8> {
    let folder = tempdir().unwrap();
    limited(level, &["run", text(source), "--output-dir", text(folder.path())]);
    fs::read(folder.path().join("out_0.npy")).unwrap()
}

#[test]
fn each_level_has_features_of_the_processor_and_only_those() {
    let all = features("");
    let (first, last) = (&levels()[0], &levels()[levels().len() - 1]);
    assert_eq!(features(last), all);
    for level in levels() {
        let some = features(&level);
        assert!(some.iter().all(|feature| all.contains(feature)), "{level}: {some:?}");
        let version = limited(&level, &["--version", "--verbose"]);
        assert_eq!(words(&version, "limit:")[0], level);
    }
    for newer in ["avx", "avx2", "avx512f", "avx512vnni", "amx-int8", "dotprod", "i8mm", "sme256"] {
        assert!(!features(first).contains(&newer.to_owned()), "{newer}");
    }
    if cfg!(target_arch = "x86_64") {
        assert!(!features("avx2").contains(&"avx512f".to_owned()));
        assert!(!features("avx512").contains(&"avx512vnni".to_owned()));
        assert!(!features("cascadelake").contains(&"avx512vbmi".to_owned()));
    }
}

#[test]
fn an_unknown_level_is_an_error_that_lists_the_known_ones() {
    for command in [&["explain"][..], &["run"], &["bench"]] {
        let source = model(FP32);
        let args = command.iter().copied().chain([text(&source)]);
        let output = program().env("XNN_MAX_ISA", "AVX3").args(args).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{error}");
        let expected = format!("XNN_MAX_ISA is \"AVX3\"; expected one of {}", levels().join(", "));
        assert!(error.contains(&expected), "{error}");
    }
}

/// 8-bit models whose results must not depend on the level.
fn integer_models() -> Vec<PathBuf> {
    let shared = shared_dir("models").map(|folder| files_below(&folder, &["tflite"]));
    let mut models = vec![model(INT8)];
    models.extend(shared.unwrap_or_default().into_iter().filter(|path| {
        let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
        LEVELLED.contains(&name)
    }));
    models
}

/// Classifiers and others of the shared models, in int8 and uint8, per-tensor and per-channel.
const LEVELLED: [&str; 12] = [
    "mobilenet_v1_0.25_224_quant",
    "mobilenet_v1_1.0_224_quant",
    "mobilenet_v1_1.0_224_int8_perchannel",
    "mobilenet_v2_1.0_224_quant",
    "mobilenet_v2_1.0_224_int8_perchannel",
    "mobilenet_v2_1.0_224_dynamic_range",
    "mobilenet_edgetpu_1.0_224_uint8",
    "kws_dscnn_int8",
    "person_detect_int8",
    "resnet8_cifar_int8",
    "posenet_075_353_481_quant",
    "ssd_mobilenet_v1_coco_quant",
];

#[test]
fn results_of_8_bit_models_are_the_same_at_each_level() {
    for source in integer_models() {
        let expected = output("", &source);
        let has_floats = text(&source).contains("dynamic_range");
        for level in levels() {
            // Sums of floats are rounded otherwise without FMA.
            if !has_floats || features(&level).contains(&"fma".to_owned()) {
                assert!(output(&level, &source) == expected, "{}: {level}", source.display());
            }
        }
    }
}

#[test]
fn weights_packed_at_another_level_are_not_used() {
    let folder = tempdir().unwrap();
    let blob = folder.path().join("packed.xnn");
    let first = levels().remove(0);
    limited(&first, &["convert", "--pack", text(&model(FP32)), "-o", text(&blob)]);
    let run = |level: &str| limited(level, &["-v", "run", text(&blob)]);
    assert!(run(&first).contains("packed weights are used as they are"));
    if features("") != features(&first) {
        assert!(run("").contains("for another processor"), "{}", run(""));
        assert_eq!(output("", &blob), output("", &model(FP32)));
    }

    let cache = tempdir().unwrap();
    for level in levels() {
        limited(&level, &["run", text(&model(FP32)), "--cache-dir", text(cache.path())]);
    }
    let mut processors: Vec<_> = levels().iter().map(|level| features(level)).collect();
    processors.sort();
    processors.dedup();
    assert_eq!(fs::read_dir(cache.path()).unwrap().count(), processors.len());
}
