//! Reads blobs.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use xnn_file::{MappedFile, Pages};

use crate::decode::{self, Parts};
use crate::digest::digest;
use crate::error::{Error, ErrorKind, Result};
use crate::graph::Graph;
use crate::header::Header;
use crate::limits::GraphLimits;
use crate::packed::{self, PackedSection};
use crate::source::ConstantSource;
use crate::trailer;

/// Accepted flatbuffer identifiers, with or without a header.
const IDENTIFIERS: [&[u8]; 2] = [b"XN01", b"XN00"];
/// Position of the identifier in a flatbuffer.
const IDENTIFIER_AT: Range<usize> = 4..8;

/// Options for reading a blob.
#[derive(Clone, Default)]
pub struct ReadOptions<'a> {
    /// Limits on the graph and on the memory and work that it may request.
    pub limits: GraphLimits,
    /// Source of constants that the file names but does not contain.
    pub constants: Option<&'a dyn ConstantSource>,
}

/// A verified and checked graph together with the bytes of its file.
#[derive(Clone, Debug)]
pub struct Blob {
    graph: Arc<Graph>,
    info: BlobInfo,
    packed: Vec<PackedSection>,
    storage: Bytes,
    /// The memory of the file, if `storage` is mapped.
    pages: Pages,
}

/// Layout of a blob.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlobInfo {
    /// The header; `None` for a bare flatbuffer.
    pub header: Option<Header>,
    /// Size of the file in bytes.
    pub file_size: u64,
    /// Size of the flatbuffer in bytes.
    pub flatbuffer_size: u64,
    /// Byte range of the constants and their padding in the file; empty if the file has no such
    /// region.
    pub constants: Range<u64>,
    /// Number of constant values.
    pub constant_values: usize,
    /// Total size of the constant values in bytes; shared data counts for each value.
    pub constant_bytes: u64,
    /// Number of distinct constants that the values share.
    pub distinct_constants: usize,
    /// Total size of the distinct constants in bytes.
    pub distinct_bytes: u64,
    /// Size of the trailer in bytes; 0 without a trailer.
    pub trailer_size: u64,
    /// Size of the sections of packed weights in bytes; 0 without packed weights.
    pub packed_size: u64,
    /// Size of trailing data in an unknown format, padding excluded.
    pub unknown_size: u64,
    /// Indices of the nodes that only this project's schema defines.
    pub extension_nodes: Vec<usize>,
}

impl Blob {
    /// Maps a file and reads it with the default [`ReadOptions`]. The file must not be changed or
    /// truncated while the blob or one of its constants is in use.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), xnn_format::Error> {
    /// let blob = xnn_format::Blob::open("model.xnn")?;
    /// for &input in &blob.graph().inputs {
    ///     println!("{:?}", blob.graph().value(input).map(|value| &value.dims));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The errors of [`Blob::from_bytes`], and a file that cannot be opened or mapped. Errors name
    /// the file.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path, &ReadOptions::default())
    }

    /// [`Blob::open`] with options.
    ///
    /// # Errors
    /// The errors of [`Blob::open`].
    pub fn open_with(path: impl AsRef<Path>, options: &ReadOptions<'_>) -> Result<Self> {
        let path = path.as_ref();
        let open = || {
            let file = MappedFile::open(path)?;
            Ok(Self { pages: file.pages(), ..Self::from_bytes_with(file.bytes(), options)? })
        };
        let blob = open().map_err(|error: Error| error.in_file(path))?;
        if blob.info.unknown_size > 0 {
            let (path, size) = (path.display(), blob.info.unknown_size);
            log::warn!("{path}: ignoring the last {size} bytes, which have an unknown format");
        }
        Ok(blob)
    }

    /// Reads a blob from memory with the default [`ReadOptions`]. Constants are views of `file`.
    ///
    /// # Errors
    /// Another format, a damaged or truncated file, constants that the file does not contain, a
    /// graph that [`Graph::check`] refuses or that exceeds the limits. The error names the node or
    /// value.
    pub fn from_bytes(file: impl Into<Bytes>) -> Result<Self> {
        Self::from_bytes_with(file, &ReadOptions::default())
    }

    /// [`Blob::from_bytes`] with options.
    ///
    /// # Errors
    /// The errors of [`Blob::from_bytes`].
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

    /// Returns the graph alone. Its constants keep the file's bytes alive.
    #[must_use]
    pub fn into_graph(self) -> Graph {
        Arc::unwrap_or_clone(self.graph)
    }

    /// The layout of the file.
    #[must_use]
    pub fn info(&self) -> &BlobInfo {
        &self.info
    }

    /// Packed weights, one section per kind of processor.
    #[must_use]
    pub fn packed(&self) -> &[PackedSection] {
        &self.packed
    }

    /// Digest of the flatbuffer as stored, which does not include the constants.
    #[must_use]
    pub fn graph_digest(&self) -> u128 {
        let flatbuffer = self.info.header.map_or(0..self.info.file_size, |h| h.flatbuffer());
        slice(&self.storage, flatbuffer).map_or(0, |flatbuffer| digest(&flatbuffer))
    }

    /// The mapped memory of the file, for releasing it.
    #[must_use]
    pub fn pages(&self) -> Pages {
        self.pages.clone()
    }

    /// All bytes of the file. Constants stored in the file are slices of these, see
    /// [`readable_behind`].
    #[must_use]
    pub fn storage(&self) -> &Bytes {
        &self.storage
    }
}

/// Number of bytes of `storage` that follow `part`; `None` if `part` is not a slice of `storage`.
///
/// XNNPACK may read up to [`PADDING`](crate::PADDING) bytes beyond an operand. A constant followed
/// by that many bytes of the same storage needs no copy.
#[must_use]
pub fn readable_behind(part: &[u8], storage: &[u8]) -> Option<usize> {
    let (part, storage) = (part.as_ptr_range(), storage.as_ptr_range());
    let inside = storage.start <= part.start && part.end <= storage.end;
    inside.then(|| storage.end.addr() - part.end.addr())
}

fn slice(file: &Bytes, range: Range<u64>) -> Result<Bytes> {
    let outside = || Error::header(format!("the range {range:?} is outside of the file"));
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
