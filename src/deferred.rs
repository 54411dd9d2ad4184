//! Operators whose shapes only a run tells, compiled for the shapes that come.
//!
//! A group keeps what it was compiled for last. Shapes that come for the first time take a lowering, which is cheap
//! beside many multiplications, and a runtime: a new one while there are few, then that of other shapes, as far as the same graph
//! serves both. All use the weights that the first one has packed.

use std::sync::{Arc, Mutex, PoisonError};

use smallvec::SmallVec;
use xnn_format::Graph;
use xnn_interp::{
    CompiledPartition, Interpreter, Output, PaddedRef, PartitionSession, TensorView, check_size,
};
use xnn_lower::{Compile, CompileError, Deferred, partition, total_macs};
use xnn_model::{Inferred, Subgraph, TensorId};
use xnn_runtime::{Program, ProgramOptions, Session};

use crate::compile::{XnnpackCompiler, compile_error};
use crate::delegation::{Delegation, analyze};
use crate::error::Error;
use crate::interpreter_delegate::{BoxError, Running, interpreter_with};
use crate::options::RunnerOptions;

/// Shapes that a group is kept ready for.
const KEPT: usize = 4;

/// Multiplications that take the reference kernels as long as it takes to get ready for a shape. With fewer, a shape has to
/// come twice.
const WORTH_LOWERING: f64 = (1u64 << 22) as f64;

/// Inputs up to which a run looks at shapes without allocating.
const INLINE_INPUTS: usize = 8;

/// A group of operators, for any number of interpreters.
#[derive(Clone)]
pub(crate) struct Group(Arc<Source>);

struct Source {
    deferred: Deferred,
    options: RunnerOptions,
    /// For each input of the group's graph, its position in the interpreter's order.
    inputs: Vec<usize>,
    /// For each output in the interpreter's order, its position in the graph's.
    outputs: Vec<usize>,
    /// What was compiled last.
    latest: Mutex<Option<Program>>,
}

impl Group {
    pub(crate) fn new(
        deferred: Deferred,
        options: RunnerOptions,
        [inputs, outputs]: [Vec<usize>; 2],
    ) -> Self {
        Self(Arc::new(Source { deferred, options, inputs, outputs, latest: Mutex::default() }))
    }
}

impl CompiledPartition for Group {
    fn session(&self) -> Result<Box<dyn PartitionSession>, BoxError> {
        Ok(Box::new(Waiting { source: Arc::clone(&self.0), entries: Vec::new(), rate: None }))
    }
}

/// A group in one interpreter.
struct Waiting {
    source: Arc<Source>,
    /// The latest first.
    entries: Vec<Entry>,
    /// Multiplications for each element of the inputs, as they were with the shapes that were looked at last.
    rate: Option<f64>,
}

/// A group with shapes for which it was asked.
struct Entry {
    /// Of the group's inputs, in its order.
    shapes: Vec<Vec<usize>>,
    /// Elements of those inputs that are sizes.
    sizes: Vec<Vec<u8>>,
    /// Of the group's outputs, in the interpreter's order.
    outputs: Vec<Vec<usize>>,
    /// Multiplications of a run.
    work: u64,
    engine: Engine,
}

/// What runs a group.
enum Engine {
    /// The kernels, for as long as the shapes have come once only.
    NotYet,
    /// The kernels.
    None,
    /// XNNPACK all of it.
    Whole(Box<Running>),
    /// XNNPACK what it takes with these shapes, and an interpreter the rest.
    Partial(Box<Interpreter>),
}

impl PartitionSession for Waiting {
    fn accept(&mut self, inputs: &[TensorView<'_>]) -> Option<&[Vec<usize>]> {
        let places = self.source.inputs.iter().map(|&place| inputs.get(place).copied());
        let inputs: SmallVec<[TensorView<'_>; INLINE_INPUTS]> = places.collect::<Option<_>>()?;
        // Nothing to compute takes kernels no time.
        if inputs.iter().any(|input| input.shape.contains(&0)) {
            return None;
        }
        let sizes = &self.source.deferred.sizes;
        match self.entries.iter().position(|entry| entry.is_for(&inputs, sizes)) {
            Some(at) => {
                self.entries.get_mut(..=at)?.rotate_right(1);
                if matches!(self.entries.first()?.engine, Engine::NotYet) {
                    self.get_ready(true);
                }
            }
            None => {
                self.entries.insert(0, Entry::new(&inputs, sizes));
                self.get_ready(false);
            }
        }
        let Entry { engine, outputs, .. } = self.entries.first()?;
        matches!(engine, Engine::Whole(_) | Engine::Partial(_)).then_some(outputs)
    }

    fn invoke(
        &mut self,
        inputs: &[PaddedRef<'_>],
        outputs: &mut [Output<'_>],
    ) -> Result<(), BoxError> {
        match self.entries.first_mut().map(|entry| &mut entry.engine) {
            Some(Engine::Whole(running)) => running.invoke(inputs, outputs),
            Some(Engine::Partial(interpreter)) => self.source.run(interpreter, inputs, outputs),
            _ => Err("these shapes have not been accepted".into()),
        }
    }

    fn work(&self) -> u64 {
        self.entries.first().map_or(0, |entry| entry.work)
    }

    fn threads(&self) -> usize {
        let threads = self.entries.iter().map(|entry| match &entry.engine {
            Engine::NotYet | Engine::None => 1,
            Engine::Whole(running) => running.threads(),
            Engine::Partial(interpreter) => interpreter.threads(),
        });
        threads.max().unwrap_or(1)
    }
}

impl Waiting {
    /// Gives the first entry its engine, if its shapes have come `again` or have much to multiply.
    fn get_ready(&mut self, again: bool) {
        let former = self.make_room();
        let Self { source, entries, rate } = self;
        let Some(entry) = entries.first_mut() else { return };
        let elements = entry.elements();
        let is_worth_it = |rate: f64| again || rate * elements >= WORTH_LOWERING;
        if rate.is_some_and(|rate| !is_worth_it(rate)) {
            return;
        }
        let ready = source.analyze(entry).and_then(|inferred| {
            let latest = total_macs(&inferred.subgraph) as f64 / elements;
            *rate = Some(latest);
            if is_worth_it(latest) {
                source.compile(entry, &inferred, former)
            } else {
                Ok(Engine::NotYet)
            }
        });
        entry.engine = ready.unwrap_or_else(|reason| {
            log::debug!("{:?} stay with reference kernels: {reason}", entry.shapes);
            Engine::None
        });
    }

    /// Drops the oldest entry if there are too many, first of all one without an engine. Gives what another could go on with.
    fn make_room(&mut self) -> Option<Session> {
        if self.entries.len() <= KEPT {
            return None;
        }
        let has_none = |entry: &Entry| matches!(entry.engine, Engine::NotYet | Engine::None);
        let oldest = self.entries.iter().rposition(has_none).filter(|&at| at > 0);
        match self.entries.remove(oldest.unwrap_or(KEPT)).engine {
            Engine::Whole(running) => Some(running.session),
            _ => None,
        }
    }
}

impl Entry {
    fn new(inputs: &[TensorView<'_>], sizes: &[usize]) -> Self {
        let sizes = sizes.iter().filter_map(|&at| inputs.get(at));
        Self {
            shapes: inputs.iter().map(|input| input.shape.to_vec()).collect(),
            sizes: sizes.map(|input| input.bytes.to_vec()).collect(),
            outputs: Vec::new(),
            work: 0,
            engine: Engine::NotYet,
        }
    }

    fn is_for(&self, inputs: &[TensorView<'_>], sizes: &[usize]) -> bool {
        let mut sizes = sizes.iter().filter_map(|&at| inputs.get(at)).zip(&self.sizes);
        inputs.iter().zip(&self.shapes).all(|(input, shape)| input.shape == *shape)
            && sizes.all(|(input, size)| input.bytes == *size)
    }

    /// Of the inputs; at least 1.
    fn elements(&self) -> f64 {
        self.shapes.iter().map(|shape| shape.iter().map(|&dim| dim as f64).product::<f64>()).sum()
    }
}

impl Source {
    /// The group's graph with all shapes that follow from those of `entry`, within the limits.
    fn analyze(&self, entry: &Entry) -> Result<Inferred, Error> {
        let mut graph = self.deferred.graph.clone();
        let Deferred { graph: Subgraph { inputs, .. }, sizes, .. } = &self.deferred;
        for (&id, shape) in inputs.iter().zip(&entry.shapes) {
            if let Some(tensor) = graph.tensors.get_mut(id) {
                tensor.shape = Some(shape.clone());
            }
        }
        for (&at, size) in sizes.iter().zip(&entry.sizes) {
            let Some(&id) = inputs.get(at) else { continue };
            if let Some(tensor) = graph.tensors.get_mut(id) {
                tensor.data = Some(size.clone().into());
            }
            graph.inputs.retain(|&input| input != id);
        }
        let inferred = analyze(Arc::new(graph), &self.options.partition)?;
        for tensor in &inferred.subgraph.tensors {
            check_size(tensor.dtype, tensor.shape.as_deref().unwrap_or(&[]), &self.options.limits)?;
        }
        Ok(inferred)
    }

    /// The group's outputs in the interpreter's order, if all of their shapes are known.
    fn outputs_of(&self, graph: &Subgraph) -> Option<Vec<Vec<usize>>> {
        let shape = |&at: &usize| graph.tensor(*graph.outputs.get(at)?).shape.clone();
        self.outputs.iter().map(shape).collect()
    }

    /// What runs the graph with these shapes; `former` is not needed any more, and may become it.
    fn compile(
        &self,
        entry: &mut Entry,
        inferred: &Inferred,
        former: Option<Session>,
    ) -> Result<Engine, Error> {
        let graph = &inferred.subgraph;
        let Some(outputs) = self.outputs_of(graph) else { return Ok(Engine::None) };
        entry.outputs = outputs;
        entry.work = total_macs(graph);
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        let RunnerOptions { partition: options, program, session, .. } = &self.options;
        let program = ProgramOptions { similar: latest.clone(), ..program.clone() };
        let compiler = XnnpackCompiler { program, session: session.clone() };
        let mut compiler = Sessions { compiler, former };
        let (partitioning, mut sessions) = partition(inferred, options, &mut compiler)?;
        match partitioning.partitions.as_slice() {
            [] => Ok(Engine::None),
            [it] if partitioning.is_full() && it.outputs == graph.outputs => {
                let Some(session) = sessions.pop() else { return Ok(Engine::None) };
                *latest = Some(session.program().clone());
                let inputs = it.inputs.iter().filter_map(|&id| self.place(id)).collect();
                let is_worth_it = options.keep_small || it.is_worth_it();
                let running = Running { session, inputs, outputs: self.outputs.clone() };
                Ok(if is_worth_it { Engine::Whole(Box::new(running)) } else { Engine::None })
            }
            _ => {
                let programs = sessions.iter().map(|session| session.program().clone()).collect();
                let delegation = Delegation::of(Arc::clone(graph), partitioning, programs);
                let model = Subgraph::clone(graph).into();
                let interpreter = interpreter_with(&model, 0, delegation, &self.options)?;
                Ok(Engine::Partial(Box::new(interpreter)))
            }
        }
    }

    /// Where the interpreter has an input of the group's graph.
    fn place(&self, id: TensorId) -> Option<usize> {
        let position = self.deferred.graph.inputs.iter().position(|&input| input == id)?;
        self.inputs.get(position).copied()
    }

    /// Runs the group in an interpreter with tensors of its own.
    fn run(
        &self,
        interpreter: &mut Interpreter,
        inputs: &[PaddedRef<'_>],
        outputs: &mut [Output<'_>],
    ) -> Result<(), BoxError> {
        let graph = Arc::clone(interpreter.subgraph());
        for (position, &id) in graph.inputs.iter().enumerate() {
            let input = self.place(id).and_then(|place| inputs.get(place));
            let input = input.ok_or("an input is missing")?.view();
            let copy = interpreter.input_mut(position)?;
            copy.bytes
                .get_mut(..input.bytes.len())
                .ok_or("an input is larger")?
                .copy_from_slice(input.bytes);
        }
        interpreter.run()?;
        for (output, &position) in outputs.iter_mut().zip(&self.outputs) {
            let result = interpreter.output(position)?;
            output.resize(result.shape).ok_or("an output is too large")?;
            let copy = output.view_mut();
            copy.bytes
                .get_mut(..result.bytes.len())
                .ok_or("an output is short")?
                .copy_from_slice(result.bytes);
        }
        Ok(())
    }
}

/// Makes sessions, or goes on with that of a group for other shapes.
struct Sessions {
    compiler: XnnpackCompiler,
    former: Option<Session>,
}

impl Compile for Sessions {
    type Output = Session;

    fn compile(&mut self, graph: &Arc<Graph>) -> Result<Session, CompileError> {
        let former = self.former.take_if(|session| session.program().serves(graph));
        if let Some(session) = former.and_then(|session| resized(session, graph)) {
            return Ok(session);
        }
        let program = self.compiler.compile(graph)?;
        Session::new(&program, &self.compiler.session).map_err(|error| compile_error(graph, &error))
    }

    fn has_fast_uint8(&self) -> bool {
        self.compiler.has_fast_uint8()
    }

    fn has_exact_dynamic_convolutions(&self) -> bool {
        self.compiler.has_exact_dynamic_convolutions()
    }
}

/// The session with the shapes that `graph` has.
fn resized(mut session: Session, graph: &Graph) -> Option<Session> {
    let dims = |id| graph.value(id).map(|value| value.dims.as_slice());
    let inputs = graph.inputs.iter().map(|&id| dims(id)).collect::<Option<Vec<_>>>()?;
    session.resize_inputs(inputs.into_iter().enumerate()).ok()?;
    let mut outputs = graph.outputs.iter().zip(session.outputs());
    outputs.all(|(&id, info)| dims(id) == Some(info.dims.as_slice())).then_some(session)
}
