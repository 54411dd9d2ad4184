//! Comparison of delegated operators with reference kernels, tensor by tensor.
//!
//! Rounding differences grow from operator to operator, so that the outputs of a whole model do not tell where a deviation
//! comes from. Therefore each delegated operator is a partition of its own here, and reads the inputs that it has in a run
//! of the reference kernels. This includes operators of subgraphs that control flow runs, in every iteration of a loop. The
//! deviation of the model's outputs, where all operators are delegated together, is reported as well.
//!
//! ```
//! use xnn_delegate::verify::Verifier;
//! use xnn_delegate::{Model, RunnerOptions};
//!
//! # fn main() -> Result<(), xnn_delegate::Error> {
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/models/digits_mobilenet_v2_fp32.tflite");
//! let mut verifier = Verifier::new(&Model::open(path)?, &RunnerOptions::default())?;
//! verifier.reference_mut().input_as_mut::<f32>(0)?.fill(0.5);
//! let worst = verifier.verify()?.operators.iter().map(|it| it.distance).fold(0.0, f64::max);
//! assert!(worst < 1e-3);
//! # Ok(()) }
//! ```

mod comparison;
mod deviation;
mod rounding;
mod single;
mod special;

use serde::Serialize;
use xnn_interp::{Entry, InterpOptions, Interpreter};
use xnn_lower::{Decision, PartitionOptions};
use xnn_model::{Model, SubgraphId};
use xnn_runtime::SessionOptions;

use crate::delegation::Delegation;
use crate::error::Error;
use crate::interpreter_delegate::{with_threads, with_workspace};
use crate::options::RunnerOptions;
use crate::runner::Runner;
use comparison::Comparison;

pub use deviation::{Deviation, Scale};
pub use special::{Special, why_undefined};

/// An entry point of a model, once on reference kernels and once with delegated operators. The
/// [module](self) has an example.
#[derive(Debug)]
pub struct Verifier {
    entry: SubgraphId,
    delegation: Delegation,
    /// Delegated operators of the entry point and of the subgraphs that it runs.
    taken: Vec<Taken>,
    reference: Runner,
    delegated: Runner,
    partition: PartitionOptions,
    session: SessionOptions,
}

/// A delegated operator.
#[derive(Clone, Debug)]
struct Taken {
    subgraph: SubgraphId,
    operator: usize,
    op: String,
}

/// Result of [`Verifier::verify`].
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verification {
    /// Deviation of each output of each delegated operator, in the order in which the operators ran first.
    pub operators: Vec<Deviation>,
    /// Deviation of each output of the model, with all operators delegated together.
    pub outputs: Vec<Deviation>,
    /// Delegated operators that could not be compared.
    pub skipped: Vec<Skipped>,
}

/// A delegated operator that could not be compared.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Skipped {
    /// Index of the subgraph in the model.
    pub subgraph: SubgraphId,
    /// Index of the operator in the subgraph.
    pub operator: usize,
    /// The operator's name.
    pub op: String,
    /// Why it could not be compared.
    pub reason: String,
}

impl Verifier {
    /// Prepares a model's main subgraph, with zeros as inputs.
    ///
    /// # Errors
    ///
    /// An operator has no reference kernel, such as an operator XNNGraph of a partially delegated model.
    pub fn new(model: &Model, options: &RunnerOptions) -> Result<Self, Error> {
        Self::of_subgraph(model, 0, options)
    }

    /// Prepares the subgraph of the signature with this key, with zeros as inputs.
    ///
    /// # Errors
    ///
    /// The errors of [`Verifier::new`], or there is no such signature.
    pub fn at_signature(model: &Model, key: &str, options: &RunnerOptions) -> Result<Self, Error> {
        let (model, subgraph) = model.at_signature(key)?;
        Self::of_subgraph(&model, subgraph, options)
    }

    fn of_subgraph(
        model: &Model,
        entry: SubgraphId,
        options: &RunnerOptions,
    ) -> Result<Self, Error> {
        let session = with_workspace(with_threads(options.session.clone())?)?;
        let options = RunnerOptions { session, ..options.clone() };
        let limits = options.limits.clone();
        let kernels =
            InterpOptions { limits, keep_intermediates: true, ..InterpOptions::default() };
        let reference = Interpreter::new(model, Entry::Subgraph(entry), &kernels)?;
        let delegated = Runner::of_subgraph(model.clone(), entry, &options)?;
        let delegation = Delegation::new(reference.subgraph(), &options.partition)?;
        let mut taken = Taken::all(entry, &delegation);
        // Subgraphs that only delegated operators call do not run.
        let graphs = delegated.interpreter().into_iter().flat_map(Interpreter::subgraphs);
        for (id, graph) in graphs.filter(|(id, _)| *id != entry) {
            taken.extend(Taken::all(id, &Delegation::new(graph, &options.partition)?));
        }
        let reference = Runner::partial(reference, &options.limits);
        let RunnerOptions { partition, session, .. } = options;
        Ok(Self { entry, delegation, taken, reference, delegated, partition, session })
    }

    /// The reference kernels' runner. The caller fills its inputs.
    pub fn reference_mut(&mut self) -> &mut Runner {
        &mut self.reference
    }

    /// Decisions about the entry point's operators, and its partitions.
    #[must_use]
    pub fn delegation(&self) -> &Delegation {
        &self.delegation
    }

    /// Runs the reference kernels, every delegated operator on their tensors, and the model with delegated operators.
    ///
    /// # Errors
    ///
    /// A run fails.
    pub fn verify(&mut self) -> Result<Verification, Error> {
        self.run_delegated()?;
        let Self { entry, taken, reference, delegated, partition, session, .. } = self;
        let mut comparison = Comparison::new(*entry, taken, partition, session);
        reference.run_observed(&mut |executed| comparison.see(executed))?;
        let (operators, skipped) = comparison.finish()?;
        let mut outputs = vec![];
        if let Some(reference) = reference.interpreter() {
            let graph = reference.subgraph();
            for (position, &id) in graph.outputs.iter().enumerate() {
                let Some(expected) = reference.tensor(id) else { continue };
                let producer = graph.operators.iter().position(|o| o.outputs.contains(&id));
                let actual = delegated.output_bytes(position)?;
                outputs.push(Deviation::new((*entry, graph), producer, id, expected, actual));
            }
        }
        Ok(Verification { operators, outputs, skipped })
    }

    /// Runs the model with XNNPACK on the reference's inputs.
    fn run_delegated(&mut self) -> Result<(), Error> {
        let graph = self.delegation.graph();
        // A fully delegated model has the inputs that its partition reads.
        let inputs = match self.delegated.program() {
            Some(_) => self.delegation.partitioning().partitions.first().map(|p| &p.inputs),
            None => Some(&graph.inputs),
        };
        let dims = |position: usize| self.reference.inputs()[position].dims.clone();
        let places: Vec<usize> = inputs
            .into_iter()
            .flatten()
            .filter_map(|id| graph.inputs.iter().position(|input| input == id))
            .collect();
        let resized: Vec<(usize, Vec<usize>)> = places
            .iter()
            .enumerate()
            .map(|(to, &from)| (to, dims(from)))
            .filter(|(to, dims)| self.delegated.inputs()[*to].dims != *dims)
            .collect();
        if !resized.is_empty() {
            let resized: Vec<(usize, &[usize])> =
                resized.iter().map(|(to, dims)| (*to, dims.as_slice())).collect();
            self.delegated.resize_inputs(&resized)?;
        }
        for (to, from) in places.into_iter().enumerate() {
            let elements = self.reference.input_bytes_mut(from)?;
            let target = self.delegated.input_bytes_mut(to)?;
            if target.len() == elements.len() {
                target.copy_from_slice(elements);
            }
        }
        self.delegated.run()
    }
}

impl Taken {
    /// Operators of a subgraph that are delegated, before or during a run.
    fn all(subgraph: SubgraphId, delegation: &Delegation) -> Vec<Self> {
        let decisions = delegation.partitioning().decisions.iter();
        let operators = decisions.zip(&delegation.graph().operators).enumerate();
        let is_taken = |operator, decision: &Decision| {
            let mut deferred = delegation.deferred().iter();
            matches!(decision, Decision::Delegated { .. })
                || deferred.any(|group| group.operators.contains(&operator))
        };
        operators
            .filter(|(operator, (decision, _))| is_taken(*operator, decision))
            .map(|(operator, (_, it))| Self { subgraph, operator, op: it.op.to_string() })
            .collect()
    }
}
