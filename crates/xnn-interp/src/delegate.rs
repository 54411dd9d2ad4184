//! The interface of engines that run sets of operators.

use std::any::Any;
use std::error::Error as StdError;
use std::sync::Arc;

use xnn_model::{Subgraph, TensorId};

use crate::storage::{Output, PaddedRef};
use crate::tensor::TensorView;

/// An engine that runs sets of operators in place of the reference kernels.
pub trait Delegate: Send + Sync {
    /// Name for logs and errors.
    fn name(&self) -> &str;

    /// Claims sets of operators and compiles each. The sets are disjoint and convex (no path
    /// between two operators of a set leads outside).
    ///
    /// Shapes in `graph` are inferred; a shape that is unknown before a run is `None`. `shared` is for
    /// the sessions of the interpreter that is being created, one for all of its subgraphs.
    ///
    /// # Errors
    ///
    /// The engine cannot continue, for example because memory is exhausted. The model is then not
    /// loaded.
    fn partition(
        &self,
        graph: &Arc<Subgraph>,
        shared: &mut SharedValues,
    ) -> Result<Vec<CompiledClaim>, Box<dyn StdError + Send + Sync>>;
}

/// A set of operators that a delegate claims.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Indices of operators in their subgraph.
    pub operators: Vec<usize>,
    /// Tensors that the operators would write but that none of the delegate's claims reads, because
    /// the delegate has computed them from shapes and constants. No other operator may read them.
    pub known: Vec<TensorId>,
    /// Whether the delegate decides in each run, when the shapes are known
    /// ([`PartitionSession::accept`]). Reference kernels run what it does not accept.
    pub deferred: bool,
}

/// A claim and the result of compiling it.
pub struct CompiledClaim {
    /// The operators.
    pub claim: Claim,
    /// The engine for them, or the reason why they cannot be compiled. Reference kernels then run
    /// the operators; an operator without a kernel makes the model fail to load with this reason.
    pub compiled: Result<Arc<dyn CompiledPartition>, Box<dyn StdError + Send + Sync>>,
}

/// Operators that run together, with their boundary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorSet {
    /// Indices of the operators, in the subgraph's order.
    pub operators: Vec<usize>,
    /// Tensors that come from outside, each once, in the order of first use. Constants and tensors
    /// that the delegate [knows](Claim::known) are not among them.
    pub inputs: Vec<TensorId>,
    /// Tensors that are read outside or are outputs of the subgraph. Tensors that the delegate
    /// [knows](Claim::known) are not among them.
    pub outputs: Vec<TensorId>,
}

/// A compiled partition, shared by all interpreters of a model.
pub trait CompiledPartition: Send + Sync {
    /// Creates the state of one interpreter.
    ///
    /// `set` is the claim with the boundary that the interpreter has found; all calls of the session
    /// get inputs and outputs in its order. `shared` has what earlier sessions of this interpreter
    /// have left for later ones. For the first interpreter, [`Delegate::partition`] got it before;
    /// for its forks it is empty.
    ///
    /// # Errors
    ///
    /// The engine cannot create another session.
    fn session(
        &self,
        set: &OperatorSet,
        shared: &mut SharedValues,
    ) -> Result<Box<dyn PartitionSession>, Box<dyn StdError + Send + Sync>>;

    /// Multiply-accumulates of a run, or elements if there are more of them. They count against
    /// [`ModelLimits::amplification`](xnn_model::ModelLimits::amplification).
    fn work(&self) -> u64 {
        0
    }
}

/// Values that the sessions of one interpreter share, one of each type. An example is memory for
/// intermediate values: sessions of one interpreter run one after the other, and those of its forks
/// at the same time.
///
/// ```
/// use xnn_interp::SharedValues;
///
/// let mut shared = SharedValues::default();
/// assert_eq!(shared.get::<u32>(), None);
/// shared.insert(5u32);
/// shared.insert("another type");
/// assert_eq!(shared.get::<u32>(), Some(5));
/// ```
#[derive(Debug, Default)]
pub struct SharedValues(Vec<Box<dyn Any>>);

impl SharedValues {
    /// The value of this type.
    #[must_use]
    pub fn get<T: Any + Clone>(&self) -> Option<T> {
        self.0.iter().find_map(|value| value.downcast_ref().cloned())
    }

    /// Adds a value. It replaces one of the same type.
    pub fn insert<T: Any>(&mut self, value: T) {
        self.0.retain(|other| !other.is::<T>());
        self.0.push(Box::new(value));
    }
}

/// A partition in one interpreter.
pub trait PartitionSession: Send {
    /// Computes the outputs.
    ///
    /// From the second run on, inputs and outputs have the same addresses while shapes stay the
    /// same, so an engine may work on them directly (see [`PaddedRef::padded`]). Large tensors that
    /// come from or go to another subgraph or a variable have one of several addresses. An output
    /// already has its shape where shape inference knows it; otherwise the engine sets it with
    /// [`Output::resize`].
    ///
    /// # Errors
    ///
    /// The engine fails.
    fn invoke(
        &mut self,
        inputs: &[PaddedRef<'_>],
        outputs: &mut [Output<'_>],
    ) -> Result<(), Box<dyn StdError + Send + Sync>>;

    /// Decides whether the session runs inputs of these shapes or values, and returns the shapes of
    /// the outputs for the [`invoke`](PartitionSession::invoke) that follows.
    ///
    /// Called in each run for claims that are [`deferred`](Claim::deferred). If it returns `None`,
    /// reference kernels run.
    fn accept(&mut self, inputs: &[TensorView<'_>]) -> Option<&[Vec<usize>]> {
        let _ = inputs;
        None
    }

    /// [`CompiledPartition::work`] with the shapes that were accepted last.
    fn work(&self) -> u64 {
        0
    }

    /// Number of threads that compute, including the calling one.
    fn threads(&self) -> usize {
        1
    }

    /// Resets state that outlives a run.
    fn reset(&mut self) {}
}
