//! XNNPACK as a delegate of the interpreter, for models that are only partially delegated.

use std::error::Error as StdError;
use std::sync::{Arc, Mutex, PoisonError};

use smallvec::SmallVec;
use xnn_interp::{
    Claim, CompiledClaim, CompiledPartition, Delegate, Entry, InterpOptions, Interpreter,
    OperatorSet, Output, PaddedRef, PartitionSession, SharedValues,
};
use xnn_lower::{Decision, PartitionOptions, WhyNot};
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

/// Number of inputs and outputs up to which a run of a partition does not allocate.
const INLINE_BINDINGS: usize = 32;

pub(crate) type BoxError = Box<dyn StdError + Send + Sync>;

/// XNNPACK as a delegate of the interpreter.
///
/// ```
/// use std::sync::Arc;
///
/// use xnn_delegate::interpreter::{Entry, InterpOptions, Interpreter, XnnpackDelegate};
/// use xnn_delegate::{Model, PartitionOptions, SessionOptions};
///
/// # fn main() -> Result<(), xnn_delegate::Error> {
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/models/digits_mobilenet_v2_fp32.tflite");
/// let model = Model::open(path)?;
/// let delegate = XnnpackDelegate::new(PartitionOptions::default(), SessionOptions::default())?;
/// let mut options = InterpOptions::default();
/// options.delegates.push(Arc::new(delegate));
/// let mut interpreter = Interpreter::new(&model, Entry::Main, &options)?;
/// assert_eq!(interpreter.delegated_partitions(), 1);
/// interpreter.run()?;
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct XnnpackDelegate {
    /// Options of the interpreter and of the partitions.
    options: RunnerOptions,
    decided: Mutex<Decided>,
}

impl XnnpackDelegate {
    /// Creates a delegate whose sessions get these options. Without a thread pool in them, all
    /// partitions share one; without a workspace, those of each interpreter do.
    ///
    /// # Errors
    ///
    /// The number of threads is too large, or memory is exhausted.
    pub fn new(partition: PartitionOptions, session: SessionOptions) -> Result<Self, Error> {
        Self::with(RunnerOptions { partition, session, ..RunnerOptions::default() })
    }

    /// [`XnnpackDelegate::new`] with a folder for packed weights and with limits for deferred
    /// partitions. The limits must be those of the interpreter.
    ///
    /// # Errors
    ///
    /// See [`XnnpackDelegate::new`].
    pub fn with(options: RunnerOptions) -> Result<Self, Error> {
        let options = RunnerOptions { session: with_threads(options.session)?, ..options };
        Ok(Self { options, decided: Mutex::default() })
    }

    /// The delegation of a subgraph, with its partitions compiled for the interpreter that has these
    /// values.
    fn delegation(
        &self,
        graph: &Arc<Subgraph>,
        shared: &mut SharedValues,
    ) -> Result<Delegation, Error> {
        let mut decided = self.decided.lock().unwrap_or_else(PoisonError::into_inner);
        let is_of = |delegation: &mut Delegation| {
            Arc::ptr_eq(delegation.graph(), graph) || delegation.graph() == graph
        };
        if let Some(workspace) = decided.workspace.take() {
            shared.insert(workspace);
        }
        match decided.delegation.take_if(is_of) {
            Some(delegation) => Ok(delegation),
            None => {
                let RunnerOptions { partition, program, session, .. } = self.options.clone();
                let session = with_shared_memory(session, shared)?;
                let compiler = XnnpackCompiler { program, session };
                Delegation::with(Arc::clone(graph), &partition, compiler)
            }
        }
    }
}

/// A delegation that exists before the interpreter does.
#[derive(Debug, Default)]
pub(crate) struct Decided {
    pub delegation: Option<Delegation>,
    /// Memory that its partitions were compiled with, for all sessions of the interpreter.
    pub workspace: Option<Workspace>,
}

/// Options of sessions that the interpreter with these values runs one after the other. They share
/// the memory for intermediate values. Forks of the interpreter run at the same time, so that each
/// has memory of its own, unless the caller has given memory for all.
pub(crate) fn with_shared_memory(
    mut options: SessionOptions,
    shared: &mut SharedValues,
) -> Result<SessionOptions, Error> {
    let known = options.workspace.take().or_else(|| shared.get());
    let workspace = known.map_or_else(|| Workspace::new().map_err(RuntimeError::from), Ok)?;
    shared.insert(workspace.clone());
    Ok(SessionOptions { workspace: Some(workspace), ..options })
}

/// Options of sessions that share a thread pool. Options without one count processors for each
/// session.
pub(crate) fn with_threads(mut options: SessionOptions) -> Result<SessionOptions, Error> {
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

/// Creates an interpreter of the model's main subgraph, with operators delegated to XNNPACK where
/// possible and reference kernels for the others.
///
/// # Errors
///
/// Neither XNNPACK nor a reference kernel supports an operator.
pub fn interpreter(
    model: &Model,
    partition: &PartitionOptions,
    session: &SessionOptions,
) -> Result<Interpreter, Error> {
    let delegate = XnnpackDelegate::new(partition.clone(), session.clone())?;
    build(model, Entry::Main, delegate, InterpOptions::default())
}

/// [`interpreter`] of another subgraph, whose delegation has been computed already with these
/// options.
pub(crate) fn interpreter_with(
    model: &Model,
    subgraph: SubgraphId,
    decided: Decided,
    options: RunnerOptions,
) -> Result<Interpreter, Error> {
    let limits = options.limits.clone();
    let mut delegate = XnnpackDelegate::with(options)?;
    delegate.decided = Mutex::new(decided);
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

    fn partition(
        &self,
        graph: &Arc<Subgraph>,
        shared: &mut SharedValues,
    ) -> Result<Vec<CompiledClaim>, BoxError> {
        let delegation = match self.delegation(graph, shared) {
            Ok(delegation) => delegation,
            Err(error) if error.is_out_of_memory() => return Err(error.into()),
            Err(error) => {
                log::warn!(
                    "subgraph {:?}: no operator is delegated to XNNPACK: {error}",
                    graph.name
                );
                return Ok(Vec::new());
            }
        };
        let decisions = delegation.partitioning().decisions.iter().enumerate();
        let refused = decisions.filter_map(|(index, decision)| match decision {
            // Only XNNPACK could run such an operator, so its error needs the reason.
            Decision::NotDelegated(why @ WhyNot::EmbeddedGraph { .. }) => {
                let claim = Claim { operators: vec![index], known: vec![], deferred: false };
                Some(CompiledClaim { claim, compiled: Err(why.to_string().into()) })
            }
            _ => None,
        });
        let mut claims: Vec<CompiledClaim> = refused.collect();
        let (partitions, deferred) = delegation.into_parts();
        claims.extend(partitions.map(|(partition, program)| {
            let xnn_lower::Partition { operators, known, inputs, outputs, .. } = partition;
            let claim = Claim { operators, known, deferred: false };
            let options = self.options.session.clone();
            let compiled = Compilation { program, options, inputs, outputs };
            CompiledClaim { claim, compiled: Ok(Arc::new(compiled)) }
        }));
        claims.extend(deferred.into_iter().map(|deferred| {
            let operators = deferred.operators.clone();
            let claim = Claim { operators, known: vec![], deferred: true };
            let compiled = Group::new(deferred, self.options.clone());
            CompiledClaim { claim, compiled: Ok(Arc::new(compiled)) }
        }));
        Ok(claims)
    }
}

/// How the boundary of a compiled graph corresponds to the interpreter's.
#[derive(Clone)]
pub(crate) struct Positions {
    /// For each input of the graph, its position in the interpreter's order.
    pub inputs: Vec<usize>,
    /// For each output in the interpreter's order, its position in the graph's.
    pub outputs: Vec<usize>,
}

impl Positions {
    /// The positions for a graph that has these inputs and outputs.
    pub fn new(
        set: &OperatorSet,
        inputs: &[TensorId],
        outputs: &[TensorId],
    ) -> Result<Self, BoxError> {
        let within = |tensors: &[TensorId], others: &[TensorId]| -> Option<Vec<usize>> {
            tensors.iter().map(|id| others.iter().position(|other| other == id)).collect()
        };
        let inputs = within(inputs, &set.inputs);
        let outputs = within(&set.outputs, outputs);
        let positions = inputs.zip(outputs).map(|(inputs, outputs)| Self { inputs, outputs });
        positions.ok_or_else(|| "the interpreter's boundary of the partition differs".into())
    }
}

/// A partition that XNNPACK runs.
struct Compilation {
    program: Program,
    options: SessionOptions,
    inputs: Vec<TensorId>,
    outputs: Vec<TensorId>,
}

impl CompiledPartition for Compilation {
    fn session(
        &self,
        set: &OperatorSet,
        shared: &mut SharedValues,
    ) -> Result<Box<dyn PartitionSession>, BoxError> {
        let positions = Positions::new(set, &self.inputs, &self.outputs)?;
        let options = with_shared_memory(self.options.clone(), shared)?;
        let session = Session::new(&self.program, &options)?;
        Ok(Box::new(Running { session, positions }))
    }

    fn work(&self) -> u64 {
        let graph = self.program.graph();
        let shapes: Vec<Vec<usize>> = graph.values.iter().map(|value| value.dims.clone()).collect();
        graph.demand(&shapes).work
    }
}

/// A session that works on the memory of the interpreter's tensors, without copies.
pub(crate) struct Running {
    pub session: Session,
    pub positions: Positions,
}

impl PartitionSession for Running {
    fn invoke(
        &mut self,
        inputs: &[PaddedRef<'_>],
        outputs: &mut [Output<'_>],
    ) -> Result<(), BoxError> {
        let Self { session, positions: Positions { inputs: sources, outputs: results } } = self;
        let shape = |place: usize| inputs.get(place).map_or(&[][..], PaddedRef::shape);
        let shapes = sources.iter().map(|&place| shape(place)).enumerate();
        if shapes.clone().zip(session.inputs()).any(|((_, shape), info)| info.dims != shape) {
            session.resize_inputs(shapes)?;
        }
        let mut bindings: SmallVec<[Binding<'_>; INLINE_BINDINGS]> = SmallVec::new();
        for (info, &place) in session.inputs().iter().zip(&*sources) {
            let input = inputs.get(place).ok_or("an input is missing")?;
            let bytes = input.view().bytes.len();
            let slice = PaddedSlice::within(input.padded(), 0..bytes)
                .ok_or("the padding of an input is missing")?;
            bindings.push(Binding::Input(info.id, slice));
        }
        for (output, &index) in outputs.iter_mut().zip(&*results) {
            let info = session.outputs().get(index).ok_or("an output is missing")?;
            output.resize(&info.dims).ok_or("there is no memory for an output")?;
            let bytes = output.view_mut().bytes.len();
            let slice = OutputSlice::within(output.padded_mut(), 0..bytes);
            bindings.push(Binding::Output(
                info.id,
                slice.ok_or("the memory of an output is too small")?,
            ));
        }
        Ok(session.run_bound(&mut bindings)?)
    }

    fn threads(&self) -> usize {
        self.session.threads()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn interpreters_have_memory_of_their_own_unless_it_is_given() {
        let [mut first, mut second] = [(); 2].map(|()| SharedValues::default());
        let own = |shared: &mut SharedValues| {
            with_shared_memory(SessionOptions::default(), shared).unwrap().workspace.unwrap()
        };
        let memory = own(&mut first);
        assert!(own(&mut first) == memory);
        let other = own(&mut second);
        assert!(other != memory && own(&mut second) == other);

        let options = SessionOptions { workspace: Some(memory.clone()), ..Default::default() };
        for shared in [&mut first, &mut second] {
            let given = with_shared_memory(options.clone(), shared).unwrap().workspace.unwrap();
            assert!(given == memory);
        }
    }
}
