//! Compiles partitions with XNNPACK before they are claimed, so that a rejected operator can fall back.

use std::sync::Arc;

use xnn_format::{Blob, Graph};
use xnn_lower::{Compile, CompileError, Refusal, TargetFeatures};
use xnn_runtime::{
    Program, ProgramOptions, RuntimeError, RuntimeErrorKind, SessionOptions, exhausted,
};

/// Creates a partition's operators with XNNPACK.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct XnnpackCompiler {
    /// Storage of packed weights.
    pub program: ProgramOptions,
    /// Options of later sessions. The first of them takes over the operators that are created here.
    pub session: SessionOptions,
}

impl Compile for XnnpackCompiler {
    type Output = Program;

    fn compile(&mut self, graph: &Arc<Graph>) -> Result<Program, CompileError> {
        Program::new(Arc::clone(graph), &self.program)
            .and_then(|program| self.prepared(program))
            .map_err(|error| compile_error(graph, &error))
    }

    fn target_features(&self) -> TargetFeatures {
        target_features()
    }

    fn open(&mut self, blob: Blob) -> Result<Program, CompileError> {
        let graph = Arc::clone(blob.graph());
        Program::from_blob_with(blob, &self.program)
            .and_then(|program| self.prepared(program))
            .map_err(|error| compile_error(&graph, &error))
    }
}

/// Properties of this processor and of the kernels built for it.
#[must_use]
pub fn target_features() -> TargetFeatures {
    TargetFeatures {
        has_fast_uint8: xnn_runtime::has_fast_uint8(),
        has_exact_dynamic_convolutions: xnn_runtime::has_exact_dynamic_convolutions(),
        max_dynamic_depthwise_taps: xnn_runtime::MAX_DYNAMIC_TAPS,
    }
}

impl XnnpackCompiler {
    fn prepared(&self, program: Program) -> Result<Program, RuntimeError> {
        program.prepare(&self.session)?;
        Ok(program)
    }
}

/// Converts XNNPACK's error about a partition's graph to the partitioner's error.
#[must_use]
pub fn compile_error(graph: &Graph, error: &RuntimeError) -> CompileError {
    if error.kind() == RuntimeErrorKind::OutOfMemory {
        return CompileError::OutOfMemory(exhausted(graph));
    }
    let message = error.reason().to_owned();
    let handle = error.failing_node().and_then(|node| graph.nodes.get(node)?.debug_handle);
    let operator = handle.and_then(|handle| usize::try_from(handle).ok());
    Refusal { operator, message }.into()
}
