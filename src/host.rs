//! Models that do not go to XNNPACK whole: the interpreter runs what is left.

use std::error::Error as StdError;
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};

use xnn_interp::{
    Claim, CompiledPartition, Delegate, Entry, InterpOptions, Interpreter, Partition,
    PartitionSession, TensorBuf, TensorRef,
};
use xnn_lower::{Decision, PartitionOptions, WhyNot};
use xnn_model::{Model, Subgraph, SubgraphId, TensorId};
use xnn_runtime::{Program, RuntimeError, Session, SessionOptions, ThreadPool, Workspace};

use crate::delegation::Delegation;
use crate::error::Error;
use crate::runner::RunnerOptions;

type BoxError = Box<dyn StdError + Send + Sync>;

/// XNNPACK as a delegate of the interpreter.
#[derive(Debug)]
pub struct XnnpackDelegate {
    partition: PartitionOptions,
    session: SessionOptions,
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
    operators: Vec<usize>,
    /// The reason where only XNNPACK could have run the operators, and cannot.
    program: Result<(xnn_lower::Partition, Program), String>,
}

impl XnnpackDelegate {
    /// A delegate whose sessions get these options. Where they name none, all
    /// partitions share one workspace and the threads.
    ///
    /// # Errors
    ///
    /// The threads cannot be started, or memory is exhausted.
    pub fn new(partition: PartitionOptions, session: SessionOptions) -> Result<Self, Error> {
        let session = shared(session)?;
        Ok(Self { partition, session, decided: Mutex::default(), compiled: Mutex::default() })
    }

    /// The decisions about a subgraph, with its partitions compiled.
    fn delegation(&self, graph: &Subgraph) -> Result<Delegation, Error> {
        let mut decided = self.decided.lock().unwrap_or_else(PoisonError::into_inner);
        match decided.take_if(|delegation| delegation.graph() == graph) {
            Some(delegation) => Ok(delegation),
            None => Delegation::new(graph, &self.partition),
        }
    }
}

/// Options of sessions that never run at the same time.
fn shared(mut options: SessionOptions) -> Result<SessionOptions, Error> {
    if options.thread_pool.is_none() && options.threads != 1 {
        let pool = ThreadPool::new(options.threads).map_err(RuntimeError::from)?;
        options.thread_pool = Some(Arc::new(pool));
    }
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
    let RunnerOptions { partition, session, limits } = options.clone();
    let mut delegate = XnnpackDelegate::new(partition, session)?;
    delegate.decided = Mutex::new(Some(delegation));
    let options = InterpOptions { limits, ..InterpOptions::default() };
    build(model, Entry::Subgraph(subgraph), delegate, options)
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

    fn partition(&self, graph: &Subgraph) -> Vec<Claim> {
        let delegation = match self.delegation(graph) {
            Ok(delegation) => delegation,
            Err(error) => {
                log::warn!("nothing goes to XNNPACK: {error}");
                return Vec::new();
            }
        };
        let address = ptr::from_ref(graph).addr();
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        compiled.retain(|entry| entry.graph != address);
        let refused = delegation.partitioning().decisions.iter().enumerate();
        compiled.extend(refused.filter_map(|(index, decision)| match decision {
            Decision::Left(why @ WhyNot::StoredGraph { .. }) => {
                let (operators, program) = (vec![index], Err(why.to_string()));
                Some(Compiled { graph: address, operators, program })
            }
            _ => None,
        }));
        compiled.extend(delegation.into_partitions().map(|(partition, program)| Compiled {
            graph: address,
            operators: partition.operators.clone(),
            program: Ok((partition, program)),
        }));
        let ours = compiled.iter().filter(|entry| entry.graph == address);
        ours.map(|entry| Claim { operators: entry.operators.clone() }).collect()
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
            .position(|c| c.graph == address && c.operators == wanted.operators)
            .ok_or("the partition was not claimed")?;
        let (partition, program) = compiled.swap_remove(position).program?;
        Ok(Arc::new(Compilation {
            inputs: places(&partition.inputs, &wanted.inputs)?,
            outputs: places(&partition.outputs, &wanted.outputs)?,
            program,
            options: self.session.clone(),
        }))
    }
}

/// For each tensor of the graph, its position in the interpreter's order.
fn places(ours: &[TensorId], theirs: &[TensorId]) -> Result<Vec<usize>, BoxError> {
    ours.iter()
        .map(|id| theirs.iter().position(|other| other == id))
        .collect::<Option<_>>()
        .ok_or_else(|| "the interpreter sees another border of the partition".into())
}

struct Compilation {
    program: Program,
    options: SessionOptions,
    inputs: Vec<usize>,
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
}

struct Running {
    session: Session,
    inputs: Vec<usize>,
    outputs: Vec<usize>,
}

impl PartitionSession for Running {
    fn invoke(
        &mut self,
        inputs: &[TensorRef<'_>],
        outputs: &mut [TensorBuf],
    ) -> Result<(), BoxError> {
        let mut reshaped = false;
        for (index, &place) in self.inputs.iter().enumerate() {
            let shape = inputs.get(place).ok_or("an input is missing")?.shape;
            if self.session.inputs().get(index).is_some_and(|info| info.dims != shape) {
                self.session.resize(index, shape)?;
                reshaped = true;
            }
        }
        if reshaped {
            self.session.reshape()?;
        }
        for (index, &place) in self.inputs.iter().enumerate() {
            let bytes = inputs.get(place).ok_or("an input is missing")?.bytes;
            let buffer = self.session.input_mut(index);
            if buffer.len() != bytes.len() {
                return Err("an input has another size than XNNPACK expects".into());
            }
            buffer.copy_from_slice(bytes);
        }
        self.session.run()?;
        for (index, &place) in self.outputs.iter().enumerate() {
            let output = outputs.get_mut(place).ok_or("an output is missing")?;
            let dims = self.session.outputs().get(index).map(|info| info.dims.as_slice());
            output.resize(dims.ok_or("an output is missing")?).ok_or("an output is too large")?;
            let (bytes, result) = (output.view_mut().bytes, self.session.output(index));
            if bytes.len() != result.len() {
                return Err("an output has another size than XNNPACK computes".into());
            }
            bytes.copy_from_slice(result);
        }
        Ok(())
    }
}
