//! Classifiers as a whole: everything is delegated, a blob computes what the process computes, and
//! the results are LiteRT's.
//!
//! `tests/golden/models` keeps what LiteRT's reference kernels and its XNNPACK delegate make of the
//! same inputs; `cargo xtask golden` asks anew. The models and photos are shared test data.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod common;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex};
use std::{env, fs};

use common::{Array, Element, distance, span};
use image::DynamicImage;
use npyz::{WriteOptions, WriterBuilder};
use serde_json::json;
use sha2::{Digest, Sha256};
use xnn_delegate::blob::{Blob, Datatype};
use xnn_delegate::images::{self, ImageInput};
use xnn_delegate::lower::Delegation;
use xnn_delegate::runtime::{Program, Session, TensorInfo};
use xnn_delegate::{ConvertOptions, Model, PartitionOptions, SessionOptions, Source, convert};
use xnn_model::{DType, Subgraph, write};
use xnn_testing::{Random, files_below, shared_dir};

/// How far fp32 results may be from the reference kernels: probabilities absolutely, others as a
/// part of their range.
const FP32: f64 = 1e-5;
/// How many quantization steps further than LiteRT's delegate 8-bit results may be from the
/// reference kernels.
const STEPS: f64 = 1.0;
/// Random inputs of each model, beside the photos.
const RANDOM_INPUTS: u64 = 3;
/// Where set, inputs are written to this folder for LiteRT, and its results not yet looked at.
const WRITE_INPUTS: &str = "XNN_GOLDEN_INPUTS";

/// Reference that results are compared with.
#[derive(Clone, Copy, PartialEq)]
enum Oracle {
    /// LiteRT's reference kernels.
    Reference,
    /// LiteRT's optimized kernels, where the reference kernels do not run the model.
    Optimized,
    /// LiteRT's reference kernels, for a model that quantizes activations at run time.
    DynamicRange,
    /// Like `DynamicRange`, with float layers before the quantization: the last bits of their
    /// results differ between kernels, which now and then changes a quantized value by a step.
    Chaotic,
    /// LiteRT does not run the model.
    Nothing,
}

macro_rules! models {
    ($($test:ident: $file:literal, $oracle:ident;)*) => {
        $(#[test]
        fn $test() {
            check($file, Oracle::$oracle);
        })*
    };
}

models! {
    mobilenet_v1_025_fp32: "mobilenet_v1_0.25_224_fp32", Reference;
    mobilenet_v1_025_quant: "mobilenet_v1_0.25_224_quant", Reference;
    mobilenet_v1_fp32: "mobilenet_v1_1.0_224_fp32", Reference;
    mobilenet_v1_fp16: "mobilenet_v1_1.0_224_fp16", Reference;
    mobilenet_v1_quant: "mobilenet_v1_1.0_224_quant", Reference;
    mobilenet_v1_int8_per_channel: "mobilenet_v1_1.0_224_int8_perchannel", Reference;
    mobilenet_v2_035_embedder: "mobilenet_v2_0.35_96_embedder", Chaotic;
    mobilenet_v2_035_fp32: "random-weights/mobilenet_v2_0.35_224_fp32_rand", Reference;
    mobilenet_v2_fp32: "mobilenet_v2_1.0_224_fp32", Reference;
    mobilenet_v2_dynamic_range: "mobilenet_v2_1.0_224_dynamic_range", DynamicRange;
    mobilenet_v2_quant: "mobilenet_v2_1.0_224_quant", Reference;
    mobilenet_v2_int8_ptq: "mobilenet_v2_1.0_224_int8_ptq", Reference;
    mobilenet_v2_int8_per_channel: "mobilenet_v2_1.0_224_int8_perchannel", Reference;
    mobilenet_v3_small_fp32: "random-weights/mobilenet_v3_small_1.0_224_fp32_rand", Reference;
    mobilenet_v3_small_dynamic_range:
        "random-weights/mobilenet_v3_small_1.0_224_dynamic_range_rand", Chaotic;
    mobilenet_v3_small_int8: "random-weights/mobilenet_v3_small_1.0_224_int8_rand", Optimized;
    mobilenet_edgetpu: "mobilenet_edgetpu_1.0_224_uint8", Reference;
    resnet8_fp32: "resnet8_cifar_fp32", Reference;
    resnet8_int8: "resnet8_cifar_int8", Reference;
    digits_fp32: "digits_mobilenet_v2_0.35_48_fp32", Reference;
    digits_int8: "digits_mobilenet_v2_0.35_48_int8", Reference;
    digits_tiny_cnn: "digits_tinycnn_int8", Reference;
    person_detect: "person_detect_int8", Nothing;
}

/// Held by the test that computes: threads that wait for each other are slow where others take
/// their place.
static RUNNING: Mutex<()> = Mutex::new(());

/// Photos by file name, decoded once.
static PHOTOS: LazyLock<BTreeMap<String, DynamicImage>> = LazyLock::new(|| {
    let folder = shared_dir("images").unwrap();
    let files = files_below(&folder, &["bmp", "jpg", "png"]);
    files
        .iter()
        .map(|file| {
            let name = file.file_name().unwrap().to_string_lossy().into_owned();
            (name, images::decode(file).unwrap())
        })
        .collect()
});

fn check(file: &str, oracle: Oracle) {
    let (Some(models), Some(_)) = (shared_dir("models"), shared_dir("images")) else { return };
    let path = models.join(format!("{file}.tflite"));
    let name = path.file_stem().unwrap().to_str().unwrap();

    let model = Model::open(&path).unwrap();
    let delegation = Delegation::new(model.main().unwrap(), &PartitionOptions::default()).unwrap();
    let program = delegation.whole().unwrap();
    let all = delegation.graph().operators.len();
    let summary = format!("delegated {all} of {all} nodes in 1 partition");
    assert_eq!(delegation.report().summary, summary, "{name}");

    let blob = convert(&model, &Source::default(), &ConvertOptions::default()).unwrap();
    let blob = Program::from_blob(Blob::from_bytes(blob.into_bytes()).unwrap()).unwrap();
    let ways = [(program, 1), (program, 2), (&blob, 1), (&blob, 2)];
    let mut sessions = ways.map(|(program, threads)| {
        Session::new(
            program,
            &SessionOptions { threads, threads_by_work: false, ..SessionOptions::default() },
        )
        .unwrap()
    });

    let inputs = inputs(name, &sessions[0].inputs()[0]);
    let for_litert = for_litert(&path, &model, delegation.graph());
    if let Some(folder) = env::var_os(WRITE_INPUTS) {
        let mode = match oracle {
            Oracle::Reference | Oracle::DynamicRange | Oracle::Chaotic => "ref",
            Oracle::Optimized => "noxnn",
            Oracle::Nothing => return,
        };
        write_job(&PathBuf::from(folder).join(name), &for_litert, mode, &inputs);
        return;
    }
    let one_at_a_time = RUNNING.lock();
    let outputs: Vec<Array> =
        inputs.iter().map(|(input, array)| run(&mut sessions, input, array)).collect();
    drop(one_at_a_time);
    match oracle {
        Oracle::Nothing => assert!(outputs.iter().any(|output| *output != outputs[0]), "{name}"),
        _ => compare(name, &for_litert, oracle, &inputs, &outputs),
    }
}

/// A model as LiteRT runs it.
struct ForLiteRt {
    /// Digest of the model's own file.
    sha256: String,
    bytes: Vec<u8>,
}

fn for_litert(path: &Path, model: &Model, inferred: &Subgraph) -> ForLiteRt {
    let shapes =
        |graph: &Subgraph| graph.tensors.iter().map(|t| t.shape.clone()).collect::<Vec<_>>();
    // Where shapes are missing LiteRT leaves most of the model to other kernels than XNNPACK's.
    let own = fs::read(path).unwrap();
    let sha256 = sha256(&own);
    let bytes = if shapes(model.main().unwrap()) == shapes(inferred) {
        own
    } else {
        let model = Model { subgraphs: vec![Arc::new(inferred.clone())], ..model.clone() };
        write::to_tflite(&model).unwrap()
    };
    ForLiteRt { sha256, bytes }
}

/// The inputs of a model by name: random ones, and the photos.
fn inputs(model: &str, info: &TensorInfo) -> Vec<(String, Array)> {
    let input = ImageInput::new(info).unwrap();
    let element = element(info.datatype);
    let dtype = match element {
        Element::F32 => DType::F32,
        _ => DType::U8,
    };
    let count = info.dims.iter().product();
    let array = |bytes| Array { shape: info.dims.clone(), bytes, element };
    let random = (0..RANDOM_INPUTS).map(|number| {
        let bytes = Random::new(seed(model, number)).tensor(dtype, count);
        (format!("random_{number}"), array(bytes))
    });
    let photos = PHOTOS.iter().map(|(name, image)| {
        let mut bytes = vec![0; info.byte_size()];
        input.write(image, &input.usual_normalization(), &mut bytes);
        (name.clone(), array(bytes))
    });
    random.chain(photos).collect()
}

/// Other random inputs for each model, the same ones every time.
fn seed(model: &str, number: u64) -> u64 {
    let hash = Sha256::digest(model);
    u64::from_le_bytes(*hash.first_chunk().unwrap()).wrapping_add(number)
}

fn element(datatype: Datatype) -> Element {
    match datatype {
        Datatype::F32 => Element::F32,
        Datatype::QInt8 => Element::I8,
        Datatype::QUint8 => Element::U8,
        other => panic!("{}", other.name()),
    }
}

/// Writes the files that `golden_models.py` reads.
fn write_job(folder: &Path, model: &ForLiteRt, mode: &str, inputs: &[(String, Array)]) {
    fs::create_dir_all(folder).unwrap();
    for (name, array) in inputs {
        fs::write(folder.join(format!("{name}.npy")), npy(array)).unwrap();
    }
    let names: Vec<&str> = inputs.iter().map(|(name, _)| name.as_str()).collect();
    fs::write(folder.join("model.tflite"), &model.bytes).unwrap();
    let job = json!({ "model_sha256": model.sha256, "reference": mode, "inputs": names });
    fs::write(folder.join("job.json"), job.to_string()).unwrap();
}

fn npy(array: &Array) -> Vec<u8> {
    let element = match array.element {
        Element::F32 => "<f4",
        Element::I8 => "|i1",
        Element::U8 => "|u1",
    };
    let shape: Vec<u64> = array.shape.iter().map(|&dim| dim as u64).collect();
    let mut file = Vec::new();
    WriteOptions::new_header_only()
        .dtype(npyz::DType::new_scalar(element.parse().unwrap()))
        .shape(&shape)
        .writer(&mut file)
        .write_header_only()
        .unwrap();
    file.extend(&array.bytes);
    file
}

/// The first output, which all sessions agree on bit for bit.
fn run(sessions: &mut [Session], name: &str, input: &Array) -> Array {
    let mut outputs = sessions.iter_mut().map(|session| {
        session.input_mut(0).copy_from_slice(&input.bytes);
        session.run().unwrap();
        let info = &session.outputs()[0];
        Array {
            shape: info.dims.clone(),
            bytes: session.output(0).to_vec(),
            element: element(info.datatype),
        }
    });
    let first = outputs.next().unwrap();
    assert!(outputs.all(|output| output == first), "{name}: blob and threads change the result");
    first
}

fn compare(
    name: &str,
    model: &ForLiteRt,
    oracle: Oracle,
    inputs: &[(String, Array)],
    outputs: &[Array],
) {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/models").join(name);
    let text = fs::read(golden.with_added_extension("json")).unwrap();
    let said: serde_json::Value = serde_json::from_slice(&text).unwrap();
    let references = Array::read(&golden.with_added_extension("npy"));
    let anew = "; `cargo xtask golden` asks LiteRT anew";
    assert_eq!(said["model_sha256"], model.sha256, "another model{anew}");
    let said = said["inputs"].as_array().unwrap();
    assert_eq!(said.len(), inputs.len(), "other inputs{anew}");

    let theirs_of = |said: &serde_json::Value| said["xnn_distance"].as_f64().unwrap();
    // On one input either may be lucky: on none further than LiteRT's delegate on the average, or twice as far as it is
    // there, and no further on the average.
    let is_chaotic = oracle == Oracle::Chaotic
        || oracle == Oracle::DynamicRange && !xnn_runtime::has_exact_dynamic_convolutions();
    let theirs_together: f64 = said.iter().map(theirs_of).sum();
    let theirs_on_average = theirs_together / said.len() as f64;
    let mut ours_together = 0.0;
    let mut wrong = String::new();
    let rows = references.bytes.chunks(references.bytes.len() / said.len());
    for (((said, row), (input, array)), output) in said.iter().zip(rows).zip(inputs).zip(outputs) {
        assert_eq!(said["name"], *input, "other inputs{anew}");
        assert_eq!(said["sha256"], sha256(&array.bytes), "{input} is not what it was{anew}");
        assert_eq!(output.element, references.element, "{name}");
        let reference = common::numbers(references.element, row);
        let ours = output.numbers();
        let theirs = theirs_of(said);
        let most = match references.element {
            _ if is_chaotic => theirs_on_average.max(2.0 * theirs),
            Element::F32 => FP32 * span(&reference).max(1.0),
            _ => theirs + STEPS,
        };
        let apart = distance(&ours, &reference);
        ours_together += apart;
        if apart > most {
            writeln!(
                wrong,
                "{input}: {apart:e} from the reference, {most:e} is the most \
                             (LiteRT's delegate: {theirs:e})"
            )
            .unwrap();
        }
        // On photos that show none of the classes, LiteRT's delegate may find another one.
        let (first, theirs) = (top1(&ours), said["xnn_top1"].as_u64().unwrap());
        let reference = top1(&reference);
        if PHOTOS.contains_key(input) && first as u64 != theirs && first != reference {
            writeln!(wrong, "{input}: class {first} instead of {reference} or LiteRT's {theirs}")
                .unwrap();
        }
    }
    if is_chaotic && ours_together > theirs_together {
        writeln!(wrong, "{ours_together:e} together, LiteRT's delegate {theirs_together:e}")
            .unwrap();
    }
    assert!(wrong.is_empty(), "{name}:\n{wrong}");
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The first of the largest.
fn top1(values: &[f64]) -> usize {
    let most = values.iter().copied().fold(f64::MIN, f64::max);
    values.iter().position(|value| *value == most).unwrap()
}
