//! Execution of operators that run other subgraphs.

use smallvec::SmallVec;
use xnn_model::{DType, OutOfMemory, SubgraphId, TensorId};

use super::{LARGE, Machine, given_twice, missing};
use crate::control::Control;
use crate::delegate::OperatorSet;
use crate::dims::INLINE;
use crate::error::{Error, ErrorKind};
use crate::execution_plan::{ExecutionPlan, Step, SubgraphPlan};
use crate::frame::{Frame, Sources};
use crate::observe::Observer;
use crate::storage::Handover;

/// A control operator with the tensors of its subgraph.
pub(crate) struct Caller<'a> {
    pub(crate) plan: &'a ExecutionPlan,
    pub(crate) graph: &'a SubgraphPlan,
    pub(crate) step: &'a Step,
    pub(crate) frame: &'a mut Frame,
}

/// A called subgraph with its tensors.
struct Callee<'a> {
    graph: &'a SubgraphPlan,
    frame: Frame,
}

/// A tensor of a subgraph.
type Place<'a> = (&'a SubgraphPlan, &'a mut Frame, TensorId);

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
                let condition = caller.step.set.inputs.first().copied().unwrap_or_default();
                let holds = self.truth(caller.graph, caller.frame, condition)?;
                self.call(if holds { then } else { otherwise }, caller, 1, observe)
            }
            Control::While { condition, body } => self.repeat(condition, body, caller, observe),
        }
    }

    /// Runs a subgraph on the operator's inputs from `first` on.
    fn call(
        &mut self,
        id: SubgraphId,
        Caller { plan, graph, step, frame }: Caller<'_>,
        first: usize,
        observe: &mut Observer<'_>,
    ) -> Result<(), Error> {
        let inputs = step.set.inputs.get(first..).unwrap_or(&[]);
        let outputs = &step.set.outputs;
        let mut callee = self.enter(plan.graph(id)?, inputs.len(), outputs.len())?;
        let Callee { graph: inner, frame: given } = &mut callee;
        for ((&from, &to), &takes) in inputs.iter().zip(&inner.subgraph.inputs).zip(&inner.takes) {
            let consumed = takes.filter(|_| step.consumes(from));
            let handover = consumed.unwrap_or(Handover::Copy);
            self.pass((graph, frame, from), handover, (inner, given, to))?;
        }
        self.run_callee(plan, &mut callee, frame, observe)?;
        self.take_outputs(&mut callee, graph, frame, outputs)?;
        self.leave(callee);
        Ok(())
    }

    /// Runs a body while a condition holds. The state between iterations is in the operator's
    /// outputs.
    fn repeat(
        &mut self,
        condition: SubgraphId,
        body: SubgraphId,
        Caller { plan, graph, step, frame }: Caller<'_>,
        observe: &mut Observer<'_>,
    ) -> Result<(), Error> {
        let state = &step.set.outputs;
        let mut condition = self.enter(plan.graph(condition)?, state.len(), 1)?;
        let mut body = self.enter(plan.graph(body)?, state.len(), state.len())?;
        let &[verdict] = condition.graph.subgraph.outputs.as_slice() else {
            let message = "the condition of a loop must have one output";
            return Err(ErrorKind::Execution(message.into()).into());
        };
        self.begin_loop(graph, step, frame)?;
        let limit = self.limits().max_loop_iterations;
        for _ in 0..limit {
            let Callee { graph: test, frame: tested } = &mut condition;
            let inputs = || state.iter().zip(&test.subgraph.inputs);
            for (((&id, &input), &keeps), &takes) in inputs().zip(&test.keeps).zip(&test.takes) {
                let Some(takes) = takes else { continue };
                let handover = if keeps { takes } else { Handover::Copy };
                self.pass((graph, frame, id), handover, (test, tested, input))?;
            }
            self.run_callee(plan, &mut condition, frame, observe)?;
            let Callee { graph: test, frame: tested } = &mut condition;
            let holds = self.truth(test, tested, verdict)?;
            for (&id, &input) in inputs() {
                if frame.shape(id).is_none() {
                    tested.trade_with(input, frame, id, Handover::Move);
                }
            }
            if !holds {
                self.leave(condition);
                self.leave(body);
                return Ok(());
            }
            let Callee { graph: inner, frame: given } = &mut body;
            for ((&id, &input), &takes) in
                state.iter().zip(&inner.subgraph.inputs).zip(&inner.takes)
            {
                let handover = takes.unwrap_or(Handover::Move);
                self.pass((graph, frame, id), handover, (inner, given, input))?;
            }
            self.run_callee(plan, &mut body, frame, observe)?;
            self.take_outputs(&mut body, graph, frame, state)?;
        }
        let what = "the number of iterations";
        Err(ErrorKind::Limit { what, value: limit.saturating_add(1), limit }.into())
    }

    /// Moves or copies the initial state of a loop to the operator's outputs.
    fn begin_loop(
        &self,
        graph: &SubgraphPlan,
        step: &Step,
        frame: &mut Frame,
    ) -> Result<(), Error> {
        let OperatorSet { inputs, outputs, .. } = &step.set;
        frame.close(outputs, false);
        for (&from, &to) in inputs.iter().zip(outputs) {
            Self::expect(graph, frame, from, graph.subgraph.tensor(to).dtype)?;
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

    /// Takes a frame for a subgraph, which must have this number of inputs and outputs.
    fn enter<'a>(
        &mut self,
        graph: &'a SubgraphPlan,
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
                "subgraph {id} has {takes} inputs and {gives} outputs, but its operator has {inputs} and {outputs}"
            ))
            .into());
        }
        let pooled = self.frames.get_mut(&graph.id).and_then(Vec::pop);
        let limit = self.max_tensor_bytes();
        Ok(Callee { graph, frame: pooled.unwrap_or_else(|| Frame::new(graph, limit)) })
    }

    /// Keeps the frame for the next call.
    fn leave(&mut self, Callee { graph, frame }: Callee<'_>) {
        self.frames.entry(graph.id).or_default().push(frame);
    }

    fn run_callee(
        &mut self,
        plan: &ExecutionPlan,
        Callee { graph, frame }: &mut Callee<'_>,
        caller: &Frame,
        observe: &mut Observer<'_>,
    ) -> Result<(), Error> {
        let held = caller.bytes();
        self.depth += 1;
        self.held = self.held.saturating_add(held);
        let ran = self.run_graph(plan, graph, frame, observe);
        self.held = self.held.saturating_sub(held);
        self.depth -= 1;
        ran
    }

    fn take_outputs(
        &self,
        Callee { graph: inner, frame: given }: &mut Callee<'_>,
        graph: &SubgraphPlan,
        frame: &mut Frame,
        outputs: &[TensorId],
    ) -> Result<(), Error> {
        for ((&from, &gives), &to) in inner.subgraph.outputs.iter().zip(&inner.gives).zip(outputs) {
            self.pass((inner, given, from), gives, (graph, frame, to))?;
        }
        Ok(())
    }

    /// Passes the value of a tensor to a tensor of another subgraph.
    fn pass(
        &self,
        (graph, frame, from): Place<'_>,
        handover: Handover,
        (inner, given, to): Place<'_>,
    ) -> Result<(), Error> {
        Self::expect(graph, frame, from, inner.subgraph.tensor(to).dtype)?;
        if frame.trade_with(from, given, to, handover) {
            return Ok(());
        }
        let value = frame.tensor(graph, from, &self.resources.variables);
        let value = value.ok_or_else(|| missing(from))?;
        let mut limit = self.max_tensor_bytes();
        if value.bytes.len() >= LARGE {
            // Both tensors exist at the same time.
            limit = limit.saturating_sub(usize::try_from(frame.bytes()).unwrap_or(usize::MAX));
        }
        Ok(given.copy_in(to, value, limit)?)
    }

    /// Returns an error if a tensor has no value or another type than expected.
    fn expect(
        graph: &SubgraphPlan,
        frame: &Frame,
        id: TensorId,
        expected: DType,
    ) -> Result<(), Error> {
        match frame.dtype(graph, id).ok_or_else(|| missing(id))? {
            found if found == expected => Ok(()),
            found => {
                let graph = graph.id;
                let message =
                    format!("tensor {id} of subgraph {graph} is {found}, expected {expected}");
                Err(ErrorKind::Execution(message).into())
            }
        }
    }

    /// The value of a condition, which must be one boolean.
    fn truth(&self, graph: &SubgraphPlan, frame: &Frame, id: TensorId) -> Result<bool, Error> {
        let tensor = frame.tensor(graph, id, &self.resources.variables);
        let tensor = tensor.ok_or_else(|| missing(id))?;
        match (tensor.dtype, tensor.bytes) {
            (DType::Bool, [value]) => Ok(*value != 0),
            (dtype, _) => Err(ErrorKind::Execution(format!(
                "the condition has type {dtype} and shape {:?}, expected one boolean",
                tensor.shape
            ))
            .into()),
        }
    }
}
