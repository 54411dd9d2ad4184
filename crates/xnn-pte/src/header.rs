//! The extended header: position of the flatbuffer and the segments.

use std::ops::Range;

use crate::error::{Error, Result};

/// Byte ranges of the flatbuffer and the segments in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) flatbuffer: Range<usize>,
    pub(crate) segments: Range<usize>,
}

impl Layout {
    /// Offset of the header, after root offset and identifier.
    const HEADER_AT: usize = 8;
    const MAGIC: [u8; 4] = *b"eh00";
    /// Minimum length of a header in bytes, magic included.
    const MIN_LENGTH: u32 = 24;
    /// Minimum length of a header with the size of the segments.
    const LENGTH_WITH_SEGMENTS_SIZE: u32 = 32;

    /// Reads the layout of a file. Without an extended header, the flatbuffer is the whole file.
    pub(crate) fn of(file: &[u8]) -> Result<Self> {
        let header = file.get(Self::HEADER_AT..).unwrap_or_default();
        if !header.starts_with(&Self::MAGIC) {
            return Ok(Self { flatbuffer: 0..file.len(), segments: file.len()..file.len() });
        }
        let length = u32::from_le_bytes(field(header, 4)?);
        if length < Self::MIN_LENGTH {
            return Err(Error::header(format!(
                "its length is {length}, expected at least {}",
                Self::MIN_LENGTH
            )));
        }
        let flatbuffer = u64::from_le_bytes(field(header, 8)?);
        let segments = u64::from_le_bytes(field(header, 16)?);
        let segments_size = match length >= Self::LENGTH_WITH_SEGMENTS_SIZE {
            true => Some(u64::from_le_bytes(field(header, 24)?)),
            false => None,
        };
        Self::checked(file.len(), flatbuffer, segments, segments_size)
    }

    fn checked(file: usize, flatbuffer: u64, segments: u64, size: Option<u64>) -> Result<Self> {
        let flatbuffer_end = within(flatbuffer, file)
            .ok_or_else(|| beyond(format!("the flatbuffer of {flatbuffer} bytes"), file))?;
        // A start of 0 means that the file has no segments.
        if segments == 0 {
            return Ok(Self { flatbuffer: 0..flatbuffer_end, segments: file..file });
        }
        let start = within(segments, file)
            .ok_or_else(|| beyond(format!("the start {segments} of the segments"), file))?;
        if start < flatbuffer_end {
            return Err(Error::header(format!(
                "the segments at {start} overlap the flatbuffer of {flatbuffer_end} bytes"
            )));
        }
        let end = match size {
            Some(size) => segments
                .checked_add(size)
                .and_then(|end| within(end, file))
                .ok_or_else(|| beyond(format!("the segments of {size} bytes at {start}"), file))?,
            None => file,
        };
        Ok(Self { flatbuffer: 0..flatbuffer_end, segments: start..end })
    }
}

fn field<const N: usize>(header: &[u8], at: usize) -> Result<[u8; N]> {
    let field = header.get(at..).and_then(<[u8]>::first_chunk);
    field.copied().ok_or_else(|| Error::header("it is truncated"))
}

fn within(offset: u64, size: usize) -> Option<usize> {
    usize::try_from(offset).ok().filter(|&offset| offset <= size)
}

fn beyond(what: String, file: usize) -> Error {
    Error::header(format!("{what}: the file has only {file} bytes"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic, reason = "tests")]
mod tests {
    use super::*;

    const FILE: usize = 400;

    fn file(length: u32, flatbuffer: u64, segments: u64, size: u64) -> Vec<u8> {
        let mut file = b"\x3c\0\0\0ET12eh00".to_vec();
        file.extend(length.to_le_bytes());
        for field in [flatbuffer, segments, size] {
            file.extend(field.to_le_bytes());
        }
        file.resize(FILE, 0);
        file
    }

    fn layout(flatbuffer: usize, segments: Range<usize>) -> Layout {
        Layout { flatbuffer: 0..flatbuffer, segments }
    }

    #[test]
    fn both_lengths_are_read() {
        let short = Layout::of(&file(24, 100, 112, 1 << 60)).unwrap();
        assert_eq!(short, layout(100, 112..FILE));
        let long = Layout::of(&file(32, 100, 112, 200)).unwrap();
        assert_eq!(long, layout(100, 112..312));
        let longer = Layout::of(&file(40, 100, 112, 200)).unwrap();
        assert_eq!(longer, layout(100, 112..312));
    }

    #[test]
    fn files_without_header_or_segments() {
        assert_eq!(Layout::of(&file(24, 100, 0, 0)).unwrap(), layout(100, FILE..FILE));
        assert_eq!(Layout::of(b"\x08\0\0\0ET12").unwrap(), layout(8, 8..8));
    }

    #[test]
    fn parts_may_be_adjacent() {
        for (flatbuffer, segments, size) in [(112, 112, 200), (100, 112, 288), (400, 400, 0)] {
            Layout::of(&file(32, flatbuffer, segments, size)).unwrap();
        }
    }

    #[test]
    fn each_field_is_checked() {
        for (length, flatbuffer, segments, size, expected) in [
            (23, 100, 112, 200, "length is 23"),
            (32, 401, 112, 200, "flatbuffer of 401 bytes"),
            (32, u64::MAX, 112, 200, "flatbuffer of 18446744073709551615 bytes"),
            (32, 113, 112, 200, "overlap the flatbuffer"),
            (24, 100, 401, 0, "start 401"),
            (32, 100, 112, 289, "segments of 289 bytes at 112"),
            (32, 100, 112, u64::MAX, "bytes at 112"),
        ] {
            let error = Layout::of(&file(length, flatbuffer, segments, size)).unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
        }
        let whole = file(32, 100, 112, 200);
        for end in [12, 15, 23, 31, 39] {
            let error = Layout::of(&whole[..end]).unwrap_err();
            assert!(error.to_string().contains("truncated"), "{end}: {error}");
        }
    }
}
