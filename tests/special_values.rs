//! One pixel that is no number, or infinite: outputs have NaN and infinities where those of the reference kernels have
//! them, on XNNPACK in process and from a converted file.
//!
//! Models are shared test data. A few small ones are computed here, all models of floats with `XNN_ALL_MODELS=1`.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "tests")]

use std::path::Path;
use std::{env, fs};

use tempfile::tempdir;
use xnn_delegate::interpreter::{Entry, InterpOptions, Interpreter};
use xnn_delegate::verify::Special;
use xnn_delegate::{ConvertOptions, DType, Model, Runner, Source, convert};
use xnn_testing::{Random, files_below, le_bytes, shared_dir};

/// Small ones, of which each has something that the others have not.
const FEW: &[&str] = &[
    "digits_mobilenet_v2_0.35_48_fp32",
    "mnist_lstm_fp32",
    "mobilenet_v1_0.25_224_fp32",
    "resnet8_cifar_fp32",
    "dw7x7_f32",
    "gru_f16",
    "simplernn_f32",
    "sr_pixelshuffle_f32",
];

/// Models that may differ for a pixel, and why.
const DIFFER: &[(&str, &str)] = &[
    (
        "audio_speech_commands",
        "windows of NaN give the least float, and sums of several of these depend on their order",
    ),
    (
        "tiny_llama_fp16_ekv128",
        "sums stop at the largest float in interpreters, so that an infinite logit is a large one",
    ),
];

/// Folders of single operators, which `tests/operator_suite.rs` draws.
const SINGLE: [&str; 2] = ["small", "accept_then_fail"];

const PIXELS: [Special; 3] = [Special::Nan, Special::Infinity, Special::NegativeInfinity];

/// Kind of an output's element. The largest finite value counts as an infinity, because in places
/// interpreters return it instead of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Number,
    Nan,
    Positive,
    Negative,
}

impl Kind {
    fn of(element: f32) -> Self {
        match element {
            _ if element.is_nan() => Self::Nan,
            _ if element.abs() < f32::MAX => Self::Number,
            _ if element > 0.0 => Self::Positive,
            _ => Self::Negative,
        }
    }

    /// Kinds of a tensor's elements; empty for types other than fp32.
    fn all(dtype: DType, bytes: &[u8]) -> Vec<Self> {
        match dtype {
            DType::F32 => {
                bytes.as_chunks().0.iter().map(|b| Self::of(f32::from_ne_bytes(*b))).collect()
            }
            _ => Vec::new(),
        }
    }
}

#[test]
fn a_pixel_that_is_no_number_is_not_lost() {
    let Some(models) = shared_dir("models") else { return };
    let all = env::var_os("XNN_ALL_MODELS").is_some();
    let (mut failures, mut checked) = (Vec::new(), 0);
    for file in files_below(&models, &["tflite"]) {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        let is_asked_for = if all {
            !file.components().any(|part| SINGLE.iter().any(|name| part.as_os_str() == *name))
        } else {
            FEW.contains(&name.as_str())
        };
        if let Some((_, why)) = DIFFER.iter().find(|(differing, _)| *differing == name) {
            println!("{name} is left out: {why}");
        } else if is_asked_for && let Some(differences) = check(&file) {
            checked += 1;
            println!("{name}: {} differences", differences.len());
            failures.extend(differences.into_iter().map(|what| format!("{name}: {what}")));
        }
    }
    println!("{checked} models of floats");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(all || checked == FEW.len(), "{checked} of {FEW:?} were checked");
}

/// Differences between XNNPACK and the reference kernels; `None` if the model is not one of floats.
fn check(file: &Path) -> Option<Vec<String>> {
    let model = Model::open(file).unwrap();
    if !is_of_floats(&model) {
        return None;
    }
    let mut reference = Interpreter::new(&model, Entry::Main, &InterpOptions::default()).ok()?;
    let folder = tempdir().unwrap();
    let converted = folder.path().join("converted");
    let open = |path: &Path| Runner::open(path).unwrap();
    let mut runners = vec![("in process", open(file))];
    match convert(&model, &Source::default(), &ConvertOptions::default()) {
        Ok(blob) => {
            fs::write(&converted, blob.into_bytes()).unwrap();
            runners.push(("converted", open(&converted)));
        }
        // Nothing goes to XNNPACK, so that there is nothing to convert.
        Err(error) => println!("{}: {error}", file.display()),
    }
    let mut failures = Vec::new();
    for pixel in PIXELS {
        let inputs = inputs(&reference, pixel);
        for (position, elements) in inputs.iter().enumerate() {
            reference.input_mut(position).unwrap().bytes.copy_from_slice(elements);
        }
        reference.reset_variables();
        reference.run().unwrap();
        for (way, runner) in &mut runners {
            for (position, elements) in inputs.iter().enumerate() {
                runner.input_bytes_mut(position).unwrap().copy_from_slice(elements);
            }
            runner.reset_variables();
            runner.run().unwrap();
            for position in 0..runner.outputs().len() {
                let expected = reference.output(position).unwrap();
                let expected = Kind::all(expected.dtype, expected.bytes);
                let found = Kind::all(
                    runner.outputs()[position].dtype,
                    runner.output_bytes(position).unwrap(),
                );
                let wrong = expected.iter().zip(&found).filter(|(a, b)| a != b).count();
                if wrong > 0 || expected.len() != found.len() {
                    let shares = [share(&expected), share(&found)];
                    let name = pixel.name();
                    failures.push(format!(
                        "{way}, {name}, output {position}: {wrong} elements differ; {shares:?}"
                    ));
                }
            }
        }
    }
    Some(failures)
}

/// Whether all activations and weights are floats, and an input is fp32.
fn is_of_floats(model: &Model) -> bool {
    let graph = model.main().unwrap();
    let is_integer = |dtype| matches!(dtype, DType::I4 | DType::I8 | DType::U8 | DType::I16);
    graph.inputs.iter().any(|&id| graph.tensor(id).dtype == DType::F32)
        && !graph.tensors.iter().any(|it| it.quantization.is_some() && is_integer(it.dtype))
}

/// Elements of the inputs, with the pixel in the middle of the first fp32 one.
fn inputs(reference: &Interpreter, pixel: Special) -> Vec<Vec<u8>> {
    let graph = reference.subgraph();
    let mut random = Random::new(1);
    let mut is_planted = false;
    let fill = |id: &usize| {
        let tensor = graph.tensor(*id);
        if tensor.dtype != DType::F32 {
            return vec![0; tensor.byte_size().unwrap()];
        }
        let mut elements = random.f32s(tensor.elements().unwrap(), -1.0, 1.0);
        if !std::mem::replace(&mut is_planted, true) {
            let depth = tensor.shape.as_deref().unwrap_or_default().last().copied().unwrap_or(1);
            let middle = elements.len() / 2 / depth * depth;
            let width = if tensor.rank() == Some(4) { depth } else { 1 };
            elements[middle..middle + width].fill(pixel.value());
        }
        le_bytes(&elements, |value| value.to_le_bytes())
    };
    graph.inputs.iter().map(fill).collect()
}

/// How many of a hundred elements are NaN, and infinite.
fn share(kinds: &[Kind]) -> (f64, f64) {
    let count = |is: fn(&Kind) -> bool| {
        100.0 * kinds.iter().filter(|kind| is(kind)).count() as f64 / kinds.len().max(1) as f64
    };
    (count(|it| *it == Kind::Nan), count(|it| matches!(it, Kind::Positive | Kind::Negative)))
}
