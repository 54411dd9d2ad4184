//! Models become files that compute the same: whole, in part and in another dialect.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod support;

use std::fs;
use std::path::Path;

use support::{FP32, INT8, converted, json, model, refusal, stdout, text, xnn};
use tempfile::tempdir;
use xnn_model::{DType, Dialect, Model, Op};
use xnn_testing::{GraphBuilder, ModelBuilder};

#[track_caller]
fn assert_blob_equals_model(model: &Path) {
    let folder = tempdir().unwrap();
    let blob = converted(model, folder.path());
    let mut outputs = Vec::new();
    for (source, threads) in [(model, "1"), (model, "2"), (&blob, "1"), (&blob, "2")] {
        let out = folder.path().join(outputs.len().to_string());
        let args = ["run", text(source), "--threads", threads, "--random-seed", "7"];
        stdout(args.into_iter().chain(["--output-dir", text(&out)]));
        let mut files: Vec<_> =
            fs::read_dir(out).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        outputs.push(files.iter().map(|file| fs::read(file).unwrap()).collect::<Vec<_>>());
    }
    assert!(!outputs[0].is_empty(), "{}", model.display());
    for other in &outputs[1..] {
        assert!(outputs[0] == *other, "{}", model.display());
    }
}

#[test]
fn a_blob_computes_what_its_model_computes() {
    assert_blob_equals_model(&model(FP32));
    assert_blob_equals_model(&model(INT8));
}

#[test]
fn blobs_compute_what_real_models_compute() {
    let Some(models) = xnn_testing::shared_dir("models") else { return };
    for name in [
        "mobilenet_v1_0.25_224_fp32",
        "mobilenet_v1_0.25_224_quant",
        "mobilenet_v1_1.0_224_fp16",
        "mobilenet_v2_1.0_224_int8_ptq",
        "mobilenet_v2_1.0_224_quant",
        "resnet8_cifar_fp32",
        "resnet8_cifar_int8",
        "random-weights/mobilenet_v3_small_1.0_224_int8_rand",
    ] {
        assert_blob_equals_model(&models.join(format!("{name}.tflite")));
    }
}

/// `tanh`, which XNNPACK takes, then an operator that it does not.
fn tanh_and(op: Op, dtype: DType, dims: &[usize]) -> Vec<u8> {
    let mut graph = GraphBuilder::new("main");
    let x = graph.input("x", DType::F32, &[1, 4]);
    let y = graph.tensor("y", DType::F32, &[1, 4]);
    let z = graph.tensor("z", dtype, dims);
    graph.op(Op::Tanh, &[x], &[y]).op(op, &[y], &[z]).output(z);
    ModelBuilder::new(Dialect::Tflite).subgraph(graph).build_file()
}

#[test]
fn partial_models_run_and_say_so() {
    let folder = tempdir().unwrap();
    let model = folder.path().join("where.tflite");
    fs::write(&model, tanh_and(Op::Where, DType::I64, &[])).unwrap();
    let input = folder.path().join("x.bin");
    let elements = [0.0f32, 1.0, 0.0, -2.0];
    fs::write(&input, elements.map(f32::to_le_bytes).concat()).unwrap();
    let input = format!("x={}", text(&input));
    let output = xnn(["run", text(&model), "--input", &input, "--output-dir", text(folder.path())]);
    let note = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{note}");
    assert!(note.starts_with("note: 1 of 2 operators run on XNNPACK, in 1 partition; "), "{note}");
    assert_eq!(note.lines().count(), 1, "{note}");
    let file = fs::read(folder.path().join("out_0.npy")).unwrap();
    let npy = npyz::NpyFile::new(file.as_slice()).unwrap();
    assert_eq!((npy.dtype().descr().as_str(), npy.shape()), ("'<i8'", &[2, 2][..]));
    assert_eq!(npy.into_vec::<i64>().unwrap(), [0, 1, 0, 3]);

    let report = json(&["bench", text(&model), "--runs", "1", "--json"]);
    assert_eq!([&report["delegated"], &report["operators"], &report["partitions"]], [1, 2, 1]);
    // Whole models are run without a word.
    assert!(xnn(["run", text(&support::model(FP32))]).stderr.is_empty());
}

#[test]
fn what_goes_in_a_run_is_told() {
    let mut graph = GraphBuilder::new("main");
    let x = graph.input("x", DType::F32, &[4, 2]);
    let mask = graph.input("mask", DType::Bool, &[4]);
    let places = graph.tensor("places", DType::I64, &[1, 1]);
    let [found, y] = ["found", "y"].map(|name| graph.tensor(name, DType::F32, &[1, 2]));
    graph.op(Op::Where, &[mask], &[places]).op(Op::GatherNd, &[x, places], &[found]);
    graph.op(Op::Tanh, &[found], &[y]).output(y);
    let folder = tempdir().unwrap();
    let model = folder.path().join("found.tflite");
    let file = ModelBuilder::new(Dialect::Tflite).subgraph(graph).build_file();
    fs::write(&model, file).unwrap();

    let report = json(&["explain", text(&model), "--json"]);
    assert_eq!(
        (&report["nodes"][2]["deferred"], report["nodes"][0].get("deferred")),
        (&0.into(), None)
    );
    assert!(stdout(["explain", text(&model)]).contains("TANH                         deferred 0"));
    let report = json(&["bench", text(&model), "--runs", "3", "--json"]);
    assert_eq!([&report["delegated"], &report["operators"], &report["deferred"]], [0, 3, 1]);
    let said = stdout(["bench", text(&model), "--runs", "3"]);
    assert!(said.contains("in 0 partitions, and 1 more when its shape is known"), "{said}");
    // A file cannot hold it.
    let errors = String::from_utf8(xnn(["convert", text(&model)]).stderr).unwrap();
    assert!(errors.contains("[unknown-shape]"), "{errors}");
}

/// The bytes of the first output of a run with seed 3.
fn first_output(model: &Path) -> Vec<u8> {
    let folder = tempdir().unwrap();
    let args = ["run", text(model), "--random-seed", "3", "--output-dir", text(folder.path())];
    assert!(xnn(args).status.success());
    fs::read(folder.path().join("out_0.npy")).unwrap()
}

#[test]
fn partial_models_become_one_file_that_every_command_takes() {
    let folder = tempdir().unwrap();
    let model = folder.path().join("where.tflite");
    fs::write(&model, tanh_and(Op::Where, DType::I64, &[])).unwrap();
    let output = xnn(["convert", text(&model), "--require-full"]);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.contains("1 of 2 nodes") && errors.contains("(WHERE)"), "{errors}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    let said = stdout(["convert", text(&model)]);
    let converted = folder.path().join("where.xnn.tflite");
    assert!(said.starts_with(text(&converted)) && said.contains("partially delegated"), "{said}");

    assert_eq!(first_output(&converted), first_output(&model));
    let report = json(&["bench", text(&converted), "--runs", "1", "--json"]);
    assert_eq!([&report["delegated"], &report["operators"], &report["partitions"]], [1, 2, 1]);
    let report = json(&["explain", text(&converted), "--json"]);
    assert_eq!([&report["nodes"][0]["op"], &report["nodes"][1]["op"]], ["XNNGraph", "WHERE"]);
    assert_eq!(report["nodes"][0]["partition"], 0);
    let graphs = &json(&["inspect", text(&converted), "--json"])["subgraphs"][0]["graphs"];
    assert_eq!([&graphs[0]["operator"], &graphs[0]["nodes"]], [0, 1]);
    assert!(stdout(["inspect", text(&converted)]).contains("operator 0 holds a blob"));
    let line = refusal(["verify", text(&converted)]);
    assert!(line.ends_with("verify the original model"), "{line}");
}

#[test]
fn classifiers_that_go_in_part_classify_from_their_file() {
    let Some(models) = xnn_testing::shared_dir("models") else { return };
    let folder = tempdir().unwrap();
    let model = models.join("audio_speech_commands.tflite");
    let converted = folder.path().join("audio.tflite");
    stdout(["convert", text(&model), "-o", text(&converted)]);
    assert_eq!(first_output(&converted), first_output(&model));
}

#[test]
fn conversion_is_deterministic_and_defaults_to_a_name_beside_the_model() {
    let folder = tempdir().unwrap();
    let copy = folder.path().join("digits.tflite");
    fs::copy(model(INT8), &copy).unwrap();
    stdout(["convert", text(&copy)]);
    let first = fs::read(folder.path().join("digits.xnn")).unwrap();
    stdout(["convert", text(&copy), "--compat", "executorch"]);
    assert_eq!(first, fs::read(folder.path().join("digits.xnn")).unwrap());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn other_readers_get_another_form_of_dynamic_range() {
    let Some(models) = xnn_testing::shared_dir("models") else { return };
    let folder = tempdir().unwrap();
    let model = models.join("mobilenet_v2_1.0_224_dynamic_range.tflite");
    let convert = |arguments: &[&str]| {
        let file = folder.path().join("model.xnn");
        let all = [&["convert", text(&model), "-o", text(&file)], arguments].concat();
        stdout(all);
        fs::read(file).unwrap()
    };
    let rows = convert(&["--dynamic-range", "rows"]);
    assert_eq!(convert(&["--compat", "executorch"]), rows);
    assert_ne!(convert(&["--dynamic-range", "reference"]), rows);
    let line = refusal([
        "convert",
        text(&model),
        "--compat",
        "executorch",
        "--dynamic-range",
        "reference",
        "-o",
        text(&folder.path().join("refused.xnn")),
    ]);
    assert!(line.contains("dynamic over 3 dimensions"), "{line}");
}

#[test]
fn models_change_their_dialect_and_back() {
    let folder = tempdir().unwrap();
    let [circle, tflite] = ["digits.circle", "digits.tflite"].map(|name| folder.path().join(name));
    let original = model(INT8);
    let said = stdout(["to-circle", text(&original), "-o", text(&circle)]);
    assert!(said.starts_with(text(&circle)) && said.ends_with(" kB, Circle model\n"), "{said}");
    assert_eq!(fs::read(&circle).unwrap()[4..8], *b"CIR0");
    stdout(["to-tflite", text(&circle), "-o", text(&tflite)]);
    assert_eq!(Model::open(&tflite).unwrap(), Model::open(&original).unwrap());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);

    let misnamed = folder.path().join("misnamed.tflite");
    fs::copy(&circle, &misnamed).unwrap();
    let output = xnn(["explain", text(&misnamed)]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    let expected =
        format!("warning: {}: this is a Circle model despite its extension", misnamed.display());
    assert!(said.starts_with(&expected) && said.lines().count() == 1, "{said}");

    let summary = |path| stdout(["explain", text(path)]).lines().last().unwrap().to_owned();
    assert_eq!(summary(&circle), summary(&original));
    let outputs = [&original, &circle, &tflite].map(|path| {
        stdout(["run", text(path), "--random-seed", "3", "--output-dir", text(folder.path())]);
        fs::read(folder.path().join("out_0.npy")).unwrap()
    });
    assert_eq!(outputs[0], outputs[1]);
    assert_eq!(outputs[0], outputs[2]);
}
