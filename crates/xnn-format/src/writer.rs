//! Graphs into files.

use std::collections::HashMap;

use sha2::{Digest, Sha256};
use xnn_file::memory;

use crate::compat::Compat;
use crate::encode::{self, Placement};
use crate::error::{Error, Result};
use crate::graph::{Graph, Origin};
use crate::header::Header;
use crate::trailer;

/// Boundary at which every constant starts, in the file and so in a mapping
/// of it. ExecuTorch's own is 16; wider vectors load faster from 64.
pub const ALIGNMENT: usize = 64;

/// Bytes from which a constant counts as large.
const LARGE: usize = 1 << 14;

/// Zeros behind the last constant. XNNPACK's kernels may read up to 128 bytes
/// (`XNN_EXTRA_BYTES` of the platform that needs most) beyond an operand.
pub const PADDING: usize = 128;

/// Where the flatbuffer starts: the header, padded as upstream does.
const FLATBUFFER_OFFSET: usize = 32;

/// How to write a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WriteOptions {
    /// Who must be able to read it.
    pub compat: Compat,
}

impl WriteOptions {
    /// Options for these readers.
    #[must_use]
    pub fn new(compat: Compat) -> Self {
        Self { compat }
    }
}

/// The bytes of a self-contained `.xnn` file. The same graph gives the same
/// bytes.
///
/// # Errors
/// What [`Graph::check`] refuses, and with [`Compat::Executorch`] a graph that
/// other readers do not know, with the list of the nodes.
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

/// Gives each distinct constant a place: small ones in front, then large ones, in the order of the values. Most large
/// ones are packed and not read again, and whoever reads a small one has the system map what lies around it.
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

/// Fills up with zeros to a boundary.
pub(crate) fn pad_to(bytes: &mut Vec<u8>, alignment: usize) {
    bytes.resize(bytes.len().next_multiple_of(alignment), 0);
}
