//! Files that are there whole or not at all.

use std::path::Path;

use anyhow::{Result, anyhow};

/// Writes `bytes` to `path`: under a temporary name first, then renamed.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<()> {
    // The kind says it all; messages name the temporary file.
    xnn_format::write_atomic(path, bytes)
        .map_err(|error| anyhow!("{}: cannot be written: {}", path.display(), error.kind()))
}
