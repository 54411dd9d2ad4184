//! Models that do not go to XNNPACK whole: the interpreter runs what is left.

use std::error::Error as StdError;
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};

use smallvec::SmallVec;
use xnn_interp::{
    Claim, CompiledPartition, Delegate, Entry, InterpOptions, Interpreter, Output, PaddedRef,
    Partition, PartitionSession,
};
use xnn_lower::{Decision, Deferred, PartitionOptions, WhyNot};
use xnn_model::{Model, Subgraph, SubgraphId, TensorId};
use xnn_runtime::{
    Binding, OutputSlice, PaddedSlice, Program, RuntimeError, Session, SessionOptions, Workspace,
    thread_pool,
};

use crate::compile::XnnpackCompiler;
use crate::deferred::Group;
use crate::delegation::Delegation;
use crate::error::Error;
use crate::options::RunnerOptions;

/// Inputs and outputs up to which a run of a partition allocates nothing.
const INLINE_BINDINGS: usize = 32;

pub(crate) type BoxError = Box<dyn StdError + Send + Sync>;

/// XNNPACK as a delegate of the interpreter.
#[derive(Debug)]
pub struct XnnpackDelegate {
    /// Those of the interpreter, and how partitions are made.
    options: RunnerOptions,
    /// What was decided about a subgraph before the interpreter asks.
    decided: Mutex<Option<Delegation>>,
    /// Partitions that were compiled before they were claimed, until the
    /// interpreter asks for them.
    compiled: Mutex<Vec<Compiled>>,
}

#[derive(Debug)]
struct Compiled {
    /// Address of the subgraph: the interpreter hands the same one to
    /// `partition` and `compile`.
    graph: usize,
    claim: Claim,
    what: What,
}

/// What has been made of a claim.
#[derive(Debug)]
enum What {
    Program(xnn_lower::Partition, Program),
    /// What has shapes in a run only.
    Deferred(Deferred),
    /// The reason where only XNNPACK could have run the operators, and cannot.
    Refused(String),
}

impl XnnpackDelegate {
    /// A delegate whose sessions get these options. Where they name none, all
    /// partitions share one workspace and the threads.
    ///
    /// # Errors
    ///
    /// The threads are too many, or memory is exhausted.
    pub fn new(partition: PartitionOptions, session: SessionOptions) -> Result<Self, Error> {
        Self::with(RunnerOptions { partition, session, ..RunnerOptions::default() })
    }

    /// [`XnnpackDelegate::new`] with a place for packed weights, and limits for what has its shapes in a run only, which are to be
    /// the interpreter's.
    ///
    /// # Errors
    ///
    /// As [`XnnpackDelegate::new`].
    pub fn with(options: RunnerOptions) -> Result<Self, Error> {
        let options = RunnerOptions { session: shared(options.session)?, ..options };
        let (decided, compiled) = (Mutex::default(), Mutex::default());
        Ok(Self { options, decided, compiled })
    }

    /// The decisions about a subgraph, with its partitions compiled.
    fn delegation(&self, graph: &Arc<Subgraph>) -> Result<Delegation, Error> {
        let mut decided = self.decided.lock().unwrap_or_else(PoisonError::into_inner);
        let is_of = |delegation: &mut Delegation| {
            Arc::ptr_eq(delegation.graph(), graph) || delegation.graph() == graph
        };
        match decided.take_if(is_of) {
            Some(delegation) => Ok(delegation),
            None => {
                let RunnerOptions { partition, program, session, .. } = self.options.clone();
                let compiler = XnnpackCompiler { program, session };
                Delegation::with(Arc::clone(graph), &partition, compiler)
            }
        }
    }
}

/// Options of sessions that never run at the same time.
pub(crate) fn shared(options: SessionOptions) -> Result<SessionOptions, Error> {
    let mut options = with_workspace(options)?;
    if options.thread_pool.is_none() {
        options.thread_pool = thread_pool(options.threads)?;
    }
    Ok(options)
}

/// Options of sessions that share the memory for intermediate values.
pub(crate) fn with_workspace(mut options: SessionOptions) -> Result<SessionOptions, Error> {
    if options.workspace.is_none() {
        options.workspace = Some(Workspace::new().map_err(RuntimeError::from)?);
    }
    Ok(options)
}

/// The model's main subgraph with XNNPACK for what it takes and reference
/// kernels for the rest.
///
/// # Errors
///
/// An operator that neither takes.
pub fn interpreter(
    model: &Model,
    partition: &PartitionOptions,
    session: &SessionOptions,
) -> Result<Interpreter, Error> {
    let delegate = XnnpackDelegate::new(partition.clone(), session.clone())?;
    build(model, Entry::Main, delegate, InterpOptions::default())
}

/// [`interpreter`] of another subgraph, with what `delegation` has decided and
/// compiled for it already.
pub(crate) fn interpreter_with(
    model: &Model,
    subgraph: SubgraphId,
    delegation: Delegation,
    options: &RunnerOptions,
) -> Result<Interpreter, Error> {
    let limits = options.limits.clone();
    let mut delegate = XnnpackDelegate::with(options.clone())?;
    delegate.decided = Mutex::new(Some(delegation));
    let entry = Entry::Subgraph(subgraph);
    build(model, entry, delegate, InterpOptions { limits, ..InterpOptions::default() })
}

fn build(
    model: &Model,
    entry: Entry<'_>,
    delegate: XnnpackDelegate,
    options: InterpOptions,
) -> Result<Interpreter, Error> {
    let options = InterpOptions { delegates: vec![Arc::new(delegate)], ..options };
    Ok(Interpreter::new(model, entry, &options)?)
}

impl Delegate for XnnpackDelegate {
    fn name(&self) -> &str {
        "XNNPACK"
    }

    fn partition(&self, graph: &Arc<Subgraph>) -> Result<Vec<Claim>, BoxError> {
        let delegation = match self.delegation(graph) {
            Ok(delegation) => delegation,
            Err(error) if error.is_out_of_memory() => return Err(error.into()),
            Err(error) => {
                log::warn!("subgraph {:?}: nothing goes to XNNPACK: {error}", graph.name);
                return Ok(Vec::new());
            }
        };
        let address = Arc::as_ptr(graph).addr();
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        compiled.retain(|entry| entry.graph != address);
        let refused = delegation.partitioning().decisions.iter().enumerate();
        compiled.extend(refused.filter_map(|(index, decision)| match decision {
            Decision::Left(why @ WhyNot::StoredGraph { .. }) => {
                let claim = Claim { operators: vec![index], known: vec![], deferred: false };
                Some(Compiled { graph: address, claim, what: What::Refused(why.to_string()) })
            }
            _ => None,
        }));
        let (partitions, deferred) = delegation.into_parts();
        compiled.extend(partitions.map(|(partition, program)| {
            let (operators, known) = (partition.operators.clone(), partition.known.clone());
            let claim = Claim { operators, known, deferred: false };
            Compiled { graph: address, claim, what: What::Program(partition, program) }
        }));
        compiled.extend(deferred.into_iter().map(|deferred| {
            let operators = deferred.operators.clone();
            let claim = Claim { operators, known: vec![], deferred: true };
            Compiled { graph: address, claim, what: What::Deferred(deferred) }
        }));
        let ours = compiled.iter().filter(|entry| entry.graph == address);
        Ok(ours.map(|entry| entry.claim.clone()).collect())
    }

    fn compile(
        &self,
        graph: &Subgraph,
        wanted: &Partition,
    ) -> Result<Arc<dyn CompiledPartition>, BoxError> {
        let address = ptr::from_ref(graph).addr();
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        let position = compiled
            .iter()
            .position(|c| c.graph == address && c.claim.operators == wanted.operators)
            .ok_or("the partition was not claimed")?;
        let border = |inputs: &[TensorId], outputs: &[TensorId]| {
            Ok::<_, BoxError>([places(inputs, &wanted.inputs)?, places(&wanted.outputs, outputs)?])
        };
        match compiled.swap_remove(position).what {
            What::Program(partition, program) => {
                let [inputs, outputs] = border(&partition.inputs, &partition.outputs)?;
                let options = self.options.session.clone();
                Ok(Arc::new(Compilation { program, options, inputs, outputs }))
            }
            What::Deferred(deferred) => {
                let border = border(&deferred.inputs, &deferred.outputs)?;
                Ok(Arc::new(Group::new(deferred, self.options.clone(), border)))
            }
            What::Refused(reason) => Err(reason.into()),
        }
    }
}

/// For each of the tensors, its position among the others.
fn places(tensors: &[TensorId], others: &[TensorId]) -> Result<Vec<usize>, BoxError> {
    tensors
        .iter()
        .map(|id| others.iter().position(|other| other == id))
        .collect::<Option<_>>()
        .ok_or_else(|| "the interpreter sees another border of the partition".into())
}

struct Compilation {
    program: Program,
    options: SessionOptions,
    /// For each input of the graph, its position in the interpreter's order.
    inputs: Vec<usize>,
    /// For each output in the interpreter's order, its position in the graph's.
    outputs: Vec<usize>,
}

impl CompiledPartition for Compilation {
    fn session(&self) -> Result<Box<dyn PartitionSession>, BoxError> {
        Ok(Box::new(Running {
            session: Session::new(&self.program, &self.options)?,
            inputs: self.inputs.clone(),
            outputs: self.outputs.clone(),
        }))
    }

    fn work(&self) -> u64 {
        let graph = self.program.graph();
        let shapes: Vec<Vec<usize>> = graph.values.iter().map(|value| value.dims.clone()).collect();
        graph.demand(&shapes).work
    }
}

/// A session on the memory of the interpreter's tensors: nothing is copied.
pub(crate) struct Running {
    pub session: Session,
    /// See [`Compilation`].
    pub inputs: Vec<usize>,
    pub outputs: Vec<usize>,
}

impl PartitionSession for Running {
    fn invoke(
        &mut self,
        inputs: &[PaddedRef<'_>],
        outputs: &mut [Output<'_>],
    ) -> Result<(), BoxError> {
        let Self { session, inputs: sources, outputs: results } = self;
        let shape = |place: usize| inputs.get(place).map_or(&[][..], PaddedRef::shape);
        let shapes = sources.iter().map(|&place| shape(place)).enumerate();
        if shapes.clone().zip(session.inputs()).any(|((_, shape), info)| info.dims != shape) {
            session.resize_inputs(shapes)?;
        }
        let mut bindings: SmallVec<[Binding<'_>; INLINE_BINDINGS]> = SmallVec::new();
        for (info, &place) in session.inputs().iter().zip(&*sources) {
            let input = inputs.get(place).ok_or("an input is missing")?;
            let bytes = input.view().bytes.len();
            let slice = PaddedSlice::within(input.padded(), 0..bytes).ok_or("an input is short")?;
            bindings.push(Binding::Input(info.id, slice));
        }
        for (output, &index) in outputs.iter_mut().zip(&*results) {
            let info = session.outputs().get(index).ok_or("an output is missing")?;
            output.resize(&info.dims).ok_or("an output is too large")?;
            let bytes = output.view_mut().bytes.len();
            let slice = OutputSlice::within(output.padded_mut(), 0..bytes);
            bindings.push(Binding::Output(info.id, slice.ok_or("an output is short")?));
        }
        Ok(session.run_with(bindings)?)
    }

    fn threads(&self) -> usize {
        self.session.threads()
    }
}
