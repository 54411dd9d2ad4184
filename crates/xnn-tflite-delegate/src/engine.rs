//! Engines that compute a kernel's operators.

use std::ffi::c_void;

use smallvec::SmallVec;
use xnn_model::TensorId;
use xnn_runtime::{Program, RuntimeError, Session};
use xnnpack::ExternalId;

use crate::context::Context;
use crate::error::Result;
use crate::hosted::Hosted;
use crate::memory::Memory;

/// Number of external tensors up to which a run does not allocate.
const INLINE_TENSORS: usize = 16;

/// XNNPACK, or this project's interpreter for operators that XNNPACK does not support.
pub(crate) enum Engine {
    Xnnpack(Box<Xnnpack>),
    Hosted(Hosted),
}

impl Engine {
    /// Computes the tensors `outputs` from the tensors `inputs`.
    pub(crate) fn run(
        &mut self,
        inputs: &[TensorId],
        outputs: &[TensorId],
        context: &Context,
    ) -> Result<()> {
        match self {
            Self::Xnnpack(engine) => engine.run(inputs, outputs, context),
            Self::Hosted(engine) => engine.run(inputs, outputs, context),
        }
    }

    /// Dimensions of the inputs.
    pub(crate) fn input_dims(&self) -> Vec<Vec<usize>> {
        match self {
            Self::Xnnpack(engine) => {
                engine.session.inputs().iter().map(|info| info.dims.clone()).collect()
            }
            Self::Hosted(engine) => engine.input_dims(),
        }
    }

    /// Dimensions of the outputs.
    pub(crate) fn output_dims(&self) -> Vec<Vec<usize>> {
        match self {
            Self::Xnnpack(engine) => {
                engine.session.outputs().iter().map(|info| info.dims.clone()).collect()
            }
            Self::Hosted(engine) => engine.output_dims(),
        }
    }
}

impl From<Session> for Engine {
    fn from(session: Session) -> Self {
        let read_outputs = read_outputs(session.program());
        Self::Xnnpack(Box::new(Xnnpack { session, read_outputs }))
    }
}

/// XNNPACK session on the interpreter's memory.
pub(crate) struct Xnnpack {
    pub(crate) session: Session,
    /// Whether a node of the program reads the output, so that XNNPACK requires padding.
    read_outputs: Vec<bool>,
}

impl Xnnpack {
    fn run(&mut self, inputs: &[TensorId], outputs: &[TensorId], context: &Context) -> Result<()> {
        if self.session.is_empty() {
            return Ok(());
        }
        let mut pointers: SmallVec<[(ExternalId, *mut c_void); INLINE_TENSORS]> = SmallVec::new();
        let mut read: SmallVec<[Memory<'_>; INLINE_TENSORS]> = SmallVec::new();
        for (index, &id) in inputs.iter().enumerate() {
            let external = self.session.inputs()[index].id;
            let own = self.session.input_mut(index);
            let memory = Memory::of(context, id, own.len())?;
            let start = if memory.is_aligned() && memory.has_padding() {
                let start = memory.start();
                read.push(memory);
                start
            } else {
                // SAFETY: the interpreter does not write to inputs of a node while it runs.
                own.copy_from_slice(unsafe { memory.bytes() });
                own.as_mut_ptr()
            };
            pointers.push((external, start.cast()));
        }
        let mut fetched: SmallVec<[(usize, Memory<'_>); INLINE_TENSORS]> = SmallVec::new();
        for (index, &id) in outputs.iter().enumerate() {
            let external = self.session.outputs()[index].id;
            let own = self.session.output_mut(index);
            let memory = Memory::of(context, id, own.len())?;
            // Callers may use the same memory for a state before and after the update by the model.
            let is_read =
                self.read_outputs[index] || read.iter().any(|input| input.overlaps(&memory));
            let start = if memory.is_aligned() && !is_read {
                memory.start()
            } else {
                fetched.push((index, memory));
                own.as_mut_ptr()
            };
            pointers.push((external, start.cast()));
        }
        // SAFETY: the interpreter's memory is aligned, has the tensors' sizes, and may be read and
        // written by the node while it runs. Padding of an input lies on the page of the input's
        // last byte, and is mapped as long as that byte is. Outputs that are read or overlap with
        // inputs, and all other tensors, are in the session's own memory.
        unsafe { self.session.raw().run(&pointers) }.map_err(RuntimeError::from)?;
        for (index, mut memory) in fetched {
            // SAFETY: the node has read its inputs, and while it runs no other live memory overlaps
            // its outputs.
            unsafe { memory.bytes_mut() }.copy_from_slice(self.session.output(index));
        }
        Ok(())
    }
}

fn read_outputs(program: &Program) -> Vec<bool> {
    let graph = program.graph();
    let is_read = |id| graph.nodes.iter().any(|node| node.inputs().contains(id));
    graph.outputs.iter().map(is_read).collect()
}
