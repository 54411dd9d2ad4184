//! The archive. Equal files give equal bytes.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{Builder, HeaderMode};

/// Writes the folder `stage` to a file beside it, and returns its path.
pub fn write(stage: &Path, out: &Path) -> Result<PathBuf> {
    let top = stage.file_name().context("a folder without a name")?;
    let file = out.join(top).with_added_extension("tar.gz");
    let encoder = GzEncoder::new(File::create(&file)?, Compression::best());
    let mut archive = Builder::new(encoder);
    // Leaves out owners, times and permissions other than those for execution.
    archive.mode(HeaderMode::Deterministic);
    archive.follow_symlinks(false);
    for path in sorted_files(stage)? {
        let inside = path.strip_prefix(out)?;
        archive.append_path_with_name(&path, inside)?;
    }
    archive.into_inner()?.finish()?;
    Ok(file)
}

/// Files in a folder and its folders.
pub fn sorted_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                waiting.push(entry.path());
            } else {
                files.push(entry.path());
            }
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_files_give_equal_bytes() -> Result<()> {
        let mut archives = Vec::new();
        for names in [["b", "a"], ["a", "b"]] {
            let out = tempfile::tempdir()?;
            let stage = out.path().join("top");
            fs::create_dir_all(stage.join("bin"))?;
            for name in names {
                fs::write(stage.join("bin").join(name), name)?;
            }
            archives.push(fs::read(write(&stage, out.path())?)?);
        }
        assert_eq!(archives[0], archives[1]);
        Ok(())
    }
}
