//! Groups of operators whose shapes are known only in a run, compiled for the shapes that occur.
//!
//! A group keeps what it compiled for the latest shapes. New shapes need a lowering, which is cheap
//! compared with many multiplications, and a runtime: a new one while there are few, later the
//! resized runtime of other shapes if the same graph serves both. All share the weights that the
//! first one packed.

use std::sync::{Arc, Mutex, PoisonError};

use smallvec::SmallVec;
use xnn_format::Graph;
use xnn_interp::{
    CompiledPartition, Interpreter, OperatorSet, Output, PaddedRef, PartitionSession, SharedValues,
    TensorView, check_size,
};
use xnn_lower::{Compile, CompileError, Deferred, TargetFeatures, partition, total_macs};
use xnn_model::{Inferred, Subgraph, TensorId};
use xnn_runtime::{Program, ProgramOptions, Session};

use crate::compile::{XnnpackCompiler, compile_error};
use crate::delegation::{Delegation, analyze};
use crate::error::Error;
use crate::interpreter_delegate::{
    BoxError, Decided, Positions, Running, interpreter_with, with_shared_memory,
};
use crate::options::RunnerOptions;

/// Number of shapes for which a group keeps engines.
const KEPT: usize = 4;

/// Multiplications that take the reference kernels as long as compiling for a shape takes. With
/// fewer, a group is compiled only when a shape occurs for the second time.
const WORTH_LOWERING: f64 = (1u64 << 22) as f64;

/// Number of inputs up to which comparing shapes does not allocate.
const INLINE_INPUTS: usize = 8;

/// A group of operators, for any number of interpreters.
#[derive(Clone)]
pub(crate) struct Group(Arc<Shared>);

struct Shared {
    deferred: Deferred,
    options: RunnerOptions,
    /// The program that was compiled last.
    latest: Mutex<Option<Program>>,
}

impl Group {
    pub(crate) fn new(deferred: Deferred, options: RunnerOptions) -> Self {
        Self(Arc::new(Shared { deferred, options, latest: Mutex::default() }))
    }
}

impl CompiledPartition for Group {
    fn session(
        &self,
        set: &OperatorSet,
        shared: &mut SharedValues,
    ) -> Result<Box<dyn PartitionSession>, BoxError> {
        let Shared { deferred: Deferred { inputs, outputs, .. }, options, .. } = &*self.0;
        let positions = Positions::new(set, inputs, outputs)?;
        let session = with_shared_memory(options.session.clone(), shared)?;
        let options = RunnerOptions { session, ..options.clone() };
        let source = Source { shared: Arc::clone(&self.0), options, positions };
        Ok(Box::new(Waiting { source, entries: Vec::new(), rate: None }))
    }
}

/// A group as one interpreter compiles it.
struct Source {
    shared: Arc<Shared>,
    /// Options of the group, with the memory of the interpreter.
    options: RunnerOptions,
    positions: Positions,
}

/// A group in one interpreter.
struct Waiting {
    source: Source,
    /// Entries, the most recently used first.
    entries: Vec<Entry>,
    /// Multiplications per element of the inputs, with the shapes that were analyzed last.
    rate: Option<f64>,
}

/// Shapes of a group, and the engine for them.
struct Entry {
    /// Shapes of the group's inputs, in its order.
    shapes: Vec<Vec<usize>>,
    /// Elements of the inputs that contain sizes.
    sizes: Vec<Vec<u8>>,
    /// Shapes of the group's outputs, in the interpreter's order.
    outputs: Vec<Vec<usize>>,
    /// Multiplications of a run.
    work: u64,
    engine: Engine,
}

/// The engine that runs a group.
enum Engine {
    /// The reference kernels, while the shapes have occurred only once.
    NotYet,
    /// The reference kernels.
    None,
    /// XNNPACK, for the whole group.
    Whole(Box<Running>),
    /// An interpreter that delegates to XNNPACK what these shapes allow.
    Partial(Box<Interpreter>),
}

impl PartitionSession for Waiting {
    fn accept(&mut self, inputs: &[TensorView<'_>]) -> Option<&[Vec<usize>]> {
        let places = self.source.positions.inputs.iter().map(|&place| inputs.get(place).copied());
        let inputs: SmallVec<[TensorView<'_>; INLINE_INPUTS]> = places.collect::<Option<_>>()?;
        // Without elements there is nothing to compute, so kernels take no time.
        if inputs.iter().any(|input| input.shape.contains(&0)) {
            return None;
        }
        let sizes = &self.source.shared.deferred.sizes;
        match self.entries.iter().position(|entry| entry.is_for(&inputs, sizes)) {
            Some(at) => {
                self.entries.get_mut(..=at)?.rotate_right(1);
                if matches!(self.entries.first()?.engine, Engine::NotYet) {
                    self.prepare(true);
                }
            }
            None => {
                self.entries.insert(0, Entry::new(&inputs, sizes));
                self.prepare(false);
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
    /// Creates the engine of the first entry if its shapes occur `again` or need many
    /// multiplications.
    fn prepare(&mut self, again: bool) {
        let former = self.evict();
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
            log::debug!("reference kernels run shapes {:?}: {reason}", entry.shapes);
            Engine::None
        });
    }

    /// Drops the oldest entry if there are too many, preferably one without an engine. Returns the
    /// session that another entry can reuse.
    fn evict(&mut self) -> Option<Session> {
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

    /// Number of elements of the inputs; at least 1.
    fn elements(&self) -> f64 {
        self.shapes.iter().map(|shape| shape.iter().map(|&dim| dim as f64).product::<f64>()).sum()
    }
}

impl Source {
    /// Infers all shapes of the group's graph from those of `entry`, within the limits.
    fn analyze(&self, entry: &Entry) -> Result<Inferred, Error> {
        let mut graph = self.shared.deferred.graph.clone();
        let Deferred { graph: Subgraph { inputs, .. }, sizes, .. } = &self.shared.deferred;
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
        self.positions.outputs.iter().map(shape).collect()
    }

    /// Creates the engine for these shapes. It may reuse `former`, which is not needed any more.
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
        let mut latest = self.shared.latest.lock().unwrap_or_else(PoisonError::into_inner);
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
                let outputs = self.positions.outputs.clone();
                let running = Running { session, positions: Positions { inputs, outputs } };
                Ok(if is_worth_it { Engine::Whole(Box::new(running)) } else { Engine::None })
            }
            _ => {
                let programs = sessions.iter().map(|session| session.program().clone()).collect();
                let delegation = Delegation::of(Arc::clone(graph), partitioning, programs);
                let model = Subgraph::clone(graph).into();
                let decided = Decided { delegation: Some(delegation), workspace: None };
                let interpreter = interpreter_with(&model, 0, decided, self.options.clone())?;
                Ok(Engine::Partial(Box::new(interpreter)))
            }
        }
    }

    /// Position of an input of the group's graph in the interpreter's order.
    fn place(&self, id: TensorId) -> Option<usize> {
        let position = self.shared.deferred.graph.inputs.iter().position(|&input| input == id)?;
        self.positions.inputs.get(position).copied()
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
                .ok_or("the size of an input differs")?
                .copy_from_slice(input.bytes);
        }
        interpreter.run()?;
        for (output, &position) in outputs.iter_mut().zip(&self.positions.outputs) {
            let result = interpreter.output(position)?;
            output.resize(result.shape).ok_or("there is no memory for an output")?;
            let copy = output.view_mut();
            copy.bytes
                .get_mut(..result.bytes.len())
                .ok_or("the size of an output differs")?
                .copy_from_slice(result.bytes);
        }
        Ok(())
    }
}

/// Creates sessions, or resizes the session that the group had for other shapes.
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

    fn target_features(&self) -> TargetFeatures {
        self.compiler.target_features()
    }
}

/// Resizes a session to the shapes of `graph`.
fn resized(mut session: Session, graph: &Graph) -> Option<Session> {
    let dims = |id| graph.value(id).map(|value| value.dims.as_slice());
    let inputs = graph.inputs.iter().map(|&id| dims(id)).collect::<Option<Vec<_>>>()?;
    session.resize_inputs(inputs.into_iter().enumerate()).ok()?;
    let mut outputs = graph.outputs.iter().zip(session.outputs());
    outputs.all(|(&id, info)| dims(id) == Some(info.dims.as_slice())).then_some(session)
}
