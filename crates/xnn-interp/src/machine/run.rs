//! Runs the steps of a subgraph.

use smallvec::SmallVec;
use xnn_model::infer::OutputShape;
use xnn_model::{SubgraphId, memory};

use super::control::Caller;
use super::{LARGE, Machine, given_twice, missing};
use crate::call::Call;
use crate::dims::{INLINE, are_equal};
use crate::error::{Error, ErrorKind};
use crate::execution_plan::{Action, ExecutionPlan, Step, SubgraphPlan};
use crate::frame::{Frame, Sources};
use crate::observe::{Executed, Observer};
use crate::operator::Kernel;
use crate::resources::Resources;

/// Work of any step besides its own, in multiplications. It ends loops of steps that compute nothing.
const STEP_WORK: u64 = 1024;

/// Bytes that kernels may allocate per byte of an operator's tensors, such as wide sums for narrow
/// results.
const SCRATCH: usize = 4;

impl Machine {
    /// Runs all steps of a subgraph on the tensors of a frame, and calls the observer after each.
    pub(crate) fn run(
        &mut self,
        id: SubgraphId,
        frame: &mut Frame,
        observe: &mut Observer<'_>,
    ) -> Result<(), Error> {
        let plan = self.plan.clone();
        self.run_graph(&plan, plan.graph(id)?, frame, observe)
    }

    /// [`run`](Self::run) for a subgraph of the plan, which the callers of subgraphs share: a loop
    /// runs two of them in each iteration.
    pub(super) fn run_graph(
        &mut self,
        plan: &ExecutionPlan,
        graph: &SubgraphPlan,
        frame: &mut Frame,
        observe: &mut Observer<'_>,
    ) -> Result<(), Error> {
        frame.begin(graph)?;
        let mut steps = graph.steps.iter().enumerate();
        while let Some((index, step)) = steps.next() {
            if self.cancel.is_raised() {
                return Err(ErrorKind::Cancelled.into());
            }
            if step.once && step.set.outputs.iter().all(|&id| frame.shape(id).is_some()) {
                continue;
            }
            let caller = Caller { plan, graph, step, frame };
            let ran = self.step(index, caller, observe);
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

    /// Runs a step. Returns `false` if the steps that follow run its operators instead.
    fn step(
        &mut self,
        index: usize,
        caller: Caller<'_>,
        observe: &mut Observer<'_>,
    ) -> Result<bool, Error> {
        self.spend(STEP_WORK)?;
        let Caller { graph, step, frame, .. } = caller;
        match &step.action {
            Action::Control(control) => {
                self.control(*control, Caller { frame, ..caller }, observe)?;
            }
            Action::Access(access) => self.access(graph, step, *access, frame)?,
            Action::Deferred { session, .. } => {
                if !self.accept(graph, step, *session, frame)? {
                    return Ok(false);
                }
                let ran = self.compute(graph, step, frame);
                frame.close(&step.set.outputs, ran.is_ok());
                ran?;
            }
            Action::Kernel(kernel) if self.compute_single(graph, step, &**kernel, frame) => {}
            Action::Kernel(_) | Action::Delegated(_) => {
                let is_empty = self.prepare(graph, index, step, frame)?;
                let (work, is_open) = match frame.shapes.get(index) {
                    Some(shapes) => (shapes.work.max(step.work), shapes.is_open),
                    None => (step.work, false),
                };
                self.spend(work)?;
                // Dimensions other than the 0 may have any size.
                let ran = match is_empty && step.states.is_empty() {
                    true => Ok(()),
                    false => self.compute(graph, step, frame),
                };
                frame.close(&step.set.outputs, ran.is_ok());
                ran?;
                if is_open {
                    frame.grow(&step.set.outputs, self.memory_left())?;
                }
            }
        }
        Ok(true)
    }

    /// Runs a kernel on two tensors of one element each, if it can and its output has their shape
    /// from a former run. Returns whether it did. The work is less than that of any step.
    fn compute_single(
        &self,
        graph: &SubgraphPlan,
        step: &Step,
        kernel: &dyn Kernel,
        frame: &mut Frame,
    ) -> bool {
        let (&[a, b], &[output], []) = (&*step.set.inputs, &*step.set.outputs, &*step.states)
        else {
            return false;
        };
        let operand = |id| frame.tensor(graph, id, &self.resources.variables);
        let (Some(a), Some(b)) = (operand(a), operand(b)) else { return false };
        let dtype = graph.subgraph.tensor(output).dtype;
        if !are_equal(a.shape, b.shape) || !frame.is_prepared(output, dtype, a.shape) {
            return false;
        }
        kernel.compute_single([a, b]).is_some_and(|element| frame.fill(output, element.bytes()))
    }

    /// Lets a deferred partition accept the current inputs. Returns whether it does; its outputs
    /// then have their shapes.
    fn accept(
        &mut self,
        graph: &SubgraphPlan,
        step: &Step,
        session: usize,
        frame: &mut Frame,
    ) -> Result<bool, Error> {
        let limit = self.max_tensor_bytes();
        let Some(session) = self.sessions.get_mut(session) else { return Ok(false) };
        let mut inputs: SmallVec<[_; INLINE]> = SmallVec::new();
        for &id in &step.set.inputs {
            let input = frame.tensor(graph, id, &self.resources.variables);
            inputs.push(input.ok_or_else(|| missing(id))?);
        }
        let shapes = session.accept(&inputs);
        drop(inputs);
        let Some(shapes) = shapes else { return Ok(false) };
        for (&id, shape) in step.set.outputs.iter().zip(shapes) {
            frame.prepare(id, graph.subgraph.tensor(id).dtype, Some(shape), limit)?;
        }
        let work = session.work();
        self.spend(work)?;
        frame.grow(&step.set.outputs, self.memory_left())?;
        Ok(true)
    }

    /// Runs a kernel or a partition on the memory of the frame.
    fn compute(
        &mut self,
        graph: &SubgraphPlan,
        step: &Step,
        frame: &mut Frame,
    ) -> Result<(), Error> {
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
                    let variables = call.outputs.drain(step.set.outputs.len()..);
                    call.states.extend(step.states.iter().copied().zip(variables));
                }
                let inputs = &graph.operator(step.operator).inputs;
                call.inputs.extend(inputs.iter().map(|id| sources.tensor(graph, (*id)?)));
                run.compute(&mut call).map_err(|refusal| match call.exhausted.take() {
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
                for &id in &step.set.inputs {
                    inputs.push(sources.padded(id).ok_or_else(|| missing(id))?);
                }
                Ok(session.invoke(&inputs, &mut outputs).map_err(ErrorKind::Delegate)?)
            }
            Action::Control(_) | Action::Access(_) => Ok(()),
        }
    }

    /// Sets the shapes of a step's outputs that are known before it runs. Returns whether all
    /// outputs are empty.
    fn prepare(
        &self,
        graph: &SubgraphPlan,
        index: usize,
        Step { set, action, .. }: &Step,
        frame: &mut Frame,
    ) -> Result<bool, Error> {
        if let Some(shapes) = frame.shapes.get(index)
            && shapes.are_settled(graph, set, frame)
        {
            return Ok(shapes.is_empty);
        }
        let mut shapes = frame.shapes.get_mut(index).map(std::mem::take).unwrap_or_default();
        shapes.update(graph, set, frame, &self.resources.variables)?;
        let limit = self.max_tensor_bytes();
        for (&id, shape) in set.outputs.iter().zip(&shapes.outputs) {
            let shape = match shape {
                OutputShape::Known(shape) => Some(shape.as_slice()),
                // The kernel sets the shape; the type is settled.
                _ => None,
            };
            let dtype = graph.subgraph.tensor(id).dtype;
            frame.prepare(id, dtype, shape, limit)?;
        }
        frame.grow(&set.outputs, self.memory_left())?;
        let touched = frame.bytes_of(&set.inputs).saturating_add(frame.bytes_of(&set.outputs));
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
