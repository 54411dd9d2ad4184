//! Buffers, operator codes and alignment of files that are being written.

use std::collections::HashMap;

use bytes::Bytes;
use flatbuffers::{FlatBufferBuilder, Push, PushAlignment, Vector, WIPOffset};

use crate::error::Error;
use crate::op::Op;

/// Alignment of constants in bytes, which readers that map files rely on.
pub(super) const DATA_ALIGNMENT: usize = 16;

/// Alignment of custom options in bytes. They may be blobs with aligned constants, as for the
/// operator XNNGraph.
const CUSTOM_OPTIONS_ALIGNMENT: usize = 64;

/// Alignment in bytes of custom options of at least this size. They share no page with the tables
/// before them, so that reading the tables does not make them resident.
const PAGE: usize = 4096;

/// Maximum size of data in bytes: the limit of flatbuffers, less some space for tables.
const MAX_DATA_BYTES: usize = (1 << 31) - (1 << 24);

/// An empty, aligned value, which makes the builder align the whole file.
struct Aligned<const ALIGNMENT: usize>;

impl<const ALIGNMENT: usize> Push for Aligned<ALIGNMENT> {
    type Output = u8;

    #[allow(unsafe_code, reason = "the trait's method is unsafe; this one writes nothing")]
    unsafe fn push(&self, _: &mut [u8], _: usize) {}

    fn size() -> usize {
        0
    }

    fn alignment() -> PushAlignment {
        PushAlignment::new(ALIGNMENT)
    }
}

/// Writes a byte vector with an aligned first byte. The builder fills the file from the end and
/// ignores `force_align` on vectors.
pub(super) fn push_aligned<'b, const ALIGNMENT: usize>(
    builder: &mut FlatBufferBuilder<'b>,
    data: &[u8],
) -> WIPOffset<Vector<'b, u8>> {
    builder.push(Aligned::<ALIGNMENT>);
    let fill = data.len().next_multiple_of(ALIGNMENT) - data.len();
    for _ in 0..fill {
        builder.push(0u8);
    }
    builder.create_vector(data)
}

/// Writes custom options with their alignment.
pub(super) fn push_custom_options<'b>(
    builder: &mut FlatBufferBuilder<'b>,
    options: &[u8],
) -> WIPOffset<Vector<'b, u8>> {
    match options.len() {
        ..PAGE => push_aligned::<CUSTOM_OPTIONS_ALIGNMENT>(builder, options),
        _ => push_aligned::<PAGE>(builder, options),
    }
}

/// The buffers of a file: the empty buffer first, equal contents once.
#[derive(Default)]
pub(super) struct Blobs<'a> {
    list: Vec<&'a [u8]>,
    index: HashMap<&'a [u8], u32>,
    bytes: usize,
}

impl<'a> Blobs<'a> {
    /// Adds a buffer if none has this content. Returns its index; 0 for no content.
    pub(super) fn add(&mut self, data: Option<&'a Bytes>) -> Result<u32, Error> {
        let Some(data) = data.filter(|d| !d.is_empty()) else { return Ok(0) };
        if let Some(&index) = self.index.get(&**data) {
            return Ok(index);
        }
        self.count(data)?;
        self.list.push(data);
        let index = u32::try_from(self.list.len())
            .map_err(|_| Error::invalid("the model has too many constants"))?;
        self.index.insert(data, index);
        Ok(index)
    }

    /// Adds data outside of the buffers to the total size.
    pub(super) fn count(&mut self, data: &[u8]) -> Result<(), Error> {
        self.bytes = self.bytes.saturating_add(data.len());
        if self.bytes > MAX_DATA_BYTES {
            return Err(Error::invalid("the model's constants do not fit in a flatbuffer of 2 GB"));
        }
        Ok(())
    }

    /// Contents of the buffers from index 1.
    pub(super) fn contents(&self) -> &[&'a [u8]] {
        &self.list
    }
}

/// The operator codes of a file, each once.
#[derive(Default)]
pub(super) struct OpCodes<'a> {
    list: Vec<(i32, Option<&'a str>, i32)>,
}

impl<'a> OpCodes<'a> {
    /// Adds the code of an operator if it is new. Returns its index.
    pub(super) fn add(&mut self, op: &'a Op, version: u32) -> Result<u32, Error> {
        let custom = match op {
            Op::Custom(custom) => Some(&*custom.code),
            Op::Unknown { .. } => {
                return Err(Error::invalid(
                    "its options are unknown, so it cannot be written to a new file",
                ));
            }
            _ => None,
        };
        let version = i32::try_from(version)
            .map_err(|_| Error::invalid(format!("version {version} is out of range")))?;
        let entry = (op.code(), custom, version);
        let index = self.list.iter().position(|e| *e == entry).unwrap_or_else(|| {
            self.list.push(entry);
            self.list.len() - 1
        });
        u32::try_from(index).map_err(|_| Error::invalid("the model has too many operator codes"))
    }

    /// Code, custom code and version of each entry.
    pub(super) fn entries(&self) -> &[(i32, Option<&'a str>, i32)] {
        &self.list
    }
}

/// The byte-sized field of an operator code: the code, or 127 if only the wide field can hold it.
pub(super) fn narrow_code(code: i32) -> i8 {
    i8::try_from(code).unwrap_or(i8::MAX)
}
