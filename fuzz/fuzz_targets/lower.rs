//! Reads bytes as a model, and partitions, lowers and optimizes it.

#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use xnn_delegate::lower::analyze;
use xnn_delegate::{ModelLimits, Model, PartitionOptions};
use xnn_lower::{Compile, CompileError, Refusal, partition};

/// Replaces XNNPACK: accepts graphs that pass the checks and refuses others.
struct Check;

impl Compile for Check {
    type Output = ();

    fn compile(&mut self, graph: &Arc<xnn_format::Graph>) -> Result<(), CompileError> {
        let refusal =
            |error: xnn_format::Error| Refusal { operator: None, message: error.to_string() };
        graph.check().map_err(|error| refusal(error).into())
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut limits = ModelLimits::default();
    limits.max_tensor_bytes = 1 << 20;
    let Ok(model) = Model::from_bytes_with(bytes.to_vec(), &limits) else { return };
    let options = PartitionOptions::default();
    for subgraph in &model.subgraphs {
        if let Ok(inferred) = analyze(Arc::clone(subgraph), &options) {
            let _ = partition(&inferred, &options, &mut Check);
        }
    }
});
