//! Metadata of real models. The golden files match TensorFlow Lite Support's reader
//! (`tools/python/metadata_check.py`).

#![allow(clippy::unwrap_used, reason = "a panic is a failed test")]

use std::path::Path;

use xnn_model::metadata::ModelMetadata;
use xnn_model::{Model, ModelLimits, write};
use xnn_testing::{assert_golden, files_below, shared_dir};

#[test]
fn metadata_of_real_models_round_trip() {
    let Some(models) = shared_dir("models") else { return };
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/metadata");
    let files = files_below(&golden, &["json"]);
    assert_eq!(files.len(), 5);
    for file in files {
        let name = file.with_extension("tflite");
        let mut model = Model::open(models.join(name.file_name().unwrap())).unwrap();
        let read = |model: &Model| ModelMetadata::of_model(model, &ModelLimits::default()).unwrap();
        let metadata = read(&model).unwrap();
        assert_golden(&file, &(metadata.to_json() + "\n"));
        assert_eq!(ModelMetadata::from_json(&metadata.to_json()).unwrap(), metadata);

        model.set_metadata(&metadata, model.files.clone());
        let again = Model::from_bytes(write::to_tflite(&model).unwrap()).unwrap();
        let min_parser_version = read(&again).unwrap().min_parser_version;
        assert_eq!(read(&again).unwrap(), ModelMetadata { min_parser_version, ..metadata });
        assert_eq!(again.files, model.files);
    }
}
