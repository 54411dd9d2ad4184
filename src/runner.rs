//! Runs any model or blob, on XNNPACK and, where an operator is not delegated, on reference kernels.

#[cfg(feature = "ndarray")]
mod arrays;
mod bindings;
mod builder;
mod inputs;
mod resize;
mod state;
mod tensors;
mod values;

use std::mem;
use std::path::Path;
use std::sync::Arc;

use xnn_format::Blob;
use xnn_interp::{ArenaUse, CancelFlag, ErrorKind, Executed, Interpreter};
use xnn_model::{DType, Model, ModelLimits, Subgraph, SubgraphId, TensorId};
use xnn_runtime::{OpTiming, Program, ProgramOptions, Session, SessionOptions};

use crate::compile::XnnpackCompiler;
use crate::coverage::Coverage;
use crate::delegation::{Delegation, main_subgraph};
use crate::error::Error;
use crate::interpreter_delegate::{Decided, interpreter_with, with_threads, with_workspace};
use crate::options::RunnerOptions;
use crate::tensor_spec::TensorSpec;
pub use builder::RunnerBuilder;
use resize::Origin;

/// A model or blob with the memory to run it, for one thread at a time.
///
/// Operators that are not delegated to XNNPACK run on reference kernels. Inputs and outputs are accessed by position or
/// by name.
///
/// ```
/// use xnn_delegate::Runner;
///
/// # fn main() -> Result<(), xnn_delegate::Error> {
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/models/digits_mobilenet_v2_fp32.tflite");
/// let mut runner = Runner::open(path)?;
/// println!("{}", runner.coverage());
/// runner.input_as_mut::<f32>(0)?.fill(0.5);
/// runner.run()?;
/// let probabilities: &[f32] = runner.output_as(0)?;
/// assert_eq!(probabilities.len(), 10);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Runner {
    engine: Engine,
    /// The model, to lower it for other shapes; `None` for a blob, for a model that holds graphs, and where nothing is
    /// lowered.
    origin: Option<Box<Origin>>,
    /// Options for the sessions of forks.
    session: SessionOptions,
    limits: ModelLimits,
    cancel: CancelFlag,
    coverage: Coverage,
    inputs: Vec<TensorSpec>,
    outputs: Vec<TensorSpec>,
}

#[derive(Debug)]
enum Engine {
    /// XNNPACK runs all operators.
    Whole(Box<Session>),
    /// Reference kernels run some operators.
    Partial(Box<Interpreter>),
}

impl Runner {
    /// Opens a model (TFLite or Circle) or a blob with default options. The content tells which of them the file is.
    ///
    /// # Errors
    ///
    /// The file cannot be read, is of another kind, or is damaged; an operator is supported neither by XNNPACK nor by a
    /// reference kernel; a limit is exceeded.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::builder(path).build()
    }

    /// Opens the content of a model or blob that is in memory, such as a `Vec<u8>` or the result of `include_bytes!`.
    ///
    /// ```
    /// use xnn_delegate::Runner;
    ///
    /// static MODEL: &[u8] = include_bytes!("../models/digits_mobilenet_v2_int8.tflite");
    ///
    /// # fn main() -> Result<(), xnn_delegate::Error> {
    /// let runner = Runner::open_bytes(MODEL)?;
    /// assert_eq!(runner.inputs()[0].dims[0], 1);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// See [`Runner::open`].
    pub fn open_bytes(bytes: impl AsRef<[u8]> + Send + 'static) -> Result<Self, Error> {
        RunnerBuilder::from_bytes(bytes).build()
    }

    /// Makes a model's main subgraph ready to run, with default options.
    ///
    /// # Errors
    ///
    /// See [`Runner::open`].
    pub fn from_model(model: &Model) -> Result<Self, Error> {
        RunnerBuilder::from_model(model).build()
    }

    /// Options for opening a model or blob.
    ///
    /// ```
    /// use xnn_delegate::Runner;
    ///
    /// # fn main() -> Result<(), xnn_delegate::Error> {
    /// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/models/digits_mobilenet_v2_fp32.tflite");
    /// let runner = Runner::builder(path).threads(2).build()?;
    /// # let _ = runner;
    /// # Ok(()) }
    /// ```
    pub fn builder(path: impl AsRef<Path>) -> RunnerBuilder {
        RunnerBuilder::from_file(path)
    }

    /// Returns another runner of the same model and options, with inputs, outputs, state and a cancel flag of its own, for
    /// another thread. Constants and packed weights are shared.
    ///
    /// ```
    /// use std::thread;
    /// use xnn_delegate::Runner;
    ///
    /// # fn main() -> Result<(), xnn_delegate::Error> {
    /// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/models/digits_mobilenet_v2_fp32.tflite");
    /// let mut first = Runner::open(path)?;
    /// let mut second = first.fork()?;
    /// let other = thread::spawn(move || second.run());
    /// first.run()?;
    /// other.join().unwrap()?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// Threads cannot be started, or memory is exhausted.
    pub fn fork(&self) -> Result<Self, Error> {
        let mut fork = match &self.engine {
            Engine::Whole(first) => {
                let (program, operators) = (first.program(), self.coverage.operators);
                let fork = Self::whole(program, operators, &self.session, &self.limits)?;
                fork.named(&self.inputs, &self.outputs)
            }
            Engine::Partial(first) => Self::partial(first.fork()?, &self.limits),
        };
        fork.session.clone_from(&self.session);
        fork.origin.clone_from(&self.origin);
        if let (Engine::Whole(_), Some(origin)) = (&fork.engine, &mut fork.origin) {
            origin.options.session = with_workspace(self.session.clone())?;
        }
        Ok(fork)
    }

    /// Makes a blob ready to run.
    fn of_blob(blob: Blob, options: &RunnerOptions) -> Result<Self, Error> {
        let limits = options.graph_limits();
        let program = ProgramOptions { limits, ..options.program.clone() };
        let program = Program::from_blob_with(blob, &program)?;
        let operators = program.graph().nodes.len();
        Self::whole(&program, operators, &options.session, &options.limits)
    }

    /// Makes a subgraph ready to run. Its shapes are inferred in place if no other model shares it.
    pub(crate) fn of_subgraph(
        mut model: Model,
        subgraph: SubgraphId,
        options: &RunnerOptions,
    ) -> Result<Self, Error> {
        let mut options = options.clone();
        options.partition.limits = options.graph_limits();
        options.program.limits = options.partition.limits.clone();
        // Partitions are compiled with the options of their sessions, which then take over the
        // operators. Forks run at the same time, so that they do not share the workspace.
        let for_forks = with_threads(options.session)?;
        options.session = with_workspace(for_forks.clone())?;
        options.program.pages = model.pages.clone();
        let (program, session) = (options.program.clone(), options.session.clone());
        let compiler = XnnpackCompiler { program, session };
        let graph = model.subgraphs.get_mut(subgraph).map(mem::take);
        let graph = graph.map_or_else(|| main_subgraph(&model).map(Arc::clone), Ok)?;
        let delegation = Delegation::with(graph, &options.partition, compiler)?;
        if let Some(graph) = model.subgraphs.get_mut(subgraph) {
            graph.clone_from(delegation.graph());
        }
        let mut runner = match delegation.whole_program() {
            Some(program) => {
                let graph = delegation.graph();
                let [inputs, outputs] =
                    [&graph.inputs, &graph.outputs].map(|ids| specs(graph, ids));
                let operators = graph.operators.len();
                Self::whole(program, operators, &options.session, &options.limits)?
                    .named(&inputs, &outputs)
            }
            None => {
                let workspace = options.session.workspace.clone();
                let decided = Decided { delegation: Some(delegation), workspace };
                let for_forks = RunnerOptions { session: for_forks.clone(), ..options.clone() };
                let interpreter = interpreter_with(&model, subgraph, decided, for_forks)?;
                Self::partial(interpreter, &options.limits)
            }
        };
        // The new program holds the weights that it shares.
        options.program.similar = None;
        let origin = Origin { model, subgraph, options };
        runner.session = for_forks;
        runner.origin = origin.can_be_lowered().then(|| Box::new(origin));
        Ok(runner)
    }

    fn whole(
        program: &Program,
        operators: usize,
        options: &SessionOptions,
        limits: &ModelLimits,
    ) -> Result<Self, Error> {
        let session = Session::new(program, options)?;
        Ok(Self {
            coverage: Coverage { delegated: operators, operators, partitions: 1, deferred: 0 },
            inputs: session.inputs().iter().map(TensorSpec::from).collect(),
            outputs: session.outputs().iter().map(TensorSpec::from).collect(),
            engine: Engine::Whole(Box::new(session)),
            origin: None,
            session: options.clone(),
            limits: limits.clone(),
            cancel: CancelFlag::default(),
        })
    }

    /// Takes over the names of these tensors: a graph in the model may have other names, and has no signature. Booleans,
    /// which XNNPACK does not have, are bytes of 0 or 1 in graphs.
    fn named(mut self, inputs: &[TensorSpec], outputs: &[TensorSpec]) -> Self {
        let inputs = self.inputs.iter_mut().zip(inputs);
        for (spec, named) in inputs.chain(self.outputs.iter_mut().zip(outputs)) {
            spec.name.clone_from(&named.name);
            if named.dtype == DType::Bool {
                spec.dtype = DType::Bool;
            }
        }
        self
    }

    pub(crate) fn partial(interpreter: Interpreter, limits: &ModelLimits) -> Self {
        let graph = interpreter.subgraph();
        Self {
            coverage: Coverage {
                delegated: interpreter.delegated_operators(),
                operators: graph.operators.len(),
                partitions: interpreter.delegated_partitions(),
                deferred: interpreter.deferred_operators(),
            },
            inputs: specs(graph, &graph.inputs),
            outputs: specs(graph, &graph.outputs),
            session: SessionOptions::default(),
            limits: limits.clone(),
            cancel: interpreter.cancel_flag(),
            engine: Engine::Partial(Box::new(interpreter)),
            origin: None,
        }
    }

    /// Number of operators that run on XNNPACK.
    #[must_use]
    pub fn coverage(&self) -> Coverage {
        self.coverage
    }

    /// Largest number of threads that compute, the calling one included: at most the number in the options, as far as there
    /// are processors and enough work.
    #[must_use]
    pub fn threads(&self) -> usize {
        match &self.engine {
            Engine::Whole(session) => session.threads(),
            Engine::Partial(interpreter) => interpreter.threads(),
        }
    }

    /// The program, if XNNPACK runs all operators.
    #[must_use]
    pub fn program(&self) -> Option<&Program> {
        match &self.engine {
            Engine::Whole(session) => Some(session.program()),
            Engine::Partial(_) => None,
        }
    }

    /// Times of the operators in the last run, in their order; `None` unless XNNPACK runs all operators, the session's
    /// options ask for a profile, and the model has run.
    #[must_use]
    pub fn profile(&self) -> Option<Vec<OpTiming>> {
        match &self.engine {
            Engine::Whole(session) => session.profile(),
            Engine::Partial(_) => None,
        }
    }

    /// The interpreter, unless XNNPACK runs all operators.
    pub(crate) fn interpreter(&self) -> Option<&Interpreter> {
        match &self.engine {
            Engine::Whole(_) => None,
            Engine::Partial(interpreter) => Some(interpreter),
        }
    }

    /// The subgraph that runs; `None` for a blob.
    pub(crate) fn graph(&self) -> Option<&Subgraph> {
        match (&self.engine, &self.origin) {
            (Engine::Partial(interpreter), _) => Some(interpreter.subgraph()),
            (Engine::Whole(_), Some(origin)) => {
                origin.model.subgraphs.get(origin.subgraph).map(Arc::as_ref)
            }
            (Engine::Whole(_), None) => None,
        }
    }

    /// Returns the flag that cancels a run from another thread.
    ///
    /// A run ends before the next reference kernel or partition. XNNPACK cannot be interrupted: a partition that has started
    /// runs to its end, and so does a fully delegated model.
    ///
    /// ```
    /// use xnn_delegate::Runner;
    ///
    /// # fn main() -> Result<(), xnn_delegate::Error> {
    /// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/models/digits_mobilenet_v2_fp32.tflite");
    /// let mut runner = Runner::open(path)?;
    /// let flag = runner.cancel_flag();
    /// flag.raise();
    /// assert!(runner.run().is_err());
    /// flag.lower();
    /// assert!(runner.run().is_ok());
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn cancel_flag(&self) -> CancelFlag {
        self.cancel.clone()
    }

    /// Computes the outputs from the inputs. Variables and the state of recurrent operators continue from the last run.
    ///
    /// # Errors
    ///
    /// Values or dimensions that are known in a run only do not fit an operator; a limit is exceeded; the run is cancelled.
    pub fn run(&mut self) -> Result<(), Error> {
        self.run_observed(&mut |_| {})
    }

    /// Runs as [`Runner::run`], and calls `observe` after each step of the interpreter. A fully delegated model has none.
    pub(crate) fn run_observed(
        &mut self,
        observe: &mut dyn FnMut(&Executed<'_>),
    ) -> Result<(), Error> {
        match &mut self.engine {
            Engine::Whole(_) if self.cancel.is_raised() => {
                return Err(xnn_interp::Error::from(ErrorKind::Cancelled).into());
            }
            Engine::Whole(session) => session.run()?,
            Engine::Partial(interpreter) => {
                interpreter.run_observed(observe)?;
                for (index, spec) in self.outputs.iter_mut().enumerate() {
                    interpreter.output(index)?.shape.clone_into(&mut spec.dims);
                }
            }
        }
        Ok(())
    }

    /// Memory of the intermediate tensors between partitions and reference kernels; `None` if XNNPACK runs all operators.
    #[must_use]
    pub fn memory(&self) -> Option<ArenaUse> {
        self.interpreter().map(Interpreter::memory)
    }

    /// Sets variables and the state of recurrent operators to their initial values.
    pub fn reset_variables(&mut self) {
        match &mut self.engine {
            // XNNPACK graphs keep no state.
            Engine::Whole(_) => {}
            Engine::Partial(interpreter) => interpreter.reset_variables(),
        }
    }
}

fn specs(graph: &Subgraph, ids: &[TensorId]) -> Vec<TensorSpec> {
    ids.iter().map(|&id| TensorSpec::of(graph, id)).collect()
}
