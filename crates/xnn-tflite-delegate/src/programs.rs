//! Programs that the interpreters of a process share, and with them their packed weights; and what was computed of constants.
//!
//! A program is found again by the place of the constants of its interpreter's graph, and by its own graph. Whoever
//! has constants at the same place keeps them alive, so that a program lives no longer than what it points to: either
//! a file that it has mapped itself, or a model in memory, which its interpreters hold.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Weak};

use xnn_format::Graph;
use xnn_model::{Inferred, Subgraph, Tensor};
use xnn_runtime::{Program, WeakProgram};

use crate::registry::Registry;

static PROGRAMS: Registry<Key, WeakProgram> = Registry::new();
static ANALYSES: Registry<Key, Weak<Inferred>> = Registry::new();

/// What programs must have in common to be looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    /// Addresses of the constants of the interpreter's graph.
    constants: Arc<[Range<usize>]>,
    /// Where weights are kept beside.
    cache_dir: Option<PathBuf>,
}

impl Key {
    /// `None` for a graph without constants, which has nothing to share.
    pub(crate) fn new(graph: &Subgraph, cache_dir: Option<PathBuf>) -> Option<Self> {
        let constants = graph.tensors.iter().filter_map(|tensor| tensor.data.as_ref());
        let addresses = constants.map(|data| {
            let Range { start, end } = data.as_ptr_range();
            start.addr()..end.addr()
        });
        let constants: Arc<[_]> = addresses.collect();
        (!constants.is_empty()).then_some(Self { constants, cache_dir })
    }

    /// The program for `graph` that an interpreter has already.
    pub(crate) fn find(&self, graph: &Graph) -> Option<Program> {
        PROGRAMS.find(self, |program| **program.graph() == *graph)
    }

    /// Lets other interpreters find `program`.
    pub(crate) fn keep(&self, program: &Program) {
        PROGRAMS.keep(self.clone(), program.downgrade());
    }

    /// What is known of a graph with the operators and constants of `graph`.
    pub(crate) fn analysis(&self, graph: &Subgraph) -> Option<Arc<Inferred>> {
        ANALYSES.find(self, |inferred| has_constants_of(graph, &inferred.subgraph))
    }

    /// Lets other interpreters find what is known.
    pub(crate) fn keep_analysis(&self, inferred: &Arc<Inferred>) {
        ANALYSES.keep(self.clone(), Arc::downgrade(inferred));
    }
}

/// Whether operators compute the same of constants in both; no constant is read.
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
