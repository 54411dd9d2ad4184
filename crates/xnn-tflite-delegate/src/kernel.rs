//! A partition as a node of the interpreter.

use std::ffi::c_void;
use std::sync::Arc;

use smallvec::SmallVec;
use xnn_file::MappedFile;
use xnn_format::{Blob, Graph};
use xnn_lower::{Compile, PartitionOptions, Refusal};
use xnn_model::TensorId;
use xnn_runtime::{Program, ProgramOptions, RuntimeError, Session, SessionOptions, ThreadPool};
use xnnpack::ExternalId;

use crate::context::Context;
use crate::error::{Error, Result};
use crate::graph;
use crate::memory::Memory;
use crate::part::Part;
use crate::programs::Key;

/// External tensors up to which a run allocates nothing.
const INLINE_TENSORS: usize = 16;

/// Makes the sessions of one interpreter. What is tried out before nodes are claimed is what runs.
#[derive(Clone)]
pub(crate) struct Sessions {
    /// `None` for the calling thread alone.
    pub(crate) threads: Option<Arc<ThreadPool>>,
    /// Whether they sleep between runs.
    pub(crate) yield_workers: bool,
    /// Where packed weights are kept.
    pub(crate) program: ProgramOptions,
    /// How operators are lowered, and lowered anew for other shapes.
    pub(crate) partition: PartitionOptions,
    /// By what the interpreters of this process find each other's programs.
    pub(crate) key: Option<Key>,
    /// Kept so that interpreters of the same model find them.
    pub(crate) _files: Vec<Arc<MappedFile>>,
}

/// A partition with the memory to run it.
pub(crate) struct Kernel {
    part: Part,
    sessions: Sessions,
    session: Session,
    /// Tensors from whose dimensions `session` follows, with those that it is for.
    depends_on: Vec<(TensorId, Vec<usize>)>,
    /// Dimensions that the outputs have then.
    output_dims: Vec<Vec<usize>>,
    /// Outputs that nodes of the program read as well, for which XNNPACK wants padding.
    read_outputs: Vec<bool>,
}

impl Kernel {
    /// Runs `part` in `session`, one of `sessions`.
    pub(crate) fn new(part: Part, session: Session, sessions: &Sessions) -> Self {
        Self {
            depends_on: part.depends_on(&session),
            output_dims: part.output_dims(&session),
            read_outputs: read_outputs(session.program()),
            part,
            sessions: sessions.clone(),
            session,
        }
    }

    /// Takes on the shapes of the inputs, and gives the outputs theirs.
    pub(crate) fn prepare(&mut self, context: &Context) -> Result<()> {
        if self.shapes_differ(context)? {
            self.reshape(context)?;
        }
        let outputs = self.part.outputs().iter().zip(&self.output_dims);
        outputs.into_iter().try_for_each(|(&id, dims)| context.resize(id, dims))
    }

    /// Computes the output tensors from the input tensors.
    pub(crate) fn invoke(&mut self, context: &Context) -> Result<()> {
        // Tensors that other nodes resize while they run have their shapes only now.
        if self.shapes_differ(context)? {
            self.prepare(context)?;
        }
        if self.session.is_empty() {
            return Ok(());
        }
        let mut pointers: SmallVec<[(ExternalId, *mut c_void); INLINE_TENSORS]> = SmallVec::new();
        let mut read: SmallVec<[Memory<'_>; INLINE_TENSORS]> = SmallVec::new();
        for (index, &id) in self.part.inputs().iter().enumerate() {
            let external = self.session.inputs()[index].id;
            let own = self.session.input_mut(index);
            let memory = Memory::of(context, id, own.len())?;
            let start = if memory.is_aligned() && memory.has_padding() {
                let start = memory.start();
                read.push(memory);
                start
            } else {
                // SAFETY: the interpreter writes to no input of a node while the node runs.
                own.copy_from_slice(unsafe { memory.bytes() });
                own.as_mut_ptr()
            };
            pointers.push((external, start.cast()));
        }
        let mut fetched: SmallVec<[(usize, Memory<'_>); INLINE_TENSORS]> = SmallVec::new();
        for (index, &id) in self.part.outputs().iter().enumerate() {
            let external = self.session.outputs()[index].id;
            let own = self.session.output_mut(index);
            let memory = Memory::of(context, id, own.len())?;
            // Callers may give a state that a model updates one memory before and after.
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
        // SAFETY: the interpreter's memory is aligned, has the tensors' sizes, and is the node's to read and to write while
        // it runs; what lies on the page of an input's last byte is mapped as long as that byte is; outputs that
        // are read, or lie where inputs do, and the rest, are the session's own.
        unsafe { self.session.runtime_mut().run_raw(&pointers) }.map_err(RuntimeError::from)?;
        for (index, mut memory) in fetched {
            // SAFETY: the node has read its inputs, and while it runs its outputs overlap with nothing else that is alive.
            unsafe { memory.bytes_mut() }.copy_from_slice(self.session.output(index));
        }
        Ok(())
    }

    /// What runs now.
    #[cfg(test)]
    pub(crate) fn program(&self) -> &Program {
        self.session.program()
    }

    /// Takes on inputs of other dimensions.
    fn reshape(&mut self, context: &Context) -> Result<()> {
        let mut sessions = self.sessions.clone();
        sessions.program.similar = Some(self.session.program().clone());
        match self.part.reshaped(context, &mut sessions)? {
            Some((part, session)) => *self = Self::new(part, session, &self.sessions),
            None => {
                let dims = |&id| Ok(graph::dims(context.tensor(id)?).unwrap_or_default());
                let dims = self.part.inputs().iter().map(dims).collect::<Result<Vec<_>>>()?;
                self.session.resize_inputs(dims.iter().map(Vec::as_slice).enumerate())?;
                self.depends_on = self.part.depends_on(&self.session);
                self.output_dims = self.part.output_dims(&self.session);
            }
        }
        if self.shapes_differ(context)? {
            let reason = "they do not follow from the shapes of the graph's inputs";
            return Err(Error::Shapes(reason.into()));
        }
        Ok(())
    }

    /// Whether tensors have other dimensions than the session is for.
    fn shapes_differ(&self, context: &Context) -> Result<bool> {
        for (id, dims) in &self.depends_on {
            if !graph::has_dims(context.tensor(*id)?, dims) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl Sessions {
    pub(crate) fn start(&self, program: &Program) -> std::result::Result<Session, RuntimeError> {
        let options = SessionOptions {
            thread_pool: self.threads.clone(),
            yield_workers: self.yield_workers,
            ..SessionOptions::default()
        };
        Session::new(program, &options)
    }

    /// A session of the program for `graph` that an interpreter has already, or of the one that is made.
    fn session(
        &self,
        graph: &Graph,
        make: impl FnOnce(&ProgramOptions) -> std::result::Result<Program, RuntimeError>,
    ) -> std::result::Result<Session, Refusal> {
        let found = self.key.as_ref().and_then(|key| key.find(graph));
        let start = || match &found {
            Some(program) => self.start(program),
            None => {
                let session = self.start(&make(&self.program)?)?;
                if let Some(key) = &self.key {
                    key.keep(session.program());
                }
                Ok(session)
            }
        };
        start().map_err(|error| xnn::refusal(graph, &error))
    }
}

impl Compile for Sessions {
    type Output = Session;

    fn compile(&mut self, graph: &Arc<Graph>) -> std::result::Result<Session, Refusal> {
        self.session(graph, |options| Program::new(Arc::clone(graph), options))
    }

    fn has_fast_uint8(&self) -> bool {
        xnn_runtime::has_fast_uint8()
    }

    fn has_exact_dynamic_convolutions(&self) -> bool {
        xnn_runtime::has_exact_dynamic_convolutions()
    }

    fn open(&mut self, blob: Blob) -> std::result::Result<Session, Refusal> {
        let graph = Arc::clone(blob.graph());
        self.session(&graph, |options| Program::from_blob_with(blob, options))
    }
}

fn read_outputs(program: &Program) -> Vec<bool> {
    let graph = program.graph();
    let is_read = |id| graph.nodes.iter().any(|node| node.inputs().contains(id));
    graph.outputs.iter().map(is_read).collect()
}
