//! Writes `.xnn` files.

use xnn_format::{Blob, Graph, ReadOptions, WriteOptions};
use xnn_runtime::Program;

use super::options::{ConvertOptions, Source};
use crate::build;
use crate::error::Error;

/// Returns the bytes of an `.xnn` file that records its producer and its source.
pub(super) fn write_blob(
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

/// Returns the bytes of a blob with its weights as XNNPACK packs them for this processor, so that such processors load it
/// without packing. Weights packed for other processors are kept.
///
/// # Errors
///
/// XNNPACK rejects the graph, or the blob is a bare flatbuffer, which cannot hold packed weights.
pub fn pack(blob: &Blob) -> Result<Vec<u8>, Error> {
    let section = Program::from_blob(blob.clone())?.packed()?;
    Ok(xnn_format::with_packed(blob, &section)?)
}
