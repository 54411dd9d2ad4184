//! Delegated operators against reference kernels, tensor by tensor.
//!
//! Rounding differences grow from operator to operator, so that the outputs of
//! a whole model say little about where they come from. Each delegated operator
//! is therefore a partition of its own here, and gets the inputs that it has in
//! a run of the reference kernels: what it gives then is its own doing. That goes for
//! the subgraphs that control flow runs as for the entry point, and for every iteration
//! of a loop. How far the differences of all operators together take the model's outputs
//! is told beside it.

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
use crate::interpreter_delegate;
use crate::runner::{Runner, RunnerOptions};
use comparison::Comparison;

pub use deviation::{Deviation, Scale};
pub use special::{Special, why_undefined};

/// An entry point of a model on reference kernels, beside what XNNPACK takes of it.
#[derive(Debug)]
pub struct Verifier {
    entry: SubgraphId,
    delegation: Delegation,
    /// Of the entry point and of the subgraphs that it runs.
    taken: Vec<Taken>,
    reference: Runner,
    delegated: Runner,
    partition: PartitionOptions,
    session: SessionOptions,
}

/// An operator that XNNPACK takes.
#[derive(Clone, Debug)]
struct Taken {
    subgraph: SubgraphId,
    operator: usize,
    op: String,
}

/// What [`Verifier::verify`] finds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verification {
    /// One for each output of each delegated operator, in the order in which the operators
    /// first ran.
    pub operators: Vec<Deviation>,
    /// One for each output of the model, where the deviations of all operators
    /// have come together.
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
    /// Why it could not.
    pub reason: String,
}

impl Verifier {
    /// Prepares a model's main subgraph, all inputs zero.
    ///
    /// # Errors
    ///
    /// An operator has no reference kernel; the operators that hold graphs of a
    /// model that was converted in part are such.
    pub fn new(
        model: &Model,
        partition: &PartitionOptions,
        session: &SessionOptions,
    ) -> Result<Self, Error> {
        let (partition, session) = (partition.clone(), session.clone());
        Self::new_with(model, &RunnerOptions { partition, session, ..RunnerOptions::default() })
    }

    /// [`Verifier::new`] with bounds on what the model may ask for.
    ///
    /// # Errors
    ///
    /// As [`Verifier::new`].
    pub fn new_with(model: &Model, options: &RunnerOptions) -> Result<Self, Error> {
        Self::of_subgraph(model, 0, options)
    }

    /// Prepares the subgraph of the signature with this key, all inputs zero.
    ///
    /// # Errors
    ///
    /// There is no such signature, and as for [`Verifier::new`].
    pub fn at_signature(model: &Model, key: &str, options: &RunnerOptions) -> Result<Self, Error> {
        let (model, subgraph) = model.at_signature(key)?;
        Self::of_subgraph(&model, subgraph, options)
    }

    fn of_subgraph(
        model: &Model,
        entry: SubgraphId,
        options: &RunnerOptions,
    ) -> Result<Self, Error> {
        let session = interpreter_delegate::shared(options.session.clone())?;
        let options = RunnerOptions { session, ..options.clone() };
        let limits = options.limits.clone();
        let kernels =
            InterpOptions { limits, keep_intermediates: true, ..InterpOptions::default() };
        let reference = Interpreter::new(model, Entry::Subgraph(entry), &kernels)?;
        let delegated = Runner::of_subgraph(model.clone(), entry, &options)?;
        let delegation = Delegation::new(reference.subgraph(), &options.partition)?;
        let mut taken = Taken::all(entry, &delegation);
        // What a delegated operator would call does not run.
        let graphs = delegated.interpreter().into_iter().flat_map(Interpreter::subgraphs);
        for (id, graph) in graphs.filter(|(id, _)| *id != entry) {
            taken.extend(Taken::all(id, &Delegation::new(graph, &options.partition)?));
        }
        let reference = Runner::partial(reference, &options.limits);
        let RunnerOptions { partition, session, .. } = options;
        Ok(Self { entry, delegation, taken, reference, delegated, partition, session })
    }

    /// The reference, for its inputs to be filled.
    pub fn reference_mut(&mut self) -> &mut Runner {
        &mut self.reference
    }

    /// How many operators of the entry point XNNPACK takes, and how it is divided.
    #[must_use]
    pub fn delegation(&self) -> &Delegation {
        &self.delegation
    }

    /// Runs the reference, every delegated operator on the reference's tensors,
    /// and the whole model with XNNPACK.
    ///
    /// # Errors
    ///
    /// A run fails, or XNNPACK does.
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
                let actual = delegated.output(position);
                outputs.push(Deviation::new((*entry, graph), producer, id, expected, actual));
            }
        }
        Ok(Verification { operators, outputs, skipped })
    }

    /// Runs the model with XNNPACK on the reference's inputs.
    fn run_delegated(&mut self) -> Result<(), Error> {
        let graph = self.delegation.graph();
        // A model that goes whole has the inputs that its one partition reads.
        let inputs = match self.delegated.session() {
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
            let elements = self.reference.input_mut(from);
            let target = self.delegated.input_mut(to);
            if target.len() == elements.len() {
                target.copy_from_slice(elements);
            }
        }
        self.delegated.run()
    }
}

impl Taken {
    /// The operators of a subgraph that XNNPACK takes, before a run or in it.
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
