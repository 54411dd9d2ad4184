//! A partition as a node of the interpreter.

use std::slice;
use std::sync::Arc;

use smallvec::SmallVec;
use xnn_format::ValueId;
use xnn_model::{Subgraph, TensorId};
use xnn_runtime::{Binding, PaddedSlice, Program, Session, SessionOptions, TensorInfo, ThreadPool};

use crate::abi::TfLiteTensor;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::graph;
use crate::reshape;

/// Readable bytes that XNNPACK wants behind an input.
const PADDING: usize = xnn_runtime::EXTRA_BYTES;

/// The smallest page that a supported system has.
const PAGE: usize = 4096;

/// External tensors up to which a run allocates nothing.
const INLINE_TENSORS: usize = 16;

/// What a kernel computes, and how to lower it again for other shapes.
pub(crate) struct Part {
    /// The whole graph that the operators belong to.
    pub(crate) graph: Arc<Subgraph>,
    /// The operators, as indices into `graph`.
    pub(crate) operators: Vec<usize>,
    /// Tensors in the order of the program's inputs.
    pub(crate) inputs: Vec<TensorId>,
    /// Tensors in the order of the program's outputs.
    pub(crate) outputs: Vec<TensorId>,
}

/// A partition with the memory to run it.
pub(crate) struct Kernel {
    part: Part,
    threads: Option<Arc<ThreadPool>>,
    session: Session,
    /// Dimensions of the inputs that `session` is for.
    input_dims: Vec<Vec<usize>>,
    /// Dimensions that the interpreter's tensors have then.
    output_dims: Vec<Vec<usize>>,
    /// Outputs that nodes of the program read as well, for which XNNPACK wants padding.
    read_outputs: Vec<bool>,
}

impl Kernel {
    pub(crate) fn new(
        part: Part,
        program: &Program,
        threads: Option<Arc<ThreadPool>>,
    ) -> Result<Self> {
        let session = session(program, &threads)?;
        let dims = |ids: &[TensorId]| -> Vec<Vec<usize>> {
            ids.iter().map(|&id| part.graph.tensor(id).shape.clone().unwrap_or_default()).collect()
        };
        let (input_dims, output_dims) = (dims(&part.inputs), dims(&part.outputs));
        let read_outputs = read_outputs(program);
        Ok(Self { part, threads, session, input_dims, output_dims, read_outputs })
    }

    /// Takes on the shapes of the inputs, and gives the outputs theirs.
    pub(crate) fn prepare(&mut self, context: Context) -> Result<()> {
        self.follow_inputs(context)?;
        for (&id, dims) in self.part.outputs.iter().zip(&self.output_dims) {
            context.resize(id, dims)?;
        }
        Ok(())
    }

    /// Computes the interpreter's output tensors from its input tensors.
    pub(crate) fn invoke(&mut self, context: Context) -> Result<()> {
        if self.inputs_changed(context)? {
            self.prepare(context)?;
        }
        self.stage_inputs(context)?;
        let mut bindings: SmallVec<[Binding<'_>; INLINE_TENSORS]> = SmallVec::new();
        for (&id, info) in self.part.inputs.iter().zip(self.session.inputs()) {
            let memory = Memory::of(context.tensor(id)?, id, info)?;
            if memory.is_padded(info) {
                // SAFETY: the tensor's memory is TFLite's to keep until the node has run, and
                // nobody writes to a node's inputs meanwhile. What lies behind it on the same page
                // is mapped like the page.
                let slice = unsafe { PaddedSlice::new_unchecked(memory.bytes(), PADDING) };
                bindings.push(Binding::Input(info.id, slice));
            }
        }
        for ((&id, info), &is_read) in
            self.part.outputs.iter().zip(self.session.outputs()).zip(&self.read_outputs)
        {
            let memory = Memory::of(context.tensor(id)?, id, info)?;
            if memory.is_direct(info, is_read) {
                // SAFETY: as above; nobody else has a node's outputs while it runs, and no two
                // tensors that are alive at the same time overlap.
                let bytes = unsafe { memory.bytes_mut() };
                bindings.push(Binding::Output(info.id, bytes.into()));
            }
        }
        self.session.run_with(bindings)?;
        self.fetch_outputs(context)
    }
}
