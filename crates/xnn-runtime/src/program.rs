//! Checked graphs, ready for XNNPACK.

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use bytes::Bytes;
use xnn_file::Pages;
use xnn_format::{
    Blob, ErrorKind, Graph, GraphLimits, PackedKey, PackedSection, constants_digest, graph_digest,
};
use xnnpack::{PackedNode, Runtime, RuntimeOptions, Status, Subgraph, WeightsCache};

use crate::bisect;
use crate::define::{self, Defined};
use crate::error::{Result, RuntimeError, RuntimeErrorKind, exhausted};
use crate::packing::{self, CacheFile};
use crate::session::SessionOptions;
use crate::threads::UseOfThreads;

/// A graph that XNNPACK's rules allow, its constants, and the weights that sessions have packed.
///
/// Cheap to clone; all clones share everything. Weights are packed by the first session (or by
/// [`Program::prepare`]) and found there by all later ones.
#[derive(Clone)]
pub struct Program(Arc<Inner>);

struct Inner {
    graph: Arc<Graph>,
    /// See [`ProgramOptions::limits`].
    limits: GraphLimits,
    subgraph: Arc<Subgraph>,
    /// See [`Defined::origins`].
    origins: Vec<usize>,
    /// `None` where packed weights cannot be shared.
    weights: Option<WeightsCache>,
    /// What a blob says of the graph in it.
    graph_digest: Option<u128>,
    /// Where packed weights are to be kept when there are some.
    unwritten: Option<CacheFile>,
    /// Memory that is not needed once weights are packed.
    pages: Pages,
    /// Runs read it all the same: packed weights lie in it.
    packed_in_place: bool,
    packed: OnceLock<()>,
    /// For the first session with these options.
    prepared: Mutex<Option<(SessionOptions, Runtime)>>,
}

/// Choices for a [`Program`].
#[derive(Clone, Debug, Default)]
pub struct ProgramOptions {
    /// Where packed weights are kept; by default in the memory of this process.
    pub weights_cache: Option<WeightsCache>,
    /// A folder in which packed weights are looked for, and kept for later processes. It may be
    /// shared by any number of processes and models, and emptied at any time. Whoever can write to
    /// it can make models compute something else.
    pub cache_dir: Option<PathBuf>,
    /// A program for other shapes: nodes that are the same in both use the weights that it has
    /// packed. As with weights from a file, the smallest of each kind are packed and compared.
    pub similar: Option<Program>,
    /// The memory of the file that a graph's constants lie in, which is given up when they have been packed, and meanwhile.
    /// Blobs bring their own, except those inside other files.
    pub pages: Pages,
    /// What a graph may ask for, in the shapes that it has and in others. Blobs are opened with
    /// limits of their own.
    pub limits: GraphLimits,
}

/// A [`Program`] for as long as somebody else has it.
#[derive(Clone, Debug)]
pub struct WeakProgram(Weak<Inner>);

impl WeakProgram {
    /// The program, if anybody still has it.
    #[must_use]
    pub fn upgrade(&self) -> Option<Program> {
        self.0.upgrade().map(Program)
    }
}

impl Program {
    /// Checks `graph` and prepares it.
    ///
    /// # Errors
    /// The graph is malformed, or has a node that XNNPACK does not compute with these operands;
    /// [`RuntimeError::culprit`] tells which. XNNPACK itself has its say when the first session is
    /// made; [`Program::check_compiles`] asks at once.
    pub fn new(graph: impl Into<Arc<Graph>>, options: &ProgramOptions) -> Result<Self> {
        let graph = graph.into();
        graph
            .check_with(&options.limits)
            .map_err(|error| RuntimeError::of_check(&graph, &error))?;
        let source = Source { pages: options.pages.clone(), ..Source::default() };
        Self::checked(graph, &source, options)
    }

    /// The program in a blob; constants stay where they are in it, and weights that are packed for
    /// this build of XNNPACK on this processor are used as they are.
    ///
    /// # Errors
    /// As [`Program::new`].
    pub fn from_blob(blob: Blob) -> Result<Self> {
        Self::from_blob_with(blob, &ProgramOptions::default())
    }

    /// [`Program::from_blob`] with options.
    ///
    /// # Errors
    /// As [`Program::new`].
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
        // Weights in memory before those in a folder, whose name takes reading all constants.
        program.packed_in_place = program.use_packed(source, &read_in_place);
        if !program.packed_in_place && !program.use_similar(options) {
            program.use_cache(options);
        }
        // What has been read by now, to dequantize weights or to name them, goes before they are packed.
        if !program.packed_in_place {
            program.pages.release();
        }
        Ok(Self(Arc::new(program)))
    }

    /// A reference that does not keep it.
    #[must_use]
    pub fn downgrade(&self) -> WeakProgram {
        WeakProgram(Arc::downgrade(&self.0))
    }

    /// The graph.
    #[must_use]
    pub fn graph(&self) -> &Arc<Graph> {
        &self.0.graph
    }

    /// Whether a session of this program whose inputs are resized is what one of `graph` would be: nothing differs but first
    /// dimensions of what is computed, and these decide neither how weights are packed nor whether threads pay.
    #[must_use]
    pub fn serves(&self, graph: &Graph) -> bool {
        packing::differ_in_rows(self.graph(), graph)
            && UseOfThreads::for_work(self.graph()) == UseOfThreads::for_work(graph)
    }

    /// Has XNNPACK create all operators and plan their memory, as the first session with these options would,
    /// which then finds it done.
    ///
    /// # Errors
    /// As [`Session::new`](crate::Session::new).
    pub fn prepare(&self, options: &SessionOptions) -> Result<()> {
        let runtime = self.runtime(options.for_runtime(self.graph())?)?;
        *self.0.prepared.lock().unwrap_or_else(PoisonError::into_inner) =
            Some((options.clone(), runtime));
        Ok(())
    }

    /// Has XNNPACK create all operators, and throws them away. The weights that it packs for them
    /// are kept for sessions.
    ///
    /// # Errors
    /// XNNPACK refuses the graph; [`RuntimeError::culprit`] tells the node.
    pub fn check_compiles(&self) -> Result<()> {
        self.runtime(RuntimeOptions::default()).map(drop)
    }

    /// The weights as XNNPACK packs them here, to be written behind a blob of this graph. Packs
    /// them if no session has done so.
    ///
    /// # Errors
    /// XNNPACK refuses the graph; [`RuntimeError::culprit`] tells the node.
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

    /// The runtime of a session: the one that was prepared, or a new one.
    pub(crate) fn session_runtime(&self, options: &SessionOptions) -> Result<Runtime> {
        let prepared = self.0.prepared.lock().unwrap_or_else(PoisonError::into_inner).take();
        // One for other options goes before another takes memory.
        match prepared.filter(|(like, _)| like == options) {
            Some((_, runtime)) => Ok(runtime),
            None => self.runtime(options.for_runtime(self.graph())?),
        }
    }

    /// A runtime that has the shapes that the graph gives its inputs.
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
        // What filters were packed from goes before the memory that runs need comes.
        if self.0.packed.get().is_none() || !self.0.packed_in_place {
            self.0.pages.release();
        }
        runtime.reshape().map_err(at_node)?;
        self.0.packed.get_or_init(|| self.0.keep_packed());
        Ok(runtime)
    }

    /// Checks that no value, nor all together, take more than the limits allow if inputs have these dimensions.
    /// Whether they can have them is XNNPACK's to say.
    ///
    /// # Errors
    /// The first node with a value that is too large, or the graph as a whole.
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

    /// The dimensions of the outputs if inputs have these, of which one has no elements.
    ///
    /// # Errors
    /// The first node that does not take them; an output that has elements all the same, such as a sum over nothing.
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
                "inputs of {inputs:?} have no elements, but an output of {dims:?} would have some"
            ))),
        }
    }

    /// See [`Defined::origins`].
    pub(crate) fn origins(&self) -> &[usize] {
        &self.0.origins
    }
}

/// How many bytes of weights are packed before their pages leave memory, and with them what came in beside them: some of
/// that had left before. To find pages anew takes as long as to pack them.
const MOST_READ: usize = 1 << 18;

/// Where a graph comes from.
#[derive(Default)]
struct Source {
    storage: Bytes,
    graph_digest: Option<u128>,
    packed: Vec<PackedSection>,
    pages: Pages,
}

impl Inner {
    /// What packed weights are for, constants aside.
    fn key(&self) -> PackedKey {
        let graph = self.graph_digest.unwrap_or_else(|| graph_digest(&self.graph));
        packing::key(graph, &self.subgraph, &self.origins)
    }

    /// Offers those of the weights packed behind a blob that are for this build and processor. Runs read them and
    /// `read_in_place`.
    fn use_packed(&self, source: &Source, read_in_place: &[Bytes]) -> bool {
        let Source { storage, packed: sections, pages, .. } = source;
        let Some(weights) = self.weights.as_ref().filter(|_| !sections.is_empty()) else {
            return false;
        };
        let key = self.key();
        match sections.iter().find(|section| section.key.serves(&key)) {
            Some(section) => {
                let read = read_in_place.iter().chain([section.storage()]);
                pages.isolate_gaps(storage, read.map(Bytes::as_ref));
                packing::offer(section, &self.subgraph, weights);
            }
            None => {
                for PackedSection { key: other, .. } in sections {
                    let reason = if other.processor != key.processor {
                        format!("another processor ({})", other.processor)
                    } else if other.graph != key.graph {
                        "another graph".to_owned()
                    } else {
                        "another build of XNNPACK or of this library".to_owned()
                    };
                    log::info!("packed weights in the blob are for {reason}");
                }
                log::info!("packing weights");
                return false;
            }
        }
        true
    }

    /// Offers weights out of the folder of cached ones, or sees to it that they are put there.
    fn use_cache(&mut self, options: &ProgramOptions) {
        let (Some(folder), Some(weights)) = (&options.cache_dir, &self.weights) else { return };
        let file = CacheFile::new(folder, &self.graph, &self.subgraph, &self.origins);
        match file.read() {
            Some(section) => packing::offer(&section, &self.subgraph, weights),
            None => self.unwritten = Some(file),
        }
    }

    /// Offers the weights of a program for other shapes, where nodes are the same; whether all are.
    fn use_similar(&self, options: &ProgramOptions) -> bool {
        let Some(Program(other)) = &options.similar else { return false };
        let (Some(weights), Some(packed)) = (&self.weights, &other.weights) else { return false };
        if self.origins != other.origins {
            return false;
        }
        // With fewer rows a layer's weights may be packed in another way.
        let kinds = self.subgraph.kinds().zip(other.subgraph.kinds());
        let is_same_kind: Vec<bool> = kinds.map(|(mine, theirs)| mine == theirs).collect();
        let same = |packed: &PackedNode| {
            is_same_kind.get(packed.node) == Some(&true)
                && (self.origins.get(packed.node))
                    .is_some_and(|&node| packing::is_alike(&self.graph, &other.graph, node))
        };
        let mut nodes = packed.packed(&other.subgraph);
        let all = nodes.len();
        nodes.retain(same);
        let found = !nodes.is_empty() && nodes.len() == all;
        weights.offer(&self.subgraph, nodes);
        found
    }

    /// Once weights are packed: keeps them.
    fn keep_packed(&self) {
        if let (Some(file), Some(weights)) = (&self.unwritten, &self.weights) {
            file.write(&self.subgraph, weights);
        }
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Program({} nodes)", self.0.graph.nodes.len())
    }
}

/// Whether XNNPACK takes all of `graph`: what a partitioner asks before it claims the nodes.
///
/// # Errors
/// It does not; [`RuntimeError::culprit`] names the node to leave out.
pub fn compile(graph: &Graph) -> Result<()> {
    Program::new(graph.clone(), &ProgramOptions::default())?.check_compiles()
}
