//! Packed weights, after the constants of a blob or in a file of their own.
//!
//! A section holds packed weights for one build of XNNPACK on one kind of processor. A blob may
//! have several sections. Other readers of XN01 use the offsets of the header and skip them.
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
//!        data in the order of the entries, each aligned to 64 bytes; at least 128 zeros after
//!        the last
//! ```
//!
//! Data do not overlap, and no two entries have the same node and seed, so readers never keep more
//! memory than the section has.

use std::collections::HashSet;
use std::ops::Range;
use std::path::Path;

use bytes::Bytes;
use xnn_file::{MappedFile, memory};
use xxhash_rust::xxh3::{Xxh3Default, xxh3_64};

use crate::error::{Error, Result, require};
use crate::header::Fields;
use crate::layout::{ALIGNMENT, PADDING, pad_to};

/// Magic at the start of a section.
pub(crate) const MAGIC: [u8; 4] = *b"XP00";
/// Size of the fixed-size fields in bytes.
const HEADER_SIZE: usize = 64;
/// Size of an entry in bytes.
const ENTRY_SIZE: usize = 32;
/// Maximum length of a processor description in bytes.
const MAX_PROCESSOR: usize = 4096;

/// Packed weights for one graph, one build of XNNPACK and one kind of processor.
#[derive(Clone, Debug)]
pub struct PackedSection {
    /// The graph, build and processor that the weights are for.
    pub key: PackedKey,
    /// One entry per packed weights of a node.
    pub entries: Vec<PackedEntry>,
    storage: Bytes,
}

/// Identifies the graph, the build of XNNPACK and the processor that packed weights are for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PackedKey {
    /// Digest of the build of XNNPACK and of how nodes are defined.
    pub layout: u128,
    /// Description of the processor features that decide which microkernels XNNPACK uses.
    pub processor: String,
    /// Digest of the graph without its constants.
    pub graph: u128,
    /// Digest of the constants, see [`constants_digest`](crate::constants_digest).
    pub constants: u128,
}

/// The packed weights of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackedEntry {
    /// Index of the node in the XNNPACK subgraph.
    pub node: u32,
    /// XNNPACK's fingerprint of the microkernel and the packed layout.
    pub seed: u32,
    /// The packed weights.
    pub data: Bytes,
    /// XXH3-64 of the weights as they were written.
    pub digest: u64,
}

impl PackedEntry {
    /// An entry with the digest of `data`.
    #[must_use]
    pub fn new(node: u32, seed: u32, data: Bytes) -> Self {
        Self { node, seed, digest: xxh3_64(&data), data }
    }

    /// Whether the data match their digest. Reads every byte.
    #[must_use]
    pub fn is_intact(&self) -> bool {
        xxh3_64(&self.data) == self.digest
    }
}

impl PackedKey {
    /// Whether weights for `self` can be used for a graph with the key `other`. Does not compare
    /// the digests of the constants.
    #[must_use]
    pub fn serves(&self, other: &Self) -> bool {
        (self.layout, &self.processor, self.graph) == (other.layout, &other.processor, other.graph)
    }

    /// Digest of the whole key.
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

impl PackedSection {
    /// A section for writing.
    #[must_use]
    pub fn new(key: PackedKey, entries: Vec<PackedEntry>) -> Self {
        Self { key, entries, storage: Bytes::new() }
    }

    /// The bytes that the section was read from; empty for a section made by
    /// [`PackedSection::new`]. The data of entries are slices of these, see
    /// [`readable_behind`](crate::readable_behind).
    #[must_use]
    pub fn storage(&self) -> &Bytes {
        &self.storage
    }

    /// Maps a file that holds one section. The file must not be changed or truncated while the
    /// section is in use.
    ///
    /// # Errors
    /// The file cannot be mapped, is damaged, or does not hold exactly one section.
    pub fn open(path: &Path) -> Result<Self> {
        let read = || {
            let sections = read(&MappedFile::open(path)?.bytes())?;
            let [section] = <[Self; 1]>::try_from(sections)
                .map_err(|_| Error::invalid("expected exactly one section of packed weights"))?;
            Ok(section)
        };
        read().map_err(|error: Error| error.in_file(path))
    }

    /// Serializes the section. In a file, it must start at a multiple of [`ALIGNMENT`].
    ///
    /// # Errors
    /// 2^32 or more entries, a processor description that is too long, or exhausted memory.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let Self { key, entries, .. } = self;
        let too_many = |_| Error::invalid("too many packed weights");
        let count = u32::try_from(entries.len()).map_err(too_many)?;
        require!(
            key.processor.len() <= MAX_PROCESSOR,
            "the processor description is longer than {MAX_PROCESSOR} bytes"
        );
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

/// Reads the consecutive sections at the start of `bytes`.
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
        "a section of {size} bytes does not fit in the remaining {} bytes",
        bytes.len()
    );
    let bytes = bytes.slice(..size);
    let [layout, graph, constants] = [fields.take()?, fields.take()?, fields.take()?];
    let entries = bytes.get(HEADER_SIZE..).unwrap_or_default();
    require!(count <= entries.len() / ENTRY_SIZE, "{count} entries do not fit in {size} bytes");
    let (entries, behind) = entries.split_at(count * ENTRY_SIZE);
    let mut fields = Fields(behind);
    let length = u32::from_le_bytes(fields.take()?) as usize;
    require!(
        length <= MAX_PROCESSOR,
        "its processor description has {length} bytes, more than {MAX_PROCESSOR}"
    );
    let processor = fields.0.get(..length).and_then(|text| std::str::from_utf8(text).ok());
    let processor = processor
        .ok_or_else(|| Error::invalid("its processor description is not valid UTF-8"))?
        .to_owned();
    let end = size - fields.0.len() + length;
    let entries = self::entries(entries, &bytes, end)?;
    let [layout, graph, constants] = [layout, graph, constants].map(u128::from_le_bytes);
    let key = PackedKey { layout, processor, graph, constants };
    Ok((PackedSection { key, entries, storage: bytes }, size))
}

/// Reads the entries of a section. Their data must start at `end` or later.
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

/// Reads an entry, whose data must start at `end` or later. Moves `end` to the end of the data.
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
            "{size} bytes at {offset} and {PADDING} of padding extend beyond its {all} bytes"
        ))
    })?;
    require!(
        place.start >= *end && place.start.is_multiple_of(ALIGNMENT),
        "{size} bytes at {offset} do not start at a multiple of {ALIGNMENT} from {end} on"
    );
    *end = place.end;
    Ok(PackedEntry { node, seed, data: section.slice(place), digest })
}
