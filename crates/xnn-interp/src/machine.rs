//! Runs the steps of a program.

use std::collections::BTreeMap;
use std::sync::Arc;

use smallvec::SmallVec;
use xnn_model::infer::OutputShape;
use xnn_model::{Limits, SubgraphId, TensorId};

use crate::INLINE;
use crate::call::Call;
use crate::control::Caller;
use crate::delegate::{Partition, PartitionSession};
use crate::error::{Error, ErrorKind};
use crate::frame::{Frame, Sources};
use crate::interpreter::CancelFlag;
use crate::kernels::Scratch;
use crate::observe::{Executed, Observer};
use crate::program::{Action, Graph, Program, Step};
use crate::resources::Resources;

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
            program,
            frames: BTreeMap::new(),
            cancel: CancelFlag::default(),
            depth: 0,
        })
    }

    /// A machine for the same program, at its beginning.
    pub(crate) fn another(&self) -> Result<Self, Error> {
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

    pub(crate) fn limits(&self) -> &Limits {
        &self.program.limits
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
                let is_empty = self.prepare(graph, index, &step.part, frame)?;
                // Other dimensions beside the 0 may be of any size.
                let ran = match is_empty && step.states.is_empty() {
                    true => Ok(()),
                    false => self.compute(graph, step, frame),
                };
                frame.close(&step.part.outputs, ran.is_ok());
                ran?;
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
        let limit = self.limits().max_tensor_bytes;
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
        Ok(true)
    }

    /// Runs a kernel or a partition on the memory of the frame.
    fn compute(&mut self, graph: &Graph, step: &Step, frame: &mut Frame) -> Result<(), Error> {
        let Resources { variables, tables, .. } = &mut self.resources;
        let mut sources = Sources::new(variables);
        match &step.action {
            Action::Kernel(run) => {
                let mut call = Call {
                    inputs: SmallVec::new(),
                    outputs: SmallVec::new(),
                    states: SmallVec::new(),
                    tables,
                    scratch: Some(&mut self.scratch),
                    limits: &self.program.limits,
                };
                frame.open(step, &mut sources, &mut call.outputs).ok_or_else(given_twice)?;
                if !step.states.is_empty() {
                    let variables = call.outputs.drain(step.part.outputs.len()..);
                    call.states.extend(step.states.iter().copied().zip(variables));
                }
                let inputs = &graph.operator(step.operator).inputs;
                call.inputs.extend(inputs.iter().map(|id| sources.tensor(graph, (*id)?)));
                Ok(run(&mut call)?)
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
        part: &Partition,
        frame: &mut Frame,
    ) -> Result<bool, Error> {
        if let Some(shapes) = frame.shapes.get(index)
            && shapes.are_settled(graph, part, frame)
        {
            return Ok(shapes.is_empty);
        }
        let mut shapes = frame.shapes.get_mut(index).map(std::mem::take).unwrap_or_default();
        shapes.update(graph, part, frame, &self.resources.variables)?;
        let limit = self.limits().max_tensor_bytes;
        for (&id, shape) in part.outputs.iter().zip(&shapes.outputs) {
            let shape = match shape {
                OutputShape::Known(shape) => Some(shape.as_slice()),
                // The kernel gives the shape; the type is settled.
                _ => None,
            };
            let dtype = graph.subgraph.tensor(id).dtype;
            frame.prepare(id, dtype, shape, limit)?;
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
