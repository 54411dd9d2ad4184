//! Runs the steps of a program.

use std::collections::BTreeMap;
use std::sync::Arc;

use smallvec::SmallVec;
use xnn_model::infer::OutputShape;
use xnn_model::{Demand, Excess, ModelLimits, SubgraphId, TensorId, memory};

use crate::INLINE;
use crate::call::Call;
use crate::control::Caller;
use crate::delegate::PartitionSession;
use crate::error::{Error, ErrorKind};
use crate::frame::{Frame, Sources};
use crate::interpreter::CancelFlag;
use crate::kernels::Scratch;
use crate::observe::{Executed, Observer};
use crate::program::{Action, Graph, Program, Step};
use crate::resources::Resources;

/// What any step takes beside its own work, in multiplications.
const STEP_WORK: u64 = 256;

/// Tensors of an operator are large from so many bytes on: what kernels make beside them may not fit in memory.
const LARGE: usize = 1 << 20;

/// Bytes that kernels may make for each byte of an operator's tensors: wide sums for narrow results.
const SCRATCH: usize = 4;

/// What runs steps: the program, and all state but the entry's tensors.
pub(crate) struct Machine {
    program: Arc<Program>,
    pub(crate) resources: Resources,
    /// Kernels run one after the other, and share it.
    scratch: Scratch,
    /// One for each partition of the program.
    sessions: Vec<Box<dyn PartitionSession>>,
    /// Frames of subgraphs that are called, while they do not run.
    pub(crate) frames: BTreeMap<SubgraphId, Vec<Frame>>,
    cancel: CancelFlag,
    /// What the model may ask for, by its size and that of its inputs.
    allowed: Demand,
    /// Work of the run so far.
    spent: u64,
    /// How many subgraphs run, each called by the one before.
    pub(crate) depth: usize,
}

impl Machine {
    pub(crate) fn new(program: Arc<Program>) -> Result<Self, Error> {
        let sessions = program.partitions.iter().map(|partition| partition.session());
        Ok(Self {
            resources: Resources::new(program.names.len()),
            scratch: Scratch::default(),
            sessions: sessions.collect::<Result<_, _>>().map_err(ErrorKind::Delegate)?,
            allowed: program.limits.amplification.allowed(program.stored),
            spent: 0,
            program,
            frames: BTreeMap::new(),
            cancel: CancelFlag::default(),
            depth: 0,
        })
    }

    /// A machine for the same program, at its beginning.
    pub(crate) fn fork(&self) -> Result<Self, Error> {
        Self::new(self.program.clone())
    }

    pub(crate) fn program(&self) -> &Arc<Program> {
        &self.program
    }

    pub(crate) fn cancel_flag(&self) -> &CancelFlag {
        &self.cancel
    }

    pub(crate) fn set_cancel_flag(&mut self, flag: CancelFlag) {
        self.cancel = flag;
    }

    /// Brings state that outlives a run back to its beginning.
    pub(crate) fn reset(&mut self) {
        self.resources.reset();
        self.frames.clear();
        self.sessions.iter_mut().for_each(|session| session.reset());
    }

    /// Of the partition that most threads compute; operators are computed by one.
    pub(crate) fn threads(&self) -> usize {
        self.sessions.iter().map(|session| session.threads()).max().unwrap_or(1)
    }

    pub(crate) fn limits(&self) -> &ModelLimits {
        &self.program.limits
    }

    /// Most bytes of one tensor.
    pub(crate) fn max_tensor_bytes(&self) -> usize {
        let allowed = usize::try_from(self.allowed.bytes).unwrap_or(usize::MAX);
        self.limits().max_tensor_bytes.min(allowed)
    }

    /// Lets the model ask for more where a caller gives it inputs of so many bytes.
    pub(crate) fn set_inputs(&mut self, bytes: u64) {
        let mut amplification = self.limits().amplification;
        amplification.inputs = amplification.inputs.saturating_add(bytes);
        self.allowed = amplification.allowed(self.program.stored);
    }

    /// Begins to count the work of a run.
    pub(crate) fn begin(&mut self) {
        self.spent = 0;
    }

    fn spend(&mut self, work: u64) -> Result<(), ErrorKind> {
        self.spent = self.spent.saturating_add(work);
        match (self.spent, self.allowed.work) {
            (value, limit) if value > limit => {
                Err(Excess { what: Excess::WORK, value, limit }.into())
            }
            _ => Ok(()),
        }
    }

    /// Runs all steps of a subgraph on the tensors of a frame, and shows each.
    pub(crate) fn run(
        &mut self,
        id: SubgraphId,
        frame: &mut Frame,
        observe: &mut Observer<'_>,
    ) -> Result<(), Error> {
        let program = self.program.clone();
        let graph = program.graph(id)?;
        frame.begin(graph)?;
        let mut steps = graph.steps.iter().enumerate();
        while let Some((index, step)) = steps.next() {
            if self.cancel.is_raised() {
                return Err(ErrorKind::Cancelled.into());
            }
            if step.once && step.part.outputs.iter().all(|&id| frame.shape(id).is_some()) {
                continue;
            }
            let ran = self.step(graph, index, step, frame, observe);
            let ran = ran.map_err(|e| graph.locate(step.operator, e))?;
            if ran {
                observe(&Executed { graph, step, frame, variables: &self.resources.variables });
            }
            step.release.iter().for_each(|&tensor| frame.release(tensor));
            if let (Action::Deferred { kernels, .. }, true) = (&step.action, ran) {
                let replaced = steps.by_ref().take(*kernels).flat_map(|(_, step)| &step.release);
                replaced.for_each(|&tensor| frame.release(tensor));
            }
        }
        Ok(())
    }

    /// Runs a step; `false` if it leaves its operators to the steps that follow.
    fn step(
        &mut self,
        graph: &Graph,
        index: usize,
        step: &Step,
        frame: &mut Frame,
        observe: &mut Observer<'_>,
    ) -> Result<bool, Error> {
        self.spend(STEP_WORK)?;
        match &step.action {
            Action::Control(control) => {
                self.control(*control, Caller { graph, step, frame }, observe)?;
            }
            Action::Access(access) => self.access(graph, step, *access, frame)?,
            Action::Deferred { session, .. } => {
                if !self.offer(graph, step, *session, frame)? {
                    return Ok(false);
                }
                let ran = self.compute(graph, step, frame);
                frame.close(&step.part.outputs, ran.is_ok());
                ran?;
            }
            Action::Kernel(_) | Action::Delegated(_) => {
                let is_empty = self.prepare(graph, index, step, frame)?;
                let (work, is_open) = match frame.shapes.get(index) {
                    Some(shapes) => (shapes.work.max(step.work), shapes.is_open),
                    None => (step.work, false),
                };
                self.spend(work)?;
                // Other dimensions beside the 0 may be of any size.
                let ran = match is_empty && step.states.is_empty() {
                    true => Ok(()),
                    false => self.compute(graph, step, frame),
                };
                frame.close(&step.part.outputs, ran.is_ok());
                ran?;
                if is_open {
                    frame.grow(&step.part.outputs, self.allowed.bytes)?;
                }
            }
        }
        Ok(true)
    }

    /// Offers a partition the inputs that it has now. Whether it accepts them; its outputs have their shapes then.
    fn offer(
        &mut self,
        graph: &Graph,
        step: &Step,
        session: usize,
        frame: &mut Frame,
    ) -> Result<bool, Error> {
        let limit = self.max_tensor_bytes();
        let Some(session) = self.sessions.get_mut(session) else { return Ok(false) };
        let mut inputs: SmallVec<[_; INLINE]> = SmallVec::new();
        for &id in &step.part.inputs {
            let input = frame.tensor(graph, id, &self.resources.variables);
            inputs.push(input.ok_or_else(|| missing(id))?);
        }
        let shapes = session.accept(&inputs);
        drop(inputs);
        let Some(shapes) = shapes else { return Ok(false) };
        for (&id, shape) in step.part.outputs.iter().zip(shapes) {
            frame.prepare(id, graph.subgraph.tensor(id).dtype, Some(shape), limit)?;
        }
        let work = session.work();
        self.spend(work)?;
        frame.grow(&step.part.outputs, self.allowed.bytes)?;
        Ok(true)
    }

    /// Runs a kernel or a partition on the memory of the frame.
    fn compute(&mut self, graph: &Graph, step: &Step, frame: &mut Frame) -> Result<(), Error> {
        let max_tensor_bytes = self.max_tensor_bytes();
        let Resources { variables, tables, generators, .. } = &mut self.resources;
        let mut sources = Sources::new(variables);
        match &step.action {
            Action::Kernel(run) => {
                let mut call = Call {
                    inputs: SmallVec::new(),
                    outputs: SmallVec::new(),
                    states: SmallVec::new(),
                    tables,
                    generators,
                    scratch: Some(&mut self.scratch),
                    max_tensor_bytes,
                    exhausted: None,
                };
                frame.open(step, &mut sources, &mut call.outputs).ok_or_else(given_twice)?;
                if !step.states.is_empty() {
                    let variables = call.outputs.drain(step.part.outputs.len()..);
                    call.states.extend(step.states.iter().copied().zip(variables));
                }
                let inputs = &graph.operator(step.operator).inputs;
                call.inputs.extend(inputs.iter().map(|id| sources.tensor(graph, (*id)?)));
                run(&mut call).map_err(|refusal| match call.exhausted.take() {
                    Some(exhausted) => Error::from(exhausted),
                    None => refusal.into(),
                })
            }
            Action::Delegated(session) | Action::Deferred { session, .. } => {
                let Some(session) = self.sessions.get_mut(*session) else {
                    return Err(ErrorKind::Execution("a partition has no session".into()).into());
                };
                let mut outputs = SmallVec::new();
                frame.open(step, &mut sources, &mut outputs).ok_or_else(given_twice)?;
                let mut inputs: SmallVec<[_; INLINE]> = SmallVec::new();
                for &id in &step.part.inputs {
                    inputs.push(sources.padded(id).ok_or_else(|| missing(id))?);
                }
                Ok(session.invoke(&inputs, &mut outputs).map_err(ErrorKind::Delegate)?)
            }
            Action::Control(_) | Action::Access(_) => Ok(()),
        }
    }

    /// Gives what a step writes the shapes that are known before it runs. Whether
    /// there is nothing to compute: no output has elements.
    fn prepare(
        &self,
        graph: &Graph,
        index: usize,
        Step { part, action, .. }: &Step,
        frame: &mut Frame,
    ) -> Result<bool, Error> {
        if let Some(shapes) = frame.shapes.get(index)
            && shapes.are_settled(graph, part, frame)
        {
            return Ok(shapes.is_empty);
        }
        let mut shapes = frame.shapes.get_mut(index).map(std::mem::take).unwrap_or_default();
        shapes.update(graph, part, frame, &self.resources.variables)?;
        let limit = self.max_tensor_bytes();
        for (&id, shape) in part.outputs.iter().zip(&shapes.outputs) {
            let shape = match shape {
                OutputShape::Known(shape) => Some(shape.as_slice()),
                // The kernel gives the shape; the type is settled.
                _ => None,
            };
            let dtype = graph.subgraph.tensor(id).dtype;
            frame.prepare(id, dtype, shape, limit)?;
        }
        frame.grow(&part.outputs, self.allowed.bytes)?;
        let touched = frame.bytes_of(&part.inputs).saturating_add(frame.bytes_of(&part.outputs));
        if touched >= LARGE && matches!(action, Action::Kernel(_)) {
            memory::ensure(touched.saturating_mul(SCRATCH), "an operator")?;
        }
        let is_empty = shapes.is_empty;
        if let Some(place) = frame.shapes.get_mut(index) {
            *place = shapes;
        }
        Ok(is_empty)
    }
}

pub(crate) fn given_twice() -> Error {
    ErrorKind::Execution("an output is given twice".into()).into()
}

pub(crate) fn missing(id: TensorId) -> Error {
    ErrorKind::Execution(format!("tensor {id} has no value")).into()
}
