//! All real models load, or are refused for a known reason.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a panic is a failed test")]

use std::path::{Path, PathBuf};

use xnn_model::{Dialect, Model, write};
use xnn_testing::{files_below, shared_dir};

/// Refused files, each with a part of the error message.
const REFUSED: [(&str, &str); 9] = [
    ("litert__test__testdata__blockwise_quantized.tflite", "nothing produces it"),
    (
        "litert__test__testdata__simple_model_google_tensor.bin.tflite",
        "not a TFLite or Circle model",
    ),
    ("litert__test__testdata__simple_model_qualcomm.bin.tflite", "not a TFLite or Circle model"),
    (
        "test_with_metadata.circle",
        "its data has 1728 bytes, but f32 of shape [1, 3, 3, 3] take 108",
    ),
    ("tflite__java__src__testdata__invalid_model.bin.tflite", "not a TFLite or Circle model"),
    ("tflite__testdata__0_subgraphs.bin.tflite", "no subgraphs"),
    ("tflite__testdata__add_shared_tensors.bin.tflite", "is written although it is an input"),
    ("tflite__testdata__no_subgraphs.bin.tflite", "no subgraphs"),
    ("tflite__testdata__test_model_broken.bin.tflite", "not a TFLite or Circle model"),
];

/// Parts of error messages for features that TFLite has and Circle does not.
const TFLITE_ONLY: [&str; 2] = ["Circle does not have", "Circle has no blockwise quantization"];

fn model_files() -> Vec<PathBuf> {
    ["models", "circle"]
        .iter()
        .filter_map(|name| shared_dir(name))
        .flat_map(|dir| files_below(&dir, &["tflite", "circle"]))
        .collect()
}

fn refusal(path: &Path) -> Option<&'static str> {
    let name = path.file_name()?.to_str()?;
    REFUSED.iter().find(|(file, _)| *file == name).map(|&(_, reason)| reason)
}

fn write(model: &Model, dialect: Dialect) -> Result<Vec<u8>, xnn_model::Error> {
    match dialect {
        Dialect::Tflite => write::to_tflite(model),
        Dialect::Circle => write::to_circle(model),
    }
}

#[test]
fn models_load_or_are_refused_for_a_known_reason() {
    for path in model_files() {
        match (Model::open(&path), refusal(&path)) {
            (Ok(_), None) => {}
            (Ok(_), Some(reason)) => panic!("{} loads, expected: {reason}", path.display()),
            (Err(e), None) => panic!("{e}"),
            (Err(e), Some(reason)) => {
                let message = e.to_string();
                assert!(message.contains(reason), "{message}");
                assert!(message.starts_with(path.to_str().unwrap()), "{message}");
                assert_eq!(message.lines().count(), 1, "{message}");
            }
        }
    }
}

#[test]
fn models_round_trip() {
    for path in model_files() {
        let Ok(model) = Model::open(&path) else { continue };
        let file =
            write(&model, model.dialect).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let again = Model::from_bytes(file).unwrap();
        assert!(again == model, "{} changes when written", path.display());
    }
}

#[test]
fn models_round_trip_through_the_other_dialect() {
    for path in model_files() {
        let Ok(model) = Model::open(&path) else { continue };
        let (other, version) = match model.dialect {
            Dialect::Tflite => (Dialect::Circle, 0),
            Dialect::Circle => (Dialect::Tflite, 3),
        };
        let name = path.file_name().unwrap().to_str().unwrap();
        let file = match write(&model, other) {
            Ok(file) => file,
            Err(e) => {
                let reason = e.to_string();
                assert!(TFLITE_ONLY.iter().any(|it| reason.contains(it)), "{name}: {reason}");
                continue;
            }
        };
        let mut there = Model::from_bytes(file).unwrap();
        assert_eq!((there.dialect, there.version), (other, version));
        (there.dialect, there.version) = (model.dialect, model.version);
        assert!(there == model, "{} changes in {other}", path.display());
    }
}
