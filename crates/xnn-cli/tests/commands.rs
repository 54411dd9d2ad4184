//! Results of each command with valid input.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests"
)]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use support::{FP32, INT8, converted, json, model, program, refusal, stdout, text, xnn};
use tempfile::tempdir;
use xnn_model::op::{ArithmeticOptions, FakeQuantOptions, GeluOptions};
use xnn_model::{DType, Dialect, Op};
use xnn_testing::{GraphBuilder, ModelBuilder};

#[test]
fn outputs_have_the_models_own_type_and_shape() {
    let folder = tempdir().unwrap();
    for (name, dtype) in [(FP32, "'<f4'"), (INT8, "'|i1'")] {
        stdout(["run", text(&model(name)), "--output-dir", text(folder.path())]);
        let file = fs::read(folder.path().join("out_0.npy")).unwrap();
        let npy = npyz::NpyFile::new(file.as_slice()).unwrap();
        assert_eq!(npy.dtype().descr(), dtype);
        assert_eq!(npy.shape(), [1, 10]);
    }
}

#[test]
fn verify_compares_operators_with_their_kernels() {
    let report = json(&["verify", text(&model(INT8)), "--seed", "5", "--json"]);
    let operators = report["entries"][0]["operators"].as_array().unwrap();
    assert_eq!(operators.len(), 65);
    assert_eq!(report["beyond"], 0);
    assert!(operators.iter().all(|it| it["distance"].as_f64().unwrap() <= 1.0));
    let shown = stdout(["verify", text(&model(FP32))]);
    assert!(shown.contains("outputs of the model"), "{shown}");

    // Rounding alone is too much where nothing is tolerated.
    let output = xnn(["verify", text(&model(FP32)), "--tolerance", "0"]);
    assert_eq!(output.status.code(), Some(1));
    let shown = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(shown.contains("first") && shown.contains("worst"), "{shown}");
    assert!(errors.contains("the worst is tensor"), "{errors}");
    let output = xnn(["verify", text(&model(FP32)), "--tolerance", "0", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(report["beyond"].as_u64().unwrap() > 0);
}

#[test]
fn verify_takes_special_values() {
    let report = json(&["verify", text(&model(FP32)), "--special-values", "--json"]);
    let entries = report["entries"].as_array().unwrap();
    let kinds: Vec<&Value> = entries.iter().map(|entry| &entry["special"]).collect();
    let expected = ["nan", "infinity", "negative-infinity", "largest", "denormal"];
    assert_eq!(*kinds[0], Value::Null);
    assert_eq!(kinds[1..], expected);
    assert_eq!(report["beyond"], 0);
    let shown = stdout(["verify", text(&model(FP32)), "--special-values"]);
    assert!(shown.contains("with nan among the inputs:"), "{shown}");
    assert!(!stdout(["verify", text(&model(FP32))]).contains("among the inputs"));
    let line = refusal(["verify", text(&model(INT8)), "--special-values"]);
    assert!(line.ends_with("--special-values needs an fp32 input"), "{line}");
}

#[test]
fn inputs_take_the_shapes_of_their_files_where_the_model_leaves_them_open() {
    let mut graph = GraphBuilder::new("main");
    let x = graph.input("x", DType::F32, &[1, 2]);
    let y = graph.tensor("y", DType::F32, &[1, 2]);
    graph.op(Op::Add(ArithmeticOptions::default()), &[x, x], &[y]).output(y);
    let mut model = graph.build_model();
    let graph = std::sync::Arc::make_mut(&mut model.subgraphs[0]);
    graph.tensors[x].shape_signature = Some(vec![-1, 2]);
    let folder = tempdir().unwrap();
    let path = folder.path().join("m.tflite");
    fs::write(&path, xnn_model::write::to_tflite(&model).unwrap()).unwrap();
    let npy = |name: &str, shape: &str, elements: u8| {
        let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}\n");
        let mut file = b"\x93NUMPY\x01\0".to_vec();
        file.extend((header.len() as u16).to_le_bytes());
        file.extend(header.bytes());
        file.extend((0..elements).flat_map(|x| f32::from(x).to_le_bytes()));
        let path = folder.path().join(name);
        fs::write(&path, file).unwrap();
        format!("0={}", text(&path))
    };
    let (three, wide) = (npy("three.npy", "(3, 2)", 6), npy("wide.npy", "(3, 4)", 12));
    for disabled in ["MUL", "ADD"] {
        let args = ["run", text(&path), "--disable", disabled, "--output-dir", text(folder.path())];
        stdout([&args[..], &["--input", &three]].concat());
        let file = fs::read(folder.path().join("out_0.npy")).unwrap();
        let npy = npyz::NpyFile::new(file.as_slice()).unwrap();
        assert_eq!(npy.shape(), [3, 2]);
        assert_eq!(npy.into_vec::<f32>().unwrap(), [0., 2., 4., 6., 8., 10.]);
        let line = refusal([&args[..], &["--input", &wide]].concat());
        assert!(line.contains("expected shape 1x2, found 3x4"), "{line}");
    }
    let report = json(&["verify", text(&path), "--input", &three, "--json"]);
    assert_eq!(report["beyond"], 0);
}

/// A loop, and `x + y` at the signature `add`.
fn entry_points() -> Vec<u8> {
    let mut add = GraphBuilder::new("add");
    let (x, y) = (add.input("x", DType::F32, &[4]), add.input("y", DType::F32, &[4]));
    let sum = add.tensor("sum", DType::F32, &[4]);
    add.op(Op::Add(ArithmeticOptions::default()), &[x, y], &[sum]).output(sum);
    ModelBuilder::looping(0.5)
        .subgraph(add)
        .signature("add", 3, &[("x", x), ("y", y)], &[("sum", sum)])
        .build_file()
}

#[test]
fn operators_of_scalars_that_become_several_nodes_compute_the_same() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("scalars.tflite");
    let mut graph = GraphBuilder::new("main");
    let x = graph.input("x", DType::F32, &[]);
    let [y, z] = ["y", "z"].map(|name| graph.tensor(name, DType::F32, &[]));
    let fake = FakeQuantOptions { min: -1.0, max: 1.0, num_bits: 8, narrow_range: false };
    graph.op(Op::Gelu(GeluOptions { approximate: true }), &[x], &[y]);
    graph.op(Op::FakeQuant(fake), &[y], &[z]).output(z);
    fs::write(&path, ModelBuilder::new(Dialect::Tflite).subgraph(graph).build_file()).unwrap();
    let shown = stdout(["explain", text(&path)]);
    assert!(shown.ends_with("delegated 2 of 2 nodes in 1 partition\n"), "{shown}");
    let report = json(&["verify", text(&path), "--json"]);
    assert_eq!(
        (&report["beyond"], &report["entries"][0]["outputs"][0]["distance"]),
        (&json!(0), &json!(0.0))
    );
}

#[test]
fn verify_names_subgraphs() {
    let folder = tempdir().unwrap();
    let (path, input) = (folder.path().join("m.tflite"), folder.path().join("x.bin"));
    fs::write(&path, entry_points()).unwrap();
    // The loop's condition does not hold, so that its body does not run.
    fs::write(&input, 0.9f32.to_le_bytes()).unwrap();
    let input = format!("x={}", text(&input));
    let args = ["verify", text(&path), "--input", &input, "--json"];
    let report = json(&args);
    let entries = report["entries"].as_array().unwrap();
    assert_eq!(entries.len(), 2);
    let body = &entries[0]["skipped"][0];
    assert_eq!((&body["subgraph"], &body["op"]), (&json!(2), &json!("TANH")));
    let sum = &entries[1]["operators"][0];
    assert_eq!((&entries[1]["signature"], &sum["subgraph"]), (&json!("add"), &json!(3)));
    assert_eq!((&sum["operator"], &sum["op"]), (&json!(0), &json!("ADD")));

    let shown = stdout(["verify", text(&path), "--input", &input]);
    assert!(
        shown.contains("not compared: subgraph 2: operator 0 (TANH): it does not run"),
        "{shown}"
    );
    let shown = stdout(["verify", text(&path), "--signature", "add"]);
    assert!(!shown.contains("TANH"), "{shown}");
    let line = refusal(["verify", text(&path), "--signature", "none"]);
    assert!(line.contains("no signature"), "{line}");
}

#[test]
fn seeds_decide_random_inputs() {
    let folder = tempdir().unwrap();
    let run = |flag: &str, seed: &str| {
        let args = ["run", text(&model(FP32)), flag, seed].map(str::to_owned);
        stdout(args.iter().map(String::as_str).chain(["--output-dir", text(folder.path())]));
        fs::read(folder.path().join("out_0.npy")).unwrap()
    };
    let (one, two, one_again) = (run("--seed", "1"), run("--seed", "2"), run("--random-seed", "1"));
    assert_eq!(one, one_again);
    assert_ne!(one, two);
}

#[test]
fn inputs_come_from_npy_and_bare_files_by_index_and_name() {
    use npyz::WriterBuilder;

    let folder = tempdir().unwrap();
    let elements: Vec<i8> = (0..48 * 48 * 3).map(|n| (n * 31 % 251) as i8).collect();
    let (npy, bin) = (folder.path().join("x.npy"), folder.path().join("x.bin"));
    let mut writer = npyz::WriteOptions::new()
        .default_dtype()
        .shape(&[1, 48, 48, 3])
        .writer(fs::File::create(&npy).unwrap())
        .begin_nd()
        .unwrap();
    writer.extend(elements.iter().copied()).unwrap();
    writer.finish().unwrap();
    fs::write(&bin, elements.iter().map(|e| e.cast_unsigned()).collect::<Vec<_>>()).unwrap();

    let model = model(INT8);
    let name = json(&["inspect", text(&model), "--json"])["subgraphs"][0]["inputs"][0]["name"]
        .as_str()
        .unwrap()
        .to_owned();
    let outputs = [("0", &npy), (&name, &npy), ("0", &bin)].map(|(tensor, file)| {
        let input = format!("{tensor}={}", file.display());
        let out = text(folder.path());
        stdout(["run", text(&model), "--input", &input, "--output-dir", out]);
        fs::read(folder.path().join("out_0.npy")).unwrap()
    });
    assert_eq!(outputs[0], outputs[1]);
    assert_eq!(outputs[0], outputs[2]);
    let random = folder.path().join("random");
    stdout(["run", text(&model), "--output-dir", text(&random)]);
    assert_ne!(outputs[0], fs::read(random.join("out_0.npy")).unwrap());
}

#[test]
fn explain_ends_in_a_summary() {
    let model = model(INT8);
    let text_report = stdout(["explain", text(&model)]);
    let last = text_report.lines().last().unwrap();
    assert_eq!(last, "delegated 65 of 65 nodes in 1 partition");
    let report = json(&["explain", text(&model), "--json"]);
    assert_eq!(report["model"], INT8);
    assert_eq!(report["summary"], last);
    assert_eq!(report["nodes"].as_array().unwrap().len(), 65);
    assert_eq!(report["nodes"][0]["op"], "CONV_2D");
    assert_eq!(report["nodes"][0]["partition"], 0);
    assert_eq!(report["partitions"][0]["macs"], 3_195_424);
}

#[test]
fn options_decide_what_goes() {
    let model = model(FP32);
    let delegated = |options: &[&str]| {
        let report = json(&[&["explain", text(&model), "--json"], options].concat());
        report["nodes"].as_array().unwrap().iter().filter(|it| !it["partition"].is_null()).count()
    };
    let all = delegated(&[]);
    assert_eq!(delegated(&["--max-partitions", "0"]), 0);
    assert_eq!(delegated(&["--min-partition-macs", "1000000000"]), 0);
    assert_eq!(delegated(&["--disable-pass", "constants,paddings"]), all);
    let without = delegated(&["--disable", "softmax"]);
    assert_eq!(without, all - 1);
    let report = json(&["bench", text(&model), "--runs", "1", "--disable", "softmax", "--json"]);
    assert_eq!(report["delegated"], without);
}

#[test]
fn names_of_operators_must_exist() {
    let output = xnn(["explain", text(&model(FP32)), "--disable", "MEAN,softmaxx"]);
    assert_eq!(output.status.code(), Some(2));
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(
        errors.contains("there is no operator \"softmaxx\"; did you mean SOFTMAX?"),
        "{errors}"
    );
}

#[test]
fn inspect_shows_blobs_and_models() {
    let folder = tempdir().unwrap();
    let blob = converted(&model(INT8), folder.path());
    let report = json(&["inspect", text(&blob), "--json"]);
    assert_eq!(report["origin"]["source"], INT8);
    assert_eq!(report["sizes"]["file"], fs::metadata(&blob).unwrap().len());
    assert_eq!(report["header"]["flatbuffer_size"], report["sizes"]["flatbuffer"]);
    let first = &report["nodes"][0];
    assert_eq!(first["kind"], "Conv2d");
    assert_eq!(first["origin"], "CONV_2D#0");
    assert_eq!(first["attributes"]["stride"], "2x2");
    let input = report["inputs"][0]["value"].as_u64().unwrap() as usize;
    assert_eq!(report["values"][input]["datatype"], "qint8");
    assert_eq!(report["values"][input]["quantization"]["kind"], "per_tensor");
    let shown = stdout(["inspect", text(&blob)]);
    assert!(shown.contains("CONV_2D#0") && shown.contains("header XH00"), "{shown}");

    let model = json(&["inspect", text(&model(INT8)), "--json"]);
    assert_eq!(model["format"], "TFLite");
    assert_eq!(model["subgraphs"][0]["operators"]["CONV_2D"], 35);
    assert_eq!(model["signatures"][0]["key"], "serving_default");
}

#[test]
fn bench_measures() {
    let model = model(INT8);
    let report = json(&["bench", text(&model), "--runs", "5", "--json"]);
    let number = |key: &str| report[key].as_f64().unwrap_or_else(|| panic!("{key}: {report}"));
    assert_eq!(report["runs"], 5);
    assert_eq!(report["threads"], 1);
    assert!(number("load_ms") > 0.0 && number("first_ms") > 0.0);
    assert!(0.0 < number("min_ms") && number("min_ms") <= number("median_ms"));
    assert!(number("median_ms") <= number("p90_ms") && number("cpu_ms") > 0.0);
    if cfg!(target_os = "linux") {
        assert!(number("peak_rss_mb") > 1.0);
    }
    assert!(report.get("profile").is_none());
    let profile = json(&["bench", text(&model), "--runs", "1", "--profile", "--json"]);
    assert!(profile["profile"].as_array().unwrap().len() > 50);
    let table = stdout(["bench", text(&model), "--runs", "1", "--profile"]);
    assert!(table.contains("median") && table.contains("CONV_2D#0"), "{table}");
}

#[test]
fn bench_measures_streams() {
    let model = model(INT8);
    let asked = ["bench", text(&model), "--streams", "3", "--runs", "4"];
    let report = json(&[&asked[..], &["--json"]].concat());
    let number = |key: &str| report[key].as_f64().unwrap_or_else(|| panic!("{key}: {report}"));
    assert_eq!(
        (&report["streams"], &report["threads"], &report["runs"]),
        (&3.into(), &1.into(), &12.into())
    );
    assert!(number("runs_per_second") > 0.0 && number("cpu_ms") > 0.0);
    let order = ["min_ms", "median_ms", "p90_ms", "p99_ms"].map(number);
    assert!(order[0] > 0.0 && order.is_sorted(), "{report}");
    let table = stdout(asked);
    assert!(table.contains(", 3 streams, 1 thread each, 12 runs\n"), "{table}");
    assert!(table.contains("throughput") && table.contains("runs per second"), "{table}");
    for wrong in [&["--streams", "0"][..], &["--streams", "2", "--profile"]] {
        let mut command = vec!["bench", text(&model)];
        command.extend(wrong);
        assert_eq!(xnn(command).status.code(), Some(2), "{wrong:?}");
    }
}

/// A fully connected layer with `size` rows, inputs and outputs. 130 are enough work for several threads.
fn layer(folder: &Path, size: usize) -> PathBuf {
    let mut graph = GraphBuilder::new("main");
    let x = graph.input("x", DType::F32, &[size, size]);
    let weights = graph.constant_f32("weights", &[size, size], &vec![0.5; size * size]);
    let y = graph.tensor("y", DType::F32, &[size, size]);
    graph.op(Op::FullyConnected(Default::default()), &[x, weights], &[y]).output(y);
    let path = folder.join(format!("layer{size}.tflite"));
    let file = ModelBuilder::new(Dialect::Tflite).subgraph(graph).build_file();
    fs::write(&path, file).unwrap();
    path
}

/// Processors that the process may not use do not count.
#[cfg(target_os = "linux")]
#[test]
fn bench_uses_no_more_threads_than_the_process_has_processors() {
    let folder = tempdir().unwrap();
    let path = layer(folder.path(), 130);
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
    let first = allowed.trim().split(['-', ',']).next().unwrap();
    let mut command = Command::new("taskset");
    let xnn = program();
    command.args(["--cpu-list", first]).arg(xnn.get_program()).args(xnn.get_args());
    command.args(["bench", text(&path), "--runs", "1", "--threads", "16", "--json"]);
    let Ok(output) = command.output() else {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "no taskset, and CI skips no test");
        println!("SKIPPED: the program taskset is missing");
        return;
    };
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["threads"], 1, "{report}");
}

#[test]
fn bench_tells_how_many_threads_compute() {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let folder = tempdir().unwrap();
    // Enough work for all threads, and for one thread.
    for (size, expected) in [(130, processors.min(64)), (8, 1)] {
        let path = layer(folder.path(), size);
        let asked = ["bench", text(&path), "--runs", "1", "--threads", "64"];
        let report = json(&[&asked[..], &["--json"]].concat());
        assert_eq!(report["threads"], expected, "{report}");
        let shown = stdout(asked);
        let note = shown.contains(&format!(
            "thread{} (of 64 requested), 1 run\n",
            if expected == 1 { "" } else { "s" }
        ));
        assert_eq!(note, expected < 64, "{shown}");
        let one = stdout(["bench", text(&path), "--runs", "1"]);
        assert!(one.contains(", 1 thread, 1 run\n"), "{one}");
    }
}

#[test]
fn classify_sees_the_samples() {
    let labels = fs::read_to_string(model("labels.txt")).unwrap();
    let labels: Vec<&str> = labels.lines().collect();
    let samples = xnn_testing::files_below(&model("samples"), &["png"]);
    assert_eq!(samples.len(), 12);
    for name in [FP32, INT8] {
        let model_path = model(name);
        let labels_path = model("labels.txt");
        let args = ["classify", text(&model_path), "--labels", text(&labels_path), "--top", "1"];
        let shown = stdout(args.into_iter().chain(samples.iter().map(|sample| text(sample))));
        let lines: Vec<&str> = shown.lines().collect();
        for (sample, lines) in samples.iter().zip(lines.chunks(2)) {
            assert!(lines[0].starts_with(text(sample)), "{lines:?}");
            let digit = sample.file_stem().unwrap().to_str().unwrap().rsplit('_').next().unwrap();
            let label = labels[digit.parse::<usize>().unwrap()];
            assert!(lines[1].ends_with(&format!(" {label}")), "{name} {lines:?}");
        }
    }
}

#[test]
fn classify_fits_labels_and_says_so() {
    let folder = tempdir().unwrap();
    let labels = folder.path().join("labels.txt");
    let names = fs::read_to_string(model("labels.txt")).unwrap();
    fs::write(&labels, format!("background\n{names}")).unwrap();
    let [model, sample] = [model(INT8), model("samples/07_digit_7.png")];
    let output = xnn(["classify", text(&model), text(&sample), "--labels", text(&labels)]);
    let notes = String::from_utf8(output.stderr).unwrap();
    assert!(notes.starts_with("note: 11 names for 10 classes"), "{notes}");
    let shown = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = shown.lines().collect();
    assert!(lines[1].ends_with(" seven"), "{shown}");
    assert_eq!(lines.len(), 1 + 5, "{shown}");
}

#[test]
fn version_and_help_say_what_a_person_needs() {
    let version = stdout(["--version"]);
    assert!(version.contains("XNNPACK 4ea82e5") && version.contains("XN01 schema"), "{version}");
    for command in [
        "convert",
        "to-circle",
        "to-tflite",
        "run",
        "explain",
        "inspect",
        "bench",
        "classify",
        "verify",
    ] {
        let help = stdout([command, "--help"]);
        assert!(help.contains(&format!("\n  xnn {command} ")), "{help}");
    }
}

#[test]
fn wrong_usage_has_a_code_of_its_own() {
    let model = model(INT8);
    for args in [
        &[][..],
        &["frobnicate"],
        &["convert"],
        &["run", text(&model), "--threads", "0"],
        &["run", text(&model), "--threads", "many"],
        &["run", text(&model), "--input", "no-file"],
        &["bench", text(&model), "--runs", "0"],
        &["classify", text(&model)],
        &["classify", text(&model), "x.png", "--std", "0"],
        &["convert", text(&model), "--compat", "nobody"],
        &["verify", text(&model), "--tolerance", "-1"],
    ] {
        let output = xnn(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
    }
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let model = model(INT8);
    let mut child = program()
        .args(["explain", text(&model)])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", output.status);
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[cfg(target_os = "linux")]
#[test]
fn output_that_cannot_be_written_is_an_error() {
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = program().args(["explain", text(&model(INT8))]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.starts_with("error: standard output: ") && errors.lines().count() == 1);
}
