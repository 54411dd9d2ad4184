//! What is decided about every model in `../shared/models`, as text that is
//! reviewed when it changes: `XNN_BLESS=1 cargo test --test explain` writes it.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::fmt::Write;
use std::path::Path;

use xnn_delegate::optimize::SignedLayers;
use xnn_delegate::{Delegation, Model, PartitionOptions};
use xnn_testing::{assert_golden, files_below, shared_dir};

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
    // What is chosen otherwise depends on the processor.
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
