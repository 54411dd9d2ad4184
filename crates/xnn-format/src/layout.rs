//! Alignment and padding of the parts of a file.

/// Alignment in bytes of every constant, in the file and in a mapping of it. ExecuTorch aligns to
/// 16; wide vectors load faster from 64.
pub const ALIGNMENT: usize = 64;

/// Zero bytes after the last constant. XNNPACK's kernels may read up to 128 bytes beyond an operand
/// (the largest `XNN_EXTRA_BYTES` of all platforms).
pub const PADDING: usize = 128;

/// Appends zeros up to the next multiple of `alignment`.
pub(crate) fn pad_to(bytes: &mut Vec<u8>, alignment: usize) {
    bytes.resize(bytes.len().next_multiple_of(alignment), 0);
}
