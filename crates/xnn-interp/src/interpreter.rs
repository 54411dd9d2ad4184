//! The public interface of the interpreter.

use std::fmt;
use std::sync::Arc;

use xnn_model::{
    DType, Model, ModelLimits, OutOfMemory, Signature, Subgraph, SubgraphId, TensorId,
};

use crate::arena_use::ArenaUse;
use crate::cancel::CancelFlag;
use crate::delegate::{OperatorSet, SharedValues};
use crate::error::{Error, ErrorKind};
use crate::execution_plan::{Action, ExecutionPlan, Step};
use crate::frame::Frame;
use crate::machine::Machine;
use crate::observe::Executed;
use crate::options::{Entry, InterpOptions};
use crate::storage::TensorBuf;
use crate::tensor::{TensorView, TensorViewMut, reserved_size, storage_size};

/// An entry point of a model with the memory to run it.
///
/// Inputs keep their values between runs, and state (variables, recurrent operators) continues from
/// the previous run.
pub struct Interpreter {
    pub(crate) machine: Machine,
    entry: SubgraphId,
    subgraph: Arc<Subgraph>,
    frame: Frame,
    /// Bytes of each input whose shape the caller has set.
    given: Vec<u64>,
    signature: Option<Signature>,
}

impl Interpreter {
    /// Prepares a model to run.
    ///
    /// # Errors
    ///
    /// The entry point does not exist, an operator that it can reach has no kernel for its types
    /// and options, or a delegate makes invalid claims.
    pub fn new(model: &Model, entry: Entry<'_>, options: &InterpOptions) -> Result<Self, Error> {
        let signature = match entry {
            Entry::Signature(key) => Some(
                model
                    .signature(key)
                    .ok_or_else(|| Error::invalid(format!("there is no signature {key:?}")))?
                    .clone(),
            ),
            Entry::Main | Entry::Subgraph(_) => None,
        };
        let id = match (entry, &signature) {
            (Entry::Subgraph(id), _) => id,
            (_, Some(signature)) => signature.subgraph,
            _ => 0,
        };
        let mut shared = SharedValues::default();
        let plan = Arc::new(ExecutionPlan::new(model, id, options, &mut shared)?);
        let machine = Machine::new(plan, shared)?;
        Self::begin(machine, id, signature)
    }

    /// Creates another interpreter of the same entry point, with its own tensors and state. It
    /// shares constants and compiled partitions.
    ///
    /// # Errors
    ///
    /// Memory is exhausted, or a delegate fails.
    pub fn fork(&self) -> Result<Self, Error> {
        Self::begin(self.machine.fork()?, self.entry, self.signature.clone())
    }

    fn begin(
        machine: Machine,
        id: SubgraphId,
        signature: Option<Signature>,
    ) -> Result<Self, Error> {
        let graph = machine.plan().graph(id)?;
        let mut frame = Frame::new(graph, machine.plan().limits.max_tensor_bytes);
        for &input in &graph.subgraph.inputs {
            let tensor = graph.subgraph.tensor(input);
            let shape = tensor.shape.as_deref().unwrap_or(&[]);
            check_size(tensor.dtype, shape, &machine.plan().limits)?;
            if let Some(zeros) = zeros(tensor.dtype, shape)? {
                frame.put(input, zeros);
            }
        }
        let subgraph = graph.subgraph.clone();
        let given = vec![0; subgraph.inputs.len()];
        Ok(Self { machine, entry: id, subgraph, frame, given, signature })
    }

    /// The subgraph of the entry point, with the shapes that are known before a run.
    #[must_use]
    pub fn subgraph(&self) -> &Arc<Subgraph> {
        &self.subgraph
    }

    /// All subgraphs that a run can reach, including the entry point, with their indices in the
    /// model.
    pub fn subgraphs(&self) -> impl Iterator<Item = (SubgraphId, &Arc<Subgraph>)> {
        let graphs = self.machine.plan().graphs.values();
        graphs.map(|graph| (graph.id, &graph.subgraph))
    }

    /// Number of operators of the entry point that are delegated.
    #[must_use]
    pub fn delegated_operators(&self) -> usize {
        self.partitions().map(|partition| partition.operators.len()).sum()
    }

    /// Number of delegated partitions of the entry point.
    #[must_use]
    pub fn delegated_partitions(&self) -> usize {
        self.partitions().count()
    }

    /// The largest number of threads that compute at once. Kernels and control operators use the
    /// calling thread only, a partition as many as its delegate.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.machine.threads()
    }

    /// Number of operators of the entry point that may be delegated in a run, when their shapes are
    /// known.
    #[must_use]
    pub fn deferred_operators(&self) -> usize {
        let deferred = self.steps().filter(|step| matches!(step.action, Action::Deferred { .. }));
        deferred.map(|step| step.set.operators.len()).sum()
    }

    fn partitions(&self) -> impl Iterator<Item = &OperatorSet> {
        let delegated = self.steps().filter(|step| matches!(step.action, Action::Delegated(_)));
        delegated.map(|step| &step.set)
    }

    fn steps(&self) -> impl Iterator<Item = &Step> {
        self.machine.plan().graph(self.entry).map_or(&[][..], |graph| &graph.steps).iter()
    }

    /// The flag that cancels this interpreter's runs.
    #[must_use]
    pub fn cancel_flag(&self) -> CancelFlag {
        self.machine.cancel_flag().clone()
    }

    /// Sets the flag that cancels this interpreter's runs.
    pub fn set_cancel_flag(&mut self, flag: CancelFlag) {
        self.machine.set_cancel_flag(flag);
    }

    /// Number of inputs.
    #[must_use]
    pub fn inputs(&self) -> usize {
        self.subgraph().inputs.len()
    }

    /// Number of outputs.
    #[must_use]
    pub fn outputs(&self) -> usize {
        self.subgraph().outputs.len()
    }

    /// Position of an input by its name: that of the signature or, without a signature, of the
    /// tensor.
    #[must_use]
    pub fn input_index(&self, name: &str) -> Option<usize> {
        self.position(name, &self.subgraph().inputs, |s| &s.inputs)
    }

    /// Position of an output by its name: that of the signature or, without a signature, of the
    /// tensor.
    #[must_use]
    pub fn output_index(&self, name: &str) -> Option<usize> {
        self.position(name, &self.subgraph().outputs, |s| &s.outputs)
    }

    fn position(
        &self,
        name: &str,
        ids: &[TensorId],
        named: impl Fn(&Signature) -> &[(String, TensorId)],
    ) -> Option<usize> {
        let by_signature = self.signature.as_ref().and_then(|signature| {
            named(signature).iter().find(|(n, _)| n == name).map(|(_, id)| *id)
        });
        match by_signature {
            Some(id) => ids.iter().position(|&other| other == id),
            None => ids.iter().position(|&id| self.subgraph().tensor(id).name == name),
        }
    }

    /// An input, to be filled.
    ///
    /// # Errors
    ///
    /// The input does not exist.
    pub fn input_mut(&mut self, position: usize) -> Result<TensorViewMut<'_>, Error> {
        let id = self.input_id(position)?;
        let no_storage = || {
            Error::invalid(format!(
                "input {position} has no elements of a fixed size; use set_input"
            ))
        };
        self.frame.view_mut(id).ok_or_else(no_storage)
    }

    /// Changes the shape of an input. Its elements become zeros.
    ///
    /// # Errors
    ///
    /// The input does not exist, or the shape is too large.
    pub fn resize_input(&mut self, position: usize, shape: &[usize]) -> Result<(), Error> {
        let id = self.input_id(position)?;
        let dtype = self.subgraph().tensor(id).dtype;
        check_size(dtype, shape, self.machine.limits())?;
        if let Some(zeros) = zeros(dtype, shape)? {
            self.give(position, id, zeros);
        }
        Ok(())
    }

    /// Sets shape and elements of an input.
    ///
    /// # Errors
    ///
    /// The input does not exist or has another element type.
    pub fn set_input(&mut self, position: usize, value: TensorBuf) -> Result<(), Error> {
        let id = self.input_id(position)?;
        let dtype = self.subgraph().tensor(id).dtype;
        if value.dtype() != dtype {
            return Err(Error::invalid(format!(
                "input {position} has element type {dtype}, the value has {}",
                value.dtype()
            )));
        }
        self.give(position, id, value);
        Ok(())
    }

    /// Sets an input. Larger inputs raise the limits of the model.
    fn give(&mut self, position: usize, id: TensorId, value: TensorBuf) {
        if let Some(given) = self.given.get_mut(position) {
            *given = value.view().bytes.len() as u64;
        }
        self.frame.put(id, value);
        self.machine.set_inputs(self.given.iter().copied().fold(0, u64::saturating_add));
    }

    fn input_id(&self, position: usize) -> Result<TensorId, Error> {
        let inputs = &self.subgraph().inputs;
        inputs.get(position).copied().ok_or_else(|| {
            Error::invalid(format!(
                "input {position} does not exist; the model has {} inputs",
                inputs.len()
            ))
        })
    }

    /// Computes the outputs.
    ///
    /// # Errors
    ///
    /// Values that are known only in a run do not fit an operator, a limit is exceeded, or the
    /// cancel flag is raised.
    pub fn run(&mut self) -> Result<(), Error> {
        self.run_observed(&mut |_| {})
    }

    /// [`Interpreter::run`] that calls `observe` after every step, including those of the subgraphs
    /// that IF, WHILE, CALL and CALL_ONCE run, in each iteration.
    ///
    /// # Errors
    ///
    /// See [`Interpreter::run`].
    pub fn run_observed(&mut self, observe: &mut dyn FnMut(&Executed<'_>)) -> Result<(), Error> {
        self.machine.begin();
        self.machine.run(self.entry, &mut self.frame, observe)
    }

    /// An output of the last run.
    ///
    /// # Errors
    ///
    /// The output does not exist, or no run has computed it.
    pub fn output(&self, position: usize) -> Result<TensorView<'_>, Error> {
        let outputs = &self.subgraph().outputs;
        let id = outputs.get(position).copied().ok_or_else(|| {
            Error::invalid(format!(
                "output {position} does not exist; the model has {} outputs",
                outputs.len()
            ))
        })?;
        self.tensor(id)
            .ok_or_else(|| Error::invalid(format!("output {position} has not been computed yet")))
    }

    /// Moves out the outputs of the last run, or returns `None` before the first run.
    pub(crate) fn into_outputs(mut self) -> Option<Vec<TensorBuf>> {
        let graph = self.machine.plan().graph(self.entry).ok()?;
        graph.subgraph.outputs.iter().map(|&id| self.frame.take(id)).collect()
    }

    /// A tensor of the entry point, if it has a value at the moment; see
    /// [`InterpOptions::keep_intermediates`].
    #[must_use]
    pub fn tensor(&self, id: TensorId) -> Option<TensorView<'_>> {
        let graph = self.machine.plan().graph(self.entry).ok()?;
        self.frame.tensor(graph, id, &self.machine.resources.variables)
    }

    /// Memory use of the intermediate tensors of the entry point, as of the last run.
    #[must_use]
    pub fn memory(&self) -> ArenaUse {
        self.frame.memory()
    }

    /// Resets variables and the state of recurrent operators.
    pub fn reset_variables(&mut self) {
        self.machine.reset();
        if let Ok(graph) = self.machine.plan().graph(self.entry) {
            self.frame.reset_variables(graph);
        }
    }
}

impl fmt::Debug for Interpreter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interpreter").field("entry", &self.entry).finish_non_exhaustive()
    }
}

/// Zeros for an input, or `None` if its type has no fixed element size.
fn zeros(dtype: DType, shape: &[usize]) -> Result<Option<TensorBuf>, OutOfMemory> {
    let Some(bytes) = reserved_size(dtype, shape) else { return Ok(None) };
    let zeros = TensorBuf::zeros(dtype, shape);
    zeros.map(Some).ok_or_else(|| OutOfMemory::new("an input", bytes))
}

/// Returns an error for tensors that exceed [`ModelLimits::max_tensor_bytes`].
///
/// # Errors
///
/// [`ErrorKind::Limit`].
pub fn check_size(dtype: DType, shape: &[usize], limits: &ModelLimits) -> Result<(), Error> {
    let what = "the size of a tensor in bytes";
    let limit = limits.max_tensor_bytes as u64;
    match storage_size(dtype, shape) {
        Some(bytes) if bytes as u64 > limit => {
            Err(ErrorKind::Limit { what, value: bytes as u64, limit }.into())
        }
        None if dtype.bits().is_some() => {
            Err(ErrorKind::Limit { what, value: u64::MAX, limit }.into())
        }
        _ => Ok(()),
    }
}
