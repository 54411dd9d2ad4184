//! The trailer after the constants: the origin of a graph.
//!
//! Other readers of XN01 use the offsets of the header and skip it.

use bytes::Bytes;
use flatbuffers::{FlatBufferBuilder, ForwardsUOffset, Vector, WIPOffset};
use xnn_file::memory;

use crate::error::{Error, Result, require};
use crate::generated::extension as fb;
use crate::graph::Origin;
use crate::header::Fields;
use crate::layout::{ALIGNMENT, pad_to};
use crate::limits::GraphLimits;

/// Magic at the start of a trailer.
const MAGIC: [u8; 4] = *b"XT00";
/// Size in bytes of the magic, the size of the flatbuffer (u32) and the size of the data (u64).
const HEADER_SIZE: usize = 16;

/// Appends the trailer for `origin`: header, data, flatbuffer. The trailer and each piece of data
/// start at a multiple of [`ALIGNMENT`], provided that `file` ends at one.
pub(crate) fn append(file: &mut Vec<u8>, origin: &Origin) -> Result<()> {
    let mut fbb = FlatBufferBuilder::new();
    let mut data = Vec::new();
    let metadata: Vec<_> = origin
        .metadata
        .iter()
        .map(|(name, bytes)| {
            pad_to(&mut data, ALIGNMENT);
            let args = fb::NamedBytesArgs {
                name: Some(fbb.create_string(name)),
                offset: data.len() as u64,
                size: bytes.len() as u64,
            };
            data.extend_from_slice(bytes);
            fb::NamedBytes::create(&mut fbb, &args)
        })
        .collect();
    let nodes: Vec<_> = origin
        .node_names
        .iter()
        .map(|(debug_handle, name)| {
            let name = Some(fbb.create_string(name));
            fb::NodeOrigin::create(
                &mut fbb,
                &fb::NodeOriginArgs { debug_handle: *debug_handle, name },
            )
        })
        .collect();
    let args = fb::ExtensionArgs {
        producer: Some(fbb.create_string(&origin.producer)),
        source_name: Some(fbb.create_string(&origin.source_name)),
        source_sha256: origin.source_sha256.map(|digest| fbb.create_vector(&digest)),
        input_names: Some(strings(&mut fbb, &origin.input_names)),
        output_names: Some(strings(&mut fbb, &origin.output_names)),
        nodes: Some(fbb.create_vector(&nodes)),
        signature: Some(fbb.create_string(&origin.signature)),
        metadata: Some(fbb.create_vector(&metadata)),
        packed: None,
    };
    let root = fb::Extension::create(&mut fbb, &args);
    fb::finish_extension_buffer(&mut fbb, root);
    let flatbuffer = fbb.finished_data();

    let size = u32::try_from(flatbuffer.len())
        .map_err(|_| Error::invalid("the names of the graph take more than 4 GB"))?;
    pad_to(&mut data, ALIGNMENT);
    let more = 2 * ALIGNMENT + data.len() + flatbuffer.len();
    memory::ensure(file.len().saturating_add(more), "the file")?;
    file.reserve_exact(more);
    file.extend_from_slice(&MAGIC);
    file.extend_from_slice(&size.to_le_bytes());
    file.extend_from_slice(&(data.len() as u64).to_le_bytes());
    pad_to(file, ALIGNMENT);
    file.extend_from_slice(&data);
    file.extend_from_slice(flatbuffer);
    Ok(())
}

fn strings<'a>(
    fbb: &mut FlatBufferBuilder<'a>,
    strings: &[String],
) -> WIPOffset<Vector<'a, ForwardsUOffset<&'a str>>> {
    let strings: Vec<_> = strings.iter().map(|string| fbb.create_string(string)).collect();
    fbb.create_vector(&strings)
}

/// Reads the trailer at the start of the bytes after the constants. Returns the origin and the size
/// of the trailer with the padding after it.
pub(crate) fn read(behind: &Bytes, limits: &GraphLimits) -> Result<Option<(Origin, usize)>> {
    if !behind.starts_with(&MAGIC) {
        return Ok(None);
    }
    origin(behind, limits)
        .map(Some)
        .map_err(|error| Error::invalid(format!("the trailer is damaged: {error}")))
}

fn origin(trailer: &Bytes, limits: &GraphLimits) -> Result<(Origin, usize)> {
    let mut fields = Fields(trailer.get(..HEADER_SIZE).unwrap_or_default());
    let _magic = fields.take::<4>()?;
    let flatbuffer_size = u32::from_le_bytes(fields.take()?);
    let data_size = u64::from_le_bytes(fields.take()?);

    let start = ALIGNMENT;
    let data_end = usize::try_from(data_size).ok().and_then(|size| start.checked_add(size));
    let end = data_end.and_then(|end| end.checked_add(usize::try_from(flatbuffer_size).ok()?));
    let (Some(data_end), Some(end)) = (data_end, end) else {
        return Err(Error::invalid("its sizes overflow"));
    };
    require!(end <= trailer.len(), "it is truncated after {} of {end} bytes", trailer.len());
    let data = trailer.slice(start..data_end);
    let flatbuffer = trailer.get(data_end..end).unwrap_or_default();
    require!(flatbuffer.get(4..8) == Some(b"XNX1".as_slice()), "its identifier is not XNX1");
    let verifier = limits.verifier(flatbuffer.len());
    let root = fb::root_as_extension_with_opts(&verifier, flatbuffer)?;

    let digest = root.source_sha256().map(|digest| digest.bytes());
    let origin = Origin {
        producer: root.producer().unwrap_or_default().to_owned(),
        source_name: root.source_name().unwrap_or_default().to_owned(),
        source_sha256: digest
            .map(|digest| {
                digest
                    .try_into()
                    .map_err(|_| Error::invalid("its SHA-256 digest does not have 32 bytes"))
            })
            .transpose()?,
        signature: root.signature().unwrap_or_default().to_owned(),
        input_names: root.input_names().iter().flatten().map(str::to_owned).collect(),
        output_names: root.output_names().iter().flatten().map(str::to_owned).collect(),
        node_names: root
            .nodes()
            .iter()
            .flatten()
            .map(|node| (node.debug_handle(), node.name().unwrap_or_default().to_owned()))
            .collect(),
        metadata: root
            .metadata()
            .iter()
            .flatten()
            .map(|entry| metadata(&entry, &data))
            .collect::<Result<_>>()?,
    };
    Ok((origin, end.next_multiple_of(ALIGNMENT).min(trailer.len())))
}

fn metadata(entry: &fb::NamedBytes<'_>, data: &Bytes) -> Result<(String, Bytes)> {
    let name = entry.name().unwrap_or_default().to_owned();
    let range = || {
        let start = usize::try_from(entry.offset()).ok()?;
        let end = start.checked_add(usize::try_from(entry.size()).ok()?)?;
        (end <= data.len()).then_some(start..end)
    };
    match range() {
        Some(range) => Ok((name, data.slice(range))),
        None => Err(Error::invalid(format!("the metadata {name:?} extends beyond the trailer"))),
    }
}
