//! Files that are there whole or not at all.

use std::fs::Permissions;
use std::io::{self, Write};
use std::path::Path;

use tempfile::Builder;

/// Writes `bytes` to `path`: under a temporary name first, then renamed. Whoever reads the file
/// meanwhile, or after a crash, finds the old one or the new one.
///
/// # Errors
/// The folder does not exist or cannot be written to, or the disk is full.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut builder = Builder::new();
    if let Some(permissions) = like_any_file() {
        builder.permissions(permissions);
    }
    let mut file = builder.tempfile_in(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_data()?;
    file.persist(path)?;
    Ok(())
}

/// What an ordinary new file may: temporary ones are private otherwise. The
/// umask still applies.
fn like_any_file() -> Option<Permissions> {
    #[cfg(unix)]
    return Some(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    #[cfg(not(unix))]
    return None;
}
