//! From files to programs and blobs.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use sha2::{Digest, Sha256};
use xnn_format::{Blob, Compat, Graph, ReadOptions, WriteOptions};
use xnn_lower::{DynamicRange, PartitionOptions};
use xnn_model::{Model, Subgraph};
use xnn_runtime::{Program, ProgramOptions};

use crate::build;
use crate::compile::XnnpackCompiler;
use crate::delegation::Delegation;
use crate::description::Description;
use crate::error::Error;
use crate::partial;

/// How to convert.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ConvertOptions {
    /// Which readers must understand the blob. Others than our own read blobs alone, so that with them
    /// `require_full` goes without saying.
    pub compat: Compat,
    /// What to leave out.
    pub partition: PartitionOptions,
    /// Fail if not all of the model goes to XNNPACK.
    pub require_full: bool,
    /// Store the weights of blobs as XNNPACK packs them on this processor, too.
    pub pack: bool,
}

impl ConvertOptions {
    /// The same with what follows from the readers.
    fn for_readers(&self) -> Self {
        let mut options = self.clone();
        if options.compat != Compat::Own {
            // They know no models with graphs inside, ...
            options.require_full = true;
            options.partition.widely_known = true;
            // ... nor depthwise convolutions of what is quantized at run time.
            if options.partition.dynamic_range == DynamicRange::Auto {
                options.partition.dynamic_range = DynamicRange::Rows;
            }
        }
        options
    }
}

/// What a model was converted to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Converted {
    /// The bytes of an `.xnn` file, which computes the main subgraph.
    Whole(Vec<u8>),
    /// The bytes of a model in the original's dialect, with an operator XNNGraph
    /// in the place of each partition.
    Partial(Vec<u8>),
}

impl Converted {
    /// The bytes of the file.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Whole(bytes) | Self::Partial(bytes) => bytes,
        }
    }

    /// [`Converted::bytes`] to keep.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        match self {
            Self::Whole(bytes) | Self::Partial(bytes) => bytes,
        }
    }
}

/// What a blob says about the model that it was made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// File name without folders.
    pub name: String,
    /// SHA-256 of the file.
    pub sha256: Option<[u8; 32]>,
}

impl Source {
    /// Names and hashes a file.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn of_file(path: &Path) -> Result<Self, Error> {
        let hash = || -> std::io::Result<[u8; 32]> {
            let mut hasher = Sha256::new();
            let mut file = xnn_file::open(path)?;
            let mut chunk = vec![0; 1 << 16];
            loop {
                match file.read(&mut chunk)? {
                    0 => return Ok(hasher.finalize().into()),
                    count => hasher.update(chunk.get(..count).unwrap_or_default()),
                }
            }
        };
        let sha256 = hash().map_err(|error| Error::Io { path: path.to_owned(), error })?;
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        Ok(Self { name: name.unwrap_or_default(), sha256: Some(sha256) })
    }
}

/// Converts a model: to a blob if XNNPACK computes all of it, else to a model in
/// which XNNPACK's partitions are blobs and all other operators stay.
///
/// A blob has one entry point. A model with signatures for other subgraphs than
/// the main one is converted like one that goes in part, unless
/// `options.require_full` is set, or `options.compat` names other readers.
///
/// # Errors
///
/// [`Error::Incomplete`] with a reason for each operator that XNNPACK does not
/// take, in these two cases or if it takes none;
/// [`Error::Format`] if a graph needs more than `options.compat` has;
/// [`Error::Model`] if the model has what cannot be written to a new file.
pub fn convert(
    model: &Model,
    source: &Source,
    options: &ConvertOptions,
) -> Result<Converted, Error> {
    let options = &options.for_readers();
    let delegation = Delegation::new(main_subgraph(model)?, &options.partition)?;
    let one_entry = model.signatures.iter().all(|signature| signature.subgraph == 0);
    match delegation.whole() {
        Ok(program) if one_entry || options.require_full => {
            let mut graph = Graph::clone(program.graph());
            Description::attach(model, &mut graph)?;
            Ok(Converted::Whole(blob(&graph, source, options)?))
        }
        Err(incomplete) if options.require_full => Err(incomplete.into()),
        _ => partial::convert(model, delegation, source, options).map(Converted::Partial),
    }
}

/// The bytes of an `.xnn` file, with a note of what it was made by and from.
pub(crate) fn blob(
    graph: &Graph,
    source: &Source,
    options: &ConvertOptions,
) -> Result<Vec<u8>, Error> {
    let mut graph = graph.clone();
    graph.origin.producer = format!("xnn-delegate {}", build::VERSION);
    graph.origin.source_name.clone_from(&source.name);
    graph.origin.source_sha256 = source.sha256;
    let blob = xnn_format::write(&graph, &WriteOptions::new(options.compat))?;
    if !options.pack {
        return Ok(blob);
    }
    let reading = ReadOptions { limits: options.partition.limits.clone(), constants: None };
    pack(&Blob::from_bytes_with(blob, &reading)?)
}

/// The bytes of a blob with its weights as XNNPACK packs them on this processor, so that a start on
/// one like it packs nothing. What is packed for other processors stays.
///
/// # Errors
///
/// XNNPACK refuses the graph, or the blob is a bare flatbuffer, which has no place for them.
pub fn pack(blob: &Blob) -> Result<Vec<u8>, Error> {
    let section = Program::from_blob(blob.clone())?.packed()?;
    Ok(xnn_format::with_packed(blob, &section)?)
}

/// Opens a model (TFLite or Circle) or a blob, told apart by content, as a
/// program.
///
/// # Errors
///
/// The file is neither, is damaged, or is a model that does not go to XNNPACK
/// whole.
pub fn open(path: impl AsRef<Path>) -> Result<Program, Error> {
    open_with(path, &PartitionOptions::default())
}

/// [`open`] with a choice of what to leave to XNNPACK.
///
/// # Errors
///
/// As [`open`].
pub fn open_with(path: impl AsRef<Path>, options: &PartitionOptions) -> Result<Program, Error> {
    let path = path.as_ref();
    if is_blob(path)? {
        let reading = ReadOptions { limits: options.limits.clone(), constants: None };
        let program =
            ProgramOptions { limits: reading.limits.clone(), ..ProgramOptions::default() };
        return Ok(Program::from_blob_with(Blob::open_with(path, &reading)?, &program)?);
    }
    let model = Model::open(path)?;
    let program = ProgramOptions { pages: model.pages.clone(), ..ProgramOptions::default() };
    let compiler = XnnpackCompiler { program, ..XnnpackCompiler::default() };
    let delegation = Delegation::with(Arc::clone(main_subgraph(&model)?), options, compiler)?;
    Ok(delegation.whole()?.clone())
}

pub(crate) fn main_subgraph(model: &Model) -> Result<&Arc<Subgraph>, Error> {
    let missing = || xnn_model::ErrorKind::Invalid("the model has no subgraph".into()).into();
    model.main().ok_or_else(missing).map_err(Error::Model)
}

/// Whether the file begins like a blob: a header `XH00` or an XN01 flatbuffer.
///
/// # Errors
///
/// The file cannot be read.
pub fn is_blob(path: &Path) -> Result<bool, Error> {
    let io = |error| Error::Io { path: path.to_owned(), error };
    let mut start = Vec::with_capacity(8);
    xnn_file::open(path).map_err(io)?.take(8).read_to_end(&mut start).map_err(io)?;
    Ok(matches!(start.get(4..8), Some(b"XH00" | b"XN00" | b"XN01")))
}
