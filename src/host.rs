//! Models that do not go to XNNPACK whole: the interpreter runs what is left.

use std::error::Error as StdError;
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};

use xnn_interp::{
    Claim, CompiledPartition, Delegate, Entry, InterpOptions, Interpreter, Partition,
    PartitionSession, TensorBuf, TensorRef,
};
use xnn_lower::{PartitionOptions, partition};
use xnn_model::{Model, Subgraph, TensorId, infer};
use xnn_runtime::{Program, Session, SessionOptions};

use crate::compile::XnnpackCompiler;
use crate::error::Error;

type BoxError = Box<dyn StdError + Send + Sync>;

/// XNNPACK as a delegate of the interpreter.
#[derive(Debug)]
pub struct XnnpackDelegate {
    partition: PartitionOptions,
    session: SessionOptions,
    /// Partitions that were compiled before they were claimed, until the
    /// interpreter asks for them.
    compiled: Mutex<Vec<Compiled>>,
}

#[derive(Debug)]
struct Compiled {
    /// Address of the subgraph: the interpreter hands the same one to
    /// `partition` and `compile`.
    graph: usize,
    partition: xnn_lower::Partition,
    program: Program,
}

impl XnnpackDelegate {
    /// A delegate whose sessions get these options.
    #[must_use]
    pub fn new(partition: PartitionOptions, session: SessionOptions) -> Self {
        Self { partition, session, compiled: Mutex::default() }
    }
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
    let delegate = XnnpackDelegate::new(partition.clone(), session.clone());
    let options =
        InterpOptions { delegates: vec![Arc::new(delegate)], ..InterpOptions::default() };
    Ok(Interpreter::new(model, Entry::Main, &options)?)
}

impl Delegate for XnnpackDelegate {
    fn name(&self) -> &str {
        "XNNPACK"
    }

    fn partition(&self, graph: &Subgraph) -> Vec<Claim> {
        let inferred = match infer(graph) {
            Ok(inferred) => inferred,
            Err(error) => {
                log::warn!("nothing goes to XNNPACK: {error}");
                return Vec::new();
            }
        };
        let (partitioning, programs) = partition(inferred, &self.partition, &mut XnnpackCompiler);
        let address = ptr::from_ref(graph).addr();
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        compiled.retain(|entry| entry.graph != address);
        let mut claims = Vec::with_capacity(programs.len());
        for (partition, program) in partitioning.partitions.into_iter().zip(programs) {
            claims.push(Claim { operators: partition.operators.clone() });
            compiled.push(Compiled { graph: address, partition, program });
        }
        claims
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
            .position(|c| c.graph == address && c.partition.operators == wanted.operators)
            .ok_or("the partition was not claimed")?;
        let Compiled { partition, program, .. } = compiled.swap_remove(position);
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
