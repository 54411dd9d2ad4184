//! Graphs out of files.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use xnn_file::{MappedFile, Pages};

use crate::decode::{self, Parts};
use crate::error::{Error, ErrorKind, Result};
use crate::graph::Graph;
use crate::header::Header;
use crate::limits::GraphLimits;
use crate::packed::{self, PackedSection};
use crate::source::ConstantSource;
use crate::trailer;

/// Identifiers of bare flatbuffers and of those behind a header.
const IDENTIFIERS: [&[u8]; 2] = [b"XN01", b"XN00"];
/// Where a flatbuffer has its identifier.
const IDENTIFIER_AT: Range<usize> = 4..8;

/// How to read a file.
#[derive(Clone, Default)]
pub struct ReadOptions<'a> {
    /// What it may ask for.
    pub limits: GraphLimits,
    /// Where constants come from that are not in it.
    pub constants: Option<&'a dyn ConstantSource>,
}

/// A file with a graph, verified and checked, with its bytes at hand.
#[derive(Clone, Debug)]
pub struct Blob {
    graph: Arc<Graph>,
    info: BlobInfo,
    packed: Vec<PackedSection>,
    storage: Bytes,
    /// The file's memory, if `storage` is mapped.
    pages: Pages,
}

/// How a file is laid out.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlobInfo {
    /// `None` for a bare flatbuffer.
    pub header: Option<Header>,
    /// Bytes of the file.
    pub file_size: u64,
    /// Bytes of the flatbuffer.
    pub flatbuffer_size: u64,
    /// Where the constants and their padding are in the file; empty if they
    /// are elsewhere.
    pub constants: Range<u64>,
    /// Values that are constant.
    pub constant_values: usize,
    /// Bytes of all constant values together.
    pub constant_bytes: u64,
    /// Different places that these values share.
    pub distinct_constants: usize,
    /// Bytes of these places.
    pub distinct_bytes: u64,
    /// Bytes of the trailer; 0 if there is none.
    pub trailer_size: u64,
    /// Bytes of the sections of packed weights; 0 if there are none.
    pub packed_size: u64,
    /// Bytes at the end that are nothing that is known, and no padding: somebody else's business.
    pub unknown_size: u64,
    /// Indices of the nodes that only this project's schema has.
    pub extension_nodes: Vec<usize>,
}

impl Blob {
    /// Maps a file and reads it. The file must not change while it is in use.
    ///
    /// # Errors
    /// See [`Blob::from_bytes`]; and if the file cannot be opened.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path, &ReadOptions::default())
    }

    /// [`Blob::open`] with limits or constants from elsewhere.
    ///
    /// # Errors
    /// See [`Blob::from_bytes`]; and if the file cannot be opened.
    pub fn open_with(path: impl AsRef<Path>, options: &ReadOptions<'_>) -> Result<Self> {
        let path = path.as_ref();
        let open = || {
            let file = MappedFile::open(path)?;
            Ok(Self { pages: file.pages(), ..Self::from_bytes_with(file.bytes(), options)? })
        };
        let blob = open().map_err(|error: Error| error.in_file(path))?;
        if blob.info.unknown_size > 0 {
            let (path, size) = (path.display(), blob.info.unknown_size);
            log::warn!("{path}: the last {size} bytes are not known, and ignored");
        }
        Ok(blob)
    }

    /// Reads a file that is in memory. Constants stay where they are.
    ///
    /// # Errors
    /// Anything but a graph that [`Graph::check`] accepts: another format, a
    /// damaged or truncated file, constants that are not in it, an impossible
    /// graph. The error names node or value.
    pub fn from_bytes(file: impl Into<Bytes>) -> Result<Self> {
        Self::from_bytes_with(file, &ReadOptions::default())
    }

    /// [`Blob::from_bytes`] with limits or constants from elsewhere.
    ///
    /// # Errors
    /// See [`Blob::from_bytes`].
    pub fn from_bytes_with(file: impl Into<Bytes>, options: &ReadOptions<'_>) -> Result<Self> {
        let storage: Bytes = file.into();
        if storage.len() < IDENTIFIER_AT.end {
            return Err(ErrorKind::TooShort(storage.len()).into());
        }
        let header = match Header::is_present(&storage) {
            true => Some(Header::from_bytes(&storage)?),
            false => None,
        };
        let flatbuffer = match header {
            Some(header) => slice(&storage, header.flatbuffer())?,
            None => storage.clone(),
        };
        let identifier = flatbuffer.get(IDENTIFIER_AT).unwrap_or_default();
        if !IDENTIFIERS.contains(&identifier) {
            let found = identifier.escape_ascii().to_string();
            return Err(ErrorKind::Identifier(found).into());
        }

        let parts = Parts {
            file: &storage,
            flatbuffer: &flatbuffer,
            constants: header.map(|header| header.constants()),
            named: options.constants.unwrap_or(&()),
        };
        let mut graph = decode::graph(&parts, &options.limits)?;
        graph.check_with(&options.limits)?;
        let inputs = graph.inputs.iter().filter_map(|&id| graph.value(id));
        let inputs: Vec<&[usize]> = inputs.map(|value| value.dims.as_slice()).collect();
        graph.check_demand(&inputs, &options.limits)?;
        let mut info = info(&graph, header, &storage, &flatbuffer);
        let mut packed = Vec::new();
        if header.is_some() {
            let mut behind = slice(&storage, info.constants.end..info.file_size)?;
            if let Some((origin, size)) = trailer::read(&behind, &options.limits)? {
                graph.origin = origin;
                info.trailer_size = size as u64;
                graph.check_origin()?;
                behind = behind.slice(size..);
            }
            packed = packed::read(&behind)?;
            if !packed.is_empty() {
                info.packed_size = behind.len() as u64;
            } else if behind.iter().any(|&byte| byte != 0) {
                info.unknown_size = behind.len() as u64;
            }
        }
        Ok(Self { graph: Arc::new(graph), info, packed, storage, pages: Pages::default() })
    }

    /// The graph.
    #[must_use]
    pub fn graph(&self) -> &Arc<Graph> {
        &self.graph
    }

    /// The graph alone; its constants keep the file's bytes alive.
    #[must_use]
    pub fn into_graph(self) -> Graph {
        Arc::unwrap_or_clone(self.graph)
    }

    /// How the file is laid out.
    #[must_use]
    pub fn info(&self) -> &BlobInfo {
        &self.info
    }

    /// Weights that are packed already, one section for each kind of processor.
    #[must_use]
    pub fn packed(&self) -> &[PackedSection] {
        &self.packed
    }

    /// A digest of the graph without its constants, as it is in the file.
    #[must_use]
    pub fn graph_digest(&self) -> u128 {
        let flatbuffer = self.info.header.map_or(0..self.info.file_size, |h| h.flatbuffer());
        slice(&self.storage, flatbuffer).map_or(0, |flatbuffer| packed::digest(&flatbuffer))
    }

    /// What gives the memory of the file back to the system until it is read again.
    #[must_use]
    pub fn pages(&self) -> Pages {
        self.pages.clone()
    }

    /// All bytes of the file. Constants that are in it are slices of them, see
    /// [`readable_behind`].
    #[must_use]
    pub fn storage(&self) -> &Bytes {
        &self.storage
    }
}

/// How many bytes of `storage` follow `part`; `None` if `part` is not in it.
///
/// XNNPACK may read a little beyond an operand; a constant that is followed by
/// enough bytes of the same storage needs no copy.
#[must_use]
pub fn readable_behind(part: &[u8], storage: &[u8]) -> Option<usize> {
    let (part, storage) = (part.as_ptr_range(), storage.as_ptr_range());
    let inside = storage.start <= part.start && part.end <= storage.end;
    inside.then(|| storage.end.addr() - part.end.addr())
}

fn slice(file: &Bytes, range: Range<u64>) -> Result<Bytes> {
    let outside = || Error::header(format!("{range:?} is outside of the file"));
    let start = usize::try_from(range.start).map_err(|_| outside())?;
    let end = usize::try_from(range.end).map_err(|_| outside())?;
    if start > end || end > file.len() {
        return Err(outside());
    }
    Ok(file.slice(start..end))
}

fn info(graph: &Graph, header: Option<Header>, file: &[u8], flatbuffer: &[u8]) -> BlobInfo {
    let file_size = file.len() as u64;
    let constants: Vec<&[u8]> =
        graph.values.iter().filter_map(|value| value.data.as_deref()).collect();
    let bytes = |constants: &[&[u8]]| constants.iter().map(|data| data.len() as u64).sum();
    let mut distinct = constants.clone();
    distinct.sort_by_key(|data| data.as_ptr_range().start);
    distinct.dedup_by_key(|data| data.as_ptr_range());
    let nodes = graph.nodes.iter().enumerate();
    BlobInfo {
        header,
        file_size,
        flatbuffer_size: flatbuffer.len() as u64,
        constants: header.map_or(file_size..file_size, |header| header.constants()),
        constant_values: constants.len(),
        constant_bytes: bytes(&constants),
        distinct_constants: distinct.len(),
        distinct_bytes: bytes(&distinct),
        trailer_size: 0,
        packed_size: 0,
        unknown_size: 0,
        extension_nodes: nodes
            .filter(|(_, node)| node.op.is_extension())
            .map(|(index, _)| index)
            .collect(),
    }
}
