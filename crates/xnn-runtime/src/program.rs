//! Checked graphs, ready for XNNPACK.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use xnn_format::{Blob, Graph};
use xnnpack::{Runtime, RuntimeOptions, Subgraph, WeightsCache};

use crate::culprit;
use crate::define::{self, Defined};
use crate::error::{Result, RuntimeError};

/// A graph that XNNPACK's rules allow, its constants, and the weights that sessions have packed.
///
/// Cheap to clone; all clones share everything. Weights are packed by the first session (or by
/// [`Program::check_compiles`]) and found there by all later ones.
#[derive(Clone)]
pub struct Program(Arc<Inner>);

struct Inner {
    graph: Graph,
    subgraph: Arc<Subgraph>,
    /// See [`Defined::origins`].
    origins: Vec<usize>,
    /// `None` where packed weights cannot be shared.
    weights: Option<WeightsCache>,
}

/// Choices for a [`Program`].
#[derive(Clone, Debug, Default)]
pub struct ProgramOptions {
    /// Where packed weights are kept; by default in the memory of this process.
    pub weights_cache: Option<WeightsCache>,
}

impl Program {
    /// Checks `graph` and prepares it.
    ///
    /// # Errors
    /// The graph is malformed, or has a node that XNNPACK does not compute with these operands;
    /// [`RuntimeError::culprit`] tells which. XNNPACK itself has its say when the first session is
    /// made; [`Program::check_compiles`] asks at once.
    pub fn new(graph: Graph, options: &ProgramOptions) -> Result<Self> {
        graph.check().map_err(|error| RuntimeError::of_check(&graph, &error))?;
        Self::checked(graph, &Bytes::new(), options)
    }

    /// The program in a blob; constants stay where they are in it.
    ///
    /// # Errors
    /// As [`Program::new`].
    pub fn from_blob(blob: Blob) -> Result<Self> {
        let storage = blob.storage().clone();
        Self::checked(blob.into_graph(), &storage, &ProgramOptions::default())
    }

    fn checked(graph: Graph, storage: &Bytes, options: &ProgramOptions) -> Result<Self> {
        let Defined { subgraph, origins, sparse } = define::graph(&graph, storage)?;
        let shared = || options.weights_cache.clone().unwrap_or_else(WeightsCache::in_process);
        let weights = (!sparse).then(shared);
        log::debug!("{} nodes over {} values", graph.nodes.len(), graph.values.len());
        Ok(Self(Arc::new(Inner { graph, subgraph: Arc::new(subgraph), origins, weights })))
    }

    /// The graph.
    #[must_use]
    pub fn graph(&self) -> &Graph {
        &self.0.graph
    }

    /// Has XNNPACK create all operators, and throws them away. The weights that it packs for them
    /// are kept for sessions.
    ///
    /// # Errors
    /// XNNPACK refuses the graph; [`RuntimeError::culprit`] tells the node.
    pub fn check_compiles(&self) -> Result<()> {
        self.runtime(RuntimeOptions::default()).map(drop)
    }

    /// A runtime that has the shapes that the graph gives its inputs.
    pub(crate) fn runtime(&self, options: RuntimeOptions) -> Result<Runtime> {
        let options = RuntimeOptions { weights_cache: self.0.weights.clone(), ..options };
        shaped(Arc::clone(&self.0.subgraph), &options)
            .map_err(|error| culprit::find(&self.0.graph, error))
    }

    /// See [`Defined::origins`].
    pub(crate) fn origins(&self) -> &[usize] {
        &self.0.origins
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Program({} nodes)", self.0.graph.nodes.len())
    }
}

/// Whether XNNPACK takes all of `graph`: what a partitioner asks before it claims the nodes.
///
/// # Errors
/// It does not; [`RuntimeError::culprit`] names the node to leave out.
pub fn compile(graph: &Graph) -> Result<()> {
    Program::new(graph.clone(), &ProgramOptions::default())?.check_compiles()
}

/// A runtime for `subgraph`, its memory planned.
pub(crate) fn shaped(subgraph: Arc<Subgraph>, options: &RuntimeOptions) -> Result<Runtime> {
    let mut runtime = Runtime::new(subgraph, options)?;
    runtime.reshape()?;
    Ok(runtime)
}
