//! Every shared model runs or is refused when it is loaded.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
#![allow(clippy::print_stdout, reason = "reports figures")]

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
    let (mut ran, mut refused) = (0, 0);
    let mut failures = Vec::new();
    let (mut arenas, mut tensors) = (0, 0);
    for path in paths {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let Ok(model) = Model::open(&path) else {
            refused += 1;
            continue;
        };
        let mut interpreter = match Interpreter::new(&model, Entry::Main, &InterpOptions::default())
        {
            Ok(interpreter) => interpreter,
            Err(error) => {
                println!("{name}: {error}");
                refused += 1;
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
    println!("{ran} models ran, {refused} were refused");
    println!("arenas of {arenas} bytes for tensors of {tensors}");
    assert!(arenas < tensors / 3, "{arenas} of {tensors}");
    assert!(ran >= 184 && refused <= 30, "{ran} ran, {refused} refused");
}
