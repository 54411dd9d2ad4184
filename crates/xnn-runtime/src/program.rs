//! Programs: checked graphs with constants and packed weights.

mod weights;

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use bytes::Bytes;
use xnn_file::Pages;
use xnn_format::{Blob, ErrorKind, Graph, GraphLimits, PackedKey, PackedSection, constants_digest};
use xnnpack::{Runtime, RuntimeOptions, Status, Subgraph, WeightsCache};

use crate::bisect;
use crate::define::{self, Defined};
use crate::error::{Result, RuntimeError, RuntimeErrorKind, exhausted, exhausted_with};
use crate::packing::{self, CacheFile};
use crate::session::options::SessionOptions;
use crate::threads::UseOfThreads;

/// A checked graph with its constants, and the weights that sessions have packed.
///
/// Cheap to clone; clones share everything. The first session (or [`Program::prepare`]) packs the
/// weights, and all later sessions reuse them.
///
/// ```
/// use xnn_format::{Datatype, Graph, Node, NodeOp, Quantization, UnaryOp, Value};
/// use xnn_runtime::{Program, ProgramOptions};
///
/// # fn main() -> xnn_runtime::Result<()> {
/// let mut graph = Graph::default();
/// let value = || Value::new(Datatype::F32, Quantization::None, &[1, 2]);
/// let (input, output) = (graph.push_value(value()), graph.push_value(value()));
/// graph.nodes.push(Node::new(NodeOp::Unary { op: UnaryOp::Abs, input, output }));
/// graph.inputs.push(input);
/// graph.outputs.push(output);
///
/// let program = Program::new(graph, &ProgramOptions::default())?;
/// program.check_compiles()?;
/// assert_eq!(program.graph().nodes.len(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Program(Arc<Inner>);

struct Inner {
    graph: Arc<Graph>,
    /// See [`ProgramOptions::limits`].
    limits: GraphLimits,
    subgraph: Arc<Subgraph>,
    /// See [`Defined::origins`].
    origins: Vec<usize>,
    /// `None` if packed weights cannot be shared.
    weights: Option<WeightsCache>,
    /// Digest of the graph that a blob states.
    graph_digest: Option<u128>,
    /// Cache file to be written once weights are packed.
    unwritten: Option<CacheFile>,
    /// Memory that is not needed after weights are packed.
    pages: Pages,
    /// Whether runs read this memory, since it contains the packed weights.
    packed_in_place: bool,
    packed: OnceLock<()>,
    /// Runtime for the first session with these options.
    prepared: Mutex<Option<(SessionOptions, Runtime)>>,
}

/// Options of a [`Program`].
#[derive(Clone, Debug, Default)]
pub struct ProgramOptions {
    /// Cache of packed weights; by default one in the memory of this process.
    pub weights_cache: Option<WeightsCache>,
    /// Folder in which packed weights are cached for later processes. It may be shared by any
    /// number of processes and models, and emptied at any time. Anyone who can write to it can
    /// change the results of models.
    pub cache_dir: Option<PathBuf>,
    /// A program of the same model for other shapes, whose packed weights are reused for nodes that
    /// are equal. Like weights from a file, the smallest of each kind are validated.
    pub similar: Option<Program>,
    /// Memory of the file that contains a graph's constants, which is released during and after
    /// packing. Blobs that are not inside other files have their own.
    pub pages: Pages,
    /// Limits on the memory and work of a graph, with its shapes and with others. Blobs are opened
    /// with their own limits.
    pub limits: GraphLimits,
}

/// A weak reference to a [`Program`].
#[derive(Clone, Debug)]
pub struct WeakProgram(Weak<Inner>);

impl WeakProgram {
    /// The program, if it is still alive.
    #[must_use]
    pub fn upgrade(&self) -> Option<Program> {
        self.0.upgrade().map(Program)
    }
}

impl Program {
    /// Checks `graph` and prepares it.
    ///
    /// # Errors
    /// The graph is invalid, or has a node that XNNPACK does not support with these operands
    /// ([`RuntimeError::failing_node`]). Further errors of XNNPACK occur when the first session is
    /// created, or in [`Program::check_compiles`].
    pub fn new(graph: impl Into<Arc<Graph>>, options: &ProgramOptions) -> Result<Self> {
        let graph = graph.into();
        graph
            .check_with(&options.limits)
            .map_err(|error| RuntimeError::of_check(&graph, &error))?;
        let source = Source { pages: options.pages.clone(), ..Source::default() };
        Self::checked(graph, &source, options)
    }

    /// Creates the program of a blob. Constants are not copied, and packed weights for this build
    /// of XNNPACK and this processor are used.
    ///
    /// # Errors
    /// The errors of [`Program::new`].
    pub fn from_blob(blob: Blob) -> Result<Self> {
        Self::from_blob_with(blob, &ProgramOptions::default())
    }

    /// [`Program::from_blob`] with options.
    ///
    /// # Errors
    /// The errors of [`Program::new`].
    pub fn from_blob_with(blob: Blob, options: &ProgramOptions) -> Result<Self> {
        let source = Source {
            storage: blob.storage().clone(),
            graph_digest: Some(blob.graph_digest()),
            packed: blob.packed().to_vec(),
            pages: blob.pages().or(&options.pages),
        };
        Self::checked(Arc::clone(blob.graph()), &source, options)
    }

    fn checked(graph: Arc<Graph>, source: &Source, options: &ProgramOptions) -> Result<Self> {
        let Defined { subgraph, origins, sparse, read_in_place } =
            define::graph(&graph, &source.storage)?;
        let (pages, read) = (source.pages.clone(), AtomicUsize::new(0));
        let release = move |packed: &[u8]| {
            let read_before = read.fetch_add(packed.len(), Ordering::Relaxed);
            if read_before.saturating_add(packed.len()) >= MOST_READ {
                read.store(0, Ordering::Relaxed);
                pages.release();
            }
        };
        let own = || WeightsCache::in_process_with(release);
        let shared = || options.weights_cache.clone().unwrap_or_else(own);
        let weights = (!sparse).then(shared);
        log::debug!("{} nodes over {} values", graph.nodes.len(), graph.values.len());
        let mut program = Inner {
            graph,
            limits: options.limits.clone(),
            subgraph: Arc::new(subgraph),
            origins,
            weights,
            graph_digest: source.graph_digest,
            unwritten: None,
            pages: source.pages.clone(),
            packed_in_place: false,
            packed: OnceLock::new(),
            prepared: Mutex::default(),
        };
        // Weights in memory are preferred to those in a folder, whose file name requires reading
        // all constants.
        program.packed_in_place = program.use_packed(source, &read_in_place);
        if !program.packed_in_place && !program.use_similar(options) {
            program.use_cache(options);
        }
        // Release the pages that were read to dequantize weights or to compute digests.
        if !program.packed_in_place {
            program.pages.release();
        }
        Ok(Self(Arc::new(program)))
    }

    /// Returns a weak reference to the program.
    #[must_use]
    pub fn downgrade(&self) -> WeakProgram {
        WeakProgram(Arc::downgrade(&self.0))
    }

    /// The graph.
    #[must_use]
    pub fn graph(&self) -> &Arc<Graph> {
        &self.0.graph
    }

    /// Whether a session of this program with resized inputs is equivalent to one of `graph`: they
    /// differ only in first dimensions of computed values, without an effect on packed weights or
    /// on the use of threads.
    #[must_use]
    pub fn serves(&self, graph: &Graph) -> bool {
        packing::differ_in_rows(self.graph(), graph)
            && UseOfThreads::for_work(self.graph()) == UseOfThreads::for_work(graph)
    }

    /// Creates XNNPACK's operators and plans their memory for the first session with these options.
    ///
    /// # Errors
    /// The errors of [`Session::new`](crate::Session::new).
    pub fn prepare(&self, options: &SessionOptions) -> Result<()> {
        let runtime = self.runtime(options.for_runtime(self.graph())?)?;
        *self.0.prepared.lock().unwrap_or_else(PoisonError::into_inner) =
            Some((options.clone(), runtime));
        Ok(())
    }

    /// Checks that XNNPACK can create all operators. The weights that it packs are kept for
    /// sessions.
    ///
    /// # Errors
    /// XNNPACK rejects the graph ([`RuntimeError::failing_node`]), or memory is exhausted.
    pub fn check_compiles(&self) -> Result<()> {
        self.runtime(RuntimeOptions::default()).map(drop)
    }

    /// Returns the weights as XNNPACK packs them on this processor, to be stored in a blob of this
    /// graph. Packs them if no session has done so.
    ///
    /// # Errors
    /// XNNPACK rejects the graph ([`RuntimeError::failing_node`]), or memory is exhausted.
    pub fn packed(&self) -> Result<PackedSection> {
        if self.0.packed.get().is_none() {
            self.check_compiles()?;
        }
        let key = PackedKey { constants: constants_digest(&self.0.graph), ..self.0.key() };
        Ok(match &self.0.weights {
            Some(weights) => packing::section(key, &self.0.subgraph, weights),
            None => PackedSection::new(key, Vec::new()),
        })
    }

    /// Returns the runtime of a session: the prepared one, or a new one.
    pub(crate) fn session_runtime(&self, options: &SessionOptions) -> Result<Runtime> {
        let prepared = self.0.prepared.lock().unwrap_or_else(PoisonError::into_inner).take();
        // A runtime for other options is dropped before another one is created.
        match prepared.filter(|(like, _)| like == options) {
            Some((_, runtime)) => Ok(runtime),
            None => self.runtime(options.for_runtime(self.graph())?),
        }
    }

    /// Creates a runtime with the graph's input shapes.
    pub(crate) fn runtime(&self, options: RuntimeOptions) -> Result<Runtime> {
        let options = RuntimeOptions { weights_cache: self.0.weights.clone(), ..options };
        let at_node = |error: xnnpack::Error| match error.status() {
            Status::OutOfMemory => RuntimeError::new(
                RuntimeErrorKind::OutOfMemory,
                exhausted(&self.0.graph).to_string(),
            ),
            _ => bisect::find(&self.0.graph, RuntimeError::from(error)),
        };
        let mut runtime = Runtime::new(Arc::clone(&self.0.subgraph), &options).map_err(at_node)?;
        log::debug!("created the operators of {} nodes", self.graph().nodes.len());
        // Release the pages that filters were packed from before memory for runs is allocated.
        if self.0.packed.get().is_none() || !self.0.packed_in_place {
            self.0.pages.release();
        }
        runtime.reshape().map_err(at_node)?;
        self.0.packed.get_or_init(|| self.0.keep_packed());
        Ok(runtime)
    }

    /// Checks that values do not exceed the limits, individually and in total, if inputs have these
    /// dimensions. Does not check that the graph accepts the dimensions.
    ///
    /// # Errors
    /// The limits are exceeded by a value of a node, or by the graph as a whole.
    pub(crate) fn check_sizes(&self, inputs: &[&[usize]]) -> Result<()> {
        let graph = self.graph();
        let mut limits = self.0.limits.clone();
        let given = graph.inputs.iter().zip(inputs).filter_map(|(&id, dims)| {
            let value = graph.value(id).filter(|value| value.dims != **dims)?;
            value.datatype.byte_size(dims)
        });
        let given = given.fold(0u64, |sum, bytes| sum.saturating_add(bytes as u64));
        limits.amplification.inputs = limits.amplification.inputs.saturating_add(given);
        match graph.check_demand(inputs, &limits) {
            Err(error) if matches!(error.kind(), ErrorKind::Limit { .. }) => {
                Err(RuntimeError::of_check(graph, &error))
            }
            _ => Ok(()),
        }
    }

    /// Adds the size of all tensors to an error about exhausted memory, if inputs have these
    /// dimensions.
    pub(crate) fn sized(&self, error: RuntimeError, inputs: &[&[usize]]) -> RuntimeError {
        let (graph, limits) = (self.graph(), &self.0.limits);
        match (error.kind(), graph.shapes(inputs, limits)) {
            (RuntimeErrorKind::OutOfMemory, Ok(shapes)) => {
                let exhausted = exhausted_with(graph, &shapes);
                RuntimeError::new(RuntimeErrorKind::OutOfMemory, exhausted.to_string())
            }
            _ => error,
        }
    }

    /// Dimensions of the outputs if inputs have these dimensions and one of them is empty.
    ///
    /// # Errors
    /// A node does not accept the dimensions, or an output is not empty, such as a sum over an
    /// empty tensor.
    pub(crate) fn shapes_of_nothing(&self, inputs: &[&[usize]]) -> Result<Vec<Vec<usize>>> {
        let graph = self.graph();
        let shapes = graph
            .shapes(inputs, &self.0.limits)
            .map_err(|error| RuntimeError::argument(error.to_string()))?;
        let outputs = graph.outputs.iter().filter_map(|id| shapes.get(id.index()).cloned());
        let outputs: Vec<Vec<usize>> = outputs.collect();
        match outputs.iter().find(|dims| !dims.contains(&0)) {
            None => Ok(outputs),
            Some(dims) => Err(RuntimeError::argument(format!(
                "inputs with dimensions {inputs:?} are empty, but an output with dimensions {dims:?} is not; this is not supported"
            ))),
        }
    }

    /// See [`Defined::origins`].
    pub(crate) fn origins(&self) -> &[usize] {
        &self.0.origins
    }
}

/// Number of bytes of weights after whose packing the pages of the file are released. Releasing
/// pages also affects neighbouring ones, and reading these again takes as long as packing.
const MOST_READ: usize = 1 << 18;

/// Source of a graph.
#[derive(Default)]
struct Source {
    storage: Bytes,
    graph_digest: Option<u128>,
    packed: Vec<PackedSection>,
    pages: Pages,
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Program({} nodes)", self.0.graph.nodes.len())
    }
}

/// Checks that XNNPACK supports all of `graph`, for a partitioner that is about to claim its nodes.
///
/// # Errors
/// XNNPACK rejects the graph; [`RuntimeError::failing_node`] is the node to leave out.
pub fn compile(graph: &Graph) -> Result<()> {
    Program::new(graph.clone(), &ProgramOptions::default())?.check_compiles()
}
