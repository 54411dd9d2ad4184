//! Sessions of one interpreter: threads, options, and programs shared with other interpreters.

use std::sync::Arc;

use xnn_file::MappedFile;
use xnn_format::{Blob, Graph};
use xnn_lower::{Compile, CompileError, PartitionOptions, TargetFeatures};
use xnn_runtime::{Program, ProgramOptions, RuntimeError, Session, SessionOptions, ThreadPool};

use crate::programs::Key;

/// Creates the sessions of one interpreter. Sessions that are compiled during partitioning are the
/// ones that run.
#[derive(Clone)]
pub(crate) struct Sessions {
    /// Thread pool; `None` to compute on the calling thread only.
    pub(crate) threads: Option<Arc<ThreadPool>>,
    /// Options of programs, such as the folder of packed weights.
    pub(crate) program: ProgramOptions,
    /// Options of lowering, also for other shapes.
    pub(crate) partition: PartitionOptions,
    /// Key under which the interpreters of this process share programs.
    pub(crate) key: Option<Key>,
    /// Mapped model files, kept so that interpreters of the same model share them.
    pub(crate) _files: Vec<Arc<MappedFile>>,
}

impl Sessions {
    pub(crate) fn start(&self, program: &Program) -> Result<Session, RuntimeError> {
        let options =
            SessionOptions { thread_pool: self.threads.clone(), ..SessionOptions::default() };
        Session::new(program, &options)
    }

    /// Starts a session of the program for `graph`: one that another interpreter has, or the one
    /// that `make` creates.
    fn session(
        &self,
        graph: &Graph,
        make: impl FnOnce(&ProgramOptions) -> Result<Program, RuntimeError>,
    ) -> Result<Session, CompileError> {
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

    fn compile(&mut self, graph: &Arc<Graph>) -> Result<Session, CompileError> {
        self.session(graph, |options| Program::new(Arc::clone(graph), options))
    }

    fn target_features(&self) -> TargetFeatures {
        xnn::lower::target_features()
    }

    fn open(&mut self, blob: Blob) -> Result<Session, CompileError> {
        let graph = Arc::clone(blob.graph());
        self.session(&graph, |options| Program::from_blob_with(blob, options))
    }
}
