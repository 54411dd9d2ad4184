//! Writes blobs.

use std::collections::HashMap;

use sha2::{Digest, Sha256};
use xnn_file::memory;

use crate::blob::Blob;
use crate::compat::Compat;
use crate::encode::{self, Placement};
use crate::error::{Error, Result, require};
use crate::graph::{Graph, Origin};
use crate::header::Header;
use crate::layout::{ALIGNMENT, PADDING, pad_to};
use crate::packed::PackedSection;
use crate::trailer;

/// Minimum size in bytes of a large constant.
const LARGE: usize = 1 << 14;

/// Offset of the flatbuffer: the header, padded as upstream does.
const FLATBUFFER_OFFSET: usize = 32;

/// Options for writing a blob.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WriteOptions {
    /// The readers that the blob must be compatible with.
    pub compat: Compat,
}

impl WriteOptions {
    /// Options for a blob compatible with these readers.
    #[must_use]
    pub fn new(compat: Compat) -> Self {
        Self { compat }
    }
}

/// Serializes a graph to a self-contained `.xnn` file. The output is deterministic.
///
/// # Errors
/// A graph that [`Graph::check`] refuses, a flatbuffer above 4 GB, exhausted memory, and with
/// [`Compat::Executorch`] a graph that other readers do not support
/// ([`ErrorKind::Incompatible`](crate::ErrorKind::Incompatible) lists the nodes and values).
pub fn write(graph: &Graph, options: &WriteOptions) -> Result<Vec<u8>> {
    graph.check()?;
    options.compat.check(graph)?;

    let (placement, constants) = place_constants(graph);
    let flatbuffer = encode::graph(graph, &placement);
    let constants_size = match placement.places.last() {
        Some(last) => last.end + PADDING as u64,
        None => 0,
    };
    let too_large = |_| Error::invalid("the graph without its constants takes more than 4 GB");
    let constants_offset = (FLATBUFFER_OFFSET + flatbuffer.len()).next_multiple_of(ALIGNMENT);
    let header = Header {
        flatbuffer_offset: FLATBUFFER_OFFSET as u32,
        flatbuffer_size: u32::try_from(flatbuffer.len()).map_err(too_large)?,
        constants_offset: u32::try_from(constants_offset).map_err(too_large)?,
        constants_size: constants_size.next_multiple_of(ALIGNMENT as u64),
    };

    let end = usize::try_from(header.constants().end)
        .map_err(|_| Error::invalid("the constants do not fit in memory"))?;
    memory::ensure(end, "the file")?;
    let mut file = Vec::with_capacity(end);
    file.extend_from_slice(&header.to_bytes());
    file.resize(FLATBUFFER_OFFSET, 0);
    file.extend_from_slice(&flatbuffer);
    for constant in constants {
        pad_to(&mut file, ALIGNMENT);
        file.extend_from_slice(constant);
    }
    file.resize(end, 0);
    if graph.origin != Origin::default() {
        trailer::append(&mut file, &graph.origin)?;
    }
    Ok(file)
}

/// Serializes a blob with an additional section of packed weights, which replaces a section that
/// [serves](crate::PackedKey::serves) the same key. Header, flatbuffer, constants and trailer keep
/// their bytes.
///
/// # Errors
/// The blob is a bare flatbuffer, which cannot be followed by other data; the errors of
/// [`PackedSection::to_bytes`].
pub fn with_packed(blob: &Blob, section: &PackedSection) -> Result<Vec<u8>> {
    let info = blob.info();
    require!(
        info.header.is_some(),
        "packed weights need a file with an XH00 header; this is a bare flatbuffer"
    );
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

/// Places each distinct constant: the small constants first, then the large ones, in the order of
/// the values. Most large constants are packed and not read again; a read of a small constant
/// between them would make its neighbours resident.
fn place_constants(graph: &Graph) -> (Placement, Vec<&[u8]>) {
    let mut constants: Vec<&[u8]> = Vec::new();
    let mut places = Vec::new();
    let mut known = HashMap::new();
    let mut end = 0u64;
    let mut of_value = vec![None; graph.values.len()];
    for is_large in [false, true] {
        for (value, place) in graph.values.iter().zip(&mut of_value) {
            let Some(data) = value.data.as_ref().filter(|data| (data.len() >= LARGE) == is_large)
            else {
                continue;
            };
            *place = Some(*known.entry(Sha256::digest(data)).or_insert_with(|| {
                let start = end.next_multiple_of(ALIGNMENT as u64);
                end = start + data.len() as u64;
                places.push(start..end);
                constants.push(data);
                places.len() - 1
            }));
        }
    }
    (Placement { places, of_value }, constants)
}
