//! A partition as a node of the interpreter.

use std::sync::Arc;

use xnn_file::MappedFile;
use xnn_format::{Blob, Graph};
use xnn_lower::{Compile, CompileError, PartitionOptions};
use xnn_model::TensorId;
use xnn_runtime::{Program, ProgramOptions, RuntimeError, Session, SessionOptions, ThreadPool};

use crate::context::Context;
use crate::delegated_partition::Part;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::graph;
use crate::programs::Key;

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
    engine: Engine,
    /// The last one that XNNPACK ran: later ones use the weights that it has packed.
    program: Option<Program>,
    /// Tensors from whose dimensions `engine` follows, with those that it is for.
    depends_on: Vec<(TensorId, Vec<usize>)>,
    /// Dimensions that the outputs have then.
    output_dims: Vec<Vec<usize>>,
}

impl Kernel {
    /// Runs `part` on `engine`, made by `sessions`.
    pub(crate) fn new(part: Part, engine: Engine, sessions: &Sessions) -> Self {
        let program = match &engine {
            Engine::Xnnpack(engine) => Some(engine.session.program().clone()),
            Engine::Hosted(_) => None,
        };
        Self {
            depends_on: part.depends_on(&engine),
            output_dims: part.output_dims(&engine),
            part,
            sessions: sessions.clone(),
            engine,
            program,
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
        self.engine.run(&self.part, context)
    }

    /// What XNNPACK runs now.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn program(&self) -> Option<&Program> {
        match &self.engine {
            Engine::Xnnpack(engine) => Some(engine.session.program()),
            Engine::Hosted(_) => None,
        }
    }

    /// Takes on inputs of other dimensions.
    fn reshape(&mut self, context: &Context) -> Result<()> {
        let mut sessions = self.sessions.clone();
        sessions.program.similar.clone_from(&self.program);
        if let Some((part, engine)) = self.part.reshaped(context, &mut sessions)? {
            let earlier = self.program.take();
            *self = Self::new(part, engine, &self.sessions);
            self.program = self.program.take().or(earlier);
        } else if let Engine::Xnnpack(engine) = &mut self.engine {
            let dims = |&id| Ok(graph::dims(context.tensor(id)?).unwrap_or_default());
            let dims = self.part.inputs().iter().map(dims).collect::<Result<Vec<_>>>()?;
            engine.session.resize_inputs(dims.iter().map(Vec::as_slice).enumerate())?;
            self.depends_on = self.part.depends_on(&self.engine);
            self.output_dims = self.part.output_dims(&self.engine);
        }
        if self.shapes_differ(context)? {
            let reason = "they do not follow from the shapes of the graph's inputs";
            return Err(Error::Shapes(reason.into()));
        }
        Ok(())
    }

    /// Whether tensors have other dimensions than the engine is for.
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
    ) -> std::result::Result<Session, CompileError> {
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
        start().map_err(|error| xnn::lower::compile_error(graph, &error))
    }
}

impl Compile for Sessions {
    type Output = Session;

    fn compile(&mut self, graph: &Arc<Graph>) -> std::result::Result<Session, CompileError> {
        self.session(graph, |options| Program::new(Arc::clone(graph), options))
    }

    fn has_fast_uint8(&self) -> bool {
        xnn_runtime::has_fast_uint8()
    }

    fn has_exact_dynamic_convolutions(&self) -> bool {
        xnn_runtime::has_exact_dynamic_convolutions()
    }

    fn open(&mut self, blob: Blob) -> std::result::Result<Session, CompileError> {
        let graph = Arc::clone(blob.graph());
        self.session(&graph, |options| Program::from_blob_with(blob, options))
    }
}
