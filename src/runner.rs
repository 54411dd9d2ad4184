//! Any model or blob that runs: on XNNPACK whole, or with reference kernels
//! for what XNNPACK does not take.

mod resize;

use std::mem;
use std::path::Path;
use std::sync::Arc;

use xnn_format::{Blob, ReadOptions};
use xnn_interp::{ArenaUse, CancelFlag, ErrorKind, Executed, Interpreter, TensorBuf};
use xnn_lower::PartitionOptions;
use xnn_model::{DType, Model, ModelLimits, Subgraph, SubgraphId, TensorId};
use xnn_runtime::{Program, ProgramOptions, Session, SessionOptions};

use crate::compile::XnnpackCompiler;
use crate::convert::{is_blob, main_subgraph};
use crate::coverage::Coverage;
use crate::delegation::Delegation;
use crate::error::Error;
use crate::interpreter_delegate;
use crate::tensor_spec::TensorSpec;
use resize::Origin;

/// A model or blob with the memory to run it.
///
/// ```no_run
/// use xnn_delegate::{PartitionOptions, Runner, SessionOptions};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (partition, session) = (PartitionOptions::default(), SessionOptions::default());
/// let mut runner = Runner::open("detector.tflite", &partition, &session)?;
/// println!("{}", runner.coverage());
/// runner.input_mut(0).fill(127);
/// runner.run()?;
/// println!("{:?}: {:?}", runner.outputs()[0].dims, runner.output_reals(0));
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Runner {
    engine: Engine,
    /// What it was made of, to lower it for other shapes; `None` for a blob, for a model that holds graphs, and where
    /// nothing is lowered.
    origin: Option<Box<Origin>>,
    limits: ModelLimits,
    cancel: CancelFlag,
    coverage: Coverage,
    inputs: Vec<TensorSpec>,
    outputs: Vec<TensorSpec>,
}

#[derive(Debug)]
enum Engine {
    Whole(Box<Session>),
    Partial(Box<Interpreter>),
}

/// How a model is run.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct RunnerOptions {
    /// What goes to XNNPACK; has no say in blobs.
    pub partition: PartitionOptions,
    /// Where packed weights are kept.
    pub program: ProgramOptions,
    /// Threads and memory of XNNPACK.
    pub session: SessionOptions,
    /// Bounds on the file, on tensors, loops and calls.
    pub limits: ModelLimits,
}

impl Runner {
    /// Opens a model (TFLite or Circle) or a blob, told apart by content.
    ///
    /// `partition` has no say in blobs.
    ///
    /// # Errors
    ///
    /// The file is neither or is damaged; an operator is taken neither by
    /// XNNPACK nor by a reference kernel.
    pub fn open(
        path: impl AsRef<Path>,
        partition: &PartitionOptions,
        session: &SessionOptions,
    ) -> Result<Self, Error> {
        Self::open_with(path, &RunnerOptions::new(partition, session))
    }

    /// [`Runner::open`] with bounds on what the file may ask for.
    ///
    /// # Errors
    ///
    /// As [`Runner::open`]; and if the file asks for more.
    pub fn open_with(path: impl AsRef<Path>, options: &RunnerOptions) -> Result<Self, Error> {
        let path = path.as_ref();
        if is_blob(path)? {
            let reading = ReadOptions { limits: options.graph_limits(), constants: None };
            let blob = Blob::open_with(path, &reading)?;
            let program = ProgramOptions { limits: reading.limits, ..options.program.clone() };
            let program = Program::from_blob_with(blob, &program)?;
            let operators = program.graph().nodes.len();
            return Self::whole(&program, operators, options);
        }
        Self::of_subgraph(Model::open_with(path, &options.limits)?, 0, options)
    }

    /// Makes a model's main subgraph ready to run.
    ///
    /// # Errors
    ///
    /// An operator is taken neither by XNNPACK nor by a reference kernel.
    pub fn new(
        model: &Model,
        partition: &PartitionOptions,
        session: &SessionOptions,
    ) -> Result<Self, Error> {
        Self::new_with(model, &RunnerOptions::new(partition, session))
    }

    /// [`Runner::new`] with bounds on what the model may ask for.
    ///
    /// # Errors
    ///
    /// As [`Runner::new`]; and if the model asks for more.
    pub fn new_with(model: &Model, options: &RunnerOptions) -> Result<Self, Error> {
        Self::of_subgraph(model.clone(), 0, options)
    }

    /// Makes the subgraph of the signature with this key ready to run. Inputs
    /// and outputs have the signature's names.
    ///
    /// # Errors
    ///
    /// There is no such signature, and as for [`Runner::new_with`].
    pub fn at_signature(model: &Model, key: &str, options: &RunnerOptions) -> Result<Self, Error> {
        let (model, subgraph) = model.at_signature(key)?;
        Self::of_subgraph(model, subgraph, options)
    }

    /// Another runner of the same model, with inputs, outputs, state and a cancel flag of its own.
    /// Constants and packed weights are shared.
    ///
    /// `session` has no say where reference kernels take part: the partitions of all such runners share
    /// the first one's threads and memory, and take turns.
    ///
    /// # Errors
    ///
    /// The threads are too many, or memory is exhausted.
    pub fn fork(&self, session: &SessionOptions) -> Result<Self, Error> {
        let mut other = match &self.engine {
            Engine::Whole(first) => {
                let (partition, limits) = (PartitionOptions::default(), self.limits.clone());
                let options = RunnerOptions { limits, ..RunnerOptions::new(&partition, session) };
                let fresh = Self::whole(first.program(), self.coverage.operators, &options)?;
                fresh.named(&self.inputs, &self.outputs)
            }
            Engine::Partial(first) => Self::partial(first.fork()?, &self.limits),
        };
        other.origin.clone_from(&self.origin);
        if let (Engine::Whole(_), Some(origin)) = (&other.engine, &mut other.origin) {
            origin.options.session = interpreter_delegate::with_workspace(session.clone())?;
        }
        Ok(other)
    }

    /// Makes a subgraph ready to run. Its shapes are inferred where it lies, if only this model has it.
    pub(crate) fn of_subgraph(
        mut model: Model,
        subgraph: SubgraphId,
        options: &RunnerOptions,
    ) -> Result<Self, Error> {
        let mut options = options.clone();
        options.partition.limits = options.graph_limits();
        options.program.limits = options.partition.limits.clone();
        options.session = interpreter_delegate::with_workspace(options.session)?;
        options.program.pages = model.pages.clone();
        let (program, session) = (options.program.clone(), options.session.clone());
        let compiler = XnnpackCompiler { program, session };
        let graph = model.subgraphs.get_mut(subgraph).map(mem::take);
        let graph = graph.map_or_else(|| main_subgraph(&model).map(Arc::clone), Ok)?;
        let delegation = Delegation::with(graph, &options.partition, compiler)?;
        if let Some(graph) = model.subgraphs.get_mut(subgraph) {
            graph.clone_from(delegation.graph());
        }
        let mut runner = match delegation.whole() {
            Ok(program) => {
                let graph = delegation.graph();
                let [inputs, outputs] =
                    [&graph.inputs, &graph.outputs].map(|ids| specs(graph, ids));
                Self::whole(program, graph.operators.len(), &options)?.named(&inputs, &outputs)
            }
            Err(_) => {
                let interpreter =
                    interpreter_delegate::interpreter_with(&model, subgraph, delegation, &options)?;
                Self::partial(interpreter, &options.limits)
            }
        };
        // Its weights have been taken over.
        options.program.similar = None;
        let origin = Origin { model, subgraph, options };
        runner.origin = origin.can_be_lowered().then(|| Box::new(origin));
        Ok(runner)
    }

    fn whole(program: &Program, operators: usize, options: &RunnerOptions) -> Result<Self, Error> {
        let session = Session::new(program, &options.session)?;
        Ok(Self {
            coverage: Coverage { delegated: operators, operators, partitions: 1, deferred: 0 },
            inputs: session.inputs().iter().map(TensorSpec::from).collect(),
            outputs: session.outputs().iter().map(TensorSpec::from).collect(),
            engine: Engine::Whole(Box::new(session)),
            origin: None,
            limits: options.limits.clone(),
            cancel: CancelFlag::default(),
        })
    }

    /// The same under the names of these tensors: a graph that the model holds may have others, and knows of no signature.
    /// Booleans, which XNNPACK does not have, are bytes in graphs, 0 or 1.
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
            limits: limits.clone(),
            cancel: interpreter.cancel_flag(),
            engine: Engine::Partial(Box::new(interpreter)),
            origin: None,
        }
    }

    /// How much runs on XNNPACK.
    #[must_use]
    pub fn coverage(&self) -> Coverage {
        self.coverage
    }

    /// How many threads compute where most do, the calling one included: of those that the options allow, as many as there
    /// are processors and enough work for.
    #[must_use]
    pub fn threads(&self) -> usize {
        match &self.engine {
            Engine::Whole(session) => session.threads(),
            Engine::Partial(interpreter) => interpreter.threads(),
        }
    }

    /// XNNPACK's session, if it runs all of the model.
    #[must_use]
    pub fn session(&self) -> Option<&Session> {
        match &self.engine {
            Engine::Whole(session) => Some(session),
            Engine::Partial(_) => None,
        }
    }

    /// The interpreter, unless XNNPACK runs all of the model.
    pub(crate) fn interpreter(&self) -> Option<&Interpreter> {
        match &self.engine {
            Engine::Whole(_) => None,
            Engine::Partial(interpreter) => Some(interpreter),
        }
    }

    /// What runs, as far as it is known; `None` for a blob.
    pub(crate) fn graph(&self) -> Option<&Subgraph> {
        match (&self.engine, &self.origin) {
            (Engine::Partial(interpreter), _) => Some(interpreter.subgraph()),
            (Engine::Whole(_), Some(origin)) => {
                origin.model.subgraphs.get(origin.subgraph).map(Arc::as_ref)
            }
            (Engine::Whole(_), None) => None,
        }
    }

    /// The flag that stops a run from another thread: before the next operator,
    /// or partition. What runs on XNNPACK whole is stopped before it starts.
    #[must_use]
    pub fn cancel_flag(&self) -> CancelFlag {
        self.cancel.clone()
    }

    /// Inputs, in the model's order.
    #[must_use]
    pub fn inputs(&self) -> &[TensorSpec] {
        &self.inputs
    }

    /// Outputs, in the model's order.
    #[must_use]
    pub fn outputs(&self) -> &[TensorSpec] {
        &self.outputs
    }

    /// Position of the input with this name.
    #[must_use]
    pub fn input_index(&self, name: &str) -> Option<usize> {
        position(&self.inputs, name)
    }

    /// Position of the output with this name.
    #[must_use]
    pub fn output_index(&self, name: &str) -> Option<usize> {
        position(&self.outputs, name)
    }

    /// Memory of an input, which [`Runner::run`] reads: dense, in the machine's
    /// byte order. Empty if there is no such input.
    #[must_use]
    pub fn input_mut(&mut self, index: usize) -> &mut [u8] {
        match &mut self.engine {
            Engine::Whole(session) => session.input_mut(index),
            Engine::Partial(interpreter) => {
                interpreter.input_mut(index).map_or(&mut [], |tensor| tensor.bytes)
            }
        }
    }

    /// Gives an input of strings its elements, in row-major order.
    ///
    /// # Errors
    ///
    /// There is no such input, it has other elements, or another number of them.
    pub fn set_strings<S: AsRef<[u8]>>(
        &mut self,
        index: usize,
        strings: &[S],
    ) -> Result<(), Error> {
        let misfit = || {
            let message = format!("{} strings do not fit input {index}", strings.len());
            xnn_interp::Error::from(ErrorKind::Invalid(message))
        };
        let spec = self.inputs.get(index).filter(|spec| spec.dtype == DType::String);
        let value = spec.and_then(|spec| TensorBuf::from_strings(&spec.dims, strings));
        match (&mut self.engine, value) {
            (Engine::Partial(interpreter), Some(value)) => Ok(interpreter.set_input(index, value)?),
            _ => Err(misfit().into()),
        }
    }

    /// The strings in an output; `None` if there is no such output or it has other elements.
    #[must_use]
    pub fn output_strings(&self, index: usize) -> Option<Vec<&[u8]>> {
        match &self.engine {
            Engine::Whole(_) => None,
            Engine::Partial(interpreter) => interpreter.output(index).ok()?.strings(),
        }
    }

    /// An output as the last run left it, as [`Runner::input_mut`]. Empty if
    /// there is no such output.
    #[must_use]
    pub fn output(&self, index: usize) -> &[u8] {
        match &self.engine {
            Engine::Whole(session) => session.output(index),
            Engine::Partial(interpreter) => {
                interpreter.output(index).map_or(&[], |tensor| tensor.bytes)
            }
        }
    }

    /// The real numbers in an output; `None` if there is no such output or its
    /// elements are no numbers.
    #[must_use]
    pub fn output_reals(&self, index: usize) -> Option<Vec<f32>> {
        self.outputs.get(index)?.reals(self.output(index))
    }

    /// Computes the outputs from the inputs; state that the model keeps goes
    /// on from the last run.
    ///
    /// # Errors
    ///
    /// Values or dimensions that only a run can know do not fit an operator; a
    /// limit is reached.
    pub fn run(&mut self) -> Result<(), Error> {
        self.run_observed(&mut |_| {})
    }

    /// [`Runner::run`] that shows the interpreter's steps; there are none where XNNPACK runs all of the model.
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

    /// What the intermediate tensors between partitions and reference kernels
    /// take; `None` where XNNPACK runs all of the model.
    #[must_use]
    pub fn memory(&self) -> Option<ArenaUse> {
        self.interpreter().map(Interpreter::memory)
    }

    /// Brings variables and the state of recurrent operators back to their
    /// beginning.
    pub fn reset_variables(&mut self) {
        match &mut self.engine {
            // XNNPACK graphs keep no state.
            Engine::Whole(_) => {}
            Engine::Partial(interpreter) => interpreter.reset_variables(),
        }
    }
}

impl RunnerOptions {
    fn new(partition: &PartitionOptions, session: &SessionOptions) -> Self {
        let (partition, session) = (partition.clone(), session.clone());
        Self { partition, session, ..Self::default() }
    }

    /// The bounds for graphs that XNNPACK gets.
    fn graph_limits(&self) -> xnn_format::GraphLimits {
        let mut limits = self.partition.limits.clone();
        limits.max_value_bytes = limits.max_value_bytes.min(self.limits.max_tensor_bytes);
        limits.amplification = self.limits.amplification;
        limits
    }
}

fn specs(graph: &Subgraph, ids: &[TensorId]) -> Vec<TensorSpec> {
    ids.iter().map(|&id| TensorSpec::of(graph, id)).collect()
}

fn position(specs: &[TensorSpec], name: &str) -> Option<usize> {
    specs.iter().position(|spec| spec.name == name && !name.is_empty())
}
