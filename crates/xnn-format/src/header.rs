//! The `XH00` header in front of a graph and its constants.

use std::ops::Range;

use crate::error::{Error, Result};

/// Offsets and sizes of the parts of a blob. All integers are little endian.
///
/// ```text
///  0  4  zero; the magic is at the position of a bare flatbuffer's identifier
///  4  4  "XH00"
///  8  2  length of this header, 30
/// 10  4  offset of the flatbuffer
/// 14  4  size of the flatbuffer
/// 18  4  offset of the constants
/// 22  8  size of the constants
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Offset of the flatbuffer in the file, in bytes.
    pub flatbuffer_offset: u32,
    /// Size of the flatbuffer in bytes, without padding.
    pub flatbuffer_size: u32,
    /// Offset of the constants in the file, in bytes.
    pub constants_offset: u32,
    /// Size of the constants in bytes, with the padding around them.
    pub constants_size: u64,
}

impl Header {
    /// The magic at [`Header::MAGIC_AT`].
    pub const MAGIC: [u8; 4] = *b"XH00";
    /// Position of [`Header::MAGIC`].
    pub const MAGIC_AT: Range<usize> = 4..8;
    /// Size of a header in bytes.
    pub const SIZE: usize = 30;
    /// Size of the smallest flatbuffer with an identifier.
    const MIN_FLATBUFFER: u32 = 8;

    /// Whether `file` starts with a header, valid or not.
    #[must_use]
    pub fn is_present(file: &[u8]) -> bool {
        file.get(Self::MAGIC_AT) == Some(Self::MAGIC.as_slice())
    }

    /// Reads the header of `file` and checks that the parts are in the file.
    ///
    /// # Errors
    /// A file that ends inside the header, another magic or header length, and parts that overlap
    /// or extend beyond the end of the file.
    pub fn from_bytes(file: &[u8]) -> Result<Self> {
        let (fields, _) = file
            .split_first_chunk::<{ Self::SIZE }>()
            .ok_or_else(|| Error::header(format!("the file ends after {} bytes", file.len())))?;
        if !Self::is_present(fields) {
            return Err(Error::header("the magic is not XH00"));
        }
        let mut fields = Fields(&fields[8..]);
        let length = u16::from_le_bytes(fields.take()?);
        if usize::from(length) != Self::SIZE {
            return Err(Error::header(format!("its length is {length}, expected {}", Self::SIZE)));
        }
        let header = Self {
            flatbuffer_offset: u32::from_le_bytes(fields.take()?),
            flatbuffer_size: u32::from_le_bytes(fields.take()?),
            constants_offset: u32::from_le_bytes(fields.take()?),
            constants_size: u64::from_le_bytes(fields.take()?),
        };
        header.check(file.len())?;
        Ok(header)
    }

    /// Serializes the header.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        bytes[Self::MAGIC_AT].copy_from_slice(&Self::MAGIC);
        bytes[8..10].copy_from_slice(&(Self::SIZE as u16).to_le_bytes());
        bytes[10..14].copy_from_slice(&self.flatbuffer_offset.to_le_bytes());
        bytes[14..18].copy_from_slice(&self.flatbuffer_size.to_le_bytes());
        bytes[18..22].copy_from_slice(&self.constants_offset.to_le_bytes());
        bytes[22..30].copy_from_slice(&self.constants_size.to_le_bytes());
        bytes
    }

    /// Byte range of the flatbuffer in the file.
    #[must_use]
    pub fn flatbuffer(&self) -> Range<u64> {
        let start = u64::from(self.flatbuffer_offset);
        start..start + u64::from(self.flatbuffer_size)
    }

    /// Byte range of the constants in the file; saturates at `u64::MAX`.
    #[must_use]
    pub fn constants(&self) -> Range<u64> {
        let start = u64::from(self.constants_offset);
        start..start.saturating_add(self.constants_size)
    }

    fn check(&self, file_size: usize) -> Result<()> {
        let file_size = file_size as u64;
        let flatbuffer = self.flatbuffer();
        let constants = self.constants();
        if flatbuffer.start < Self::SIZE as u64 {
            return Err(Error::header(format!(
                "the flatbuffer at {flatbuffer:?} overlaps the header"
            )));
        }
        if self.flatbuffer_size < Self::MIN_FLATBUFFER {
            return Err(Error::header(format!(
                "a flatbuffer of {} bytes is too short",
                self.flatbuffer_size
            )));
        }
        if flatbuffer.end > file_size {
            return Err(Error::header(format!(
                "the flatbuffer at {flatbuffer:?} extends beyond the end of the file ({file_size})"
            )));
        }
        if constants.start < flatbuffer.end {
            return Err(Error::header(format!(
                "the constants at {constants:?} overlap the flatbuffer at {flatbuffer:?}"
            )));
        }
        if constants.end > file_size || constants.end == u64::MAX {
            return Err(Error::header(format!(
                "the constants at {constants:?} extend beyond the end of the file ({file_size})"
            )));
        }
        Ok(())
    }
}

/// Reads fixed-size fields from the front.
pub(crate) struct Fields<'a>(pub &'a [u8]);

impl Fields<'_> {
    pub(crate) fn take<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (field, rest) =
            self.0.split_first_chunk::<N>().ok_or_else(|| Error::header("it is truncated"))?;
        self.0 = rest;
        Ok(*field)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: usize = 200;
    const GOOD: Header = Header {
        flatbuffer_offset: 32,
        flatbuffer_size: 60,
        constants_offset: 96,
        constants_size: 104,
    };

    fn file(header: Header) -> Vec<u8> {
        let mut file = header.to_bytes().to_vec();
        file.resize(FILE, 0);
        file
    }

    fn message(file: &[u8]) -> String {
        Header::from_bytes(file).map_or_else(|error| error.to_string(), |_| "accepted".into())
    }

    #[test]
    fn fields_have_the_offsets_of_upstream() {
        let header = Header {
            flatbuffer_offset: 0x0403_0201,
            flatbuffer_size: 0x0807_0605,
            constants_offset: 0x0c0b_0a09,
            constants_size: 0x1413_1211_100f_0e0d,
        };
        let expected: Vec<u8> = b"\0\0\0\0XH00\x1e\0".iter().copied().chain(1..=0x14).collect();
        assert_eq!(header.to_bytes().as_slice(), expected);
    }

    #[test]
    fn headers_round_trip() {
        assert_eq!(Header::from_bytes(&file(GOOD)).ok(), Some(GOOD));
    }

    #[test]
    fn parts_may_be_adjacent() {
        for header in [
            Header { flatbuffer_offset: 30, ..GOOD },
            Header { flatbuffer_size: 8, ..GOOD },
            Header { flatbuffer_size: 64, ..GOOD },
            Header { constants_offset: 92, ..GOOD },
            Header { constants_offset: 200, constants_size: 0, ..GOOD },
        ] {
            assert_eq!(Header::from_bytes(&file(header)).ok(), Some(header));
        }
    }

    #[test]
    fn each_field_is_checked() {
        for (header, expected) in [
            (Header { flatbuffer_offset: 29, ..GOOD }, "overlaps the header"),
            (Header { flatbuffer_offset: u32::MAX, ..GOOD }, "flatbuffer at 4294967295.."),
            (Header { flatbuffer_size: 7, ..GOOD }, "too short"),
            (Header { flatbuffer_size: 65, ..GOOD }, "overlap the flatbuffer"),
            (Header { flatbuffer_size: u32::MAX, ..GOOD }, "beyond the end"),
            (Header { constants_offset: 91, ..GOOD }, "overlap the flatbuffer"),
            (Header { constants_offset: 97, ..GOOD }, "beyond the end"),
            (Header { constants_size: 105, ..GOOD }, "beyond the end"),
            (Header { constants_size: u64::MAX, ..GOOD }, "beyond the end"),
            (Header { constants_size: u64::MAX - 96, ..GOOD }, "beyond the end"),
        ] {
            let message = message(&file(header));
            assert!(message.contains(expected), "{header:?}: {message}");
        }
    }

    #[test]
    fn length_and_magic_are_checked() {
        let mut long = file(GOOD);
        long[8] = 31;
        assert!(message(&long).contains("length is 31, expected 30"));
        let mut other = file(GOOD);
        other[7] = b'1';
        assert!(message(&other).contains("the magic is not XH00"));
        assert!(message(&file(GOOD)[..29]).contains("ends after 29 bytes"));
    }
}
