//! Runs the steps of a program.

use std::collections::BTreeMap;
use std::sync::Arc;

use smallvec::SmallVec;
use xnn_model::infer::OutputShape;
use xnn_model::{Limits, Operator, SubgraphId};

use crate::INLINE;
use crate::call::Call;
use crate::control::Control;
use crate::delegate::{Partition, PartitionSession};
use crate::error::{Error, ErrorKind, Refusal};
use crate::frame::{Frame, Sources};
use crate::interpreter::CancelFlag;
use crate::kernels::Scratch;
use crate::observe::{Executed, Observer};
use crate::program::{Action, Graph, Program, Step};
use crate::resources::Resources;
use crate::storage::{Output, TensorBuf};

/// What runs steps: the program, and all state but the entry's tensors.
pub(crate) struct Machine {
    program: Arc<Program>,
    pub(crate) resources: Resources,
    /// Kernels run one after the other, and share it.
    scratch: Scratch,
    /// One for each partition of the program.
    sessions: Vec<Box<dyn PartitionSession>>,
    /// Frames of subgraphs that are called, while they do not run.
    frames: BTreeMap<SubgraphId, Vec<Frame>>,
    cancel: CancelFlag,
    depth: usize,
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

    pub(crate) fn program(&self) -> &Program {
        &self.program
    }

    pub(crate) fn cancel_flag(&self) -> &CancelFlag {
        &self.cancel
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

    /// Runs a subgraph with these inputs; gives its outputs.
    pub(crate) fn call(
        &mut self,
        id: SubgraphId,
        inputs: Vec<TensorBuf>,
        observe: &mut Observer<'_>,
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
        let mut frame = pooled.unwrap_or_else(|| Frame::new(graph, self.limits().max_tensor_bytes));
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
        let ran = self.run(id, &mut frame, observe);
        self.depth -= 1;
        ran?;
        let sources = frame.sources();
        let outputs = graph.subgraph.outputs.iter().map(|&output| {
            let missing =
                || ErrorKind::Execution(format!("subgraph {id} gives no output {output}"));
            Ok(sources.tensor(graph, output).ok_or_else(missing)?.to_buf())
        });
        let outputs = outputs.collect::<Result<_, Error>>()?;
        drop(sources);
        self.frames.entry(id).or_default().push(frame);
        Ok(outputs)
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
        for (index, step) in graph.steps.iter().enumerate() {
            if self.cancel.is_raised() {
                return Err(ErrorKind::Cancelled.into());
            }
            if step.once && step.part.outputs.iter().all(|&id| frame.shape(id).is_some()) {
                continue;
            }
            let ran = self.step(graph, index, step, frame, observe);
            ran.map_err(|e| graph.locate(step.operator, e))?;
            observe(&Executed { graph, step, frame });
            step.release.iter().for_each(|&tensor| frame.release(tensor));
        }
        Ok(())
    }

    fn step(
        &mut self,
        graph: &Graph,
        index: usize,
        step: &Step,
        frame: &mut Frame,
        observe: &mut Observer<'_>,
    ) -> Result<(), Error> {
        if let Action::Control(control) = &step.action {
            return self.control(graph, graph.operator(step.operator), *control, frame, observe);
        }
        let is_empty = self.prepare(graph, index, &step.part, frame)?;
        // Other dimensions beside the 0 may be of any size.
        let ran = match is_empty && step.states.is_empty() {
            true => Ok(()),
            false => self.compute(graph, step, frame),
        };
        frame.close(&step.part.outputs, ran.is_ok());
        ran
    }

    /// Runs a kernel or a partition on the memory of the frame.
    fn compute(&mut self, graph: &Graph, step: &Step, frame: &mut Frame) -> Result<(), Error> {
        let Some((sources, mut outputs)) = frame.open(step) else {
            return Err(ErrorKind::Execution("an output is given twice".into()).into());
        };
        match &step.action {
            Action::Kernel(run) => {
                let inputs = &graph.operator(step.operator).inputs;
                let states = outputs.drain(step.part.outputs.len()..);
                let states = step.states.iter().copied().zip(states).collect();
                let mut call = Call {
                    inputs: SmallVec::new(),
                    outputs,
                    states,
                    resources: &mut self.resources,
                    scratch: Some(&mut self.scratch),
                    limits: &self.program.limits,
                };
                call.inputs.extend(inputs.iter().map(|id| sources.tensor(graph, (*id)?)));
                run(&mut call).map_err(execution)
            }
            Action::Delegated(session) => {
                self.delegated(*session, &step.part, &sources, &mut outputs)
            }
            Action::Control(_) => Ok(()),
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
        shapes.update(graph, part, frame)?;
        let limit = self.limits().max_tensor_bytes;
        for (&id, shape) in part.outputs.iter().zip(&shapes.outputs) {
            let shape = match shape {
                OutputShape::Known(shape) => Some(shape.as_slice()),
                // The kernel gives the shape; the type is settled.
                _ => None,
            };
            let dtype = graph.subgraph.tensor(id).dtype;
            frame.prepare(id, dtype, shape, limit).map_err(execution)?;
        }
        let is_empty = shapes.is_empty;
        if let Some(place) = frame.shapes.get_mut(index) {
            *place = shapes;
        }
        Ok(is_empty)
    }

    fn control(
        &mut self,
        graph: &Graph,
        operator: &Operator,
        control: Control,
        frame: &mut Frame,
        observe: &mut Observer<'_>,
    ) -> Result<(), Error> {
        let sources = frame.sources();
        let inputs = operator.inputs.iter().flatten().map(|&id| {
            let missing = || ErrorKind::Execution(format!("tensor {id} has no value"));
            Ok(sources.tensor(graph, id).ok_or_else(missing)?.to_buf())
        });
        let inputs = inputs.collect::<Result<_, Error>>()?;
        drop(sources);
        let outputs = control.run(self, inputs, observe)?;
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
        session: usize,
        part: &Partition,
        sources: &Sources<'_>,
        outputs: &mut [Output<'_>],
    ) -> Result<(), Error> {
        let inputs = part.inputs.iter().map(|&id| {
            let missing = || ErrorKind::Execution(format!("tensor {id} has no value"));
            sources.padded(id).ok_or_else(missing)
        });
        let inputs = inputs.collect::<Result<SmallVec<[_; INLINE]>, _>>()?;
        match self.sessions.get_mut(session) {
            Some(session) => Ok(session.invoke(&inputs, outputs).map_err(ErrorKind::Delegate)?),
            None => Err(ErrorKind::Execution("a partition has no session".into()).into()),
        }
    }
}

fn execution(Refusal(message): Refusal) -> Error {
    ErrorKind::Execution(message).into()
}
