//! Weights as XNNPACK has packed them, behind a graph or in a file of their own.
//!
//! A section is data for one build of XNNPACK on one kind of processor. Several may follow each
//! other; readers of XN01 go by the offsets of the header and never look here.
//!
//! ```text
//!  0  4  "XP00"
//!  4  4  number of entries
//!  8  8  size of the section, a multiple of 64
//! 16 16  layout
//! 32 16  graph
//! 48 16  constants
//! 64     entries of 32 bytes: node (4), seed (4), offset (8), size (8), XXH3-64 of the data (8)
//!        processor: length (4), UTF-8
//!        data in the order of the entries, each piece at a multiple of 64; at least 128 zeros
//!        behind the last one
//! ```
//!
//! Pieces do not overlap, and no two entries are for the same node and seed: what readers keep of a
//! section is never more than the section.

use std::collections::HashSet;
use std::ops::Range;
use std::path::Path;

use bytes::Bytes;
use xnn_file::{MappedFile, memory};
use xxhash_rust::xxh3::{Xxh3Default, xxh3_64, xxh3_128};

use crate::blob::Blob;
use crate::encode::{self, Placement};
use crate::error::{Error, Result, require};
use crate::graph::{Graph, Value};
use crate::header::Fields;
use crate::node::Node;
use crate::writer::{ALIGNMENT, PADDING, pad_to};

/// What stands at the start of a section.
pub(crate) const MAGIC: [u8; 4] = *b"XP00";
/// Bytes of the fields of fixed size.
const HEADER_SIZE: usize = 64;
/// Bytes of an entry.
const ENTRY_SIZE: usize = 32;
/// Longest description of a processor, in bytes.
const MAX_PROCESSOR: usize = 4096;

/// Packed weights for one graph, one build of XNNPACK and one kind of processor.
#[derive(Clone, Debug)]
pub struct PackedSection {
    /// What they are for.
    pub key: PackedKey,
    /// One for each node that has packed weights.
    pub entries: Vec<PackedEntry>,
    storage: Bytes,
}

/// What packed weights are for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PackedKey {
    /// Digest of the build of XNNPACK and of the way in which nodes are handed to it.
    pub layout: u128,
    /// What of the processor makes XNNPACK choose microkernels, in words.
    pub processor: String,
    /// Digest of the graph without its constants.
    pub graph: u128,
    /// Digest of the constants, see [`constants_digest`].
    pub constants: u128,
}

/// The packed weights of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackedEntry {
    /// XNNPACK's index of the node.
    pub node: u32,
    /// XNNPACK's fingerprint of microkernel and layout.
    pub seed: u32,
    /// The weights.
    pub data: Bytes,
    /// XXH3-64 of the weights as they were written.
    pub digest: u64,
}

impl PackedEntry {
    /// An entry whose digest is right.
    #[must_use]
    pub fn new(node: u32, seed: u32, data: Bytes) -> Self {
        Self { node, seed, digest: xxh3_64(&data), data }
    }

    /// Whether the weights are those that were written. Reads all of them.
    #[must_use]
    pub fn is_intact(&self) -> bool {
        xxh3_64(&self.data) == self.digest
    }
}

impl PackedKey {
    /// Whether weights for `self` serve a graph with the key `other`, going by everything but the
    /// constants.
    #[must_use]
    pub fn serves(&self, other: &Self) -> bool {
        (self.layout, &self.processor, self.graph) == (other.layout, &other.processor, other.graph)
    }

    /// A digest of all of the key.
    #[must_use]
    pub fn digest(&self) -> u128 {
        let mut hash = Xxh3Default::new();
        for part in [self.layout, self.graph, self.constants] {
            hash.update(&part.to_le_bytes());
        }
        hash.update(self.processor.as_bytes());
        hash.digest128()
    }
}

/// A digest for telling things apart, not for keeping anybody from forging them.
#[must_use]
pub fn digest(bytes: &[u8]) -> u128 {
    xxh3_128(bytes)
}

/// A digest of a graph without its constants and without its origin.
#[must_use]
pub fn graph_digest(graph: &Graph) -> u128 {
    // Every constant gets a place of its own: which are equal is not looked at.
    let mut end = 0;
    let mut places = Vec::new();
    let of_value = graph.values.iter().map(|value| {
        let data = value.data.as_ref()?;
        places.push(end..end + data.len() as u64);
        end += data.len() as u64;
        Some(places.len() - 1)
    });
    let of_value = of_value.collect();
    digest(&encode::graph(graph, &Placement { places, of_value }))
}

/// A digest of what packed weights depend on, the elements of constants left out: nodes that read
/// constants, dimensions of constants, element types and quantization of all values. It stays where
/// what is computed gets other shapes, unless a parameter of such a node follows from them.
#[must_use]
pub fn packing_digest(graph: &Graph) -> u128 {
    let reads_constant = |node: &&Node| {
        let is_constant = |id| graph.value(id).is_some_and(|value| value.data.is_some());
        node.inputs().into_iter().any(is_constant)
    };
    let values = graph.values.iter().map(|value| match &value.data {
        Some(_) => value.clone(),
        None => Value { dims: Vec::new(), ..value.clone() },
    });
    graph_digest(&Graph {
        values: values.collect(),
        nodes: graph.nodes.iter().filter(reads_constant).cloned().collect(),
        ..Graph::default()
    })
}

/// A digest of all constants of a graph, in the order of the values. Reads all of them.
#[must_use]
pub fn constants_digest(graph: &Graph) -> u128 {
    let mut hash = Xxh3Default::new();
    for data in graph.values.iter().filter_map(|value| value.data.as_deref()) {
        hash.update(data);
    }
    hash.digest128()
}

impl PackedSection {
    /// A section to be written.
    #[must_use]
    pub fn new(key: PackedKey, entries: Vec<PackedEntry>) -> Self {
        Self { key, entries, storage: Bytes::new() }
    }

    /// The bytes that the section was read from; the entries are slices of them, see
    /// [`readable_behind`](crate::readable_behind).
    #[must_use]
    pub fn storage(&self) -> &Bytes {
        &self.storage
    }

    /// Maps a file that holds one section. The file must not change while it is in use.
    ///
    /// # Errors
    /// The file cannot be read, or is no such file, or damaged.
    pub fn open(path: &Path) -> Result<Self> {
        let read = || {
            let sections = read(&MappedFile::open(path)?.bytes())?;
            let [section] = <[Self; 1]>::try_from(sections)
                .map_err(|_| Error::invalid("there is not one section of packed weights"))?;
            Ok(section)
        };
        read().map_err(|error: Error| error.in_file(path))
    }

    /// The bytes of the section, to stand at a multiple of [`ALIGNMENT`].
    ///
    /// # Errors
    /// There are 2^32 entries, or the description of the processor is too long; memory is exhausted.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let Self { key, entries, .. } = self;
        let too_many = |_| Error::invalid("there are too many packed weights");
        let count = u32::try_from(entries.len()).map_err(too_many)?;
        require!(key.processor.len() <= MAX_PROCESSOR, "the processor's description is too long");
        let data_start = HEADER_SIZE + entries.len() * ENTRY_SIZE + 4 + key.processor.len();
        let mut end = data_start;
        let places: Vec<Range<usize>> = entries
            .iter()
            .map(|entry| {
                let start = end.next_multiple_of(ALIGNMENT);
                end = start + entry.data.len();
                start..end
            })
            .collect();
        let size = (end + PADDING).next_multiple_of(ALIGNMENT);

        memory::ensure(size, "packed weights")?;
        let mut bytes = Vec::with_capacity(size);
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&count.to_le_bytes());
        bytes.extend_from_slice(&(size as u64).to_le_bytes());
        for part in [key.layout, key.graph, key.constants] {
            bytes.extend_from_slice(&part.to_le_bytes());
        }
        for (entry, place) in entries.iter().zip(&places) {
            bytes.extend_from_slice(&entry.node.to_le_bytes());
            bytes.extend_from_slice(&entry.seed.to_le_bytes());
            bytes.extend_from_slice(&(place.start as u64).to_le_bytes());
            bytes.extend_from_slice(&(place.len() as u64).to_le_bytes());
            bytes.extend_from_slice(&entry.digest.to_le_bytes());
        }
        bytes.extend_from_slice(&(key.processor.len() as u32).to_le_bytes());
        bytes.extend_from_slice(key.processor.as_bytes());
        for entry in entries {
            pad_to(&mut bytes, ALIGNMENT);
            bytes.extend_from_slice(&entry.data);
        }
        bytes.resize(size, 0);
        Ok(bytes)
    }
}

/// The bytes of a blob with one more section of packed weights, in the place of one with the same
/// key if there is one. Whatever else is in the file stays where it is.
///
/// # Errors
/// The blob is a bare flatbuffer, which cannot have anything behind it.
pub fn with_packed(blob: &Blob, section: &PackedSection) -> Result<Vec<u8>> {
    let info = blob.info();
    require!(info.header.is_some(), "a bare flatbuffer has no place for packed weights");
    let end = info.constants.end.saturating_add(info.trailer_size);
    let kept = usize::try_from(end).ok().and_then(|end| blob.storage().get(..end));
    let kept = kept.ok_or_else(|| Error::invalid("the trailer is not in the file"))?;
    let others = blob.packed().iter().filter(|other| !other.key.serves(&section.key));
    let sections: Vec<&PackedSection> = others.chain([section]).collect();
    let entries = sections.iter().flat_map(|section| &section.entries);
    let weights = entries.map(|entry| entry.data.len()).fold(0, usize::saturating_add);
    memory::ensure(kept.len().saturating_add(weights.saturating_mul(2)), "the file")?;
    let mut file = kept.to_vec();
    for section in sections {
        pad_to(&mut file, ALIGNMENT);
        file.extend_from_slice(&section.to_bytes()?);
    }
    Ok(file)
}

/// Reads the sections at the start of `bytes`, one after the other.
pub(crate) fn read(bytes: &Bytes) -> Result<Vec<PackedSection>> {
    let mut sections = Vec::new();
    let mut rest = bytes.clone();
    while rest.starts_with(&MAGIC) {
        let (section, size) = section(&rest)
            .map_err(|error| Error::invalid(format!("the packed weights are damaged: {error}")))?;
        sections.push(section);
        rest = rest.slice(size..);
    }
    Ok(sections)
}

fn section(bytes: &Bytes) -> Result<(PackedSection, usize)> {
    let mut fields = Fields(bytes);
    let _magic = fields.take::<4>()?;
    let count = u32::from_le_bytes(fields.take()?) as usize;
    let size = usize::try_from(u64::from_le_bytes(fields.take()?)).unwrap_or(usize::MAX);
    require!(
        (HEADER_SIZE..=bytes.len()).contains(&size) && size.is_multiple_of(ALIGNMENT),
        "a section of {size} bytes does not fit the {} bytes that there are",
        bytes.len()
    );
    let bytes = bytes.slice(..size);
    let [layout, graph, constants] = [fields.take()?, fields.take()?, fields.take()?];
    let entries = bytes.get(HEADER_SIZE..).unwrap_or_default();
    require!(count <= entries.len() / ENTRY_SIZE, "{count} entries do not fit {size} bytes");
    let (entries, behind) = entries.split_at(count * ENTRY_SIZE);
    let mut fields = Fields(behind);
    let length = u32::from_le_bytes(fields.take()?) as usize;
    require!(length <= MAX_PROCESSOR, "its processor's description has {length} bytes");
    let processor = fields.0.get(..length).and_then(|text| std::str::from_utf8(text).ok());
    let processor = processor.ok_or_else(|| Error::invalid("its processor is no text"))?.to_owned();
    let end = size - fields.0.len() + length;
    let entries = self::entries(entries, &bytes, end)?;
    let [layout, graph, constants] = [layout, graph, constants].map(u128::from_le_bytes);
    let key = PackedKey { layout, processor, graph, constants };
    Ok((PackedSection { key, entries, storage: bytes }, size))
}

/// The entries of a section whose data begin behind `end`.
fn entries(fields: &[u8], section: &Bytes, mut end: usize) -> Result<Vec<PackedEntry>> {
    let mut known = HashSet::new();
    let mut entries = Vec::new();
    for fields in fields.chunks_exact(ENTRY_SIZE) {
        let entry = entry(Fields(fields), section, &mut end)?;
        let (node, seed) = (entry.node, entry.seed);
        require!(known.insert((node, seed)), "node {node} has two entries with the seed {seed:#x}");
        entries.push(entry);
    }
    Ok(entries)
}

/// An entry, whose data lie behind `end`, which moves behind them.
fn entry(mut fields: Fields<'_>, section: &Bytes, end: &mut usize) -> Result<PackedEntry> {
    let node = u32::from_le_bytes(fields.take()?);
    let seed = u32::from_le_bytes(fields.take()?);
    let offset = u64::from_le_bytes(fields.take()?);
    let size = u64::from_le_bytes(fields.take()?);
    let digest = u64::from_le_bytes(fields.take()?);
    let place = || {
        let end = usize::try_from(offset.checked_add(size)?).ok()?;
        let readable = end.checked_add(PADDING)?;
        Some(usize::try_from(offset).ok()?..end).filter(|_| readable <= section.len())
    };
    let place = place().ok_or_else(|| {
        let all = section.len();
        Error::invalid(format!(
            "{size} bytes at {offset} and {PADDING} more reach beyond its {all}"
        ))
    })?;
    require!(
        place.start >= *end && place.start.is_multiple_of(ALIGNMENT),
        "{size} bytes at {offset} do not begin at a multiple of {ALIGNMENT} from {end} on"
    );
    *end = place.end;
    Ok(PackedEntry { node, seed, data: section.slice(place), digest })
}
