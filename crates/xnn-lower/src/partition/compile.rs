//! The interface through which the partitioner asks a backend to compile a graph.

use std::sync::Arc;

use xnn_format::{Blob, Graph};
use xnn_model::OutOfMemory;

use crate::target::TargetFeatures;

/// Compiles lowered graphs. Only operators whose graph compiles are delegated.
pub trait Compile {
    /// A compiled graph.
    type Output;

    /// Creates the graph's operators.
    ///
    /// # Errors
    ///
    /// The backend refuses the graph, or memory is exhausted.
    fn compile(&mut self, graph: &Arc<Graph>) -> Result<Self::Output, CompileError>;

    /// Properties of the processor that graphs are compiled for.
    fn target_features(&self) -> TargetFeatures {
        TargetFeatures::default()
    }

    /// Creates the operators of a graph that the model embeds as a blob.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Compile::compile`].
    fn open(&mut self, blob: Blob) -> Result<Self::Output, CompileError> {
        self.compile(blob.graph())
    }
}

/// Why a graph was not compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CompileError {
    /// The backend does not accept the graph: operators fall back to the interpreter.
    Refused(Refusal),
    /// Memory is exhausted. Partitioning is aborted, because this is not a property of the
    /// operators.
    OutOfMemory(OutOfMemory),
}

impl From<Refusal> for CompileError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// A backend's refusal of a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Index of the model's failing operator; `None` if it is unknown.
    pub operator: Option<usize>,
    /// XNNPACK's message.
    pub message: String,
}

/// Accepts every graph, for tools that do not link XNNPACK.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unchecked;

impl Compile for Unchecked {
    type Output = ();

    fn compile(&mut self, _: &Arc<Graph>) -> Result<(), CompileError> {
        Ok(())
    }
}
