//! Bad input: one line that names the file, exit code 1, nothing left behind.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use support::{FP32, INT8, converted, model, refusal, stdout, text, xnn};
use tempfile::{TempDir, tempdir};
use xnn_model::op::CustomOptions;
use xnn_model::{DType, Dialect, Op};
use xnn_testing::{GraphBuilder, ModelBuilder};

/// All commands, on what may be a model or blob.
fn commands(path: &str, folder: &str) -> Vec<Vec<String>> {
    let image = model("samples/00_digit_0.png");
    let commands: [&[&str]; 6] = [
        &["convert", path, "-o", &format!("{folder}/out.xnn")],
        &["run", path, "--output-dir", &format!("{folder}/out")],
        &["explain", path],
        &["inspect", path],
        &["bench", path, "--runs", "1"],
        &["classify", path, text(&image)],
    ];
    commands.iter().map(|args| args.iter().map(|&arg| arg.to_owned()).collect()).collect()
}

#[track_caller]
fn assert_refused(path: &Path, expected: &str) {
    let folder = tempdir().unwrap();
    for args in commands(text(path), text(folder.path())) {
        let line = refusal(&args);
        assert!(line.starts_with(text(path)), "{args:?}: {line}");
        assert!(line.contains(expected), "{args:?}: {line}");
        assert_empty(&folder);
    }
}

#[track_caller]
fn assert_empty(folder: &TempDir) {
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

fn write(folder: &TempDir, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.path().join(name);
    fs::write(&path, content).unwrap();
    path
}

/// Bytes that look like noise, the same ones each time (xorshift).
fn noise(mut state: u64) -> impl FnMut() -> u64 {
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    }
}

#[test]
fn files_that_are_no_model() {
    let folder = tempdir().unwrap();
    let mut random = noise(1);
    let random: Vec<u8> = (0..4096).map(|_| random() as u8).collect();
    let mut identifier = fs::read(model(INT8)).unwrap();
    identifier[4..8].copy_from_slice(b"TFL9");
    for (name, content, expected) in [
        ("empty.tflite", &b""[..], "empty"),
        ("short.tflite", b"\x1c\0\0\0TFL", "short"),
        ("text.tflite", b"a model would be nice, but this is only some text\n", "not a"),
        ("random.tflite", &random, "not a"),
        ("identifier.tflite", &identifier, "TFL9"),
        ("zeros.xnn", &[0; 64], "not a"),
        ("header.xnn", b"\0\0\0\0XH00\x1e\0\0\0", ""),
        ("bare.xnn", b"\x08\0\0\0XN01\0\0\0\0\0\0\0\0", ""),
    ] {
        assert_refused(&write(&folder, name, content), expected);
    }
}

/// To which nobody writes: whoever waited would wait for ever.
#[cfg(unix)]
#[test]
fn pipes_are_no_models() {
    let folder = tempdir().unwrap();
    let pipe = folder.path().join("pipe.tflite");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    assert_refused(&pipe, "not a regular file");
    let line = refusal(["extract", text(&pipe), "-o", text(&folder.path().join("out"))]);
    assert!(line.contains("not a regular file"), "{line}");
}

/// `x → XNNGraph → y` with this graph, both tensors fp32 `[1, 4]`.
fn holding(graph: &[u8]) -> Vec<u8> {
    let options = CustomOptions { code: "XNNGraph".into(), options: graph.to_vec().into() };
    let mut graph = GraphBuilder::new("main");
    let x = graph.input("x", DType::F32, &[1, 4]);
    let y = graph.tensor("y", DType::F32, &[1, 4]);
    graph.op(Op::Custom(options), &[x], &[y]).output(y);
    ModelBuilder::new(Dialect::Tflite).subgraph(graph).build_file()
}

#[test]
fn graphs_inside_models_that_cannot_be_used() {
    let folder = tempdir().unwrap();
    let whole = fs::read(converted(&model(FP32), folder.path())).unwrap();
    let mut random = noise(9);
    let random: Vec<u8> = (0..4096).map(|_| random() as u8).collect();
    for (name, graph) in [
        ("nothing", &b""[..]),
        ("text", b"a graph would be nice, but this is only some text"),
        ("random", &random),
        ("half", &whole[..whole.len() / 2]),
        // Its input is an image.
        ("misfit", &whole),
    ] {
        let path = write(&folder, &format!("{name}.tflite"), holding(graph));
        for command in [&["run"][..], &["bench", "--runs", "1"], &["classify", "x.png"]] {
            let line = refusal([command[0], text(&path)].iter().chain(&command[1..]));
            assert!(line.starts_with(text(&path)), "{line}");
            assert!(line.contains("operator 0 (XNNGraph)"), "{line}");
        }
        let output = xnn(["convert", text(&path)]);
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{errors}");
        assert!(errors.contains("operator 0 (XNNGraph)"), "{errors}");
        let shown = stdout(["explain", text(&path)]);
        assert!(shown.contains("[embedded-graph]"), "{shown}");
        let shown = stdout(["inspect", text(&path)]);
        assert!(shown.contains("cannot be read") || name == "misfit", "{shown}");
    }
}

#[test]
fn paths_that_are_no_file() {
    let folder = tempdir().unwrap();
    assert_refused(folder.path(), "");
    assert_refused(&folder.path().join("missing.tflite"), "No such file");
}

/// Dense at both ends, coarse between.
fn cuts(length: usize) -> Vec<usize> {
    let ends = (0..40).chain(length - 8..length);
    ends.chain((1..30).map(|part| length * part / 30)).collect()
}

#[test]
fn truncated_models() {
    let folder = tempdir().unwrap();
    let whole = fs::read(model(INT8)).unwrap();
    for cut in cuts(whole.len()) {
        let path = write(&folder, "cut.tflite", &whole[..cut]);
        let line = refusal(["explain", text(&path)]);
        assert!(line.starts_with(text(&path)), "{cut}: {line}");
    }
    assert_refused(&write(&folder, "half.tflite", &whole[..whole.len() / 2]), "");
}

#[test]
fn truncated_blobs() {
    let folder = tempdir().unwrap();
    let whole = fs::read(converted(&model(INT8), folder.path())).unwrap();
    for cut in cuts(whole.len()) {
        let path = write(&folder, "cut.xnn", &whole[..cut]);
        let line = refusal(["inspect", text(&path)]);
        assert!(line.starts_with(text(&path)), "{cut}: {line}");
    }
    let half = write(&folder, "half.xnn", &whole[..whole.len() / 2]);
    let [run, bench] = [["run", text(&half)], ["bench", text(&half)]].map(refusal);
    assert!(run.contains("half.xnn") && bench.contains("half.xnn"));
}

#[test]
fn models_and_blobs_with_changed_bytes_never_crash() {
    let folder = tempdir().unwrap();
    let blob = converted(&model(INT8), folder.path());
    for (source, name) in [(model(INT8), "changed.tflite"), (blob, "changed.xnn")] {
        let whole = fs::read(source).unwrap();
        for seed in 1..40 {
            let mut random = noise(seed);
            let mut changed = whole.clone();
            for _ in 0..1 + seed % 8 {
                // Structure is at the start and end, weights between.
                let at = match random() % 3 {
                    0 => random() as usize % 4096,
                    1 => whole.len() - 1 - random() as usize % 80_000,
                    _ => random() as usize % whole.len(),
                };
                changed[at] = random() as u8;
            }
            let path = write(&folder, name, changed);
            let output = xnn(["run", text(&path)]);
            let errors = String::from_utf8_lossy(&output.stderr);
            // None where a signal ended it, 101 after a panic.
            assert!(matches!(output.status.code(), Some(0 | 1)), "{name} {seed}: {errors}");
        }
    }
}

#[test]
fn inputs_that_do_not_fit() {
    let folder = tempdir().unwrap();
    let header = |dtype: &str, order: &str, shape: &str, data: usize| {
        let header =
            format!("{{'descr': '{dtype}', 'fortran_order': {order}, 'shape': {shape}, }}\n");
        let mut file = b"\x93NUMPY\x01\0".to_vec();
        file.extend((header.len() as u16).to_le_bytes());
        file.extend(header.bytes());
        file.resize(file.len() + data, 0);
        file
    };
    let shape = "(1, 48, 48, 3)";
    let size = 48 * 48 * 3;
    let good = header("|i1", "False", shape, size);
    for (name, content, expected) in [
        ("shape.npy", header("|i1", "False", "(1, 3, 48, 48)", size), "found 1x3x48x48"),
        ("ones.npy", header("|i1", "False", "(48, 48, 3)", size), "save x.reshape(1, 48, 48, 3)"),
        (
            "rank.npy",
            header("|i1", "False", "(6912,)", size),
            "expected shape 1x48x48x3, found 6912",
        ),
        (
            "dtype.npy",
            header("<f4", "False", shape, 4 * size),
            "expected dtype '|i1', found '<f4'; save x.astype",
        ),
        ("unsigned.npy", header("|u1", "False", shape, size), "expected dtype '|i1', found '|u1'"),
        ("short.npy", header("|i1", "False", shape, size - 1), "found 6911"),
        ("long.npy", header("|i1", "False", shape, size + 1), "found 6913"),
        ("huge.npy", header("|i1", "False", "(4294967296, 4294967296)", 0), "huge.npy"),
        ("objects.npy", header("|O", "False", shape, size), "objects.npy"),
        ("cut.npy", good[..40].to_vec(), "truncated"),
        ("text.npy", b"1 2 3\n".to_vec(), "not a .npy file"),
        ("empty.npy", Vec::new(), "not a .npy file"),
        ("short.bin", vec![0; size - 1], "found 6911"),
        ("long.bin", vec![0; size + 1], "found 6913"),
        ("endless.bin", vec![0; size + 100_000], "found more"),
        ("empty.bin", Vec::new(), "found 0"),
    ] {
        let file = write(&folder, name, content);
        let out = folder.path().join("out");
        let input = format!("0={}", text(&file));
        let line =
            refusal(["run", text(&model(INT8)), "--input", &input, "--output-dir", text(&out)]);
        assert!(line.starts_with(text(&file)) && line.contains(expected), "{name}: {line}");
        assert!(line.contains(": input 0 (serving_default_image"), "{name}: {line}");
        assert!(!out.exists());
    }
    let run = |input: &str| refusal(["run", text(&model(INT8)), "--input", input]);
    let in_model = |line: String| line.starts_with(text(&model(INT8))).then_some(line).unwrap();
    let missing = folder.path().join("missing.npy");
    assert!(run(&format!("0={}", text(&missing))).starts_with(text(&missing)));
    assert!(run(&format!("0={}", text(folder.path()))).contains("directory"));
    let file = write(&folder, "good.npy", good);
    assert!(in_model(run(&format!("1={}", text(&file)))).contains("no input \"1\""));
    assert!(run(&format!("pixels={}", text(&file))).contains("serving_default_image"));
    let input = format!("0={}", text(&file));
    let twice = refusal(["run", text(&model(INT8)), "--input", &input, "--input", &input]);
    assert!(in_model(twice).contains("is given twice"));
}

#[cfg(unix)]
#[test]
fn files_of_inputs_have_any_name() {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;

    let folder = tempdir().unwrap();
    let name = OsString::from_vec(b"\xff=.bin".to_vec());
    fs::write(folder.path().join(&name), vec![0; 48 * 48 * 3]).unwrap();
    let mut input = OsString::from("0=");
    input.push(folder.path().join(&name));
    stdout(["run".into(), model(INT8).into_os_string(), "--input".into(), input]);
}

#[test]
fn images_that_are_none() {
    let folder = tempdir().unwrap();
    let sample = fs::read(model("samples/03_digit_3.png")).unwrap();
    let classify = |path: &Path| refusal(["classify", text(&model(INT8)), text(path)]);
    // A header for 30000 x 30000 pixels, without their data.
    let mut huge = b"BM\0\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0".to_vec();
    huge.extend([30_000u32.to_le_bytes(), 30_000u32.to_le_bytes(), [1, 0, 24, 0]].concat());
    huge.resize(100, 0);
    for (name, content) in [
        ("empty.png", &b""[..]),
        ("huge.bmp", &huge),
        ("text.jpg", b"no image, only text"),
        ("cut.png", &sample[..sample.len() / 2]),
        ("header.png", &sample[..20]),
        ("model.bmp", b"BM\x1c\0\0\0TFL3"),
    ] {
        let path = write(&folder, name, content);
        let line = classify(&path);
        assert!(line.starts_with(text(&path)), "{line}");
    }
    assert!(classify(folder.path()).starts_with(text(folder.path())));
    assert!(classify(&folder.path().join("missing.png")).contains("No such file"));
}

#[test]
fn labels_and_normalizations_that_do_not_fit() {
    let folder = tempdir().unwrap();
    let sample = model("samples/03_digit_3.png");
    let classify = |flag: &str, value: &str| {
        refusal(["classify", text(&model(FP32)), text(&sample), flag, value])
    };
    let few = write(&folder, "few.txt", "one\ntwo\n");
    let line = classify("--labels", text(&few));
    assert!(line.starts_with(text(&few)) && line.contains("2 names"), "{line}");
    let binary = write(&folder, "binary.txt", [0xff, 0xfe, 0x00]);
    assert!(classify("--labels", text(&binary)).starts_with(text(&binary)));
    let missing = folder.path().join("missing.txt");
    assert!(classify("--labels", text(&missing)).starts_with(text(&missing)));
    if cfg!(unix) {
        assert!(classify("--labels", "/dev/zero").contains("has more than 268435456 bytes"));
    }
    assert!(classify("--mean", "1,2").contains("for 3 channels, found 2"));
}

#[test]
fn outputs_that_cannot_be_written() {
    let folder = tempdir().unwrap();
    let model = model(INT8);
    let convert = |target: &Path| refusal(["convert", text(&model), "-o", text(target)]);
    let missing = folder.path().join("missing/out.xnn");
    assert!(convert(&missing).contains("does not exist"));
    for target in [missing, folder.path().to_owned()] {
        let line = convert(&target);
        assert!(line.starts_with(text(&target)) && line.contains("written"), "{line}");
        assert_empty(&folder);
    }
    let copy = folder.path().join("copy.tflite");
    fs::copy(&model, &copy).unwrap();
    for command in [&["convert"][..], &["to-tflite"], &["to-circle"], &["metadata", "add"]] {
        let line = refusal([command, &[text(&copy), "-o", text(&copy)]].concat());
        assert!(line.contains("would overwrite its input"), "{line}");
        assert_eq!(fs::read(&copy).unwrap(), fs::read(&model).unwrap());
    }
    let labels = write(&folder, "labels.txt", "one\n");
    let labels = text(&labels);
    let line = refusal(["metadata", "add", text(&copy), "--labels", labels, "-o", labels]);
    assert!(line.starts_with(labels) && line.contains("would overwrite its input"), "{line}");

    let line = refusal(["run", text(&model), "--output-dir", text(&copy)]);
    assert!(line.starts_with(text(&copy)), "{line}");
}

#[test]
fn models_that_do_not_convert_whole_tell_why() {
    let Some(models) = xnn_testing::shared_dir("models") else { return };
    let folder = tempdir().unwrap();
    let path = models.join("ssd_mobilenet_v1_coco_quant.tflite");
    let target = folder.path().join("out.xnn");
    let output = xnn(["convert", text(&path), "-o", text(&target), "--require-full"]);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(
        errors.starts_with(&format!("error: {}: the model is not fully delegated", path.display())),
        "{errors}"
    );
    assert!(errors.contains("TFLite_Detection_PostProcess"), "{errors}");
    assert_empty(&folder);
}

#[test]
fn models_that_run_nowhere_name_the_operator() {
    let folder = tempdir().unwrap();
    let mut graph = GraphBuilder::new("main");
    let x = graph.input("x", DType::F32, &[1, 4]);
    let y = graph.tensor("y", DType::F32, &[1, 4]);
    let z = graph.tensor("z", DType::F32, &[1, 4]);
    let custom = CustomOptions { code: "Frobnicate".into(), ..CustomOptions::default() };
    graph.op(Op::Tanh, &[x], &[y]).op(Op::Custom(custom), &[y], &[z]).output(z);
    let file = ModelBuilder::new(Dialect::Tflite).subgraph(graph).build_file();
    let path = write(&folder, "custom.tflite", file);
    for command in ["run", "bench"] {
        let line = refusal([command, text(&path)]);
        assert!(line.starts_with(text(&path)), "{line}");
        assert!(line.contains("operator 1 (Frobnicate)"), "{line}");
    }
}

#[test]
fn runs_end_at_their_bounds() {
    let folder = tempdir().unwrap();
    let path = write(&folder, "endless.tflite", ModelBuilder::looping(2.0).build_file());
    let line = refusal(["run", text(&path), "--max-iterations", "100"]);
    assert!(line.contains("operator 0 (WHILE)") && line.contains("limit of 100"), "{line}");
    let line = refusal(["run", text(&path), "--timeout", "0.05"]);
    assert!(line.starts_with(text(&path)) && line.contains("within 50ms"), "{line}");
    let line = refusal(["run", text(&model(INT8)), "--max-tensor-bytes", "1000"]);
    assert!(line.contains("above the limit of 1000"), "{line}");
    assert_eq!(xnn(["run", text(&path), "--timeout", "-1"]).status.code(), Some(2));
}

#[test]
fn partial_models_have_no_profile() {
    let Some(models) = xnn_testing::shared_dir("models") else { return };
    let path = models.join("mnist_lstm_int8.tflite");
    let line = refusal(["bench", text(&path), "--profile"]);
    assert!(line.starts_with(text(&path)) && line.contains("3 of 4 operators"), "{line}");
}

#[test]
fn what_the_other_dialect_cannot_say_is_named() {
    let folder = tempdir().unwrap();
    let mut graph = GraphBuilder::new("main");
    let x = graph.input("x", DType::F32, &[1, 4]);
    let gamma = graph.constant_f32("gamma", &[4], &[1.0; 4]);
    let y = graph.tensor("y", DType::F32, &[1, 4]);
    graph.op(Op::RmsNorm(Default::default()), &[x, gamma], &[y]).output(y);
    let file = ModelBuilder::new(Dialect::Circle).subgraph(graph).build_file();
    let path = write(&folder, "norm.circle", file);
    let target = folder.path().join("norm.tflite");
    let line = refusal(["to-tflite", text(&path), "-o", text(&target)]);
    assert_eq!(
        line,
        format!(
            "{}: subgraph 0: operator 0 (RMS_NORM): TFLite does not have this operator",
            path.display()
        )
    );
    assert!(!target.exists());
}
