//! Runs a prepared model.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use xnn_model::{
    DType, Model, ModelLimits, OutOfMemory, Signature, Subgraph, SubgraphId, TensorId,
};

use crate::delegate::{Delegate, Partition};
use crate::error::{Error, ErrorKind};
use crate::frame::Frame;
use crate::machine::Machine;
use crate::observe::Executed;
use crate::program::{Action, Program, Step};
use crate::storage::TensorBuf;
use crate::tensor::{TensorView, TensorViewMut, reserved_size, storage_size};

/// What to run of a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Entry<'a> {
    /// The first subgraph.
    #[default]
    Main,
    /// The subgraph with this index.
    Subgraph(SubgraphId),
    /// The subgraph of the signature with this key.
    Signature(&'a str),
}

/// How a model is run.
#[derive(Clone, Default)]
pub struct InterpOptions {
    /// Bounds on sizes, loops and calls.
    pub limits: ModelLimits,
    /// Engines that may claim operators; earlier ones choose first.
    pub delegates: Vec<Arc<dyn Delegate>>,
    /// Keeps every intermediate tensor for [`Interpreter::tensor`], at the
    /// price of memory.
    pub keep_intermediates: bool,
}

impl fmt::Debug for InterpOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let delegates: Vec<&str> = self.delegates.iter().map(|d| d.name()).collect();
        f.debug_struct("InterpOptions")
            .field("limits", &self.limits)
            .field("delegates", &delegates)
            .field("keep_intermediates", &self.keep_intermediates)
            .finish()
    }
}

/// Stops a run from another thread; clones share one flag.
#[derive(Clone, Debug, Default)]
pub struct CancelFlag(Arc<AtomicBool>);

impl CancelFlag {
    /// Makes a run in progress, and later ones, end with
    /// [`ErrorKind::Cancelled`] before the next operator.
    pub fn raise(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Lets runs go on.
    pub fn lower(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// Whether runs end.
    #[must_use]
    pub fn is_raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Memory of the intermediate tensors, each with its padding. Tensors whose size
/// only their kernels know are left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArenaUse {
    /// Bytes of the arena that they share.
    pub arena_bytes: usize,
    /// Bytes that they would take without sharing.
    pub tensor_bytes: usize,
}

/// One entry point of a model with the memory to run it.
///
/// Inputs keep what they were given from run to run; state (variables,
/// recurrent operators) goes on from where the last run left it.
pub struct Interpreter {
    machine: Machine,
    entry: SubgraphId,
    subgraph: Arc<Subgraph>,
    frame: Frame,
    /// Bytes of each input that the caller has given a shape.
    given: Vec<u64>,
    signature: Option<Signature>,
}

impl Interpreter {
    /// Makes a model ready to run.
    ///
    /// # Errors
    ///
    /// If there is no such entry point, if an operator that it can reach has no
    /// kernel for its types and options, or if a delegate claims what it may
    /// not.
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
        let program = Arc::new(Program::new(model, id, options)?);
        let machine = Machine::new(program)?;
        Self::begin(machine, id, signature)
    }

    /// Another interpreter of the same entry point, with its own tensors and state. Constants and what
    /// delegates have compiled are shared.
    ///
    /// # Errors
    ///
    /// If memory is exhausted, or a delegate fails.
    pub fn fork(&self) -> Result<Self, Error> {
        Self::begin(self.machine.fork()?, self.entry, self.signature.clone())
    }

    fn begin(
        machine: Machine,
        id: SubgraphId,
        signature: Option<Signature>,
    ) -> Result<Self, Error> {
        let graph = machine.program().graph(id)?;
        let mut frame = Frame::new(graph, machine.program().limits.max_tensor_bytes);
        for &input in &graph.subgraph.inputs {
            let tensor = graph.subgraph.tensor(input);
            let shape = tensor.shape.as_deref().unwrap_or(&[]);
            check_size(tensor.dtype, shape, &machine.program().limits)?;
            if let Some(zeros) = zeros(tensor.dtype, shape)? {
                frame.put(input, zeros);
            }
        }
        let subgraph = graph.subgraph.clone();
        let given = vec![0; subgraph.inputs.len()];
        Ok(Self { machine, entry: id, subgraph, frame, given, signature })
    }

    /// The subgraph that runs, with the shapes that are known before a run.
    #[must_use]
    pub fn subgraph(&self) -> &Arc<Subgraph> {
        &self.subgraph
    }

    /// All subgraphs that a run can reach, the entry point among them, with their indices in the model.
    pub fn subgraphs(&self) -> impl Iterator<Item = (SubgraphId, &Arc<Subgraph>)> {
        let graphs = self.machine.program().graphs.values();
        graphs.map(|graph| (graph.id, &graph.subgraph))
    }

    /// How many operators of the entry point delegates have taken.
    #[must_use]
    pub fn delegated_operators(&self) -> usize {
        self.partitions().map(|partition| partition.operators.len()).sum()
    }

    /// How many partitions of the entry point delegates have taken.
    #[must_use]
    pub fn delegated_partitions(&self) -> usize {
        self.partitions().count()
    }

    /// How many threads compute where most do, the calling one included: kernels and control flow have one, a partition as
    /// many as its delegate gives it.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.machine.threads()
    }

    /// How many operators of the entry point delegates may take in a run, when their shapes are known.
    #[must_use]
    pub fn deferred_operators(&self) -> usize {
        let deferred = self.steps().filter(|step| matches!(step.action, Action::Deferred { .. }));
        deferred.map(|step| step.part.operators.len()).sum()
    }

    fn partitions(&self) -> impl Iterator<Item = &Partition> {
        let delegated = self.steps().filter(|step| matches!(step.action, Action::Delegated(_)));
        delegated.map(|step| &step.part)
    }

    fn steps(&self) -> impl Iterator<Item = &Step> {
        self.machine.program().graph(self.entry).map_or(&[][..], |graph| &graph.steps).iter()
    }

    /// The flag that stops this interpreter.
    #[must_use]
    pub fn cancel_flag(&self) -> CancelFlag {
        self.machine.cancel_flag().clone()
    }

    /// Lets another flag stop this interpreter.
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

    /// Position of the input with this name: the signature's, else the
    /// tensor's.
    #[must_use]
    pub fn input_index(&self, name: &str) -> Option<usize> {
        self.position(name, &self.subgraph().inputs, |s| &s.inputs)
    }

    /// Position of the output with this name: the signature's, else the
    /// tensor's.
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
    /// If there is no such input.
    pub fn input_mut(&mut self, position: usize) -> Result<TensorViewMut<'_>, Error> {
        let id = self.input_id(position)?;
        let no_storage = || Error::invalid(format!("input {position} has no elements to fill"));
        self.frame.view_mut(id).ok_or_else(no_storage)
    }

    /// Gives an input another shape. Elements become zeros.
    ///
    /// # Errors
    ///
    /// If there is no such input or the shape is too large.
    pub fn resize_input(&mut self, position: usize, shape: &[usize]) -> Result<(), Error> {
        let id = self.input_id(position)?;
        let dtype = self.subgraph().tensor(id).dtype;
        check_size(dtype, shape, self.machine.limits())?;
        if let Some(zeros) = zeros(dtype, shape)? {
            self.give(position, id, zeros);
        }
        Ok(())
    }

    /// Gives an input elements and shape.
    ///
    /// # Errors
    ///
    /// If there is no such input or it has another element type.
    pub fn set_input(&mut self, position: usize, value: TensorBuf) -> Result<(), Error> {
        let id = self.input_id(position)?;
        let dtype = self.subgraph().tensor(id).dtype;
        if value.dtype() != dtype {
            return Err(Error::invalid(format!(
                "input {position} is {dtype}, the value is {}",
                value.dtype()
            )));
        }
        self.give(position, id, value);
        Ok(())
    }

    /// Puts an input in its place; the model may ask for more if it is larger.
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
            Error::invalid(format!("there is no input {position}, only {}", inputs.len()))
        })
    }

    /// Computes the outputs.
    ///
    /// # Errors
    ///
    /// If values that only a run can know do not fit an operator, if a limit
    /// is reached, or if the cancel flag is raised.
    pub fn run(&mut self) -> Result<(), Error> {
        self.run_observed(&mut |_| {})
    }

    /// [`Interpreter::run`] that shows every step when it has run: those of the entry point, and those of the
    /// subgraphs that IF, WHILE, CALL and CALL_ONCE run, each time anew.
    ///
    /// # Errors
    ///
    /// As [`Interpreter::run`].
    pub fn run_observed(&mut self, observe: &mut dyn FnMut(&Executed<'_>)) -> Result<(), Error> {
        self.machine.begin();
        self.machine.run(self.entry, &mut self.frame, observe)
    }

    /// An output of the last run.
    ///
    /// # Errors
    ///
    /// If there is no such output or nothing has run yet.
    pub fn output(&self, position: usize) -> Result<TensorView<'_>, Error> {
        let outputs = &self.subgraph().outputs;
        let id = outputs.get(position).copied().ok_or_else(|| {
            Error::invalid(format!("there is no output {position}, only {}", outputs.len()))
        })?;
        self.tensor(id)
            .ok_or_else(|| Error::invalid(format!("output {position} has not been computed yet")))
    }

    /// The outputs of the last run, without a copy; `None` if nothing has run yet.
    pub(crate) fn into_outputs(mut self) -> Option<Vec<TensorBuf>> {
        let graph = self.machine.program().graph(self.entry).ok()?;
        graph.subgraph.outputs.iter().map(|&id| self.frame.take(id)).collect()
    }

    /// Any tensor of the entry point that exists at the moment; see
    /// [`InterpOptions::keep_intermediates`].
    #[must_use]
    pub fn tensor(&self, id: TensorId) -> Option<TensorView<'_>> {
        let graph = self.machine.program().graph(self.entry).ok()?;
        self.frame.tensor(graph, id, &self.machine.resources.variables)
    }

    /// What the intermediate tensors of the entry point take, as of the last run.
    #[must_use]
    pub fn memory(&self) -> ArenaUse {
        self.frame.memory()
    }

    /// Brings variables and the state of recurrent operators back to their
    /// beginning.
    pub fn reset_variables(&mut self) {
        self.machine.reset();
        if let Ok(graph) = self.machine.program().graph(self.entry) {
            self.frame.reset_variables(graph);
        }
    }
}

impl fmt::Debug for Interpreter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interpreter").field("entry", &self.entry).finish_non_exhaustive()
    }
}

/// Zeros for an input; `None` if its type has no elements.
fn zeros(dtype: DType, shape: &[usize]) -> Result<Option<TensorBuf>, OutOfMemory> {
    let Some(bytes) = reserved_size(dtype, shape) else { return Ok(None) };
    let zeros = TensorBuf::zeros(dtype, shape);
    zeros.map(Some).ok_or_else(|| OutOfMemory::new("an input", bytes))
}

/// Refuses tensors that take more than [`ModelLimits::max_tensor_bytes`].
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
