//! Every shared model runs or is refused when it is loaded.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
#![allow(clippy::print_stdout, reason = "reports figures")]

use std::collections::BTreeSet;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use xnn_interp::{Entry, InterpOptions, Interpreter};
use xnn_model::{DType, Model};
use xnn_testing::{files_below, shared_dir};

/// Models whose run takes minutes, which are only loaded.
const HEAVY: &[&str] = &["cartoon_gan_int8", "edsr_f32b5_fp32", "edsr_f32b5_full_int8"];

/// Models that a run refuses, with the error: zero inputs, unset string inputs, or missing
/// constants, which cannot be found when the model is loaded.
const REFUSED_AT_RUN: &[(&str, &str)] = &[
    ("simple_floor_mod", "division by zero"),
    ("tflite__testdata__sub", "missing"),
    ("string", "number of strings does not match"),
    ("simple_squeeze", "axis 1 does not exist in rank 0"),
];

/// Models that cannot be loaded: damaged ones, and ones with operators or types without a kernel.
const REFUSED_AT_LOAD: [&str; 28] = [
    "f16_activations_bert1.tflite",
    "f16_activations_vad.tflite",
    "litert__test__testdata__blockwise_quantized.tflite",
    "litert__test__testdata__custom_sinh.bin.tflite",
    "litert__test__testdata__max_unpooling_2d.tflite",
    "litert__test__testdata__simple_add_op.sm8750.tflite",
    "litert__test__testdata__simple_add_op_google_tensor_p25_precompiled.tflite",
    "litert__test__testdata__simple_add_op_qc_v75_precompiled.tflite",
    "litert__test__testdata__simple_model_google_tensor.bin.tflite",
    "litert__test__testdata__simple_model_npu_google_tensor_precompiled.tflite",
    "litert__test__testdata__simple_model_npu_mediatek_mt6989_precompiled.tflite",
    "litert__test__testdata__simple_model_qualcomm.bin.tflite",
    "litert__test__testdata__simple_model_qualcomm_sm8650_precompiled.tflite",
    "mha_int16x8.tflite",
    "test_data__model_invoking_error.tflite",
    "tflite__converter__quantization__lite__testdata__mixed.bin.tflite",
    "tflite__converter__sparsity__testdata__sparse_tensor.bin.tflite",
    "tflite__java__src__testdata__invalid_model.bin.tflite",
    "tflite__python__optimize__test_data__string_input_flex_model.bin.tflite",
    "tflite__testdata__0_subgraphs.bin.tflite",
    "tflite__testdata__add_quantized.bin.tflite",
    "tflite__testdata__add_shared_tensors.bin.tflite",
    "tflite__testdata__multi_add_flex.bin.tflite",
    "tflite__testdata__no_subgraphs.bin.tflite",
    "tflite__testdata__test_model.bin.tflite",
    "tflite__testdata__test_model_broken.bin.tflite",
    "tflite__testdata__with_metadata.bin.tflite",
    "tiny_llama_q4_block32_ekv128.tflite",
];

fn fill_inputs(interpreter: &mut Interpreter, rng: &mut ChaCha8Rng) {
    for position in 0..interpreter.inputs() {
        let Ok(input) = interpreter.input_mut(position) else { continue };
        match input.dtype {
            DType::F32 => {
                let values: &mut [f32] = input.into_slice().unwrap();
                values.iter_mut().for_each(|x| *x = rng.random_range(-1.0..1.0));
            }
            DType::I8 | DType::U8 => rng.fill(input.bytes),
            // Indices and flags stay 0, which is always valid.
            _ => {}
        }
    }
}

#[test]
fn every_model_runs_or_is_refused_at_load() {
    let Some(folder) = shared_dir("models") else { return };
    let paths = files_below(&folder, &["tflite", "circle"]);
    let mut ran = 0;
    let mut refused = BTreeSet::new();
    let mut failures = Vec::new();
    let (mut arenas, mut tensors) = (0, 0);
    for path in paths {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let loaded = Model::open(&path).map_err(|error| error.to_string()).and_then(|model| {
            Interpreter::new(&model, Entry::Main, &InterpOptions::default())
                .map_err(|error| error.to_string())
        });
        let mut interpreter = match loaded {
            Ok(interpreter) => interpreter,
            Err(error) => {
                println!("{name}: {error}");
                refused.insert(name);
                continue;
            }
        };
        if HEAVY.iter().any(|heavy| name.contains(heavy)) {
            continue;
        }
        fill_inputs(&mut interpreter, &mut ChaCha8Rng::seed_from_u64(7));
        match interpreter.run() {
            Ok(()) => {
                ran += 1;
                let memory = interpreter.memory();
                assert!(memory.arena_bytes <= memory.tensor_bytes, "{name}: {memory:?}");
                arenas += memory.arena_bytes;
                tensors += memory.tensor_bytes;
            }
            Err(error) => {
                let known = REFUSED_AT_RUN.iter().find(|(known, _)| name.contains(known));
                if !known.is_some_and(|(_, reason)| error.to_string().contains(reason)) {
                    failures.push(format!("{name}: {error}"));
                }
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    println!("{ran} models ran, {} were refused", refused.len());
    println!("arenas of {arenas} bytes for tensors of {tensors}");
    assert!(arenas < tensors / 3, "{arenas} of {tensors}");
    assert_eq!(refused, BTreeSet::from(REFUSED_AT_LOAD.map(str::to_owned)));
}
