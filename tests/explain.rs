//! Decisions about every model in `../shared/models`, as text that is reviewed when it changes:
//! `XNN_BLESS=1 cargo test --test explain` writes it.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::fmt::Write;
use std::path::Path;

use xnn_delegate::interpreter::{Entry, InterpOptions, Interpreter};
use xnn_delegate::lower::Delegation;
use xnn_delegate::lower::optimize::SignedLayers;
use xnn_delegate::{Model, PartitionOptions, RunnerBuilder};
use xnn_model::DType;
use xnn_model::op::{FullyConnectedOptions, Op};
use xnn_testing::{GraphBuilder, Random, assert_golden, files_below, shared_dir};

#[test]
fn decisions_about_every_model() {
    let Some(models) = shared_dir("models") else { return };
    let mut text = String::new();
    for file in files_below(&models, &["tflite", "circle"]) {
        let name = file.strip_prefix(&models).unwrap().display().to_string();
        writeln!(text, "{name}: {}", explain(&file)).unwrap();
    }
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/explain.txt");
    assert_golden(golden, &text);
}

/// The summary, a line for each operator that is left, and one for each
/// partition that was optimized.
fn explain(file: &Path) -> String {
    let model = match Model::open(file) {
        Ok(model) => model,
        // Errors begin with the path, which is another on each machine.
        Err(error) => return error.kind().to_string(),
    };
    let mut options = PartitionOptions::default();
    // The default depends on the processor.
    options.optimize.signed_layers = SignedLayers::Exact;
    let delegation = match Delegation::new(model.main().unwrap(), &options) {
        Ok(delegation) => delegation,
        Err(error) => return error.to_string(),
    };
    let report = delegation.report();
    let mut text = report.summary.clone();
    for node in report.nodes {
        if let Some(reason) = node.reason {
            write!(text, "\n    {} {} [{}] {}", node.index, node.op, reason.code, reason.message)
                .unwrap();
        }
    }
    for (index, partition) in report.partitions.iter().enumerate() {
        if !partition.optimization.changes.is_empty() {
            write!(text, "\n    partition {index}: {}", partition.optimization).unwrap();
        }
    }
    text
}

/// A layer whose weights the model turns and quantizes in each run.
fn model_of_constants() -> Model {
    let mut random = Random::new(8);
    let mut g = GraphBuilder::new("main");
    let x = g.input("x", DType::I8, &[2, 24]);
    let stored = g.constant_f32("stored", &[24, 16], &random.f32s(24 * 16, -1.0, 1.0));
    let order = g.constant_i32("order", &[2], &[1, 0]);
    let turned = g.tensor("turned", DType::F32, &[16, 24]);
    let [w, y] = [("w", [16, 24]), ("y", [2, 16])].map(|(n, s)| g.tensor(n, DType::I8, &s));
    g.quantize(x, 0.02, 3).quantize(w, 1.0 / 127.0, 0).quantize(y, 0.1, -5);
    g.op(Op::Transpose, &[stored, order], &[turned]).op(Op::Quantize, &[turned], &[w]);
    g.op(Op::FullyConnected(FullyConnectedOptions::default()), &[x, w], &[y]).output(y);
    g.build_model()
}

#[test]
fn operators_of_constants_can_be_left_to_each_run() {
    let model = model_of_constants();
    let mut options = PartitionOptions::default();
    let delegation = Delegation::new(model.main().unwrap(), &options).unwrap();
    delegation.whole().unwrap();
    assert_eq!(delegation.report().partitions[0].optimization.changes["constants"], 2);
    let json = serde_json::to_value(delegation.report()).unwrap();
    assert_eq!(json["partitions"][0]["optimization"]["changes"]["constants"], 2);

    let mut runner = RunnerBuilder::from_model(&model).partition(options.clone()).build().unwrap();
    let mut reference = Interpreter::new(&model, Entry::Main, &InterpOptions::default()).unwrap();
    for (at, byte) in runner.input_bytes_mut(0).unwrap().iter_mut().enumerate() {
        *byte = (at * 37) as u8;
    }
    reference.input_mut(0).unwrap().bytes.copy_from_slice(runner.input_bytes_mut(0).unwrap());
    runner.run().unwrap();
    reference.run().unwrap();
    let steps = runner.output_bytes(0).unwrap().iter().zip(reference.output(0).unwrap().bytes);
    assert!(steps.into_iter().all(|(a, b)| a.cast_signed().abs_diff(b.cast_signed()) <= 1));

    options.optimize.disable.push("constants".into());
    let delegation = Delegation::new(model.main().unwrap(), &options).unwrap();
    assert!(delegation.whole().is_err(), "{}", delegation.report());
    let text = delegation.report().to_string();
    assert!(!text.contains("constants 2"), "{text}");
}
