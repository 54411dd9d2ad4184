//! Tells models and blobs apart by content.

use std::io::Read;
use std::path::Path;

use crate::error::Error;

/// Bytes at the start of a file that tell its kind.
const START: u64 = 8;

/// Whether a file begins like a blob: a header `XH00` or an XN01 flatbuffer.
///
/// # Errors
///
/// The file cannot be read.
pub fn is_blob(path: impl AsRef<Path>) -> Result<bool, Error> {
    let path = path.as_ref();
    let io = |error| Error::Io { path: path.to_owned(), error };
    let mut start = Vec::with_capacity(START as usize);
    xnn_file::open(path).map_err(io)?.take(START).read_to_end(&mut start).map_err(io)?;
    Ok(begins_like_blob(&start))
}

/// [`is_blob`] for the content of a file.
pub(crate) fn begins_like_blob(file: &[u8]) -> bool {
    matches!(file.get(4..8), Some(b"XH00" | b"XN00" | b"XN01"))
}
