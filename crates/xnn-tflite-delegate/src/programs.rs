//! Programs that the interpreters of a process share, with their packed weights, and results of
//! constant folding.
//!
//! A program is looked up by the addresses of its interpreter's constants, and by its own graph. An
//! interpreter that has constants at the same addresses keeps them alive, so a program does not
//! outlive the memory that it points to: a file that it has mapped itself, or a model in memory
//! that its interpreters hold.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Weak};

use xnn_format::Graph;
use xnn_model::{Inferred, Subgraph, Tensor};
use xnn_runtime::{Program, WeakProgram};

use crate::registry::Registry;

static PROGRAMS: Registry<Key, WeakProgram> = Registry::new();
static ANALYSES: Registry<Key, Weak<Inferred>> = Registry::new();

/// Lookup key of programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    /// Addresses of the constants in the interpreter's graph.
    constants: Arc<[Range<usize>]>,
    /// Folder in which packed weights are cached.
    cache_dir: Option<PathBuf>,
}

impl Key {
    /// Creates the key for a graph; `None` for a graph without constants, which has nothing to
    /// share.
    pub(crate) fn new(graph: &Subgraph, cache_dir: Option<PathBuf>) -> Option<Self> {
        let constants = graph.tensors.iter().filter_map(|tensor| tensor.data.as_ref());
        let addresses = constants.map(|data| {
            let Range { start, end } = data.as_ptr_range();
            start.addr()..end.addr()
        });
        let constants: Arc<[_]> = addresses.collect();
        (!constants.is_empty()).then_some(Self { constants, cache_dir })
    }

    /// Returns the program for `graph` of another interpreter.
    pub(crate) fn find(&self, graph: &Graph) -> Option<Program> {
        PROGRAMS.find(self, |program| **program.graph() == *graph)
    }

    /// Makes `program` available to other interpreters.
    pub(crate) fn keep(&self, program: &Program) {
        PROGRAMS.keep(self.clone(), program.downgrade());
    }

    /// Returns the analysis of a graph with the operators and constants of `graph`.
    pub(crate) fn analysis(&self, graph: &Subgraph) -> Option<Arc<Inferred>> {
        ANALYSES.find(self, |inferred| has_constants_of(graph, &inferred.subgraph))
    }

    /// Makes an analysis available to other interpreters.
    pub(crate) fn keep_analysis(&self, inferred: &Arc<Inferred>) {
        ANALYSES.keep(self.clone(), Arc::downgrade(inferred));
    }
}

/// Whether constant folding gives the same results for both graphs. Does not read the constants.
fn has_constants_of(a: &Subgraph, b: &Subgraph) -> bool {
    let place = |tensor: &Tensor| tensor.data.as_ref().map(|data| data.as_ptr_range());
    let is_alike = |(a, b): (&Tensor, &Tensor)| {
        place(a) == place(b)
            && (a.dtype, &a.quantization, &a.sparsity) == (b.dtype, &b.quantization, &b.sparsity)
            && (a.data.is_none() || a.shape == b.shape)
    };
    a.operators == b.operators
        && a.tensors.len() == b.tensors.len()
        && a.tensors.iter().zip(&b.tensors).all(is_alike)
}
