//! Reads bytes as a TFLite or Circle model and its metadata. Every written model must be readable.

#![no_main]

use libfuzzer_sys::fuzz_target;
use xnn_model::metadata::ModelMetadata;
use xnn_model::write::{to_circle, to_tflite};
use xnn_model::{Model, ModelLimits};

fuzz_target!(|bytes: &[u8]| {
    let Ok(model) = Model::from_bytes(bytes.to_vec()) else { return };
    let _ = ModelMetadata::of_model(&model, &ModelLimits::default());
    for written in [to_tflite(&model), to_circle(&model)].into_iter().flatten() {
        Model::from_bytes(written).expect("a written file");
    }
});
