//! The bytes of a model file that is being read.

use bytes::Bytes;
use log::Level;

use crate::diagnostics::Diagnostics;
use crate::error::Error;
use crate::limits::ModelLimits;
use crate::metadata::AssociatedFiles;
use crate::types::Quantization;

/// A file, possibly a copy shifted by some bytes, and its diagnostics.
pub(crate) struct File {
    bytes: Bytes,
    shift: u64,
    diagnostics: Diagnostics,
}

impl File {
    /// A file that is not shifted.
    pub(crate) fn new(bytes: Bytes) -> Self {
        Self { bytes, shift: 0, diagnostics: Diagnostics::default() }
    }

    /// A copy with everything after the root offset moved by 4 bytes, which aligns 8-byte values
    /// that are all off by 4 bytes, as some metadata writers leave them. All other offsets are
    /// relative and remain valid.
    pub(crate) fn shifted(&self) -> Option<Self> {
        const SHIFT: u32 = 4;
        let (root, rest) = self.bytes.split_first_chunk::<4>()?;
        let root = u32::from_le_bytes(*root).checked_add(SHIFT)?;
        let identifier = rest.get(..4)?;
        let bytes = [&root.to_le_bytes(), identifier, rest].concat();
        let diagnostics = Diagnostics::default();
        diagnostics.add(
            Level::Info,
            "its 8-byte values are aligned to 4 bytes only; reading from an aligned copy",
        );
        Some(Self { bytes: bytes.into(), shift: SHIFT.into(), diagnostics })
    }

    /// Diagnostics of the file.
    pub(crate) fn diagnostics(&self) -> &Diagnostics {
        &self.diagnostics
    }

    /// All bytes from the root offset on.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// A view of a slice of this file.
    pub(super) fn view(&self, bytes: &[u8]) -> Bytes {
        self.bytes.slice_ref(bytes)
    }

    /// The associated files; empty if the archive is damaged.
    pub(super) fn associated_files(&self, limits: &ModelLimits) -> AssociatedFiles {
        AssociatedFiles::at_end_of(&self.bytes, limits).unwrap_or_else(|error| {
            self.diagnostics.add(Level::Warn, format!("ignoring the associated files: {error}"));
            AssociatedFiles::default()
        })
    }

    /// Reports a quantized dimension that was read as another one than the file states.
    pub(super) fn report_axis<'a>(
        &self,
        read: Option<&Quantization>,
        written: i32,
        tensor: impl FnOnce() -> (usize, &'a str),
    ) {
        match read {
            Some(&Quantization::PerAxis { axis, .. }) if i32::try_from(axis) != Ok(written) => {
                let (index, name) = tensor();
                let what = format!(
                    "the quantized dimension {written} of a tensor of rank 1 is read as {axis}"
                );
                self.diagnostics.add_at(Level::Info, format!("tensor {index} ({name:?})"), what);
            }
            _ => {}
        }
    }

    /// Bytes at `offset` of the original file, outside of the flatbuffer.
    pub(super) fn outside(&self, offset: u64, size: u64) -> Result<Bytes, Error> {
        let range = || {
            let start = usize::try_from(offset.checked_add(self.shift)?).ok()?;
            let end = start.checked_add(usize::try_from(size).ok()?)?;
            (end <= self.bytes.len()).then_some(start..end)
        };
        range().map(|r| self.bytes.slice(r)).ok_or_else(|| {
            Error::invalid(format!(
                "its data ({size} bytes at offset {offset}) extends beyond the end of the file"
            ))
        })
    }
}
