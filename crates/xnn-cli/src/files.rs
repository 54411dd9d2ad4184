//! Files that are there whole or not at all.

use std::fs::Permissions;
use std::io::{self, Write};
use std::path::Path;

use anyhow::{Result, anyhow};
use tempfile::Builder;

/// Writes `bytes` to `path`: under a temporary name first, then renamed.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let write = || -> io::Result<()> {
        let mut builder = Builder::new();
        if let Some(permissions) = like_any_file() {
            builder.permissions(permissions);
        }
        let mut file = builder.tempfile_in(folder)?;
        file.write_all(bytes)?;
        file.persist(path)?;
        Ok(())
    };
    // The kind says it all; messages name the temporary file.
    write().map_err(|error| anyhow!("{}: cannot be written: {}", path.display(), error.kind()))
}

/// What an ordinary new file may: temporary ones are private otherwise. The
/// umask still applies.
fn like_any_file() -> Option<Permissions> {
    #[cfg(unix)]
    return Some(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    #[cfg(not(unix))]
    return None;
}
