//! Runs a prepared model.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use xnn_model::infer::{Fact, OutputShape};
use xnn_model::{
    DType, Limits, Model, Operator, Signature, Subgraph, SubgraphId, TensorId, infer_op_shapes,
};

use crate::call::{Call, allocate};
use crate::control::Control;
use crate::delegate::{Delegate, PartitionSession};
use crate::error::{Error, ErrorKind, Refusal};
use crate::frame::Frame;
use crate::node::Run;
use crate::program::{Action, Delegated, Graph, Program, Step};
use crate::resources::Resources;
use crate::tensor::{TensorBuf, TensorMut, TensorRef, storage_size};

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
    pub limits: Limits,
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

    fn is_raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// One entry point of a model with the memory to run it.
///
/// Inputs keep what they were given from run to run; state (variables,
/// recurrent operators) goes on from where the last run left it.
pub struct Interpreter {
    machine: Machine,
    entry: SubgraphId,
    frame: Frame,
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
        let program = Arc::new(Program::new(model, id, &options.limits, &options.delegates)?);
        let mut machine = Machine {
            program: program.clone(),
            resources: Resources::default(),
            sessions: BTreeMap::new(),
            frames: BTreeMap::new(),
            cancel: CancelFlag::default(),
            depth: 0,
            keep_intermediates: options.keep_intermediates,
        };
        machine.open_sessions()?;
        let graph = program.graph(id)?;
        let mut frame = Frame::new(graph);
        for &input in &graph.subgraph.inputs {
            let tensor = graph.subgraph.tensor(input);
            let shape = tensor.shape.as_deref().unwrap_or(&[]);
            check_size(tensor.dtype, shape, &options.limits)?;
            if let Some(zeros) = TensorBuf::zeros(tensor.dtype, shape) {
                frame.put(input, zeros);
            }
        }
        Ok(Self { machine, entry: id, frame, signature })
    }

    /// The subgraph that runs, with the shapes that are known before a run.
    ///
    /// # Panics
    ///
    /// Never: the entry point is part of the program.
    #[must_use]
    pub fn subgraph(&self) -> &Subgraph {
        static EMPTY: Subgraph = Subgraph {
            name: String::new(),
            tensors: vec![],
            inputs: vec![],
            outputs: vec![],
            operators: vec![],
        };
        self.machine.program.graph(self.entry).map_or(&EMPTY, |graph| &graph.subgraph)
    }

    /// How many steps run, and how many operators of the entry point delegates
    /// have taken.
    #[must_use]
    pub fn delegated_operators(&self) -> usize {
        let steps = self.machine.program.graph(self.entry).map_or(&[][..], |g| &g.steps);
        let delegated = steps.iter().map(|step| match &step.action {
            Action::Delegated(delegated) => delegated.partition.operators.len(),
            _ => 0,
        });
        delegated.sum()
    }

    /// The flag that stops this interpreter.
    #[must_use]
    pub fn cancel_flag(&self) -> CancelFlag {
        self.machine.cancel.clone()
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
    pub fn input_mut(&mut self, position: usize) -> Result<TensorMut<'_>, Error> {
        let id = self.input_id(position)?;
        let no_storage = || Error::invalid(format!("input {position} has no elements to fill"));
        self.frame.value_mut(id).map(TensorBuf::view_mut).ok_or_else(no_storage)
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
        if let Some(zeros) = TensorBuf::zeros(dtype, shape) {
            self.frame.put(id, zeros);
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
        self.frame.put(id, value);
        Ok(())
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
        self.machine.run(self.entry, &mut self.frame)
    }

    /// An output of the last run.
    ///
    /// # Errors
    ///
    /// If there is no such output or nothing has run yet.
    pub fn output(&self, position: usize) -> Result<TensorRef<'_>, Error> {
        let outputs = &self.subgraph().outputs;
        let id = outputs.get(position).copied().ok_or_else(|| {
            Error::invalid(format!("there is no output {position}, only {}", outputs.len()))
        })?;
        self.tensor(id)
            .ok_or_else(|| Error::invalid(format!("output {position} has not been computed yet")))
    }

    /// Any tensor of the entry point that exists at the moment; see
    /// [`InterpOptions::keep_intermediates`].
    #[must_use]
    pub fn tensor(&self, id: TensorId) -> Option<TensorRef<'_>> {
        self.frame.get(self.machine.program.graph(self.entry).ok()?, id)
    }

    /// Brings variables and the state of recurrent operators back to their
    /// beginning.
    pub fn reset_variables(&mut self) {
        self.machine.resources.reset();
        self.machine.frames.clear();
        self.machine.sessions.values_mut().for_each(|session| session.reset());
        if let Ok(graph) = self.machine.program.graph(self.entry) {
            self.frame.reset_variables(graph);
        }
    }
}

impl fmt::Debug for Interpreter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interpreter").field("entry", &self.entry).finish_non_exhaustive()
    }
}

fn check_size(dtype: DType, shape: &[usize], limits: &Limits) -> Result<(), Error> {
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

/// What runs steps: the program, and all state but the entry's tensors.
pub(crate) struct Machine {
    program: Arc<Program>,
    pub(crate) resources: Resources,
    /// By subgraph and first operator.
    sessions: BTreeMap<(SubgraphId, usize), Box<dyn PartitionSession>>,
    /// Frames of subgraphs that are called, while they do not run.
    frames: BTreeMap<SubgraphId, Vec<Frame>>,
    cancel: CancelFlag,
    depth: usize,
    keep_intermediates: bool,
}

impl Machine {
    fn open_sessions(&mut self) -> Result<(), Error> {
        for (&id, graph) in &self.program.graphs {
            for step in &graph.steps {
                if let Action::Delegated(delegated) = &step.action {
                    let session = delegated.compiled.session().map_err(ErrorKind::Delegate)?;
                    self.sessions.insert((id, step.operator), session);
                }
            }
        }
        Ok(())
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.program.limits
    }

    /// Runs a subgraph with these inputs; gives its outputs.
    pub(crate) fn call(
        &mut self,
        id: SubgraphId,
        inputs: Vec<TensorBuf>,
    ) -> Result<Vec<TensorBuf>, Error> {
        let limit = self.limits().max_call_depth;
        if self.depth >= limit {
            let value = limit as u64 + 1;
            let what = "the nesting of calls";
            return Err(ErrorKind::Limit { what, value, limit: limit as u64 }.into());
        }
        let program = self.program.clone();
        let graph = program.graph(id)?;
        if inputs.len() != graph.subgraph.inputs.len() {
            return Err(ErrorKind::Execution(format!(
                "subgraph {id} takes {} inputs, got {}",
                graph.subgraph.inputs.len(),
                inputs.len()
            ))
            .into());
        }
        let pooled = self.frames.get_mut(&id).and_then(Vec::pop);
        let mut frame = pooled.unwrap_or_else(|| Frame::new(graph));
        for (&tensor, value) in graph.subgraph.inputs.iter().zip(inputs) {
            let expected = graph.subgraph.tensor(tensor).dtype;
            if value.dtype() != expected {
                return Err(ErrorKind::Execution(format!(
                    "subgraph {id} takes {expected}, got {}",
                    value.dtype()
                ))
                .into());
            }
            frame.put(tensor, value);
        }
        self.depth += 1;
        let ran = self.run(id, &mut frame);
        self.depth -= 1;
        ran?;
        let outputs = graph.subgraph.outputs.iter().map(|&output| {
            let missing =
                || ErrorKind::Execution(format!("subgraph {id} gives no output {output}"));
            Ok(frame.get(graph, output).ok_or_else(missing)?.to_buf())
        });
        let outputs = outputs.collect::<Result<_, Error>>()?;
        self.frames.entry(id).or_default().push(frame);
        Ok(outputs)
    }

    fn run(&mut self, id: SubgraphId, frame: &mut Frame) -> Result<(), Error> {
        let program = self.program.clone();
        let graph = program.graph(id)?;
        for step in &graph.steps {
            if self.cancel.is_raised() {
                return Err(ErrorKind::Cancelled.into());
            }
            self.step(graph, step, frame).map_err(|e| graph.locate(step.operator, e))?;
            if !self.keep_intermediates {
                step.release.iter().for_each(|&tensor| frame.release(tensor));
            }
        }
        Ok(())
    }

    fn step(&mut self, graph: &Graph, step: &Step, frame: &mut Frame) -> Result<(), Error> {
        match &step.action {
            Action::Kernel(run) => self.kernel(graph, graph.operator(step.operator), run, frame),
            Action::Control(control) => {
                self.control(graph, graph.operator(step.operator), *control, frame)
            }
            Action::Delegated(delegated) => self.delegated(graph, step.operator, delegated, frame),
        }
    }

    fn kernel(
        &mut self,
        graph: &Graph,
        operator: &Operator,
        run: &Run,
        frame: &mut Frame,
    ) -> Result<(), Error> {
        let mut states = Vec::new();
        for (position, &input) in operator.inputs.iter().enumerate() {
            if let Some(id) = input
                && graph.subgraph.tensor(id).is_variable
                && let Some(value) = frame.take(id)
            {
                states.push((position, value));
            }
        }
        let shapes = infer(graph, operator, frame, &states)?;
        let mut outputs = Vec::with_capacity(operator.outputs.len());
        for (&id, shape) in operator.outputs.iter().zip(shapes) {
            let dtype = graph.subgraph.tensor(id).dtype;
            outputs.push(self.buffer(frame, id, dtype, &shape)?);
        }
        let inputs = operator.inputs.iter().enumerate().map(|(position, id)| {
            let is_state = states.iter().any(|(at, _)| *at == position);
            if is_state { None } else { id.and_then(|id| frame.get(graph, id)) }
        });
        let inputs: Vec<Option<TensorRef<'_>>> = inputs.collect();
        run(&mut Call {
            inputs: &inputs,
            outputs: &mut outputs,
            states: &mut states,
            resources: &mut self.resources,
            limits: &self.program.limits,
        })
        .map_err(execution)?;
        for (position, value) in states {
            if let Some(id) = operator.input(position) {
                frame.put(id, value);
            }
        }
        operator.outputs.iter().zip(outputs).for_each(|(&id, value)| frame.put(id, value));
        Ok(())
    }

    /// A buffer for a tensor: the one that it has, or a spare one.
    fn buffer(
        &self,
        frame: &mut Frame,
        id: TensorId,
        dtype: DType,
        shape: &OutputShape,
    ) -> Result<TensorBuf, Error> {
        let bytes = match shape {
            OutputShape::Known(shape) => storage_size(dtype, shape).unwrap_or(0),
            _ => 0,
        };
        let reused = frame.take(id).or_else(|| frame.spare(bytes));
        let mut buf = reused.unwrap_or_else(|| TensorBuf::empty(dtype));
        match shape {
            OutputShape::Known(shape) => {
                allocate(&mut buf, dtype, shape, self.limits().max_tensor_bytes)
                    .map_err(execution)?;
            }
            // The kernel gives the shape; the type is settled.
            _ => allocate(&mut buf, dtype, &[0], 0).map_err(execution)?,
        }
        Ok(buf)
    }

    fn control(
        &mut self,
        graph: &Graph,
        operator: &Operator,
        control: Control,
        frame: &mut Frame,
    ) -> Result<(), Error> {
        let inputs = operator.inputs.iter().flatten().map(|&id| {
            let missing = || ErrorKind::Execution(format!("tensor {id} has no value"));
            Ok(frame.get(graph, id).ok_or_else(missing)?.to_buf())
        });
        let inputs = inputs.collect::<Result<_, Error>>()?;
        let outputs = control.run(self, inputs)?;
        for (&id, value) in operator.outputs.iter().zip(outputs) {
            let expected = graph.subgraph.tensor(id).dtype;
            if value.dtype() != expected {
                return Err(ErrorKind::Execution(format!(
                    "output {id} is {expected}, the subgraph gives {}",
                    value.dtype()
                ))
                .into());
            }
            frame.put(id, value);
        }
        Ok(())
    }

    fn delegated(
        &mut self,
        graph: &Graph,
        first: usize,
        delegated: &Delegated,
        frame: &mut Frame,
    ) -> Result<(), Error> {
        let partition = &delegated.partition;
        let shapes = infer_through(graph, &partition.operators, frame)?;
        let mut outputs = Vec::with_capacity(partition.outputs.len());
        for &id in &partition.outputs {
            let shape = shapes.get(&id).cloned().unwrap_or(OutputShape::Dynamic);
            outputs.push(self.buffer(frame, id, graph.subgraph.tensor(id).dtype, &shape)?);
        }
        let inputs = partition.inputs.iter().map(|&id| {
            let missing = || ErrorKind::Execution(format!("tensor {id} has no value"));
            frame.get(graph, id).ok_or_else(missing)
        });
        let inputs = inputs.collect::<Result<Vec<_>, _>>()?;
        if let Some(session) = self.sessions.get_mut(&(graph.id, first)) {
            session.invoke(&inputs, &mut outputs).map_err(ErrorKind::Delegate)?;
        }
        partition.outputs.iter().zip(outputs).for_each(|(&id, value)| frame.put(id, value));
        Ok(())
    }
}

fn execution(Refusal(message): Refusal) -> Error {
    ErrorKind::Execution(message).into()
}

fn fact(view: TensorRef<'_>) -> Fact<'_> {
    Fact::known(view.dtype, view.shape, view.bytes)
}

/// The shapes of an operator's outputs for the values that are at hand.
fn infer(
    graph: &Graph,
    operator: &Operator,
    frame: &Frame,
    states: &[(usize, TensorBuf)],
) -> Result<Vec<OutputShape>, Error> {
    let facts = operator.inputs.iter().enumerate().map(|(position, id)| {
        let state = states.iter().find(|(at, _)| *at == position);
        match state {
            Some((_, value)) => Some(fact(value.view())),
            None => id.and_then(|id| frame.get(graph, id)).map(fact),
        }
    });
    let facts: Vec<Option<Fact<'_>>> = facts.collect();
    Ok(infer_op_shapes(&operator.op, &facts, operator.outputs.len())?)
}

/// The shapes of all tensors that a set of operators gives.
fn infer_through(
    graph: &Graph,
    operators: &[usize],
    frame: &Frame,
) -> Result<BTreeMap<TensorId, OutputShape>, Error> {
    let mut shapes: BTreeMap<TensorId, OutputShape> = BTreeMap::new();
    for &index in operators {
        let operator = graph.operator(index);
        let facts = operator.inputs.iter().map(|id| {
            let id = (*id)?;
            match shapes.get(&id) {
                Some(OutputShape::Known(shape)) => Some(Fact {
                    dtype: graph.subgraph.tensor(id).dtype,
                    shape: Some(Cow::Borrowed(shape)),
                    data: None,
                }),
                Some(_) => {
                    Some(Fact { dtype: graph.subgraph.tensor(id).dtype, shape: None, data: None })
                }
                None => frame.get(graph, id).map(fact),
            }
        });
        let facts: Vec<Option<Fact<'_>>> = facts.collect();
        let inferred = infer_op_shapes(&operator.op, &facts, operator.outputs.len())?;
        shapes.extend(operator.outputs.iter().copied().zip(inferred));
    }
    Ok(shapes)
}
