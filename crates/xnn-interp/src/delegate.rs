//! Where other engines plug in.

use std::error::Error as StdError;
use std::sync::Arc;

use xnn_model::{Subgraph, TensorId};

use crate::storage::{Output, PaddedRef};
use crate::tensor::TensorView;

/// An engine that runs sets of operators in its own way.
///
/// When a model is loaded the interpreter asks for claims, compiles each, and
/// replaces the operators of those that compile by one step. What a delegate
/// cannot compile stays with the reference kernels.
pub trait Delegate: Send + Sync {
    /// Name for logs and errors.
    fn name(&self) -> &str;

    /// The sets of operators that the delegate wants: disjoint and convex (no
    /// path between two operators of a set leads outside).
    ///
    /// Shapes in `graph` are inferred; one that is not known before a run is
    /// `None`.
    ///
    /// # Errors
    ///
    /// If the engine cannot go on, as where memory is exhausted: the model is not loaded.
    fn partition(
        &self,
        graph: &Arc<Subgraph>,
    ) -> Result<Vec<Claim>, Box<dyn StdError + Send + Sync>>;

    /// Makes a claim ready to run.
    ///
    /// # Errors
    ///
    /// If the engine does not take the operators after all; they then stay
    /// with the reference kernels.
    fn compile(
        &self,
        graph: &Subgraph,
        partition: &Partition,
    ) -> Result<Arc<dyn CompiledPartition>, Box<dyn StdError + Send + Sync>>;
}

/// A set of operators that a delegate wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Indices of operators in their subgraph.
    pub operators: Vec<usize>,
    /// Tensors that the operators would write, and that none of the delegate's claims reads: it has worked out
    /// their values from shapes and constants. Nobody else may read them.
    pub known: Vec<TensorId>,
    /// Whether the delegate decides in each run, when the shapes are known ([`PartitionSession::accept`]), and
    /// reference kernels run what it does not accept.
    pub deferred: bool,
}

/// A claim with its boundary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Indices of the operators, in the subgraph's order.
    pub operators: Vec<usize>,
    /// Tensors that come from outside, constants and what the delegate knows left out; each once, in the
    /// order of first use.
    pub inputs: Vec<TensorId>,
    /// Tensors that are read outside or are outputs of the subgraph, without what the delegate knows.
    pub outputs: Vec<TensorId>,
}

/// A partition that is ready to run; shared by all interpreters of a model.
pub trait CompiledPartition: Send + Sync {
    /// State of one interpreter.
    ///
    /// # Errors
    ///
    /// If the engine cannot give more of them.
    fn session(&self) -> Result<Box<dyn PartitionSession>, Box<dyn StdError + Send + Sync>>;

    /// Multiply-accumulates of a run, or elements where there are more of them: it counts against
    /// [`ModelLimits::amplification`](xnn_model::ModelLimits::amplification).
    fn work(&self) -> u64 {
        0
    }
}

/// A partition as one interpreter runs it.
pub trait PartitionSession: Send {
    /// Computes the outputs.
    ///
    /// `inputs` and `outputs` are in the partition's order. From the second run
    /// on they lie in the same places while shapes stay, so an engine may work
    /// on them directly (see [`PaddedRef::padded`]); large ones that come from or go to another
    /// subgraph or a variable have one of several places. An output has its shape
    /// already where shape inference knows it; where not, the engine gives it
    /// with [`Output::resize`].
    ///
    /// # Errors
    ///
    /// If the engine fails.
    fn invoke(
        &mut self,
        inputs: &[PaddedRef<'_>],
        outputs: &mut [Output<'_>],
    ) -> Result<(), Box<dyn StdError + Send + Sync>>;

    /// Whether it takes inputs of these shapes, or these values: the shapes that the outputs then have, for the
    /// [`invoke`](PartitionSession::invoke) that follows. Asked of claims that are [`deferred`](Claim::deferred), in each
    /// run; where it does not, for whatever reason, reference kernels run.
    fn accept(&mut self, inputs: &[TensorView<'_>]) -> Option<&[Vec<usize>]> {
        let _ = inputs;
        None
    }

    /// [`CompiledPartition::work`] with the shapes that were accepted last.
    fn work(&self) -> u64 {
        0
    }

    /// How many threads compute, the calling one included.
    fn threads(&self) -> usize {
        1
    }

    /// Brings state that outlives a run back to its beginning.
    fn reset(&mut self) {}
}
