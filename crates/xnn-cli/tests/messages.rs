//! Messages to the user: advice that can be followed, and warnings that name their subject.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use support::{FP32, INT8, converted, json, model, program, refusal, stdout, text, xnn};
use tempfile::{TempDir, tempdir};
use xnn_model::{DType, Dialect, Op, Quantization, write};
use xnn_testing::{GraphBuilder, ModelBuilder, shared_dir};

fn file(folder: &TempDir, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.path().join(name);
    fs::write(&path, content).unwrap();
    path
}

/// `y = op(x)`.
fn unary(op: Op) -> GraphBuilder {
    let mut graph = GraphBuilder::new("unary");
    let (x, y) = (graph.input("x", DType::F32, &[2]), graph.tensor("y", DType::F32, &[2]));
    graph.op(op, &[x], &[y]).output(y);
    graph
}

/// Two entry points, the second of them with names of its own.
fn two_signatures() -> Vec<u8> {
    ModelBuilder::new(Dialect::Tflite)
        .subgraph(unary(Op::Abs))
        .subgraph(unary(Op::Neg))
        .signature("main", 0, &[("x", 0)], &[("y", 1)])
        .signature("sub", 1, &[("in", 0)], &[("out", 1)])
        .build_file()
}

/// Standard error of a command that succeeds.
#[track_caller]
fn notes_of(args: &[&str]) -> String {
    let output = program().args(args).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{args:?}: {said}");
    said
}

#[test]
fn signatures_are_run_by_their_names_after_conversion() {
    let folder = tempdir().unwrap();
    let path = file(&folder, "two.tflite", two_signatures());
    let target = folder.path().join("two.xnn.tflite");
    let shown = stdout(["convert", text(&path)]);
    assert!(shown.contains("signatures run other subgraphs"), "{shown}");
    let input = file(&folder, "in.bin", [1.0f32, -2.0].map(f32::to_le_bytes).concat());
    let input = format!("in={}", text(&input));
    let [model, converted] = [&path, &target].map(|path| {
        let shown = stdout(["run", text(path), "--signature", "sub", "--input", &input]);
        assert!(shown.contains("0 (out)"), "{shown}");
        shown
    });
    assert_eq!(model, converted);
}

#[test]
fn explain_sums_up_other_subgraphs() {
    let folder = tempdir().unwrap();
    let path = file(&folder, "two.tflite", two_signatures());
    let shown = stdout(["explain", text(&path)]);
    let last = shown.lines().last().unwrap();
    assert!(last.starts_with("subgraph 1 (\"unary\")") && last.contains("1 of 1"), "{shown}");
    assert!(shown.contains("ABS") && !shown.contains("NEG"), "{shown}");
    let shown = stdout(["explain", text(&path), "--subgraph", "1"]);
    assert!(shown.contains("NEG") && !shown.contains("ABS"), "{shown}");
    let report = json(&["explain", text(&path), "--json"]);
    assert_eq!([&report["subgraph"], &report["others"][0]["subgraph"]], [0, 1]);
    let line = refusal(["explain", text(&path), "--subgraph", "2"]);
    assert!(line.ends_with("no subgraph 2: the model has 2, from 0"), "{line}");
}

#[test]
fn files_of_another_kind_come_with_the_command_for_them() {
    let folder = tempdir().unwrap();
    let blob = converted(&model(INT8), folder.path());
    for command in ["explain", "convert"] {
        let line = refusal([command, text(&blob)]);
        assert!(line.starts_with(text(&blob)) && line.ends_with("pass the model"), "{line}");
    }
    let target = folder.path().join("packed.xnn");
    let line = refusal(["pack", text(&model(INT8)), "-o", text(&target)]);
    assert!(line.contains("xnn convert --pack"), "{line}");
    let line = refusal(["metadata", text(&blob)]);
    assert!(line.contains("add some to the model with xnn metadata add"), "{line}");
    let help = stdout(["verify", "--help"]);
    assert!(help.contains("<MODEL>") && !help.contains("BLOB"), "{help}");
    let Some(interop) = shared_dir("interop") else { return };
    let program = interop.join("et_1.5.1/linear_fp32/model.pte");
    for command in ["run", "explain", "convert", "bench"] {
        let line = refusal([command, text(&program)]);
        assert!(line.starts_with(text(&program)) && line.contains("xnn extract"), "{line}");
    }
    let payload = interop.join("et_1.5.1/linear_fp32/payload.xnn");
    for command in ["run", "inspect"] {
        let line = refusal([command, text(&payload)]);
        assert!(line.starts_with(text(&payload)) && line.contains("xnn extract"), "{line}");
    }
}

#[test]
fn strings_come_from_arrays_and_go_to_them() {
    let folder = tempdir().unwrap();
    let mut graph = GraphBuilder::new("main");
    let x = graph.input("x", DType::String, &[2]);
    let axis = graph.constant_i32("axis", &[1], &[0]);
    let y = graph.tensor("y", DType::String, &[2]);
    graph.op(Op::ReverseV2, &[x, axis], &[y]).output(y);
    let file = file(&folder, "strings.tflite", {
        ModelBuilder::new(Dialect::Tflite).subgraph(graph).build_file()
    });
    let array = |strings: &[u8], width: usize| {
        let header = format!("{{'descr': '|S{width}', 'fortran_order': False, 'shape': (2,), }}\n");
        let mut npy = b"\x93NUMPY\x01\x00".to_vec();
        npy.extend((header.len() as u16).to_le_bytes());
        npy.extend(header.bytes());
        npy.extend(strings);
        npy
    };
    let input = folder.path().join("in.npy");
    fs::write(&input, array(b"one\0\0three", 5)).unwrap();
    let given = format!("x={}", text(&input));
    stdout(["run", text(&file), "--input", &given, "--output-dir", text(folder.path())]);
    let output = fs::read(folder.path().join("out_0.npy")).unwrap();
    assert!(output.ends_with(b"threeone\0\0"), "{output:?}");
    let line = refusal(["run", text(&file)]);
    assert!(
        line.contains("input 0 (x): random elements of type string are not supported"),
        "{line}"
    );
    let line = refusal(["run", text(&file), "--input", &format!("x={}", text(&file))]);
    assert!(line.contains("not a .npy file"), "{line}");
    fs::write(&input, array(b"one\0\0thr", 5)).unwrap();
    let line = refusal(["run", text(&file), "--input", &given]);
    assert!(line.contains("expected 2 strings of 5 bytes, found 8 bytes of data"), "{line}");
}

#[test]
fn other_readers_get_all_of_a_model_or_the_operators_that_they_do_not_know() {
    let folder = tempdir().unwrap();
    let convert = |path: &Path| {
        let target = folder.path().join("out.xnn");
        let args = ["convert", text(path), "--compat", "executorch", "-o", text(&target)];
        let output = xnn(args);
        assert_eq!(output.status.code(), Some(1));
        assert!(!target.exists());
        String::from_utf8(output.stderr).unwrap()
    };
    let mut graph = unary(Op::Abs);
    let z = graph.tensor("z", DType::I64, &[]);
    graph.op(Op::Where, &[1], &[z]).output(z);
    let model = ModelBuilder::new(Dialect::Tflite).subgraph(graph).build_file();
    let errors = convert(&file(&folder, "where.tflite", model));
    assert!(errors.contains("operator 1 (WHERE)"), "{errors}");
    let errors = convert(&file(&folder, "exp.tflite", {
        ModelBuilder::new(Dialect::Tflite).subgraph(unary(Op::Exp)).build_file()
    }));
    assert!(errors.contains("Exp of EXP#0") && errors.contains("without --compat"), "{errors}");
}

#[test]
fn options_without_effect_are_named() {
    let folder = tempdir().unwrap();
    let blob = converted(&model(FP32), folder.path());
    for option in ["--no-optimize", "--keep-small"] {
        let said = notes_of(&["run", text(&blob), option]);
        let expected = format!("warning: {}: options for partitioning", text(&blob));
        assert!(said.starts_with(&expected) && said.lines().count() == 1, "{said}");
        assert_eq!(notes_of(&["run", text(&model(FP32)), option]), "");
    }
    assert_eq!(notes_of(&["run", text(&blob)]), "");
}

#[test]
fn runs_that_are_done_too_late_fail_too() {
    for name in [FP32, INT8] {
        let line = refusal(["run", text(&model(name)), "--timeout", "0"]);
        assert!(line.starts_with(text(&model(name))), "{line}");
        assert!(line.ends_with("not finished within 0ns (--timeout)"), "{line}");
    }
    stdout(["run", text(&model(FP32)), "--timeout", "600"]);
}

/// Convolutions whose biases say that a fourth dimension is quantized.
fn odd_axes(count: usize) -> Vec<u8> {
    let mut graph = unary(Op::Abs);
    for index in 0..count {
        let name = format!("odd{index}");
        let id = graph.constant_i32(&name, &[2], &[1, 2]);
        graph.quantize_per_axis(id, &[0.5, 0.25], 0);
    }
    let mut model = ModelBuilder::new(Dialect::Tflite).subgraph(graph).build();
    for tensor in &mut Arc::make_mut(&mut model.subgraphs[0]).tensors {
        if let Some(Quantization::PerAxis { axis, .. }) = &mut tensor.quantization {
            *axis = 3;
        }
    }
    write::to_tflite(&model).unwrap()
}

#[test]
fn what_does_no_harm_is_said_once_and_only_if_asked_for() {
    let folder = tempdir().unwrap();
    let path = file(&folder, "odd.tflite", odd_axes(3));
    assert_eq!(notes_of(&["explain", text(&path)]), "");
    let said = notes_of(&["-v", "explain", text(&path)]);
    let expected = format!("info: {}: tensor 2 (\"odd0\"): the quantized dimension 3", text(&path));
    assert!(said.starts_with(&expected), "{said}");
    assert!(said.ends_with("(and in 2 more places)\n") && said.lines().count() == 1, "{said}");

    let Some(models) = shared_dir("models") else { return };
    for (name, what) in
        [("cartoon_gan_int8", "aligned to 4 bytes"), ("person_detect_int8", "of rank 1")]
    {
        let path = models.join(name).with_extension("tflite");
        assert_eq!(notes_of(&["inspect", text(&path)]), "");
        let said = notes_of(&["-v", "inspect", text(&path)]);
        assert!(said.starts_with(&format!("info: {}: ", text(&path))), "{said}");
        assert!(said.contains(what) && said.lines().count() == 1, "{said}");
    }
}

/// Partitions are compiled before sessions are created, which take over the operators whatever the
/// number of threads.
#[test]
fn operators_are_created_once() {
    let model = model(FP32);
    let created = |args: &[&str]| {
        let args = [&["run", text(&model), "-vv"], args].concat();
        notes_of(&args).matches("created the operators").count()
    };
    for threads in ["1", "2"] {
        assert_eq!(created(&["--threads", threads]), 1);
        assert_eq!(created(&["--threads", threads, "--disable", "SOFTMAX"]), 1);
        assert_eq!(created(&["--threads", threads, "--disable", "MEAN"]), 2);
    }
}
