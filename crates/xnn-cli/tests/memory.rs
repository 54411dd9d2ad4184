//! Little memory: a result, or one line that says what there was none for; never an abort.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use support::text;
use tempfile::tempdir;
use xnn_model::{DType, Op};
use xnn_testing::GraphBuilder;

/// Side of the weights.
const SIDE: usize = 1024;

/// Three layers of 2 or 4 MB each, and something that stays with reference kernels between two of them.
fn layers(weights: DType) -> Vec<u8> {
    let mut graph = GraphBuilder::new("main");
    let mut x = graph.input("x", DType::F32, &[1, SIDE]);
    for layer in 0..3 {
        let bytes = vec![layer as u8; weights.byte_size(SIDE * SIDE).unwrap()];
        let mut filter = graph.constant("w", weights, &[SIDE, SIDE], bytes);
        if weights == DType::F16 {
            let floats = graph.tensor("floats", DType::F32, &[SIDE, SIDE]);
            graph.op(Op::Dequantize, &[filter], &[floats]);
            filter = floats;
        }
        let y = graph.tensor("y", DType::F32, &[1, SIDE]);
        graph.op(Op::FullyConnected(Default::default()), &[x, filter], &[y]);
        x = y;
        if layer == 1 {
            let y = graph.tensor("cos", DType::F32, &[1, SIDE]);
            graph.op(Op::Cos, &[x], &[y]);
            x = y;
        }
    }
    graph.output(x);
    xnn_model::write::to_tflite(&graph.build_model()).unwrap()
}

/// Runs the program with so much address space, in kB.
fn limited(kilobytes: usize, args: &[&str]) -> Output {
    let script = format!("ulimit -c 0; ulimit -v {kilobytes}; exec \"$0\" \"$@\"");
    Command::new("sh")
        .args(["-c", &script, env!("CARGO_BIN_EXE_xnn")])
        .args(args)
        .env_remove("RUST_LOG")
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// Address space, in kB, that the program needs before it opens a file.
fn taken_by_the_program() -> usize {
    let starts = |&kilobytes: &usize| limited(kilobytes, &["help", "convert"]).status.success();
    (8_000..400_000).step_by(1000).find(starts).unwrap()
}

fn commands(model: &str, folder: &Path) -> Vec<Vec<String>> {
    let out = folder.join("out.xnn");
    let commands: [&[&str]; 5] = [
        &["convert", model, "-o", text(&out)],
        &["convert", model, "-o", text(&out), "--pack"],
        &["run", model],
        &["explain", model],
        &["bench", model, "--runs", "1"],
    ];
    commands.iter().map(|args| args.iter().map(|&arg| arg.to_owned()).collect()).collect()
}

#[test]
fn too_little_memory_is_said_in_one_line() {
    let folder = tempdir().unwrap();
    let models: Vec<PathBuf> = [("f32", DType::F32), ("f16", DType::F16)]
        .map(|(name, weights)| {
            let path = folder.path().join(name).with_extension("tflite");
            fs::write(&path, layers(weights)).unwrap();
            path
        })
        .into();
    let (least, mut exhausted, mut succeeded) = (taken_by_the_program(), 0, 0);
    for (model, more) in models.iter().flat_map(|model| {
        // Odd steps, so that limits meet allocations of every size.
        (0..60_000).step_by(3_511).map(move |more| (model, more))
    }) {
        for args in commands(text(model), folder.path()) {
            let words: Vec<&str> = args.iter().map(String::as_str).collect();
            let output = limited(least + more, &words);
            let errors = String::from_utf8_lossy(&output.stderr);
            match output.status.code() {
                Some(0) => succeeded += 1,
                Some(1) => {
                    exhausted += 1;
                    assert!(errors.lines().count() == 1, "{more} {args:?}: {errors}");
                    assert!(errors.contains("memory"), "{more} {args:?}: {errors}");
                }
                _ => panic!("{more} {args:?}: {}: {errors}", output.status),
            }
        }
    }
    assert!(exhausted > 20 && succeeded > 20, "{exhausted} and {succeeded} from {least} kB on");
}
