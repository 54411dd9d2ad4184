//! Operators that run other subgraphs.

use smallvec::SmallVec;
use xnn_model::{DType, Op, Operator, OutOfMemory, SubgraphId, TensorId};

use crate::INLINE;
use crate::delegate::Partition;
use crate::error::{Error, ErrorKind, Refusal, refuse};
use crate::frame::{Frame, Sources};
use crate::machine::{Machine, given_twice, missing};
use crate::observe::Observer;
use crate::program::{Graph, Step};

/// A control operator with the subgraphs that it runs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Control {
    Call(SubgraphId),
    CallOnce(SubgraphId),
    If { then: SubgraphId, otherwise: SubgraphId },
    While { condition: SubgraphId, body: SubgraphId },
}

pub(crate) fn control_of(operator: &Operator) -> Option<Control> {
    Some(match &operator.op {
        Op::Call(options) => Control::Call(options.subgraph),
        Op::CallOnce(options) => Control::CallOnce(options.subgraph),
        Op::StablehloComposite(options) => Control::Call(options.decomposition_subgraph),
        Op::If(options) => {
            Control::If { then: options.then_subgraph, otherwise: options.else_subgraph }
        }
        Op::While(options) => {
            Control::While { condition: options.cond_subgraph, body: options.body_subgraph }
        }
        _ => return None,
    })
}

impl Control {
    pub(crate) fn callees(self) -> Vec<SubgraphId> {
        match self {
            Self::Call(graph) | Self::CallOnce(graph) => vec![graph],
            Self::If { then, otherwise } => vec![then, otherwise],
            Self::While { condition, body } => vec![condition, body],
        }
    }

    /// Refuses tensors that the subgraphs cannot take or give.
    pub(crate) fn check(self, operator: &Operator) -> Result<(), Refusal> {
        let (taken, given) = (operator.inputs.iter().flatten().count(), operator.outputs.len());
        match self {
            Self::While { .. } if taken != given => {
                refuse(format!("a loop that takes {taken} tensors and gives {given}"))
            }
            Self::If { .. } if taken == 0 => refuse("the condition is missing"),
            _ => Ok(()),
        }
    }
}

/// A control operator with the tensors around it.
pub(crate) struct Caller<'a> {
    pub(crate) graph: &'a Graph,
    pub(crate) step: &'a Step,
    pub(crate) frame: &'a mut Frame,
}

/// A subgraph with its tensors, at work or about to be.
struct Callee<'a> {
    graph: &'a Graph,
    frame: Frame,
}

/// A tensor of a subgraph.
type Place<'a> = (&'a Graph, &'a mut Frame, TensorId);

impl Machine {
    /// Runs the subgraphs of a control operator.
    pub(crate) fn control(
        &mut self,
        control: Control,
        caller: Caller<'_>,
        observe: &mut Observer<'_>,
    ) -> Result<(), Error> {
        match control {
            Control::Call(callee) => self.call(callee, caller, 0, observe),
            Control::CallOnce(callee) => {
                if self.resources.initialized.contains(&callee) {
                    return Ok(());
                }
                self.resources.initialized.push(callee);
                self.call(callee, caller, 0, observe)
            }
            Control::If { then, otherwise } => {
                let condition = caller.step.part.inputs.first().copied().unwrap_or_default();
                let holds = self.truth(caller.graph, caller.frame, condition)?;
                self.call(if holds { then } else { otherwise }, caller, 1, observe)
            }
            Control::While { condition, body } => self.repeat(condition, body, caller, observe),
        }
    }

    /// Runs a subgraph on the operator's inputs from the `first` on.
    fn call(
        &mut self,
        id: SubgraphId,
        Caller { graph, step, frame }: Caller<'_>,
        first: usize,
        observe: &mut Observer<'_>,
    ) -> Result<(), Error> {
        let program = self.program().clone();
        let inputs = step.part.inputs.get(first..).unwrap_or(&[]);
        let outputs = &step.part.outputs;
        let mut callee = self.enter(program.graph(id)?, inputs.len(), outputs.len())?;
        for (&from, &to) in inputs.iter().zip(&callee.graph.subgraph.inputs) {
            let to = (callee.graph, &mut callee.frame, to);
            self.pass((graph, frame, from), step.consumes(from), to)?;
        }
        self.run_callee(&mut callee, observe)?;
        self.take_outputs(&mut callee, graph, frame, outputs)?;
        self.leave(callee);
        Ok(())
    }

    /// Runs a body while a condition holds. What goes from iteration to iteration lies where the operator's
    /// outputs do.
    fn repeat(
        &mut self,
        condition: SubgraphId,
        body: SubgraphId,
        Caller { graph, step, frame }: Caller<'_>,
        observe: &mut Observer<'_>,
    ) -> Result<(), Error> {
        let program = self.program().clone();
        let state = &step.part.outputs;
        let mut condition = self.enter(program.graph(condition)?, state.len(), 1)?;
        let mut body = self.enter(program.graph(body)?, state.len(), state.len())?;
        let &[verdict] = condition.graph.subgraph.outputs.as_slice() else {
            let message = "the condition has more or less than one output";
            return Err(ErrorKind::Execution(message.into()).into());
        };
        self.begin_loop(graph, step, frame)?;
        let limit = self.limits().max_loop_iterations;
        for _ in 0..limit {
            let Callee { graph: test, frame: tested } = &mut condition;
            let inputs = || state.iter().zip(&test.subgraph.inputs);
            for ((&id, &input), &keeps) in inputs().zip(&test.keeps) {
                self.pass((graph, frame, id), keeps, (test, tested, input))?;
            }
            self.run_callee(&mut condition, observe)?;
            let Callee { graph: test, frame: tested } = &mut condition;
            let holds = self.truth(test, tested, verdict)?;
            for (&id, &input) in inputs() {
                if frame.shape(id).is_none() {
                    tested.trade_with(input, frame, id);
                }
            }
            if !holds {
                self.leave(condition);
                self.leave(body);
                return Ok(());
            }
            for (&id, &input) in state.iter().zip(&body.graph.subgraph.inputs) {
                self.pass((graph, frame, id), true, (body.graph, &mut body.frame, input))?;
            }
            self.run_callee(&mut body, observe)?;
            self.take_outputs(&mut body, graph, frame, state)?;
        }
        let what = "the number of iterations";
        Err(ErrorKind::Limit { what, value: limit.saturating_add(1), limit }.into())
    }

    /// Brings what a loop begins with where its outputs are.
    fn begin_loop(&self, graph: &Graph, step: &Step, frame: &mut Frame) -> Result<(), Error> {
        let Partition { inputs, outputs, .. } = &step.part;
        frame.close(outputs, false);
        for (&from, &to) in inputs.iter().zip(outputs) {
            self.expect(graph, frame, from, graph.subgraph.tensor(to).dtype)?;
            if step.consumes(from) {
                frame.trade_within(from, to);
            }
        }
        let there: SmallVec<[bool; INLINE]> =
            outputs.iter().map(|&id| frame.shape(id).is_some()).collect();
        let (mut sources, mut places) = (Sources::new(&self.resources.variables), SmallVec::new());
        frame.open(step, &mut sources, &mut places).ok_or_else(given_twice)?;
        for ((&from, mut place), there) in inputs.iter().zip(places).zip(there) {
            if !there {
                let value = sources.tensor(graph, from).ok_or_else(|| missing(from))?;
                place
                    .assign(value)
                    .ok_or_else(|| OutOfMemory::new("the state of a loop", value.bytes.len()))?;
            }
        }
        drop(sources);
        frame.close(outputs, true);
        Ok(())
    }

    /// Tensors for a subgraph that takes and gives so many.
    fn enter<'a>(
        &mut self,
        graph: &'a Graph,
        inputs: usize,
        outputs: usize,
    ) -> Result<Callee<'a>, Error> {
        let limit = self.limits().max_call_depth;
        if self.depth >= limit {
            let (value, limit) = (limit as u64 + 1, limit as u64);
            return Err(ErrorKind::Limit { what: "the nesting of calls", value, limit }.into());
        }
        let (takes, gives) = (graph.subgraph.inputs.len(), graph.subgraph.outputs.len());
        if takes != inputs || gives < outputs {
            let id = graph.id;
            return Err(ErrorKind::Execution(format!(
                "subgraph {id} takes {takes} tensors and gives {gives}, the operator has {inputs} and {outputs}"
            ))
            .into());
        }
        let pooled = self.frames.get_mut(&graph.id).and_then(Vec::pop);
        let limit = self.max_tensor_bytes();
        Ok(Callee { graph, frame: pooled.unwrap_or_else(|| Frame::new(graph, limit)) })
    }

    /// Keeps the tensors for the next call.
    fn leave(&mut self, Callee { graph, frame }: Callee<'_>) {
        self.frames.entry(graph.id).or_default().push(frame);
    }

    fn run_callee(
        &mut self,
        Callee { graph, frame }: &mut Callee<'_>,
        observe: &mut Observer<'_>,
    ) -> Result<(), Error> {
        self.depth += 1;
        let ran = self.run(graph.id, frame, observe);
        self.depth -= 1;
        ran
    }

    fn take_outputs(
        &self,
        Callee { graph: inner, frame: given }: &mut Callee<'_>,
        graph: &Graph,
        frame: &mut Frame,
        outputs: &[TensorId],
    ) -> Result<(), Error> {
        for ((&from, &gives), &to) in inner.subgraph.outputs.iter().zip(&inner.gives).zip(outputs) {
            self.pass((inner, given, from), gives, (graph, frame, to))?;
        }
        Ok(())
    }

    /// Gives a tensor of one subgraph the value of another's; where that `moves`, its memory with it.
    fn pass(
        &self,
        (graph, frame, from): Place<'_>,
        moves: bool,
        (inner, given, to): Place<'_>,
    ) -> Result<(), Error> {
        self.expect(graph, frame, from, inner.subgraph.tensor(to).dtype)?;
        if moves && frame.trade_with(from, given, to) {
            return Ok(());
        }
        let value = frame.tensor(graph, from, &self.resources.variables);
        let value = value.ok_or_else(|| missing(from))?;
        Ok(given.copy_in(to, value, self.max_tensor_bytes())?)
    }

    /// Refuses a tensor that is missing, or of another type than where it goes.
    fn expect(
        &self,
        graph: &Graph,
        frame: &Frame,
        id: TensorId,
        expected: DType,
    ) -> Result<(), Error> {
        let tensor = frame.tensor(graph, id, &self.resources.variables);
        match tensor.ok_or_else(|| missing(id))?.dtype {
            found if found == expected => Ok(()),
            found => {
                let graph = graph.id;
                let message =
                    format!("tensor {id} of subgraph {graph} is {found}, expected {expected}");
                Err(ErrorKind::Execution(message).into())
            }
        }
    }

    /// The value of a condition: one boolean.
    fn truth(&self, graph: &Graph, frame: &Frame, id: TensorId) -> Result<bool, Error> {
        let tensor = frame.tensor(graph, id, &self.resources.variables);
        let tensor = tensor.ok_or_else(|| missing(id))?;
        match (tensor.dtype, tensor.bytes) {
            (DType::Bool, [value]) => Ok(*value != 0),
            (dtype, _) => Err(ErrorKind::Execution(format!(
                "the condition is {dtype} of shape {:?}, expected one boolean",
                tensor.shape
            ))
            .into()),
        }
    }
}
