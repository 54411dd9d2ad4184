//! Runs the steps of a program.

use std::collections::BTreeMap;
use std::sync::Arc;

use smallvec::SmallVec;
use xnn_model::infer::OutputShape;
use xnn_model::{Limits, Operator, SubgraphId};

use crate::call::{Call, allocate};
use crate::control::Control;
use crate::delegate::{Partition, PartitionSession};
use crate::error::{Error, ErrorKind, Refusal};
use crate::frame::Frame;
use crate::interpreter::CancelFlag;
use crate::node::Run;
use crate::program::{Action, Graph, Program, Step};
use crate::resources::Resources;
use crate::tensor::{TensorBuf, TensorRef, storage_size};

/// Inputs and outputs up to which a step allocates nothing.
const INLINE: usize = 6;

type Buffers = SmallVec<[TensorBuf; INLINE]>;

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
    pub(crate) fn new(program: Arc<Program>, keep_intermediates: bool) -> Result<Self, Error> {
        let mut sessions = BTreeMap::new();
        for (&id, graph) in &program.graphs {
            for step in &graph.steps {
                if let Action::Delegated(delegated) = &step.action {
                    let session = delegated.session().map_err(ErrorKind::Delegate)?;
                    sessions.insert((id, step.operator), session);
                }
            }
        }
        Ok(Self {
            program,
            resources: Resources::default(),
            sessions,
            frames: BTreeMap::new(),
            cancel: CancelFlag::default(),
            depth: 0,
            keep_intermediates,
        })
    }

    /// A machine for the same program, at its beginning.
    pub(crate) fn another(&self) -> Result<Self, Error> {
        Self::new(self.program.clone(), self.keep_intermediates)
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
        self.sessions.values_mut().for_each(|session| session.reset());
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

    /// Runs all steps of a subgraph on the tensors of a frame.
    pub(crate) fn run(&mut self, id: SubgraphId, frame: &mut Frame) -> Result<(), Error> {
        let program = self.program.clone();
        let graph = program.graph(id)?;
        for (index, step) in graph.steps.iter().enumerate() {
            if self.cancel.is_raised() {
                return Err(ErrorKind::Cancelled.into());
            }
            self.step(graph, index, step, frame).map_err(|e| graph.locate(step.operator, e))?;
            if !self.keep_intermediates {
                step.release.iter().for_each(|&tensor| frame.release(tensor));
            }
        }
        Ok(())
    }

    fn step(
        &mut self,
        graph: &Graph,
        index: usize,
        step: &Step,
        frame: &mut Frame,
    ) -> Result<(), Error> {
        if let Action::Control(control) = &step.action {
            return self.control(graph, graph.operator(step.operator), *control, frame);
        }
        let mut outputs = self.buffers(graph, index, &step.part, frame)?;
        let ran = match &step.action {
            Action::Kernel(run) => {
                self.kernel(graph, graph.operator(step.operator), run, frame, &mut outputs)
            }
            _ => self.delegated((graph.id, step.operator), &step.part, frame, &mut outputs),
        };
        for (&id, value) in step.part.outputs.iter().zip(outputs) {
            frame.put(id, value);
            if ran.is_err() {
                frame.release(id);
            }
        }
        ran
    }

    fn kernel(
        &mut self,
        graph: &Graph,
        operator: &Operator,
        run: &Run,
        frame: &mut Frame,
        outputs: &mut [TensorBuf],
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
        let inputs = operator.inputs.iter().enumerate().map(|(position, id)| {
            let is_state = states.iter().any(|(at, _)| *at == position);
            if is_state { None } else { id.and_then(|id| frame.get(graph, id)) }
        });
        let inputs: SmallVec<[Option<TensorRef<'_>>; INLINE]> = inputs.collect();
        let ran = run(&mut Call {
            inputs: &inputs,
            outputs,
            states: &mut states,
            resources: &mut self.resources,
            limits: &self.program.limits,
        });
        drop(inputs);
        for (position, value) in states {
            if let Some(id) = operator.input(position) {
                frame.put(id, value);
            }
        }
        ran.map_err(execution)
    }

    /// Buffers for what a step gives, with the shapes that are known before it
    /// runs.
    fn buffers(
        &self,
        graph: &Graph,
        index: usize,
        part: &Partition,
        frame: &mut Frame,
    ) -> Result<Buffers, Error> {
        let mut shapes = frame.shapes.get_mut(index).map(std::mem::take).unwrap_or_default();
        shapes.update(graph, part, frame)?;
        let outputs = part.outputs.iter().zip(&shapes.outputs).map(|(&id, shape)| {
            let dtype = graph.subgraph.tensor(id).dtype;
            let (shape, limit) = match shape {
                OutputShape::Known(shape) => (shape.as_slice(), self.limits().max_tensor_bytes),
                // The kernel gives the shape; the type is settled.
                _ => (&[0][..], 0),
            };
            let mut buf = frame.buffer(id, dtype, storage_size(dtype, shape).unwrap_or(0));
            allocate(&mut buf, dtype, shape, limit).map_err(execution)?;
            Ok(buf)
        });
        let outputs = outputs.collect::<Result<_, Error>>();
        if let Some(place) = frame.shapes.get_mut(index) {
            *place = shapes;
        }
        outputs
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
        session: (SubgraphId, usize),
        part: &Partition,
        frame: &Frame,
        outputs: &mut [TensorBuf],
    ) -> Result<(), Error> {
        let inputs = part.inputs.iter().map(|&id| {
            let missing = || ErrorKind::Execution(format!("tensor {id} has no value"));
            frame.value(id).ok_or_else(missing)
        });
        let inputs = inputs.collect::<Result<SmallVec<[_; INLINE]>, _>>()?;
        if let Some(session) = self.sessions.get_mut(&session) {
            session.invoke(&inputs, outputs).map_err(ErrorKind::Delegate)?;
        }
        Ok(())
    }
}

fn execution(Refusal(message): Refusal) -> Error {
    ErrorKind::Execution(message).into()
}
