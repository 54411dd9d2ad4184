//! Looks up the bytes of constants.

use std::ops::Range;

use bytes::Bytes;
use flatbuffers::{ForwardsUOffset, Vector};

use crate::error::{Error, ErrorKind, Result, require};
use crate::generated::graph::{Buffer, ConstantDataOffset};
use crate::source::ConstantSource;
use crate::wire::{self, NO_OFFSET};

/// The constants of one file by index; index 0 means "not constant".
pub(super) enum Constants<'a> {
    /// After the flatbuffer, or named.
    After {
        file: &'a Bytes,
        region: Range<u64>,
        entries: Option<Vector<'a, ForwardsUOffset<ConstantDataOffset<'a>>>>,
        named: &'a dyn ConstantSource,
    },
    /// In the flatbuffer, as in XN00.
    Inside { file: &'a Bytes, buffers: Option<Vector<'a, ForwardsUOffset<Buffer<'a>>>> },
}

impl Constants<'_> {
    /// The bytes of a constant, a view of the file if they are in it.
    pub(super) fn get(&self, index: u32) -> Result<Bytes> {
        let index = wire::size(index);
        match self {
            Self::After { file, region, entries, named } => {
                let count = entries.map_or(0, |entries| entries.len());
                require!(index < count, "constant {index} does not exist; there are {count}");
                let Some(entry) = entries.map(|entries| entries.get(index)) else {
                    return Ok(Bytes::new());
                };
                match entry.named_key().filter(|key| !key.is_empty()) {
                    Some(key) => by_name(*named, key, entry.size()),
                    None => in_region(file, region, &entry),
                }
            }
            Self::Inside { file, buffers } => {
                let count = buffers.map_or(0, |buffers| buffers.len());
                require!(index < count, "constant {index} does not exist; there are {count}");
                let storage = buffers.and_then(|buffers| buffers.get(index).storage());
                Ok(storage.map_or_else(Bytes::new, |storage| file.slice_ref(storage.bytes())))
            }
        }
    }
}

fn by_name(named: &dyn ConstantSource, key: &str, size: u64) -> Result<Bytes> {
    let bytes = named.get(key).ok_or_else(|| ErrorKind::MissingConstant(key.to_owned()))?;
    require!(
        bytes.len() as u64 == size,
        "the named constant {key:?} has {} bytes instead of {size}",
        bytes.len()
    );
    Ok(bytes)
}

fn in_region(file: &Bytes, region: &Range<u64>, entry: &ConstantDataOffset<'_>) -> Result<Bytes> {
    let (offset, size) = (entry.offset(), entry.size());
    require!(offset != NO_OFFSET, "its constant has neither an offset nor a name");
    let range = || {
        let start = region.start.checked_add(offset)?;
        let end = start.checked_add(size).filter(|&end| end <= region.end)?;
        let range = usize::try_from(start).ok()?..usize::try_from(end).ok()?;
        (range.end <= file.len()).then_some(range)
    };
    let range = range().ok_or_else(|| {
        Error::invalid(format!(
            "its constant of {size} bytes at {offset} extends beyond the {} bytes of constants",
            region.end.saturating_sub(region.start)
        ))
    })?;
    Ok(file.slice(range))
}
