//! Runs the steps of a program.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use xnn_model::infer::{Fact, OutputShape};
use xnn_model::{DType, Limits, Operator, SubgraphId, TensorId, infer_op_shapes};

use crate::call::{Call, allocate};
use crate::control::Control;
use crate::delegate::PartitionSession;
use crate::error::{Error, ErrorKind, Refusal};
use crate::frame::Frame;
use crate::interpreter::CancelFlag;
use crate::node::Run;
use crate::program::{Action, Delegated, Graph, Program, Step};
use crate::resources::Resources;
use crate::tensor::{TensorBuf, TensorRef, storage_size};

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
                    let session = delegated.compiled.session().map_err(ErrorKind::Delegate)?;
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
